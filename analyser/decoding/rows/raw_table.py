"""Rows of one table on their way out of memory.

In: a list of row tuples with the flow they belong to, named by its first packet, and blocks of rows in columns. Out:
Arrow batches in the order of time, held in memory up to a limit and in a temporary file beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.decoding.rows.chunk_file import ChunkWriter
from wirewitness.analyser.decoding.rows.column_rows import Claims, Ints, has_long_names, repeated
from wirewitness.analyser.decoding.rows.names import LongNames, Names, longest_at, with_cut_names
from wirewitness.analyser.decoding.rows.raw_types import RAW_TYPES, Gathered
from wirewitness.analyser.decoding.rows.rows_file import CHUNK_ROWS, MAX_BATCH_BYTES, HandedOver, readers_of
from wirewitness.analyser.decoding.rows.text_codes import together
from wirewitness.analyser.decoding.rows.timeorder import CHUNKS_HELD, FLOW, ROW, Chunk, in_time_order, sorted_chunk
from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.model import Row

MAX_ROWS_IN_MEMORY = 1 << 17
MAX_BYTES_IN_MEMORY = 64 << 20
# A chunk of rows that stand for many each takes about so much.
MAX_GATHERED_BYTES = 4 << 20


class RawTable:
    """Rows of one table as they come from the dissectors: their fields and the first packet of their flow.

    left_out: rows that did not fit into the columns, by a fault of our own; fault: its kind.
    """

    def __init__(
        self,
        name: str,
        fields: Sequence[str],
        kinds: Sequence[str],
        rows: list[Row],
        folder: Path,
        gather: Gathered | None = None,
        compression: str = "lz4",
        names: Names | None = None,
    ) -> None:
        self.name = name
        self._compression = compression
        self.rows = rows
        self._gather = gather
        self.schema = pa.schema(
            [
                *(pa.field(field, RAW_TYPES[kind]) for field, kind in zip(fields, kinds, strict=True)),
                (FLOW, pa.int64()),
                (ROW, pa.int64()),
            ]
        )
        # Whose the rows of the list are, and how many of them follow each other: (flow, rows, number of the first one).
        self._flow_runs: list[tuple[int, int, int]] = []
        self._counted = 0
        # The block that flows claim rows of; and rows that are no chunk yet.
        self._block: Block | None = None
        self._claims: Claims | None = None
        self._unsorted: list[pa.RecordBatch] = []
        # Their memory, in a table where each row may stand for many. Arrow takes long to tell it.
        self._gathered_bytes = 0
        self._numbered = 0
        self._batches: list[pa.RecordBatch] = []
        self._in_memory = 0
        self._bytes_in_memory = 0
        self._chunks: list[Chunk] = []
        self._path = folder / f"{name}.raw.arrow"
        self._writer: ChunkWriter | None = None
        self._adopted: list[HandedOver] = []
        self.total_rows = 0
        self._total_bytes = 0
        self.left_out = 0
        self.fault = ""
        self._names = names or Names()
        self.long_names: dict[str, LongNames] = {}

    @property
    def has_rows(self) -> bool:
        """Has anything come?"""
        return self.total_rows > 0 or self.waiting_rows > 0

    @property
    def waiting_rows(self) -> int:
        """Rows that are no chunk yet."""
        claimed = 0 if self._claims is None else self._claims.rows
        unsorted: int = sum(batch.num_rows for batch in self._unsorted)
        return len(self.rows) + claimed + unsorted

    def mark(self, flow: int) -> None:
        """Rows appended since the last mark belong to this flow."""
        new = len(self.rows) - self._counted
        if new:
            self._flow_runs.append((flow, new, self._numbered))
            self._numbered += new
            self._counted = len(self.rows)
            if self._counted >= CHUNK_ROWS:
                self.pack()

    def claim(self, flow: int, block: Block, first: int, until: int) -> None:
        """These rows of a block are of this flow, whose rows so far came before them."""
        self.mark(flow)
        self._begin_block(block)
        if self._claims is None:
            self.rows += block.rows(first, until)
            self.mark(flow)
            return
        self._claims.add(flow, first, until, self._numbered)
        self._numbered += until - first

    def claim_many(self, block: Block, row: Ints, flow: Ints) -> None:
        """These rows of a block are of these flows, each flow's behind each other; all rows in the list are marked."""
        self._begin_block(block)
        if self._claims is None:
            edges = [0, *(np.flatnonzero(row[1:] != row[:-1] + 1) + 1).tolist(), len(row)]
            of_row = iter(flow.tolist())
            for start, end in pairwise(edges):
                for values in block.rows(int(row[start]), int(row[end - 1]) + 1):
                    self.rows.append(values)
                    self.mark(next(of_row))
            return
        self._claims.add_many(flow, row, self._numbered)
        self._numbered += len(row)

    def _begin_block(self, block: Block) -> None:
        """Claims that follow are of this block."""
        if self._block is not block:
            self._end_block()
            if self._gather is not None:
                self._gather_up()  # each of them may stand for many
            if self.waiting_rows >= CHUNK_ROWS or self._gathered_bytes >= MAX_GATHERED_BYTES:
                self.pack()
            self._block = block
            self._claims = None if has_long_names(block, self._names) else Claims(block)

    def adopt(self, others: HandedOver) -> None:
        """Take over rows of another process; their flows are none of this table's."""
        self._adopted.append(others)
        self.total_rows += others.rows

    def hand_over(self) -> HandedOver:
        """Write all rows to a file for `adopt`. No rows may follow."""
        self.pack()
        self._spill()
        self._close()
        return self._spilled()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, sorted by time, then flow, then the order in which the flow gave them; their texts may be codes.

        No rows may follow.
        """
        self.pack()
        with ExitStack() as opened:
            if self._writer is None:
                readers: list[Callable[[], pa.RecordBatch]] = [
                    partial(self._batches.__getitem__, place) for place in range(len(self._chunks))
                ]
            else:
                self._spill()
                self._close()
                readers = readers_of(opened, self._spilled())
            chunks = list(self._chunks)
            for others in self._adopted:
                chunks += others.chunks
                readers += readers_of(opened, others)
            held = self._chunks_held()
            row_bytes = self._total_bytes // max(sum(chunk.rows for chunk in self._chunks), 1)
            rows = max(1, min(CHUNK_ROWS, MAX_BATCH_BYTES // max(row_bytes, 1)))
            for batch in in_time_order(chunks, lambda place: readers[place](), self.schema, rows, held):
                yield batch.select(self.schema.names[:-1])

    def distinct(self, field: str, unless: str) -> set[Any]:
        """The different values of a field, but for null, in rows where another field is null. No rows may follow."""
        found: set[Any] = set()
        for batch in self.batches():
            found.update(pc.unique(pc.filter(batch.column(field), pc.is_null(batch.column(unless)))).to_pylist())
        return found - {None}

    def release(self) -> None:
        """The rows were read for the last time; how many there were stays known."""
        self.pack()
        self._close()
        for path in (self._path, *(others.path for others in self._adopted)):
            path.unlink(missing_ok=True)
        self._batches, self._chunks, self._adopted = [], [], []
        self._in_memory = self._bytes_in_memory = 0

    def _chunks_held(self) -> int:
        """Chunks that may be in memory at a time while all are read in the order of time."""
        return CHUNKS_HELD * (1 + len(self._adopted))

    def pack(self) -> None:
        """Turn the marked rows into Arrow; all rows must be marked."""
        self._end_block()
        self._gather_up()
        if not self._unsorted:
            return
        batch, chunk = sorted_chunk(together(self._unsorted, self.schema))
        self._unsorted.clear()
        self._gathered_bytes = 0
        self.total_rows += batch.num_rows
        self._total_bytes += batch.nbytes
        self._batches.append(batch)
        self._chunks.append(chunk)
        self._in_memory += batch.num_rows
        self._bytes_in_memory += batch.nbytes
        if self._in_memory > MAX_ROWS_IN_MEMORY or self._bytes_in_memory > MAX_BYTES_IN_MEMORY:
            self._spill()

    def _end_block(self) -> None:
        """Turn what was claimed into a batch, or, where values do not fit, into rows among which these are found."""
        claims, self._block, self._claims = self._claims, None, None
        if claims is None or not claims.rows:
            return
        try:
            self._add(claims.batch(self.schema, None if self._gather is None else self._gather.block))
        except (pa.ArrowException, ValueError, TypeError, OverflowError, LookupError):
            for run, rows in claims.as_tuples():
                self.rows += rows
                self._flow_runs.append(run)
            self._counted = len(self.rows)

    def _gather_up(self) -> None:
        """Turn the marked rows in the list into a batch."""
        if not self.rows:
            return
        try:
            self._cut_names()
            packed = self._packed()
        except Exception as error:
            self.fault = caught(error)
            self._fitting()
            packed = self._packed() if self.rows else pa.RecordBatch.from_pylist([], self.schema)
        self.rows.clear()
        self._flow_runs.clear()
        self._counted = 0
        self._add(packed)

    def _add(self, batch: pa.RecordBatch) -> None:
        """More rows, if there are any: those that stand for many may stand for none."""
        if batch.num_rows:
            self._unsorted.append(batch)
            self._gathered_bytes += 0 if self._gather is None else batch.nbytes

    def _packed(self) -> pa.RecordBatch:
        """The rows in the list, in the order in which they came."""
        flows, numbers = repeated(self._flow_runs)
        if self._gather is None:
            columns: list[Any] = list(zip(*self.rows, strict=True))
            types = [field.type for field in self.schema]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, types[:-2], strict=True)]
        else:
            arrays, owners = self._gather.rows(self.rows)
            flows, numbers = flows[owners], numbers[owners]
        arrays += [pa.array(flows), pa.array(numbers)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _cut_names(self) -> None:
        """Names that are too long leave only what tells them apart."""
        for place, field in self._names.places.items():
            longest = longest_at(self.rows, place)
            if longest <= self._names.most:
                continue
            numbers = with_cut_names(self.rows, place, self._names.most)
            known = self.long_names.get(field)
            if known is None:
                ends = np.cumsum([count for _, count, _ in self._flow_runs])
                flow = self._flow_runs[int(np.searchsorted(ends, numbers[0], "right"))][0]
                known = LongNames(0, 0, flow, self.rows[numbers[0]][self._names.ts_at])
            self.long_names[field] = known._replace(rows=known.rows + len(numbers), longest=max(known.longest, longest))

    def _fitting(self) -> None:
        """Drop the rows that do not fit into the table's columns, found by halving: they are few."""
        flows, numbers = (column.tolist() for column in repeated(self._flow_runs))
        looked_at, fitting = [[*zip(flows, numbers, self.rows, strict=True)]], list[tuple[int, int, Row]]()
        while looked_at:
            some = looked_at.pop()
            self._keep(some)
            try:
                self._packed()
            except Exception:
                half = len(some) // 2
                if half:
                    looked_at += [some[half:], some[:half]]
                else:
                    self.left_out += 1
            else:
                fitting += some
        self._keep(fitting)

    def _keep(self, rows: Sequence[tuple[int, int, Row]]) -> None:
        """These rows only, with their flows and numbers."""
        self.rows[:] = [row for _, _, row in rows]
        self._flow_runs = [(flow, 1, number) for flow, number, _ in rows]

    def _spilled(self) -> HandedOver:
        places = [] if self._writer is None else self._writer.places
        return HandedOver(self._path, self._chunks, places, self.total_rows, self.schema)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _spill(self) -> None:
        if self._writer is None:
            self._writer = ChunkWriter(self._path, self._compression)
        for batch in self._batches:
            self._writer.write(batch)
        self._batches.clear()
        self._in_memory = self._bytes_in_memory = 0
