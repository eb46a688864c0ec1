"""Rows of tables that are read once for all rules: each takes its partitions out of the same columns.

In: a DuckDB connection with a view for every registered table, and the rules that will run. Out: key and frames of a
rule's partitions, as `cut.py` makes them from a sorted stream. To sort wide rows anew for each rule and carry them to
Python takes longer than all that the rules do.

Which rows a rule wants DuckDB says, as their numbers. Where these are few of a large table, they alone are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from analyser.detectors.cut import Key, empty
from analyser.detectors.detector import Detector
from analyser.detectors.frame import Frame, Span
from analyser.detectors.held import Held, Integers, TakenRows
from analyser.detectors.loaded import LoadedRows, loaded
from analyser.detectors.partition_sql import (
    ROW,
    key_column,
    loaded_sql,
    wanted_count_sql,
    wanted_numbers_sql,
    wanted_rows_sql,
)
from analyser.registry.coded import TooManyBytes

# Up to so many rows of a table are loaded whole for whichever rule wants some of them.
FEW_ROWS = 1 << 13
# What the columns of one table may take.
MOST_BYTES = 96 << 20


class _Part(NamedTuple):
    """Rows of a table that one rule wants, sorted by key. spans: of each partition its first row and the one behind."""

    held: Held
    spans: Mapping[Key, tuple[int, int]]


class SharedRows:
    """The loaded tables. few_rows, most_bytes: see FEW_ROWS and MOST_BYTES."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        detectors: Iterable[Detector],
        few_rows: int = FEW_ROWS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._con, self._few_rows, self._most_bytes = con, few_rows, most_bytes
        self._waiting = [*detectors]
        self._counts: dict[str, int] = {}
        self._loaded: dict[str, LoadedRows] = {}
        self._too_large: set[str] = set()

    def done(self) -> None:
        """The first of the rules ran: what none of the others reads is let go."""
        del self._waiting[:1]
        for table in self._loaded.keys() - {table for one in self._waiting for table in one.reads}:
            del self._loaded[table]
            self._con.unregister(_view(table))

    def partitions(
        self, detector: Detector, buckets: Sequence[int], suspects: str | None
    ) -> Iterator[tuple[Key, dict[str, Frame]]] | None:
        """Key and frames of every partition, in the order of keys; None where its rows take too much memory.

        buckets: as in `selection_sql`. suspects: the table that has their keys, None for all partitions.
        """
        parts: dict[str, _Part] = {}
        try:
            for table in detector.reads:
                part = self._part(detector, table, buckets, suspects)
                if part is not None:
                    parts[table] = part
        except TooManyBytes:
            return None
        return _partitions(detector, parts)

    def _part(self, detector: Detector, table: str, buckets: Sequence[int], suspects: str | None) -> _Part | None:
        if table not in self._loaded:
            every = wanted = self._count(table)
            if every > self._few_rows:
                wanted = self._con.execute(wanted_count_sql(detector, table, buckets, suspects)).fetchall()[0][0]
            if not wanted:
                return None
            if every > self._few_rows >= wanted or not self._load(table):
                query = wanted_rows_sql(detector, table, buckets, suspects)
                rows = loaded(self._con, query, table, self._most_bytes)
                return _part(detector, rows, np.arange(len(rows)), {name: name for name in detector.columns(table)})
        query = wanted_numbers_sql(detector, table, _view(table), buckets, suspects)
        numbers = np.sort(self._con.sql(query).fetchnumpy()[ROW])
        keys = {key: key_column(detector, table, key) for key in detector.partition_by}
        names = {name: keys.get(name, name) for name in (*detector.partition_by, *detector.own_columns(table))}
        return _part(detector, self._loaded[table], numbers, names)

    def _count(self, table: str) -> int:
        if table not in self._counts:
            self._counts[table] = self._con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        return self._counts[table]

    def _load(self, table: str) -> bool:
        """Load a table for all rules that read it; False where it takes too much memory."""
        if table in self._too_large:
            return False
        readers = [one for one in self._waiting if table in one.reads]
        try:
            rows = loaded(self._con, loaded_sql(readers, table), table, self._most_bytes)
        except TooManyBytes:
            self._too_large.add(table)
            return False
        self._loaded[table] = rows
        self._con.register(_view(table), pa.table({**rows.columns, ROW: pa.array(np.arange(len(rows)))}))
        return True


def _view(table: str) -> str:
    return f"wirewitness_rows_{table}"


def _part(detector: Detector, rows: LoadedRows, numbers: Integers, names: Mapping[str, str]) -> _Part | None:
    """names: of the frame's columns -> those of the rows."""
    if not len(numbers):
        return None
    keys = [names[key] for key in detector.partition_by]
    starts = [0]
    if keys:
        ranks = [rows.ranks(name)[numbers] for name in keys]
        order = np.lexsort(ranks[::-1])
        numbers = numbers[order]
        changed = np.logical_or.reduce([np.diff(one[order]) != 0 for one in ranks])
        starts += (np.flatnonzero(changed) + 1).tolist()
    first = pa.array(numbers[starts])
    values = [rows.columns[name].take(first).to_pylist() for name in keys]
    ends = [*starts[1:], len(numbers)]
    found = zip(*values, strict=True) if keys else [()]
    spans = dict(zip(found, zip(starts, ends, strict=True), strict=True))
    return _Part(TakenRows(rows.held, numbers, names), spans)


def _partitions(detector: Detector, parts: Mapping[str, _Part]) -> Iterator[tuple[Key, dict[str, Frame]]]:
    nothing = {table: empty(detector, table) for table in detector.reads}
    for key in sorted({key for part in parts.values() for key in part.spans}, key=_null_first):
        frames = dict(nothing)
        for table, part in parts.items():
            if key in part.spans:
                frames[table] = Frame(nothing[table].schema, [Span(part.held, *part.spans[key])])
        yield key, frames


def _null_first(key: Key) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in key)
