"""The header in front of every frame. In: bytes. Out: a `Header`, or DecodeError.

    magic           uint16   0xCAFE
    version         uint8    1
    frame_type      uint8    1 request, 2 response
    payload_length  uint32   at most 16 MiB

Numbers are big endian; the payload follows, and nobody but the two programs knows what is in it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from wirewitness.dissectors.core.errors import DecodeError

MAGIC = b"\xca\xfe"
HEADER_BYTES = 8
MAX_PAYLOAD_BYTES = 16 << 20
KNOWN_VERSION = 1
REQUEST, RESPONSE = 1, 2
ROLES = {REQUEST: "request", RESPONSE: "response"}
CALL = "Call"

_header = struct.Struct(">xxBBI").unpack_from


class Header(NamedTuple):
    """What a frame says of itself."""

    version: int
    frame_type: int
    payload_length: int

    @property
    def role(self) -> str | None:
        """request or response; None for a frame type that is not known."""
        return ROLES.get(self.frame_type)

    @property
    def operation(self) -> str:
        """There is one operation; what else there may be goes by its number."""
        return CALL if self.frame_type in ROLES else f"Type {self.frame_type}"


def header(data: bytes, start: int, end: int) -> Header:
    """The header at `start`. DecodeError when it is not all there, or none."""
    if end - start < HEADER_BYTES:
        raise DecodeError("the frame ends inside its header")
    if data[start : start + 2] != MAGIC:
        raise DecodeError("the frame does not start with 0xCAFE")
    return Header(*_header(data, start))
