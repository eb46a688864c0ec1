"""TLS on a flow: is it there, and which server name does the client ask for? Nothing is decrypted here.

In: the first bytes of both directions. Out: `Encryption`, or None. Sources: RFC 8446 (records, ClientHello), RFC 6066
(server_name).
"""

from __future__ import annotations

from typing import NamedTuple

_HANDSHAKE = 22
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_RECORD_HEADER_BYTES = 5
_MAX_RECORD_BYTES = (1 << 14) + 2048
_SERVER_NAME, _HOST_NAME = 0, 0
_MAX_NAME_BYTES = 255


class Encryption(NamedTuple):
    """sni: the server name in the ClientHello, None where there is none. complete: more bytes would tell no more.

    from_first: the first of the two directions sent the ClientHello; None when it was not seen.
    """

    sni: str | None
    complete: bool
    from_first: bool | None


def encryption(first: bytes, second: bytes) -> Encryption | None:
    """TLS, if the bytes of at least one direction say so and the other does not speak against it."""
    kinds = _record_kind(first), _record_kind(second)
    spoken = [kind for kind, head in zip(kinds, (first, second), strict=True) if head]
    if not spoken or None in spoken:
        return None
    for from_first, head in ((True, first), (False, second)):
        if head[:1] == bytes([_HANDSHAKE]) and head[5:6] == bytes([_CLIENT_HELLO]):
            hello = _hello(head)
            return Encryption(None if hello is None else server_name(hello), hello is not None, from_first)
    return Encryption(None, len(spoken) == len(kinds), None)


def _record_kind(head: bytes) -> int | None:
    """Content type of the record that starts here; None when none can start here."""
    if len(head) < _RECORD_HEADER_BYTES:
        return None
    kind, major, minor = head[0], head[1], head[2]
    size = int.from_bytes(head[3:5])
    if not 20 <= kind <= 23 or major != 3 or minor > 4 or not 0 < size <= _MAX_RECORD_BYTES:
        return None
    after = head[_RECORD_HEADER_BYTES + size :]
    if after and not (20 <= after[0] <= 23 and after[1:2] in (b"", b"\x03")):
        return None
    if kind == _HANDSHAKE and head[5:6] in (bytes([_CLIENT_HELLO]), bytes([_SERVER_HELLO])):
        return kind
    return kind if kind != _HANDSHAKE or after else None


def _hello(head: bytes) -> bytes | None:
    """The body of the ClientHello, put together from its records; None while it is not all there."""
    body = bytearray()
    at = 0
    while at + _RECORD_HEADER_BYTES <= len(head) and head[at] == _HANDSHAKE:
        size = int.from_bytes(head[at + 3 : at + 5])
        body += head[at + _RECORD_HEADER_BYTES : at + _RECORD_HEADER_BYTES + size]
        at += _RECORD_HEADER_BYTES + size
        if len(body) >= 4 and len(body) >= 4 + int.from_bytes(body[1:4]):
            return bytes(body[4 : 4 + int.from_bytes(body[1:4])])
    return None


def server_name(hello: bytes) -> str | None:
    """The host name in a ClientHello's server_name extension. None where there is none, or it is damaged."""
    at = 2 + 32
    for length_bytes in (1, 2, 1):  # session id, cipher suites, compression methods
        at += length_bytes + int.from_bytes(hello[at : at + length_bytes])
    end = min(len(hello), at + 2 + int.from_bytes(hello[at : at + 2]))
    at += 2
    while at + 4 <= end:
        kind, size = int.from_bytes(hello[at : at + 2]), int.from_bytes(hello[at + 2 : at + 4])
        if kind == _SERVER_NAME:
            entry = hello[at + 6 : min(at + 4 + size, end)]
            name = entry[3 : 3 + int.from_bytes(entry[1:3])]
            if entry[:1] != bytes([_HOST_NAME]) or not 0 < len(name) <= _MAX_NAME_BYTES or not name.isascii():
                return None
            return name.decode("ascii")
        at += 4 + size
    return None
