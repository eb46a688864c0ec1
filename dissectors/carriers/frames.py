"""How WebSocket looks (RFC 6455): the first bytes of a connection, and those of a frame.

Asked about every connection; imports nothing that takes time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.frames import Bytes, Flags

METHOD = b"GET "
MASKED, COMPRESSED, RESERVED = 0x80, 0x40, 0x70
# Continuation, text, binary; close, ping, pong: RFC 6455, 5.2.
OPCODES = frozenset({0x0, 0x1, 0x2, 0x8, 0x9, 0xA})


def may_open(client: bytes) -> bool:
    """WebSocket over HTTP/1.1 begins with a GET."""
    return client[: len(METHOD)] == METHOD[: len(client)]


def opens(heads: Bytes) -> Flags:
    """The same of many clients."""
    found: Flags = heads[:, 0] == METHOD[0]
    return found


def looks_like(data: bytes) -> int | None:
    """Who could send a segment with these first bytes: clients mask, servers do not. None for nobody."""
    if len(data) < 2 or data[0] & RESERVED or data[0] & 0x0F not in OPCODES:
        return None
    return CLIENT_TO_SERVER if data[1] & MASKED else SERVER_TO_CLIENT
