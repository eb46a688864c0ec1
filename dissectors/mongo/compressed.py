"""OP_COMPRESSED: a message inside a message.

In: the bytes of the frame. Out: the message as it was before compression, and by which compressor. The size that a
message states is believed only up to what servers allow; see `dissectors/core/decompression.py` for the other limits.
Source: OP_COMPRESSED specification (opcode 2012; original opcode, uncompressed size, compressor id, data).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from wirewitness.dissectors.core.decompression import Allowance, Decompressed, snappy_block, zlib_block, zstd_block
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.mongo.messages import header_bytes
from wirewitness.dissectors.mongo.opcodes import HEADER_BYTES, MAX_MESSAGE_BYTES, OP_COMPRESSED

NOOP = "noop"
COMPRESSORS: dict[int, str] = {0: NOOP, 1: "snappy", 2: "zlib", 3: "zstd"}
COMPRESSED_HEADER_BYTES = HEADER_BYTES + 9
_read_compressed = struct.Struct("<iiB").unpack_from


class Opened(NamedTuple):
    """data: header and body of the original message as far as they could be had. error: why that is not all of it."""

    opcode: int
    compressor: str
    data: bytes
    stated_bytes: int
    error: str | None


def _noop(data: bytes, limit: int) -> Decompressed:
    return Decompressed(data[:limit])


_DECOMPRESS: dict[str, Callable[[bytes, int], Decompressed]] = {
    NOOP: _noop,
    "snappy": snappy_block,
    "zlib": zlib_block,
    "zstd": zstd_block,
}


def open_compressed(
    data: bytes, start: int, end: int, request_id: int, response_to: int, allowance: Allowance, remarks: list[Remark]
) -> Opened | None:
    """The message inside data[start:end]; None where not even what it is could be read."""
    if end - start < COMPRESSED_HEADER_BYTES:
        return None
    opcode, stated, number = _read_compressed(data, start + HEADER_BYTES)
    header = header_bytes(stated + HEADER_BYTES if 0 <= stated < 1 << 30 else 0, request_id, response_to, opcode)
    name = COMPRESSORS.get(number)
    if name is None or opcode == OP_COMPRESSED:
        error = f"compressor {number} is not known" if name is None else "a compressed message in a compressed one"
        remarks.append(("note", "undecoded", "unknown_compressor" if name is None else "compressed_twice", error))
        return Opened(opcode, name or f"compressor {number}", header, stated, error)
    impossible = _impossible(stated)
    if impossible is not None:
        remarks.append(("error", "limit" if stated > 0 else "malformed", "uncompressed_size", impossible))
        return Opened(opcode, name, header, stated, impossible)
    body = data[start + COMPRESSED_HEADER_BYTES : end]
    if allowance.is_usual(len(body), stated):
        found = _DECOMPRESS[name](body, stated or 1)
        if found.error is None and len(found.data) == stated:
            return Opened(opcode, name, header + found.data, stated, None)
        allowed = stated
    else:
        allowed = allowance.limit(len(body))
        found = _DECOMPRESS[name](body, max(1, min(stated, allowed)))
        allowance.spend(len(body), len(found.data))
    return Opened(opcode, name, header + found.data, stated, _told(found, stated, allowed, remarks))


def _impossible(stated: int) -> str | None:
    if stated < 0:
        return f"it states an uncompressed size of {stated}"
    if stated > MAX_MESSAGE_BYTES - HEADER_BYTES:
        return f"it states an uncompressed size of {stated:,} bytes; servers take {MAX_MESSAGE_BYTES:,} at most"
    return None


def _told(found: Decompressed, stated: int, allowed: int, remarks: list[Remark]) -> str | None:
    """Why the data is not what the message says, also as a remark."""
    if found.limited and stated > allowed:
        error = f"it may become {allowed:,} bytes at most, and states {stated:,}"
        remarks.append(("warn", "limit", "decompression_limit", error))
        return error
    if found.limited:
        error = f"it holds more than the {stated:,} bytes that it states"
        remarks.append(("error", "limit", "decompression_limit", error))
        return error
    if found.error is not None:
        remarks.append(("error", "malformed", "decompression_failed", found.error))
        return found.error
    if len(found.data) != stated:
        error = f"it holds {len(found.data):,} bytes where it states {stated:,}"
        remarks.append(("error", "malformed", "uncompressed_size", error))
        return error
    return None
