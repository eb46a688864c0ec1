"""Rows that leave when they are old. In: rows as dissectors give them. Out: those of the last hour or so.

Rows lie in memory and then in files of some hundred thousand rows each; a file is removed as a whole. Rows that tell
what others mean (brokers, assignments, connections) stay as long as their flow is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.decoding.rows.chunk_file import ChunkWriter, read_chunk
from wirewitness.analyser.decoding.rows.raw_table import RawTable
from wirewitness.analyser.decoding.rows.rows_file import CHUNK_ROWS, HandedOver
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.text_codes import of_its_own, together
from wirewitness.analyser.decoding.rows.timeorder import (
    CHUNKS_HELD,
    FLOW,
    NO_FLOW,
    SAMPLE_EVERY,
    TIME,
    Chunk,
    sorted_chunk,
)
from wirewitness.analyser.tables.tables import TABLES

LASTING = frozenset(table.name for table in TABLES.values() if table.lasting)
_MERGED_AT = 64
_LEAST_TIME = -(1 << 63)


class Kept(NamedTuple):
    """How long rows stay: those of the last `age_ns`, of each table at most about `rows`, of ended flows `flows`."""

    age_ns: int = 3600 * 1_000_000_000
    rows: int = 1_000_000
    flows: int = 200_000


class RollingTable(RawTable):
    """A table that forgets. forgotten: rows that have left it. watcher: is shown what comes in, as Arrow.

    span_ns: rows that are put together lie in one such span of time, so that they can leave together.
    """

    forgotten = 0
    span_ns = 1 << 60
    cut_ns: int | None = None
    watcher: Callable[[pa.RecordBatch], None] | None = None
    known_flows: pa.Array | None = None
    _files = 0

    def forget(self, before_ns: int, most_rows: int) -> None:
        """Forget rows from before this time, and the oldest of more than `most_rows`, in whole chunks."""
        self.pack()
        keep_ns = None if self.name in LASTING else before_ns
        while self._adopted and self._is_old(self._adopted[0].chunks, keep_ns, most_rows):
            gone = self._adopted.pop(0)
            self._note(gone.rows, max(chunk.last for chunk in gone.chunks))
            gone.path.unlink(missing_ok=True)
        while self._chunks and not self._adopted and self._is_old(self._chunks[:1], keep_ns, most_rows):
            batch, chunk = self._batches.pop(0), self._chunks.pop(0)
            self._in_memory -= batch.num_rows
            self._bytes_in_memory -= batch.nbytes
            self._note(chunk.rows, chunk.last)

    def since_ns(self, most_rows: int) -> int:
        """From when on there are about so many rows, lasting ones aside; the least time while there are fewer."""
        self.pack()
        chunks = [chunk for rows in self._adopted for chunk in rows.chunks] + self._chunks
        if self.name in LASTING or sum(chunk.rows for chunk in chunks) <= most_rows:
            return _LEAST_TIME
        times = np.concatenate([chunk.sample for chunk in chunks])
        weights = np.concatenate([np.full(len(chunk.sample), chunk.rows / len(chunk.sample)) for chunk in chunks])
        newest = np.argsort(times, kind="stable")[::-1]
        place = int(np.searchsorted(np.cumsum(weights[newest]), most_rows))
        return int(times[newest[min(place, len(times) - 1)]])

    def use_folder(self, folder: Path) -> None:
        """See RollingStore.use_folder."""
        self._path = folder / self._path.name

    def narrow(self, since_ns: int) -> None:
        """Leave rows from before this time out, lasting ones aside. Files stay as they are: for a copy of the process,
        whose files are another's."""
        if self.name in LASTING:
            return
        self.pack()
        before = self._in_memory + sum(rows.rows for rows in self._adopted)
        pairs = [_since(batch, since_ns) for batch in [*self._spilled_since(since_ns), *self._batches]]
        left = [(batch, chunk) for batch, chunk in pairs if chunk is not None]
        self._batches, self._chunks, self._adopted = [b for b, _ in left], [c for _, c in left], []
        self._in_memory = sum(batch.num_rows for batch in self._batches)
        self._bytes_in_memory = sum(batch.nbytes for batch in self._batches)
        if self._in_memory < before:
            self._note(before - self._in_memory, since_ns - 1)

    def _spilled_since(self, since_ns: int) -> Iterator[pa.RecordBatch]:
        for rows in self._adopted:
            wanted = [place for place, chunk in zip(rows.places, rows.chunks, strict=True) if chunk.last >= since_ns]
            if wanted:
                with pa.OSFile(str(rows.path), "rb") as file:
                    yield from (read_chunk(file, place) for place in wanted)

    def forget_flows(self, known: pa.Array) -> None:
        """Of a table of lasting rows: forget those in memory whose flows are none of these."""
        self.pack()
        if self.name not in LASTING or not self._batches:
            return
        self._merge()
        left = [batch.filter(pc.is_in(batch.column(FLOW), known)) for batch in self._batches]
        self.forgotten += self._in_memory - sum(batch.num_rows for batch in left)
        pairs = [sorted_chunk(of_its_own(batch)) for batch in left if batch.num_rows]
        self._batches, self._chunks = [batch for batch, _ in pairs], [chunk for _, chunk in pairs]
        self._in_memory = sum(batch.num_rows for batch in self._batches)
        self._bytes_in_memory = sum(batch.nbytes for batch in self._batches)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As RawTable.batches; rows of forgotten flows are left out."""
        for batch in super().batches():
            if self.known_flows is not None:
                batch = batch.filter(pc.is_in(batch.column(FLOW), self.known_flows))
            yield batch

    def pack(self) -> None:
        """As RawTable.pack; small batches are put together."""
        super().pack()
        if len(self._batches) > _MERGED_AT:
            self._merge()

    def _is_old(self, chunks: list[Chunk], before_ns: int | None, most_rows: int) -> bool:
        if sum(rows.rows for rows in self._adopted) + self._in_memory > most_rows:
            return True
        return before_ns is not None and max(chunk.last for chunk in chunks) < before_ns

    def _note(self, rows: int, last_ns: int) -> None:
        self.forgotten += rows
        self.cut_ns = last_ns if self.cut_ns is None else max(self.cut_ns, last_ns)

    def _add(self, batch: pa.RecordBatch) -> None:
        super()._add(batch)
        if self.watcher is not None:
            self.watcher(batch)

    def _chunks_held(self) -> int:
        return 3 * CHUNKS_HELD  # files follow each other in time

    def _merge(self) -> None:
        """All rows in memory in the order of time, in as few chunks as their number and their times allow."""
        whole, _ = sorted_chunk(together(self._batches, self.schema))
        spans = whole.column(TIME).to_numpy(zero_copy_only=False) // self.span_ns
        edges = [0, *(np.flatnonzero(np.diff(spans)) + 1).tolist(), whole.num_rows]
        parts = [
            sorted_chunk(of_its_own(whole.slice(start, min(CHUNK_ROWS, last - start))))
            for first, last in pairwise(edges)
            for start in range(first, last, CHUNK_ROWS)
        ]
        self._batches = [batch for batch, _ in parts]
        self._bytes_in_memory = sum(batch.nbytes for batch in self._batches)
        self._chunks = [chunk for _, chunk in parts]

    def _spill(self) -> None:
        if not self._batches:
            return
        self._merge()
        self._files += 1
        path = self._path.with_name(f"{self.name}.{self._files}.arrow")
        writer = ChunkWriter(path, "lz4")
        for batch in self._batches:
            writer.write(batch)
        writer.close()
        self._adopted.append(HandedOver(path, self._chunks, writer.places, self._in_memory, self.schema))
        self._batches, self._chunks = [], []
        self._in_memory = self._bytes_in_memory = 0


def _since(batch: pa.RecordBatch, since_ns: int) -> tuple[pa.RecordBatch, Chunk | None]:
    """The rows of a sorted batch from this time on, and what to remember of them."""
    times = batch.column(TIME).to_numpy(zero_copy_only=False)
    first = int(np.searchsorted(times, since_ns))
    times = times[first:]
    if not len(times):
        return batch.slice(first), None
    return batch.slice(first), Chunk(int(times[0]), int(times[-1]), len(times), times[::SAMPLE_EVERY].copy())


class RollingStore(RawStore):
    """The raw tables of a capture without an end."""

    table_type = RollingTable

    @property
    def rolling(self) -> list[RollingTable]:
        """All tables."""
        return [table for table in self.tables.values() if isinstance(table, RollingTable)]

    def rolling_table(self, name: str) -> RollingTable:
        """A table by its name."""
        return cast(RollingTable, self.tables[name])

    @property
    def cut_ns(self) -> int | None:
        """Rows from before this time may be gone; None while all are there."""
        return max((table.cut_ns for table in self.rolling if table.cut_ns is not None), default=None)

    def forget(self, before_ns: int, most_rows: int) -> None:
        """See RollingTable.forget."""
        for table in self.rolling:
            table.forget(before_ns, most_rows)

    def narrow(self, since_ns: int, most_rows: int) -> None:
        """In a copy: all tables from one time on, so that each has at most about `most_rows`."""
        since_ns = max([since_ns, *(table.since_ns(most_rows) for table in self.rolling)])
        for table in self.rolling:
            table.narrow(since_ns)

    def know_flows(self, flows: pa.Array) -> None:
        """Rows of other flows than these are left out from now on."""
        known = pa.concat_arrays([flows, pa.array([NO_FLOW], flows.type)])
        for table in self.rolling:
            table.known_flows = known

    def use_folder(self, folder: Path) -> None:
        """Where all files go from now on, those of rows too; what is there already stays where it is.

        For a copy of the process: in the folder of the original, which goes on, its files would get the names of those
        that the original writes next.
        """
        self.folder = folder
        for table in self.rolling:
            table.use_folder(folder)
