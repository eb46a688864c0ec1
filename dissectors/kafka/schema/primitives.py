"""Values that every Kafka message is made of: bytes in, numbers and text out, and the error for bytes that are neither.

Positions are offsets into the caller's buffer. `end` is where the frame stops; the buffer may go on behind it.
Source: https://kafka.apache.org/protocol#protocol_types
"""

from __future__ import annotations

import base64
from typing import Any

from wirewitness.dissectors.core.errors import DecodeError

# A decoded struct: field names to values.
Value = dict[str, Any]

# An unsigned varint has so many bytes behind its first one at most.
MORE_VARINT_BYTES = 4
NO_TOPIC_ID = bytes(16)  # the uuid field of a topic without an id
# The controllers' own log has the same topic id everywhere (Uuid.METADATA_TOPIC_ID), and no answer tells its name.
METADATA_TOPIC_ID = bytes(15) + b"\x01"
METADATA_TOPIC = "__cluster_metadata"
# The start of records that nobody has seen, only their size is known: a request log tells no more.
UNSEEN = -1


def continue_uvarint(buf: bytes, pos: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first byte `first` (above 127) stood just before `pos`.

    Returns (value, position behind it). Raises DecodeError above 32 bits, IndexError at the end of the buffer.
    """
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFF_FFFF:
                break
            return value, pos
    raise DecodeError("unsigned varint is wider than 32 bits")


def read_uvarint(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint that has to stand before `end`; (value, position behind it) or DecodeError."""
    try:
        value = buf[pos]
        pos += 1
        if value > 0x7F:
            value, pos = continue_uvarint(buf, pos, value)
    except IndexError:
        raise DecodeError("varint runs past the end") from None
    except DecodeError:
        if pos + MORE_VARINT_BYTES <= end:
            raise
        raise DecodeError("varint runs past the end") from None  # what is wrong with it lies behind the end
    if pos > end:
        raise DecodeError("varint runs past the end")
    return value, pos


def tag_head(buf: bytes, pos: int, end: int) -> tuple[int, int, int]:
    """Number, first position and position behind the value of the tagged field at `pos`; DecodeError past `end`."""
    tag, pos = read_uvarint(buf, pos, end)
    size, pos = read_uvarint(buf, pos, end)
    if size > end - pos:
        raise DecodeError(f"tagged field {tag} runs past the end")
    return tag, pos, pos + size


def skip_tags(buf: bytes, pos: int, count: int, end: int) -> int:
    """Position behind the tagged fields whose count began with the byte `count` just before `pos`."""
    if count > 0x7F:
        count, pos = read_uvarint(buf, pos - 1, end)
    for _ in range(count):
        _, _, pos = tag_head(buf, pos, end)
    return pos


def text(raw: bytes) -> str:
    """UTF-8 to str; bytes that are not UTF-8 stay readable as \\xNN instead of failing the message."""
    return raw.decode("utf-8", "backslashreplace")


def uuid_text(raw: bytes) -> str:
    """A uuid field as Kafka prints it: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
