"""One capture to read. In: a path or a stream. Out: an open stream, or a sentence that says why there is none."""

import gzip
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, cast

from wirewitness.analyser.base.storage.address import address_of
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.capture.growing import Growing
from wirewitness.analyser.capture.model import Remark

# Compressed captures. In: a compressed stream. Out: a stream of what it holds. The codecs load when one is needed.

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


STANDARD_INPUT = "-"
# Packets, lines of a broker's request log, or batches of a log segment.
InputKind = Literal["packets", "log", "segment"]


class Unclosed:
    """A context manager around a stream that belongs to somebody else."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __enter__(self) -> BinaryIO:
        return self._stream

    def __exit__(self, *_: object) -> None:
        """Leave the stream open."""


@dataclass(frozen=True, slots=True)
class Source:
    """One capture: a file, or a binary stream that is read once and not closed. `name` is what the user wrote.

    follow: the file still grows: at its end reading waits for more until this says True. It is asked about a hundred
        times a second while nothing comes. What has come is handed on as from a live source, but a compressed file is
        handed on in blocks.
    first_ns: the time of the first packet, where it is known.
    record_header_bytes: of a pcap file, where they are known (0 otherwise); a source that begins behind the first
        records says what these told.
    remarks: what to note in the statistics of this capture.
    is_log, is_segment: it is known to be a request log, or a log segment, which have no packets.
    begins, is_packed: of a request log: a digest of its first line that tells of a request; whether it is compressed.
    """

    name: str
    path: FilePath | None = None
    stream: BinaryIO | None = None
    follow: Callable[[], bool] | None = None
    first_ns: int | None = None
    record_header_bytes: int = 0
    remarks: tuple[Remark, ...] = ()
    is_log: bool = False
    is_segment: bool = False
    begins: str = ""
    is_packed: bool = False

    @property
    def kind(self) -> InputKind:
        """What it is known to be; anything else is taken for packets."""
        return "log" if self.is_log else "segment" if self.is_segment else "packets"

    @property
    def other_kind(self) -> str | None:
        """What it is called where it is known to have no packets."""
        return "a request log" if self.is_log else "a log segment" if self.is_segment else None

    def open(self) -> "BinaryIO | Unclosed":
        """A context manager that gives an unbuffered stream at the start; CaptureError when that is not possible."""
        if self.path is None:
            if self.stream is None:
                raise CaptureError(f"{self.name} has nothing to read from.")
            return Unclosed(self.stream)
        try:
            file = self.path.open("rb", buffering=0)
            return cast(BinaryIO, Growing(file, self.follow)) if self.follow else file
        except OSError as error:
            raise CaptureError(explain(self.name, error)) from error


def explain(name: str, error: OSError) -> str:
    """One sentence for an error of the operating system, or of an object store, about `name`."""
    if address_of(name) is not None:
        return f"{name}: {error.strerror or error}."
    if isinstance(error, FileNotFoundError):
        return f"{name}: no such file or directory."
    if isinstance(error, PermissionError):
        return f"{name}: permission denied."
    return f"{name} cannot be read: {error.strerror or error}."


def standard_input() -> Source:
    """Standard input without Python's buffer, so that a live source is handed on as it comes."""
    if sys.stdin is None:
        raise CaptureError("standard input is closed.")
    buffer: Any = sys.stdin.buffer
    return Source(STANDARD_INPUT, stream=getattr(buffer, "raw", buffer))
