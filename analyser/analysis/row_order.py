"""Finished rows in the registered order of their table.

In: batches in the order of time, each with all rows of its times. Out: the same, rows of one time in order as well. The
store has those in the order in which they came, which is that of the message: a Produce request names topics and
partitions as its client likes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.tables.tables import TABLES, arrow_schema


def order_columns(table: str, columns: Sequence[str] | None) -> Sequence[str] | None:
    """These columns and those that the table is ordered by; None for all."""
    return None if columns is None else [*dict.fromkeys((*columns, *TABLES[table].order))]


def in_order(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows in the table's order, null last; those that are equal by it in the order in which they came."""
    if _is_in_order(table, batch):
        return batch
    keys = {name: _plain(table, name, batch.column(name)) for name in TABLES[table].order}
    return pc.take(batch, pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys]))


def _is_in_order(table: str, batch: pa.RecordBatch) -> bool:
    """Is each row behind the one before it? Of most rows their times tell."""
    equal = np.arange(1, batch.num_rows)
    for name in TABLES[table].order:
        if not len(equal):
            return True
        column = batch.column(name)
        before = _plain(table, name, pc.take(column, pa.array(equal - 1)))
        row = _plain(table, name, pc.take(column, pa.array(equal)))
        missing, missing_before = pc.is_null(row), pc.is_null(before)
        falls = pc.coalesce(pc.greater(before, row), pc.and_not(missing_before, missing))
        if pc.any(falls).as_py():
            return False
        same = pc.coalesce(pc.equal(before, row), pc.and_(missing_before, missing))
        equal = equal[same.to_numpy(zero_copy_only=False)]
    return True


def _plain(table: str, name: str, column: pa.Array) -> pa.Array:
    return pc.cast(column, arrow_schema(table).field(name).type)
