"""Decompression under a limit: compressed bytes in, at most `limit` bytes out. Never raises.

A few bytes can state or give gigabytes, so nothing is decompressed in one go: deflate and lz4 are asked for no more
than the room left, zstd is fed so little at a time that it cannot give much more, snappy states its size up front.
Sources: RFC 1950, RFC 1952, RFC 8878, lz4_Frame_format.md, snappy format_description.txt.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import cramjam
import zstandard

from wirewitness.dissectors.core.limits import Limits

# What goes wrong is looked for again in small steps, so that what was readable before it is kept.
CAREFUL_BYTES = 64
# A batch is one frame; a codec allows several. Empty ones cost time and give nothing.
MAX_FRAMES = 1000
LIMIT_REACHED = "it holds more than may be decompressed"
# A zstd block gives at most 128 KiB and takes at least 4 bytes (RFC 8878, 3.1.1.2), so this much input at most `limit`.
_ZSTD_BYTES_PER_INPUT_BYTE = 128 * 1024 // 4
_ZSTD_MAX_WINDOW_BYTES = 128 << 20  # what zstd itself takes unless told otherwise (ZSTD_WINDOWLOG_LIMIT_DEFAULT)
# Beyond what deflate (1032) and lz4 (255) can give.
_MAX_RATIO = 1100
# A copy element of 3 bytes gives 64 at most.
_SNAPPY_MAX_RATIO = 22


class Decompressed(NamedTuple):
    """What came out. `error`: why it is not all; `limited`: the limit is why. `more`: bytes behind it mean nothing."""

    data: bytes
    error: str | None = None
    limited: bool = False
    more: bool = False


class Allowance:
    """How much the compressed data of a flow may still give: an honest multiple of what it takes, and some more."""

    __slots__ = ("_limits", "_slack_bytes")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slack_bytes = limits.decompression_slack_bytes

    @property
    def max_records(self) -> int:
        """Most records of a batch that is not compressed."""
        return self._limits.max_records_per_batch

    def usual_records(self, compressed_bytes: int) -> int:
        """Most records of a batch of this much compressed data without a question."""
        return min(self.max_records, compressed_bytes * self._limits.usual_records_per_compressed_byte)

    def most_records(self, compressed_bytes: int) -> int:
        """Most records of it."""
        return min(self.max_records, self.usual_records(compressed_bytes) + self._limits.compressed_records.left)

    def spend_records(self, compressed_bytes: int, count: int) -> None:
        """So many are decoded of it."""
        self._limits.compressed_records.spend(max(0, count - self.usual_records(compressed_bytes)))

    def is_usual(self, compressed_bytes: int, given_bytes: int) -> bool:
        """May it become this much without a question? Then nothing has to be spent."""
        limits = self._limits
        usual = compressed_bytes * limits.usual_compression_ratio
        return given_bytes <= usual and given_bytes <= limits.max_decompressed_bytes

    def limit(self, compressed_bytes: int) -> int:
        """Most bytes that this much compressed data may become, at least 1."""
        usual = compressed_bytes * self._limits.usual_compression_ratio
        slack = min(self._slack_bytes, self._limits.decompression_slack.left)
        return max(1, min(self._limits.max_decompressed_bytes, usual + slack))

    def spend(self, compressed_bytes: int, given_bytes: int) -> None:
        """It became this much."""
        beyond = max(0, given_bytes - compressed_bytes * self._limits.usual_compression_ratio)
        self._slack_bytes = max(0, self._slack_bytes - beyond)
        self._limits.decompression_slack.spend(beyond)


class Stream(NamedTuple):
    """A codec that decompresses step by step.

    new: makes an object with decompress(data, most bytes wanted), eof and unused_data (bytes or None).
    step_bytes: limit -> most input for one step.
    takes_all: the object keeps none of its input back, however much it gives; its limit is step_bytes.
    """

    new: Callable[[], Any]
    errors: tuple[type[Exception], ...]
    step_bytes: Callable[[int], int]
    takes_all: bool = False


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


def all_at_once(_: int) -> int:
    """The step of a codec whose object keeps to a limit itself."""
    return 1 << 62


GZIP = Stream(lambda: zlib.decompressobj(wbits=31), (zlib.error,), all_at_once)
ZLIB = Stream(lambda: zlib.decompressobj(wbits=15), (zlib.error,), all_at_once)
ZSTD = Stream(
    _ZstdStream,
    (zstandard.ZstdError,),
    lambda limit: max(CAREFUL_BYTES, limit // _ZSTD_BYTES_PER_INPUT_BYTE),
    takes_all=True,
)


def decompress_stream(stream: Stream, data: bytes, limit: int) -> Decompressed:
    """Decompress frames that follow each other to at most `limit` bytes (at least 1)."""
    whole = _streamed(stream, data, limit, stream.step_bytes(limit))
    if whole.error is None or whole.limited or len(data) <= CAREFUL_BYTES:
        return whole
    return _streamed(stream, data, limit, CAREFUL_BYTES)


def zlib_block(data: bytes, room: int) -> Decompressed:
    """One zlib stream that is all there: at once where it is what it should be, else step by step."""
    stream = zlib.decompressobj()
    try:
        given = stream.decompress(data, room)
    except zlib.error:
        return decompress_stream(ZLIB, data, room)
    return Decompressed(given) if stream.eof else decompress_stream(ZLIB, data, room)


def _streamed(stream: Stream, data: bytes, limit: int, step_bytes: int) -> Decompressed:
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
            return Decompressed(b"".join(pieces), text, more=text is None)
        at += len(step)
        pieces.append(piece[:room])
        given += len(piece)
        # The end of a frame, its checksum for one, may come with the next step and gives nothing.
        ended = current.eof or (stream.takes_all and at < len(data))
        if len(piece) > room or (len(piece) == room and not ended):
            return Decompressed(b"".join(pieces), LIMIT_REACHED, limited=True)
        room -= len(piece)
        if current.eof:
            at -= len(current.unused_data or b"")
            frames += 1
            current = None
            if room == 0:
                break  # whatever follows has no room
    return Decompressed(b"".join(pieces), None if frames else "the data ends early")


def snappy_block(data: bytes, room: int) -> Decompressed:
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


def zstd_block(data: bytes, room: int) -> Decompressed:
    """One zstd frame that is all there: at once where it states a size that has room, else step by step."""
    try:
        if 0 <= zstandard.frame_content_size(data) <= room:
            return Decompressed(_zstd(threading.get_ident()).decompress(data))
    except zstandard.ZstdError:
        pass  # what is readable before the damage comes step by step
    return decompress_stream(ZSTD, data, room)


@lru_cache(maxsize=16)
def _zstd(_thread: int) -> zstandard.ZstdDecompressor:
    """Making one takes longer than a small message; threads may not share it."""
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)
