"""Compressed captures. In: a compressed stream. Out: a stream of what it holds. The codecs load when one is needed."""

import gzip
import io
import zlib
from typing import Any, BinaryIO, cast

from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
MAX_ZSTD_WINDOW_BYTES = 1 << 27


def decompressed(compression: str, stream: BinaryIO) -> tuple[BinaryIO, tuple[type[Exception], ...]]:
    """The unpacked stream, and what reading it may raise when the compressed bytes are damaged or cut."""
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream)), (EOFError, zlib.error)
    if compression == "zstd":
        import zstandard

        unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES)
        return cast(BinaryIO, unpacker.stream_reader(stream, read_across_frames=True)), (zstandard.ZstdError,)
    import lz4.frame

    return cast(BinaryIO, lz4.frame.LZ4FrameFile(stream)), (EOFError, RuntimeError)


class Counted(io.RawIOBase):
    """A stream that counts what is read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = cast(Any, stream)
        self.count = 0

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto."""
        count: int | None = self._stream.readinto(target)
        self.count += count or 0
        return count


class Unpacked(io.RawIOBase):
    """What a compressed stream holds, as much as an honest capture of its size would: zeros and the like pack a
    thousand times as small, and a few kilobytes of them would keep everybody busy for hours."""

    def __init__(self, stream: BinaryIO, packed: Counted, limits: CaptureLimits, stats: CaptureStats) -> None:
        self._read = getattr(stream, "readinto1", None) or cast(Any, stream).readinto
        self._stream = stream
        self._packed, self._limits, self._stats = packed, limits, stats
        self._given = 0
        self._over = False

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto; nothing more once the limit is reached."""
        limits = self._limits
        most = self._packed.count * limits.usual_packing_ratio + limits.packing_slack_bytes - self._given
        if self._over or most <= 0:
            self._stats.beyond_limits["unpacked_too_much"] += not self._over
            self._over = True
            return 0
        count: int | None = self._read(target[:most] if most < len(target) else target)
        self._given += count or 0
        return count
