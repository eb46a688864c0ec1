"""Rows in the order of time, however many there are, in a fixed amount of memory.

In: chunks of rows, each sorted by time, that overlap where rows came late. Out: batches in the order of time, then
flow, then arrival; remarks by packet and what they say before arrival. Captures are nearly in order, so a chunk is read
for two or three neighbouring batches; rows in no order at all cost more reading, never more memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.decoding.rows.text_codes import in_text, together

TIME, FLOW, ROW = "ts", "_flow", "_row"
# In the column FLOW of rows about the capture as a whole.
NO_FLOW = -1
# Columns by which rows of one time and flow are sorted before their arrival, in a table that has them all: remarks on
# streams and on messages are made at different times, which the size of the batches would show.
TIED = ("packet", "code", "span")
SAMPLE_EVERY = 64
CHUNKS_HELD = 4

Times = npt.NDArray[np.int64]


class Chunk(NamedTuple):
    """What is remembered of a chunk: its earliest and latest time, its rows, and every 64th of its times."""

    first: int
    last: int
    rows: int
    sample: Times


def sorted_chunk(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Chunk]:
    """The batch in the order of time, flow and arrival, and what to remember of it. It must not be empty."""
    times = _numbers(batch, TIME)
    if set(TIED) <= set(batch.schema.names):
        keys = [(name, "ascending") for name in (TIME, FLOW, *TIED, ROW)]
        columns = pa.table({name: in_text(batch.column(name)) for name, _ in keys})
        order = pc.sort_indices(columns, keys).to_numpy()
    else:
        order = np.lexsort((_numbers(batch, ROW), _numbers(batch, FLOW), times))
    times = times[order]
    if (np.diff(order.astype(np.int64)) != 1).any():
        batch = pc.take(batch, pa.array(order))
    return batch, Chunk(int(times[0]), int(times[-1]), len(times), times[::SAMPLE_EVERY].copy())


def in_time_order(
    chunks: Sequence[Chunk],
    read: Callable[[int], pa.RecordBatch],
    schema: pa.Schema,
    batch_rows: int,
    chunks_held: int = CHUNKS_HELD,
) -> Iterator[pa.RecordBatch]:
    """All rows in batches of about `batch_rows`. `read(i)` gives the rows of chunk i again; `chunks_held` of them stay
    in memory. schema: of their columns, with texts everywhere."""
    if not chunks:
        return
    held = _Held(read, chunks_held)
    edges = _edges(chunks, batch_rows)
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        overlapping = [place for place, chunk in enumerate(chunks) if chunk.first < end and chunk.last >= start]
        if end - start == 1 and sum(chunks[place].rows for place in overlapping) > 8 * batch_rows:
            # So many rows of one instant are not sorted further: they come in the order of their chunks.
            yield from (part for place in overlapping if (part := held.between(place, start, end)).num_rows)
            continue
        parts = [part for place in overlapping if (part := held.between(place, start, end)).num_rows]
        if len(parts) == 1:
            yield parts[0]
        elif parts:
            yield sorted_chunk(together(parts, schema))[0]


def _edges(chunks: Sequence[Chunk], batch_rows: int) -> Times:
    """Times that cut the rows into ranges of about `batch_rows`; a crowded instant is a range of its own."""
    sample = np.sort(np.concatenate([chunk.sample for chunk in chunks]))
    step = max(1, batch_rows // SAMPLE_EVERY)
    inner = sample[step::step]
    crowded = np.unique(inner[1:][inner[1:] == inner[:-1]])
    end = max(chunk.last for chunk in chunks) + 1
    start = min(chunk.first for chunk in chunks)
    return np.unique(np.concatenate(([start, end], inner, crowded, crowded + 1)))


class _Held:
    """The chunks read last, with their times."""

    def __init__(self, read: Callable[[int], pa.RecordBatch], most: int) -> None:
        self._read, self._most = read, most
        self._chunks: OrderedDict[int, tuple[pa.RecordBatch, Times]] = OrderedDict()

    def between(self, place: int, start: int, end: int) -> pa.RecordBatch:
        """Rows of a chunk with start <= time < end."""
        if place not in self._chunks:
            batch = self._read(place)
            self._chunks[place] = batch, _numbers(batch, TIME)
            if len(self._chunks) > self._most:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(place)
        batch, times = self._chunks[place]
        first, last = np.searchsorted(times, [start, end]).tolist()
        return batch.slice(first, last - first)


def _numbers(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = batch.column(name).to_numpy(zero_copy_only=False)
    return numbers
