"""One sorted stream of rows to the partitions of a rule.

In: Arrow batches sorted by key, table and time, whoever sorted them (DuckDB here, Spark in an archive), times as int64
of nanoseconds. Out: key and frames of one partition after the other. Memory holds one partition and one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import held_rows
from wirewitness.analyser.engine.rules.frame import Frame, Span
from wirewitness.analyser.engine.rules.partition_sql import TABLE_TAG, column_of
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.tables import ARROW_TYPES, TABLES

Key = tuple[Any, ...]


def cut(
    batches: Iterable[pa.RecordBatch],
    rule: Rule,
    most_rows: int,
    too_large: Callable[[Key], None],
) -> Iterator[tuple[Key, dict[str, Frame]]]:
    """Key and frames of every partition, in the order of the stream.

    most_rows: a partition with more rows is left out, without ever being held, and its key is given to `too_large`.
    """
    key: Key | None = None
    held: dict[str, list[Span]] = {}
    rows = 0
    # Made once: where most partitions have rows of few of the tables, making them anew takes longer than the rule.
    without_rows = {table: empty(rule, table) for table in rule.reads}
    for batch in batches:
        for piece_key, table, piece in _pieces(batch, rule):
            if piece_key != key:
                if key is not None and rows <= most_rows:
                    yield key, _frames(held, without_rows)
                key, rows = piece_key, 0
            if rows <= most_rows < rows + len(piece):
                held = {}
                too_large(piece_key)
            rows += len(piece)
            if rows <= most_rows:
                held.setdefault(table, []).append(piece)
    if key is not None and rows <= most_rows:
        yield key, _frames(held, without_rows)


def _pieces(batch: pa.RecordBatch, rule: Rule) -> Iterator[tuple[Key, str, Span]]:
    """(key, table, rows) of every run of rows with one key and table.

    A table's rows are put together once for the whole batch: columns of the other tables, all null, cost nothing more.
    """
    tags = batch.column(TABLE_TAG).to_numpy(zero_copy_only=False)
    rows_of = {table: np.flatnonzero(tags == table) for table in rule.reads}
    own = {table: held_rows(_own_rows(batch, rows, table, rule)) for table, rows in rows_of.items() if len(rows)}
    starts = _run_starts(batch, [*rule.partition_by, TABLE_TAG])
    columns = [batch.column(name).take(pa.array(starts)).to_pylist() for name in rule.partition_by]
    for number, (start, end) in enumerate(pairwise([*starts, batch.num_rows])):
        table = str(tags[start])
        first, last = np.searchsorted(rows_of[table], (start, end)).tolist()
        yield tuple(column[number] for column in columns), table, Span(own[table], first, last)


def _own_rows(batch: pa.RecordBatch, rows: npt.NDArray[np.intp], table: str, rule: Rule) -> pa.RecordBatch:
    """These rows of a batch with the columns of the table, times as such."""
    names = rule.columns(table)
    found = batch.select([c if c in rule.partition_by else column_of(table, c) for c in names])
    if len(rows) < batch.num_rows:
        found = found.take(pa.array(rows))
    columns = [
        column.cast(ARROW_TYPES["time"]) if TABLES[table].column(name).kind == "time" else column
        for name, column in zip(names, found.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _run_starts(batch: pa.RecordBatch, names: Sequence[str]) -> list[int]:
    """Positions at which a row differs from the one before it in any of these columns."""
    changed: npt.NDArray[np.bool_] = np.zeros(batch.num_rows, dtype=bool)
    changed[:1] = True
    for name in names:
        codes = batch.column(name).dictionary_encode(null_encoding="encode").indices.to_numpy()
        changed[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(changed).tolist()


def _frames(held: dict[str, list[Span]], without_rows: Mapping[str, Frame]) -> dict[str, Frame]:
    """One frame per table; tables without rows have the one of `without_rows`.

    The pieces are let go: a large partition lies in memory once while it is looked at.
    """
    return {
        table: Frame(nothing.schema, held.pop(table)) if table in held else nothing
        for table, nothing in without_rows.items()
    }


def empty(rule: Rule, table: str) -> Frame:
    """A frame without rows, with the registered column types."""
    kinds = {column: TABLES[table].column(column).kind for column in rule.columns(table)}
    return Frame(pa.schema([(column, ARROW_TYPES[kind]) for column, kind in kinds.items()]), [])
