"""Compressed captures. In: a compressed stream. Out: a stream of what it holds. The codecs load when one is needed."""

import gzip
import zlib
from typing import BinaryIO, cast

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
