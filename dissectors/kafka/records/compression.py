"""Decompression of record data under a limit: codec and compressed bytes in, at most `limit` bytes out. Never raises.

The codecs are those of `dissectors/core/decompression.py`; here stands what is Kafka's own: xerial framing
(org.xerial.snappy's SnappyOutputStream), and the LZ4 header checksum that Kafka before 0.10 computed over the wrong
bytes (KAFKA-3160).
"""

from __future__ import annotations

import struct
from functools import lru_cache

import lz4.frame

from wirewitness.dissectors.core.decompression import (
    GZIP,
    LIMIT_REACHED,
    ZSTD,
    Decompressed,
    Stream,
    all_at_once,
    decompress_stream,
    snappy_block,
)

__all__ = ["LIMIT_REACHED", "Decompressed", "decompress"]

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_read_size = struct.Struct(">i").unpack_from


_LZ4 = Stream(lz4.frame.LZ4FrameDecompressor, (RuntimeError,), all_at_once)
_STREAMS = {"gzip": GZIP, "lz4": _LZ4, "zstd": ZSTD}


def decompress(codec: str, data: bytes, limit: int) -> Decompressed:
    """Decompress the data of one batch to at most `limit` bytes (at least 1)."""
    if codec == "none":
        return Decompressed(data)
    if codec == "snappy":
        return _snappy(data, limit)
    stream = _STREAMS.get(codec)
    if stream is None:
        return Decompressed(b"", f"unknown compression: {codec}")
    if codec == "lz4":
        data = _with_right_checksum(data)
    return decompress_stream(stream, data, limit)


def _snappy(data: bytes, limit: int) -> Decompressed:
    """Raw, or in the frames of the Java library: a header, then blocks behind their sizes."""
    if not data.startswith(_XERIAL_MAGIC):
        return snappy_block(data, limit)
    pieces: list[bytes] = []
    at, room = 0, limit
    error: str | None = None
    while at < len(data) and error is None:
        if data.startswith(_XERIAL_MAGIC, at):  # streams written one behind the other
            at += _XERIAL_HEADER_BYTES
            continue
        size = _read_size(data, at)[0] if at + 4 <= len(data) else -1
        if not 0 < size <= len(data) - at - 4:
            error = "the data ends early" if size > 0 or at + 4 > len(data) else "damaged data: impossible block size"
            break
        piece, error, limited, _ = snappy_block(data[at + 4 : at + 4 + size], room)
        if limited:
            return Decompressed(b"".join(pieces), error, limited=True)
        pieces.append(piece)
        room -= len(piece)
        at += 4 + size
    return Decompressed(b"".join(pieces), error)


def _with_right_checksum(data: bytes) -> bytes:
    """The frame with the header checksum that the format asks for; Kafka's own decoders do not look at it either."""
    if not data.startswith(_LZ4_MAGIC) or len(data) < 7:
        return data
    flags = data[4]
    at = 6 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    right = _lz4_checksum(data[:at])
    if right is None or len(data) <= at or data[at] == right:
        return data
    return data[:at] + bytes((right,)) + data[at + 1 :]


@lru_cache(maxsize=64)
def _lz4_checksum(header: bytes) -> int | None:
    """The checksum byte behind this header, found by asking the library: it is one of 256."""
    for candidate in range(256):
        try:
            lz4.frame.get_frame_info(header + bytes((candidate,)) + bytes(8))
        except RuntimeError:
            continue
        return candidate
    return None
