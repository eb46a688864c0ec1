"""The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677; MongoDB's authentication specification).

In: the payloads of saslStart and saslContinue. Out: the payloads of their replies; CommandError 18 for a wrong user or
password.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from tests.support.mongo_server.errors import CommandError

ITERATIONS = 4096


def digest(key: bytes, text: bytes) -> bytes:
    """Return the HMAC of TEXT."""
    return hmac.digest(key, text, "sha256")


def attributes(payload: bytes) -> dict[str, str]:
    """Return the name=value pairs of a SCRAM message."""
    return dict(part.split("=", 1) for part in payload.decode().split(",") if "=" in part)


class Decoder:
    """One authentication: the first message is answered with first(), the proof with final()."""

    def __init__(self, users: dict[str, str]) -> None:
        self._users = users
        self._bare = b""
        self._challenge = b""
        self._salt = os.urandom(28)
        self._password = ""

    def first(self, payload: bytes) -> bytes:
        """Answer n,,n=USER,r=NONCE with nonce, salt and iterations."""
        self._bare = payload.split(b",", 2)[2]
        asked = attributes(self._bare)
        if asked["n"] not in self._users:
            raise CommandError(18, "Authentication failed.")
        self._password = self._users[asked["n"]]
        nonce = asked["r"] + base64.b64encode(os.urandom(24)).decode()
        self._challenge = f"r={nonce},s={base64.b64encode(self._salt).decode()},i={ITERATIONS}".encode()
        return self._challenge

    def final(self, payload: bytes) -> bytes:
        """Check c=...,r=NONCE,p=PROOF and answer with the server's signature."""
        without_proof, _, proof = payload.rpartition(b",p=")
        salted = hashlib.pbkdf2_hmac("sha256", self._password.encode(), self._salt, ITERATIONS)
        client_key = digest(salted, b"Client Key")
        signed = b",".join((self._bare, self._challenge, without_proof))
        mask = digest(hashlib.sha256(client_key).digest(), signed)
        expected = bytes(one ^ other for one, other in zip(client_key, mask, strict=True))
        if not hmac.compare_digest(base64.b64decode(proof), expected):
            raise CommandError(18, "Authentication failed.")
        return b"v=" + base64.b64encode(digest(digest(salted, b"Server Key"), signed))
