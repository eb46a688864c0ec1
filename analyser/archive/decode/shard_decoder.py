"""One shard of the flows, decoded from chunks.

In: notes and chunks of all ranges, in the order of files, ranges and numbers. Out: what the offline reader's pipeline
makes of the shard's packets: the batches are the same, but for the packets of other shards, and so is the clock.
"""

from __future__ import annotations

import mmap
import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.archive.decode.chunks import Chunk, Segments, opened, stretch_of
from wirewitness.analyser.archive.decode.packets import NOTE, RangeNote
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.decoding.run.pipeline import Pipeline

PathOf = Callable[[int], FilePath]
Rows = npt.NDArray[np.intp]
# Which rows of a batch are fed, told the number of its file.
Chosen = Callable[[int, Any], Rows]


class Before(NamedTuple):
    """What lies before a file: packets of all files, and the clock behind them."""

    packets: int
    clock_ns: int


class ShardDecoder:
    """Feeds a pipeline; `path_of` tells where a file's bytes are, those of objects come with the chunks.

    before: where not all files are read, what lies before each that is. chosen: which packets are fed; None for all.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        path_of: PathOf,
        before: Mapping[int, Before] | None = None,
        chosen: Chosen | None = None,
    ) -> None:
        self._before, self._chosen = before or {}, chosen
        self._pipeline = pipeline
        self._path_of = path_of
        self._file = -1
        self._packets_before = self._file_packets = 0
        self._clock_ns = self._next_clock_ns = -(1 << 62)

    def take(self, chunk: Chunk, stretch: memoryview | None = None) -> None:
        """The next note or chunk. stretch: the bytes of an object that it tells of."""
        if chunk.number == NOTE:
            self._next_range(chunk.file, RangeNote(*pickle.loads(chunk.head)))
            return
        segments = opened(chunk, self._pipeline.endpoints)
        if self._chosen is not None:
            rows = self._chosen(chunk.file, segments.batch)
            if not len(rows):
                return
            segments = segments._replace(batch=segments.batch.chosen(rows), clock=segments.clock[rows])
        batch = segments.batch
        if stretch is not None:
            batch = _moved(batch, stretch, chunk.start)
        elif chunk.payload is None:
            batch = self._mapped(chunk.file, segments)
        self._pipeline.feed(batch, np.maximum(segments.clock, self._clock_ns))

    def place(self) -> tuple[int, int, int]:
        """What `resume` needs: the packets of all files so far, and the clock behind them."""
        return self._packets_before, self._file_packets, max(self._clock_ns, self._next_clock_ns)

    def resume(self, place: tuple[int, int, int]) -> None:
        """Go on where another decoder was."""
        self._packets_before, self._file_packets, self._next_clock_ns = place

    def settle_clock(self) -> None:
        """All chunks are there: the capture's clock is the same for all shards."""
        self._pipeline.advance(max(self._clock_ns, self._next_clock_ns))

    def _next_range(self, file: int, note: RangeNote) -> None:
        if file != self._file:
            self._packets_before += self._file_packets
            self._file, self._file_packets = file, 0
            if (before := self._before.get(file)) is not None:
                self._packets_before = before.packets
                self._next_clock_ns = max(self._next_clock_ns, before.clock_ns)
            self._pipeline.next_file(file, self._packets_before)
        self._file_packets += note.packets
        self._clock_ns = max(self._clock_ns, self._next_clock_ns)
        self._next_clock_ns = self._clock_ns if note.clock_ns is None else note.clock_ns

    def _mapped(self, file: int, segments: Segments) -> PacketBatch:
        """The batch with its part of the file as its data."""
        start, span = stretch_of(segments.batch)
        if not span:
            return _moved(segments.batch, memoryview(b""), 0)
        path, first = self._path_of(file), start // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        assert not isinstance(path, ObjectPath), "bytes of an object come with the chunk"
        with path.open("rb") as opened_file:
            data = mmap.mmap(opened_file.fileno(), start + span - first, access=mmap.ACCESS_READ, offset=first)
        return _moved(segments.batch, memoryview(data), first)


def _moved(batch: PacketBatch, data: memoryview, first: int) -> PacketBatch:
    """The batch whose payloads lie in `data`, which begins with byte `first` of the file."""
    return replace(batch, data=data, payload_start=np.where(batch.payload_bytes > 0, batch.payload_start - first, 0))
