"""Rows of tables that are read once for all rules: each takes its partitions out of the same columns.

In: a DuckDB connection with a view for every registered table, and the rules that will run. Out: key and frames of a
rule's partitions, as `cut.py` makes them from a sorted stream. To sort wide rows anew for each rule and carry them to
Python takes longer than all that the rules do.

Which rows a rule wants DuckDB says, as their numbers. Where these are few of a large table, or the table takes too much
memory, they alone are loaded, where they are many some buckets at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from analyser.detectors.cut import Key, empty
from analyser.detectors.detector import Detector
from analyser.detectors.frame import Frame, Span
from analyser.detectors.held import Held, Integers, TakenRows
from analyser.detectors.loaded import LoadedRows, at_hand, loaded, numbered_file
from analyser.detectors.partition_sql import (
    ROW,
    key_column,
    loaded_columns,
    loaded_sql,
    wanted_count_sql,
    wanted_numbers_sql,
    wanted_rows_sql,
)
from analyser.registry.coded import TooManyBytes

# Up to so many rows of a table are loaded whole for whichever rule wants some of them.
FEW_ROWS = 1 << 13
# What the columns of one table may take that is loaded whole, those of all such tables together, and what a rule takes
# at a time of others. Where its partitions are larger, up to three times the first.
MOST_BYTES, MOST_TOGETHER, PORTION_BYTES = 48 << 20, 96 << 20, 32 << 20
# Each portion is looked for in all rows.
_MOST_PORTIONS = 32
# What a row may take, and each of its columns; of most tables it is half.
_ROW_BYTES, _COLUMN_BYTES, _GUESSED_HIGH = 32, 8, 2
Partitions = Iterator[tuple[Key, dict[str, Frame]]]

_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_TABLES: Mapping[str, pa.Table | Path] = MappingProxyType({})


class _Part(NamedTuple):
    """Rows of a table that one rule wants, sorted by key. spans: of each partition its first row and the one behind."""

    held: Held
    spans: Mapping[Key, tuple[int, int]]


class SharedRows:
    """The loaded tables.

    few_rows, most_bytes, portion_bytes: see FEW_ROWS, MOST_BYTES and PORTION_BYTES. rows: of tables, as far as somebody
    counted them; it may grow.
    tables: those whose rows lie in memory, or in a Parquet file with codes; it may grow, too.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        detectors: Iterable[Detector],
        few_rows: int = FEW_ROWS,
        most_bytes: int = MOST_BYTES,
        portion_bytes: int = PORTION_BYTES,
        rows: Mapping[str, int] = _NOTHING,
        tables: Mapping[str, pa.Table | Path] = _NO_TABLES,
    ) -> None:
        self._con, self._few_rows, self._most_bytes, self._portion_bytes = con, few_rows, most_bytes, portion_bytes
        self._waiting = [*detectors]
        self._known, self._counts = rows, dict[str, int]()
        self._tables = tables
        self._loaded: dict[str, LoadedRows] = {}
        self._sizes: dict[str, int] = {}
        self._too_large: set[str] = set()

    def done(self, codes: Collection[str]) -> None:
        """These rules will ask for nothing any more: what none of the others reads is let go."""
        self._waiting = [one for one in self._waiting if one.code not in codes]
        for table in self._loaded.keys() - {table for one in self._waiting for table in one.reads}:
            del self._loaded[table], self._sizes[table]
            self._con.unregister(_view(table))

    def are_empty(self, tables: Iterable[str]) -> bool:
        """Have none of these tables any row?"""
        return not any(map(self._count, tables))

    def portions(
        self, detector: Detector, buckets: Sequence[int], suspects: str | None
    ) -> Iterator[tuple[Sequence[int], Partitions | None]]:
        """Key and frames of every partition in these buckets, in the order of keys; some of the buckets at a time where
        all rows together take too much memory. None in place of those that do so even then.

        buckets: as in `selection_sql`. suspects: the table that has their keys, None for all partitions.
        """
        wanted = {table: self._wanted(detector, table, buckets, suspects) for table in detector.reads}
        for some in self._some_at_a_time(detector, buckets, wanted):
            parts = self._parts(detector, some, suspects, wanted)
            yield some, None if parts is None else _partitions(detector, parts)
            del parts

    def _parts(
        self, detector: Detector, buckets: Sequence[int], suspects: str | None, wanted: Mapping[str, int]
    ) -> dict[str, _Part] | None:
        """Of each table that has any, the rows in these buckets; None where they take too much memory."""
        try:
            found = {table: self._part(detector, table, buckets, suspects, rows) for table, rows in wanted.items()}
        except TooManyBytes:
            return None
        return {table: part for table, part in found.items() if part is not None}

    def _some_at_a_time(
        self, detector: Detector, buckets: Sequence[int], wanted: Mapping[str, int]
    ) -> Iterator[Sequence[int]]:
        """The buckets in as many portions as all rows are times too large. wanted: how many of each table."""
        size = sum(rows * _row_bytes(len(detector.columns(table))) for table, rows in wanted.items())
        portions = (
            min(-(-size // self._portion_bytes) or 1, len(buckets), _MOST_PORTIONS) if detector.partition_by else 1
        )
        return (buckets[place::portions] for place in range(portions))

    def _wanted(self, detector: Detector, table: str, buckets: Sequence[int], suspects: str | None) -> int:
        """How many rows of a table a rule wants, at most."""
        every = self._count(table)
        if every <= self._few_rows:
            return every
        wanted: int = self._con.execute(wanted_count_sql(detector, table, buckets, suspects)).fetchall()[0][0]
        return wanted

    def _part(
        self, detector: Detector, table: str, buckets: Sequence[int], suspects: str | None, wanted: int
    ) -> _Part | None:
        """wanted: rows in all buckets."""
        if not wanted:
            return None
        keys = {key: key_column(detector, table, key) for key in detector.partition_by}
        names = {name: keys.get(name, name) for name in (*detector.partition_by, *detector.own_columns(table))}
        is_few = self._count(table) > self._few_rows >= wanted
        if table in self._loaded or (not is_few and self._load(table)):
            numbers = self._numbers(detector, table, _view(table), buckets, suspects)
            return _part(detector, self._loaded[table], numbers, names)
        place, most = self._tables.get(table), 3 * self._most_bytes
        if is_few or not isinstance(place, Path):
            rows = loaded(self._con, wanted_rows_sql(detector, table, buckets, suspects), table, most)
            names = {name: name for name in detector.columns(table)}
        else:
            numbers = self._numbers(detector, table, numbered_file(place), buckets, suspects)
            rows = at_hand(place, loaded_columns([detector], table), table, most, numbers)
        return _part(detector, rows, np.arange(len(rows)), names)

    def _numbers(
        self, detector: Detector, table: str, source: str, buckets: Sequence[int], suspects: str | None
    ) -> Integers:
        query = wanted_numbers_sql(detector, table, source, buckets, suspects)
        numbers: Integers = np.sort(self._con.execute(query).fetchnumpy()[ROW])
        return numbers

    def _count(self, table: str) -> int:
        if table in self._known:
            return self._known[table]
        if table not in self._counts:
            self._counts[table] = self._con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        return self._counts[table]

    def _load(self, table: str) -> bool:
        """Load a table for all rules that read it; False where it takes too much memory."""
        if table in self._too_large:
            return False
        columns = loaded_columns([one for one in self._waiting if table in one.reads], table)
        size = self._count(table) * _row_bytes(len(columns)) // _GUESSED_HIGH
        if max(size - self._most_bytes, size + sum(self._sizes.values()) - MOST_TOGETHER) > 0:
            self._too_large.add(table)
            return False
        try:
            if table in self._tables:
                rows = at_hand(self._tables[table], columns, table, self._most_bytes)
            else:
                rows = loaded(self._con, loaded_sql(columns, table), table, self._most_bytes)
        except TooManyBytes:
            self._too_large.add(table)
            return False
        self._loaded[table], self._sizes[table] = rows, rows.nbytes
        self._con.register(_view(table), pa.table({**rows.columns, ROW: pa.array(np.arange(len(rows)))}))
        return True


def _row_bytes(columns: int) -> int:
    return _ROW_BYTES + _COLUMN_BYTES * columns


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


def _partitions(detector: Detector, parts: Mapping[str, _Part]) -> Partitions:
    nothing = {table: empty(detector, table) for table in detector.reads}
    for key in sorted({key for part in parts.values() for key in part.spans}, key=_null_first):
        frames = dict(nothing)
        for table, part in parts.items():
            if key in part.spans:
                frames[table] = Frame(nothing[table].schema, [Span(part.held, *part.spans[key])])
        yield key, frames


def _null_first(key: Key) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in key)
