"""One share of the flows, decoded from chunks.

In: notes and chunks of all ranges, in the order of files, ranges and numbers. Out: what the offline reader's pipeline
makes of the share's packets: the batches are the same, but for the packets of other shares, and so is the clock.
"""

from __future__ import annotations

import mmap
import pickle
from collections.abc import Callable

import numpy as np

from analyser.archive.decode.chunks import Chunk, Segments, opened
from analyser.archive.decode.packets import NOTE, RangeNote
from analyser.capture import PacketBatch
from analyser.reading.pipeline import Pipeline
from analyser.storage.files import FilePath

PathOf = Callable[[int], FilePath]


class ShareDecoder:
    """Feeds a pipeline; `path_of` tells where a file's bytes are. Picklable but for the pipeline."""

    def __init__(self, pipeline: Pipeline, path_of: PathOf) -> None:
        self._pipeline = pipeline
        self._path_of = path_of
        self._file = -1
        self._packets_before = self._file_packets = 0
        self._clock_ns = self._next_clock_ns = -(1 << 62)

    def take(self, chunk: Chunk) -> None:
        """The next note or chunk."""
        if chunk.number == NOTE:
            self._next_range(chunk.file, RangeNote(*pickle.loads(chunk.head)))
            return
        segments = opened(chunk, self._pipeline.endpoints)
        batch = segments.batch if chunk.payload is not None else self._mapped(chunk.file, segments)
        self._pipeline.feed(batch, np.maximum(segments.clock, self._clock_ns))

    def place(self) -> tuple[int, int, int]:
        """What `resume` needs: the packets of all files so far, and the clock behind them."""
        return self._packets_before, self._file_packets, max(self._clock_ns, self._next_clock_ns)

    def resume(self, place: tuple[int, int, int]) -> None:
        """Go on where another decoder was."""
        self._packets_before, self._file_packets, self._next_clock_ns = place

    def settle_clock(self) -> None:
        """All chunks are there: the capture's clock is the same for all shares."""
        self._pipeline.advance(max(self._clock_ns, self._next_clock_ns))

    def _next_range(self, file: int, note: RangeNote) -> None:
        if file != self._file:
            self._packets_before += self._file_packets
            self._file, self._file_packets = file, 0
            self._pipeline.next_file(file, self._packets_before)
        self._file_packets += note.packets
        self._clock_ns = max(self._clock_ns, self._next_clock_ns)
        self._next_clock_ns = self._clock_ns if note.clock_ns is None else note.clock_ns

    def _mapped(self, file: int, segments: Segments) -> PacketBatch:
        """The batch with its part of the file as its data."""
        batch, starts = segments.batch, segments.batch.payload_start
        if not segments.size:
            return _with(batch, memoryview(b""), np.zeros_like(starts))
        there = batch.payload_bytes > 0
        ends = starts + batch.payload_bytes
        first = int(starts[there].min()) // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        length = int(ends[there].max()) - first
        with self._path_of(file).open("rb") as opened_file:
            data = mmap.mmap(opened_file.fileno(), length, access=mmap.ACCESS_READ, offset=first)
        return _with(batch, memoryview(data), np.where(there, starts - first, 0))


def _with(batch: PacketBatch, data: memoryview, starts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> PacketBatch:
    columns = {name: getattr(batch, name) for name in PacketBatch.__slots__}
    return PacketBatch(**{**columns, "data": data, "payload_start": starts})
