"""TLS on a flow: is it there, and what does the client ask for? Nothing is decrypted here.

In: the first bytes of both directions. Out: `Encryption`, or None. Sources: RFC 8446 (records, ClientHello), RFC 6066
(server_name).
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.carriers.tls.hello import (
    CLIENT_HELLO,
    HANDSHAKE,
    RECORD_HEADER_BYTES,
    SERVER_HELLO,
    ClientHello,
    client_hello,
    first_messages,
)

_MAX_RECORD_BYTES = (1 << 14) + 2048


class Encryption(NamedTuple):
    """hello: the ClientHello, None while it is not whole. complete: more bytes would tell no more.

    from_first: the first of the two directions sent the ClientHello; None when it was not seen.
    """

    hello: ClientHello | None
    complete: bool
    from_first: bool | None


def encryption(first: bytes, second: bytes) -> Encryption | None:
    """TLS, if the bytes of at least one direction say so and the other does not speak against it."""
    kinds = _record_kind(first), _record_kind(second)
    spoken = [kind for kind, head in zip(kinds, (first, second), strict=True) if head]
    if not spoken or None in spoken:
        return None
    for from_first, head in ((True, first), (False, second)):
        if head[:1] == bytes([HANDSHAKE]) and head[5:6] == bytes([CLIENT_HELLO]):
            message = next(first_messages(head), None)
            hello = None if message is None else client_hello(message[1])
            return Encryption(hello, message is not None, from_first)
    return Encryption(None, len(spoken) == len(kinds), None)


def _record_kind(head: bytes) -> int | None:
    """Content type of the record that starts here; None when none can start here."""
    if len(head) < RECORD_HEADER_BYTES:
        return None
    kind, major, minor = head[0], head[1], head[2]
    size = int.from_bytes(head[3:5])
    if not 20 <= kind <= 23 or major != 3 or minor > 4 or not 0 < size <= _MAX_RECORD_BYTES:
        return None
    after = head[RECORD_HEADER_BYTES + size :]
    if after and not (20 <= after[0] <= 23 and after[1:2] in (b"", b"\x03")):
        return None
    if kind == HANDSHAKE and head[5:6] in (bytes([CLIENT_HELLO]), bytes([SERVER_HELLO])):
        return kind
    return kind if kind != HANDSHAKE or after else None
