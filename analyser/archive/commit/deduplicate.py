"""What is told twice, for the tasks that amend parts. In: `Joins`. Out: which parts it touches, and their rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirewitness.analyser.analysis.joined import Ints
from wirewitness.analyser.archive.commit.finish_stage import FLOWS
from wirewitness.analyser.archive.commit.joined_rows import JoinedRows, key_of
from wirewitness.analyser.archive.commit.joining import COPIES, Joins
from wirewitness.analyser.base.storage.files import FilePath, for_parquet
from wirewitness.analyser.decoding.rows.timeorder import FLOW

_BATCH_ROWS = 1 << 15
_COPY_OF = "duplicate_of"


class Telling:
    """What is told twice, for parts of earlier runs and for those of this one, whose rows nothing was done to yet."""

    def __init__(self, joins: Joins) -> None:
        self._joins = joins

    def of(self, *, made: bool) -> ToldTwice:
        """For a part. made: in this run."""
        return self._of_made if made else self._of_earlier

    @cached_property
    def _of_made(self) -> ToldTwice:
        joins = self._joins
        return ToldTwice(joins.before.slice(0, 0), joins.now, COPIES.empty_table(), joins.copies, joins.facts)

    @cached_property
    def _of_earlier(self) -> ToldTwice:
        joins = self._joins
        return ToldTwice(joins.before, joins.now, joins.copies_before, joins.copies, joins.facts)


class ToldTwice:
    """rows: what becomes of rows of requests. The arguments: as in `Joins`."""

    def __init__(
        self, before: pa.Table, now: pa.Table, copies_before: pa.Table, copies: pa.Table, facts: pa.Table
    ) -> None:
        self.rows = JoinedRows(before, now, facts)
        self._copies, self._facts = copies, facts
        was, are = (set(one.column(FLOW).to_pylist()) for one in (copies_before, copies))
        self._moved = np.array(sorted(was ^ are), np.int64)
        self._flows = np.unique(np.concatenate([self._moved, self.rows.flows()]))

    def touches(self, table: str, path: FilePath) -> bool:
        """Has the part rows that become others, or are to count otherwise?"""
        key = key_of(table)
        columns = [FLOW, *([] if key is None else [key])]
        with pq.ParquetFile(for_parquet(path)) as file:
            groups = [number for number in range(file.num_row_groups) if may_have(file.metadata, number, self._flows)]
            for batch in file.iter_batches(_BATCH_ROWS, groups, columns) if groups else ():
                if np.isin(batch.column(FLOW).to_numpy(zero_copy_only=False), self._moved).any():
                    return True
                if key is not None and table != FLOWS and self.rows.differs(table, batch):
                    return True
        return False

    def with_copies(self, flows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of flows; those of the log of which a capture has every request name the captured one."""
        at = pc.index_in(flows.column(FLOW), self._copies.column(FLOW).combine_chunks())
        other = self._copies.column("other").combine_chunks().take(at)
        there = pc.index_in(other, self._facts.column(FLOW).combine_chunks())
        names = self._facts.column("flow_id").combine_chunks().take(there)
        columns = {name: flows.column(name) for name in flows.schema.names}
        columns[_COPY_OF] = pc.coalesce(columns[_COPY_OF], names)
        return pa.RecordBatch.from_arrays([*columns.values()], schema=flows.schema)


def may_have(metadata: pq.FileMetaData, group: int, flows: Ints) -> bool:
    """May a row group of a part have rows of these flows, which are sorted?"""
    if not len(flows):
        return False
    told = metadata.row_group(group).column(metadata.num_columns - 1).statistics  # FLOW is the last one
    if told is None or not told.has_min_max:
        return True
    place = int(np.searchsorted(flows, told.min))
    return place < len(flows) and int(flows[place]) <= told.max
