"""What a SASL token tells of its sender: token bytes in, user name out; passwords, proofs and tickets stay inside.

PLAIN: RFC 4616. SCRAM: RFC 5802, with the extension `tokenauth=true` where the user is the id of a delegation token
(KIP-48). GSSAPI: RFC 2743 section 3.1 for the first token; the principal in it is encrypted. Tokens of OAUTHBEARER
(RFC 7628) and of other mechanisms are credentials as a whole and are not looked into.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.schema.primitives import read_uvarint, text

MAX_USER_NAME_BYTES = 1000
# gs2 header (channel binding flag, authzid), reserved extension, user name, nonce, extensions
_SCRAM_FIRST = re.compile(rb"(?:[ny]|p=[A-Za-z0-9.-]+),(?:a=[^,]*)?,(?:m=[^,]*,)?n=([^,]+),r=[^,]+((?:,[^,]*)*)")
# First byte of a first token of GSSAPI.
GSSAPI_TAG = 0x60
_KERBEROS = bytes.fromhex("06092a864886f712010202")
_SPNEGO = bytes.fromhex("06062b0601050502")


class Who(NamedTuple):
    """user_name: None where the mechanism does not show it. delegation_token: the name is a token's id."""

    user_name: str | None
    delegation_token: bool | None


NOBODY = Who(None, None)


def who(mechanism: str | None, token: bytes) -> Who:
    """Whose token of this mechanism it is."""
    if mechanism == "PLAIN":
        return _plain(token)
    if mechanism is not None and mechanism.startswith("SCRAM-"):
        return _scram(token)
    return NOBODY


def mechanism_of(token: bytes) -> str | None:
    """The mechanism of a first token whose handshake is not in the capture; None where the token does not tell."""
    if gssapi_token(token, 0, len(token)):
        return "GSSAPI"
    if _SCRAM_FIRST.fullmatch(token):
        return "SCRAM"
    if b"\x01auth=Bearer " in token[:MAX_USER_NAME_BYTES]:
        return "OAUTHBEARER"
    return "PLAIN" if _plain(token).user_name is not None else None


def _plain(token: bytes) -> Who:
    """authzid NUL authcid NUL password."""
    parts = token.split(b"\0", 3)
    if len(parts) != 3 or not 0 < len(parts[1]) <= MAX_USER_NAME_BYTES:
        return NOBODY
    return Who(text(parts[1]), False)


def _scram(token: bytes) -> Who:
    """The first message of a client; later ones have no name."""
    found = _SCRAM_FIRST.fullmatch(token)
    if found is None or len(found[1]) > MAX_USER_NAME_BYTES:
        return NOBODY
    name = found[1].replace(b"=2C", b",").replace(b"=3D", b"=")
    return Who(text(name), b"tokenauth=true" in found[2].split(b","))


def gssapi_token(data: bytes, start: int, end: int) -> bool:
    """Is `data[start:end]` a first token of GSSAPI: tag, length up to `end`, then the mechanism Kerberos or SPNEGO?

    `data` may stop behind the mechanism.
    """
    if min(end, len(data)) - start < 12 or data[start] != GSSAPI_TAG:
        return False
    size, at = data[start + 1], start + 2
    if size > 0x80:
        count = size & 0x7F
        size, at = int.from_bytes(data[at : at + count], "big"), at + count
    return at + size == end and data.startswith((_KERBEROS, _SPNEGO), at)


def auth_bytes(version: int, data: bytes, body: int, end: int) -> bytes:
    """The token of a SaslAuthenticate request whose body starts at `body`; empty where the bytes are not one."""
    try:
        if version >= 2:
            size, start = read_uvarint(data, body, end)
            size -= 1
        else:
            size, start = int.from_bytes(data[body : body + 4], "big", signed=True), body + 4
    except DecodeError:
        return b""
    return data[start : start + size] if 0 <= size <= end - start else b""
