"""Records of TLS 1.3 that no library sends on request: padded ones, empty ones, key updates, all in any order.

In: a connection after its handshake, and its key log. Out: records of the client, sealed by `cryptography` alone.
Sources: RFC 8446, 5.2 to 5.4 and 7.1 to 7.3.
"""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from tests.support.tls_twin import Pair

DATA, HANDSHAKE = 23, 22
KEY_UPDATE = bytes.fromhex("18 000001 00")
_HASHES: dict[str, tuple[hashes.HashAlgorithm, int]] = {
    "TLS_AES_256_GCM_SHA384": (hashes.SHA384(), 32), "TLS_AES_128_GCM_SHA256": (hashes.SHA256(), 16),
}  # fmt: skip


class Sealer:
    """The client's records behind its Finished."""

    def __init__(self, pair: Pair, keylog: bytes) -> None:
        """ValueError for a suite that is not AES-GCM."""
        cipher = pair.client.cipher()
        if cipher is None or cipher[0] not in _HASHES:
            raise ValueError(f"{cipher}")
        self._hash, self._key_bytes = _HASHES[cipher[0]]
        (line,) = [line for line in keylog.splitlines() if line.startswith(b"CLIENT_TRAFFIC_SECRET_0 ")]
        self._use(bytes.fromhex(line.split()[2].decode()))

    def seal(self, content: bytes, kind: int = DATA, padding: int = 0) -> bytes:
        """The next record."""
        inner = content + bytes([kind]) + bytes(padding)
        head = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2)
        nonce = (int.from_bytes(self._iv) ^ self._number).to_bytes(12)
        self._number += 1
        return head + AESGCM(self._key).encrypt(nonce, inner, head)

    def key_update(self) -> bytes:
        """The record that ends this key; what follows is under the next one."""
        record = self.seal(KEY_UPDATE, HANDSHAKE)
        self._use(self._expand("traffic upd", self._hash.digest_size))
        return record

    def _use(self, secret: bytes) -> None:
        self._secret, self._number = secret, 0
        self._key, self._iv = self._expand("key", self._key_bytes), self._expand("iv", 12)

    def _expand(self, label: str, size: int) -> bytes:
        told = b"tls13 " + label.encode()
        info = size.to_bytes(2) + bytes([len(told)]) + told + b"\0"
        return HKDFExpand(self._hash, size, info).derive(self._secret)
