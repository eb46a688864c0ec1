"""Decompression of record data under a limit: codec and compressed bytes in, at most `limit` bytes out. Never raises.

A few bytes can state or give gigabytes, so nothing is decompressed in one go: gzip and lz4 are asked for no more than
the room left, zstd is fed so little at a time that it cannot give much more, snappy states its size up front.
Sources: RFC 1952, RFC 8878, lz4_Frame_format.md, snappy format_description.txt; xerial framing: org.xerial.snappy's
SnappyOutputStream; Kafka before 0.10 computed the LZ4 header checksum over the wrong bytes (KAFKA-3160).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import cramjam
import lz4.frame
import zstandard

# What goes wrong is looked for again in small steps, so that what was readable before it is kept.
CAREFUL_BYTES = 64
# A batch is one frame; a codec allows several. Empty ones cost time and give nothing.
MAX_FRAMES = 1000
LIMIT_REACHED = "it holds more than may be decompressed"
# A zstd block gives at most 128 KiB and takes at least 4 bytes (RFC 8878, 3.1.1.2), so this much input at most `limit`.
_ZSTD_BYTES_PER_INPUT_BYTE = 128 * 1024 // 4
_ZSTD_MAX_WINDOW_BYTES = 128 << 20  # what zstd itself takes unless told otherwise (ZSTD_WINDOWLOG_LIMIT_DEFAULT)
# Beyond what gzip (1032) and lz4 (255) can give.
_MAX_RATIO = 1100
# A copy element of 3 bytes gives 64 at most.
_SNAPPY_MAX_RATIO = 22
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_read_size = struct.Struct(">i").unpack_from


class Decompressed(NamedTuple):
    """What came out. `error`: why it is not all; `limited`: the limit is why."""

    data: bytes
    error: str | None = None
    limited: bool = False


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
    whole = _streamed(stream, data, limit, stream.step_bytes(limit))
    if whole.error is None or whole.limited or len(data) <= CAREFUL_BYTES:
        return whole
    return _streamed(stream, data, limit, CAREFUL_BYTES)


class _Stream(NamedTuple):
    """A codec that decompresses step by step.

    new: makes an object with decompress(data, most bytes wanted), eof and unused_data (bytes or None).
    step_bytes: limit -> most input for one step.
    """

    new: Callable[[], Any]
    errors: tuple[type[Exception], ...]
    step_bytes: Callable[[int], int]


class _ZstdStream:
    """zstandard's object has no limit of its own; see `_ZSTD_BYTES_PER_INPUT_BYTE`."""

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        self._stream = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES).decompressobj()

    def decompress(self, data: bytes, _: int) -> bytes:
        """What these bytes give."""
        return self._stream.decompress(data)

    @property
    def eof(self) -> bool:
        """The frame ended."""
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        """What follows the frame."""
        return self._stream.unused_data


def _all_at_once(_: int) -> int:
    return 1 << 62


_STREAMS = {
    "gzip": _Stream(lambda: zlib.decompressobj(wbits=31), (zlib.error,), _all_at_once),
    "lz4": _Stream(lz4.frame.LZ4FrameDecompressor, (RuntimeError,), _all_at_once),
    "zstd": _Stream(
        _ZstdStream,
        (zstandard.ZstdError,),
        lambda limit: max(CAREFUL_BYTES, limit // _ZSTD_BYTES_PER_INPUT_BYTE),
    ),
}


def _streamed(stream: _Stream, data: bytes, limit: int, step_bytes: int) -> Decompressed:
    """One frame after the other, `step_bytes` of input at a time."""
    pieces: list[bytes] = []
    at, room, frames = 0, limit, 0
    current: Any = None
    given = 0
    while at < len(data) and frames < MAX_FRAMES:
        step = data[at : at + step_bytes]
        if current is None:
            current, given = stream.new(), 0
        try:
            # lz4 allocates what it is allowed to give.
            piece = current.decompress(step, min(room, (at + len(step)) * _MAX_RATIO + CAREFUL_BYTES))
        except stream.errors as error:
            # Brokers and clients do not look at bytes behind the last frame either.
            text = None if frames and not given else f"damaged data: {error}"
            return Decompressed(b"".join(pieces), text)
        at += len(step)
        pieces.append(piece[:room])
        given += len(piece)
        if len(piece) > room or (len(piece) == room and not current.eof):
            return Decompressed(b"".join(pieces), LIMIT_REACHED, limited=True)
        room -= len(piece)
        if current.eof:
            at -= len(current.unused_data or b"")
            frames += 1
            current = None
            if room == 0:
                break  # whatever follows has no room
    return Decompressed(b"".join(pieces), None if frames else "the data ends early")


def _snappy(data: bytes, limit: int) -> Decompressed:
    """Raw, or in the frames of the Java library: a header, then blocks behind their sizes."""
    if not data.startswith(_XERIAL_MAGIC):
        return _snappy_block(data, limit)
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
        piece, error, limited = _snappy_block(data[at + 4 : at + 4 + size], room)
        if limited:
            return Decompressed(b"".join(pieces), error, limited=True)
        pieces.append(piece)
        room -= len(piece)
        at += 4 + size
    return Decompressed(b"".join(pieces), error)


def _snappy_block(data: bytes, room: int) -> Decompressed:
    """One raw block; its size is checked before anything is allocated. All of it or nothing."""
    try:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > len(data) * _SNAPPY_MAX_RATIO:
            return Decompressed(b"", "damaged data: it states a size that it cannot have")
        if size > room:
            return Decompressed(b"", LIMIT_REACHED, limited=True)
        return Decompressed(bytes(cramjam.snappy.decompress_raw(data)))
    except cramjam.DecompressionError as error:
        return Decompressed(b"", f"damaged data: {error}")


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
