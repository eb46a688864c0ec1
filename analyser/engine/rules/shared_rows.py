"""Rows of tables that are read once for all rules: each takes its partitions out of the same columns.

In: a DuckDB connection with a view for every registered table, and the rules that will run. Out: key and frames of a
rule's partitions, as `partition_stream.py` makes them from a sorted stream. To sort wide rows anew for each rule and
carry them to Python takes longer than all that the rules do.

Which rows a rule wants DuckDB says, as their numbers, unless it wants all. Where these are few of a large table, or the
table takes too much memory, they alone are loaded, where they are many some buckets at a time: out of files to which
the table was dealt by buckets once for all rules of one key (`partitioned_rows.py`). Rules that look at the same
buckets one after the other take them out of the same rows, so that each row is loaded once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import MappingProxyType

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.loaded import LoadedRows, at_hand, loaded
from wirewitness.analyser.engine.rules.partition_sql import (
    ALL_BUCKETS,
    BUCKET,
    ROW,
    TOPIC,
    key_column,
    largest_sql,
    loaded_columns,
    loaded_sql,
    wanted_count_sql,
    wanted_numbers_sql,
    wanted_rows_sql,
)
from wirewitness.analyser.engine.rules.partitioned_rows import (
    Asked,
    Dealt,
    LoadedPortion,
    Part,
    Partitions,
    Portion,
    WantedRows,
    dealt,
    part_of,
    partitions_of,
)
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.coded import TooManyBytes
from wirewitness.analyser.tables.tables import TABLES

# Up to so many rows of a table are loaded whole for whichever rule wants some of them.
FEW_ROWS = 1 << 13
# What the columns of one table may take that is loaded whole, those of all such tables together, and what a rule takes
# at a time of others. Where its partitions are larger, up to three times the first.
MOST_BYTES, MOST_TOGETHER, PORTION_BYTES = 48 << 20, 96 << 20, 16 << 20
# Each portion is asked for by itself, and of each file something waits to be written. Powers of 2, as all numbers of
# portions and of files.
_MOST_PORTIONS, _MOST_FILES = 128, 32
# Where there are fewer, they are looked for in all rows: to deal these takes about as long.
_PORTIONS_TO_DEAL = 4
# Of a portion so many times larger than it should be, what loading left behind is given back before rules look at it.
_LARGE_PORTIONS = 3
# What a row may take, and each of its columns; of most tables it is half.
_ROW_BYTES, _COLUMN_BYTES, _GUESSED_HIGH = 32, 8, 2

# The view of rows of some buckets.
_PORTION = "wirewitness_portion"

_NOTHING: Mapping[str, int] = MappingProxyType({})
_NO_TABLES: Mapping[str, pa.Table | Path] = MappingProxyType({})


class SharedRows:
    """The loaded tables.

    folder: for files of dealt rows; without one nothing is dealt.
    few_rows, most_bytes, portion_bytes: see FEW_ROWS, MOST_BYTES and PORTION_BYTES. rows: of tables, as far as somebody
    counted them; it may grow.
    tables: those whose rows lie in memory, or in a Parquet file with codes; it may grow, too.
    """

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        rules: Iterable[Rule],
        few_rows: int = FEW_ROWS,
        most_bytes: int = MOST_BYTES,
        portion_bytes: int = PORTION_BYTES,
        rows: Mapping[str, int] = _NOTHING,
        tables: Mapping[str, pa.Table | Path] = _NO_TABLES,
        folder: Path | None = None,
    ) -> None:
        self._con, self._few_rows, self._most_bytes, self._portion_bytes = con, few_rows, most_bytes, portion_bytes
        self._waiting = [*rules]
        self._known, self._counts = rows, dict[str, int]()
        self._tables = tables
        self._loaded: dict[str, LoadedRows] = {}
        self._sizes: dict[str, int] = {}
        self._largest_by_key: dict[tuple[str, ...], int] = {}
        self._too_large: set[str] = set()
        self._folder = folder
        self._together: Collection[Rule] = ()
        # By table and its key columns; None where that is not worth it, or there was no room.
        self._dealt: dict[tuple[str, ...], Dealt | None] = {}
        # The last portion of each, for the next rule that looks at it.
        self._portions: dict[tuple[str, ...], LoadedPortion] = {}
        self._numbered = count()

    def done(self, codes: Collection[str]) -> None:
        """These rules will ask for nothing any more: what none of the others reads is let go."""
        self._waiting = [one for one in self._waiting if one.code not in codes]
        for table in self._loaded.keys() - {table for one in self._waiting for table in one.reads}:
            del self._loaded[table], self._sizes[table]
            self._con.unregister(_view(table))
        wanted = {_key_of(one, table) for one in self._waiting for table in one.reads}
        for key in self._dealt.keys() - wanted:
            self._portions.pop(key, None)
            if files := self._dealt.pop(key):
                files.remove()

    def look_together(self, rules: Collection[Rule]) -> None:
        """These rules ask next, portion by portion in turns: what is loaded of dealt rows has the columns of all."""
        self._together = rules

    def are_empty(self, tables: Iterable[str]) -> bool:
        """Have none of these tables any row?"""
        return not any(map(self._count, tables))

    def may_exceed(self, rule: Rule, most_rows: int) -> bool:
        """May any partition of the rule have more rows?"""
        if not rule.partition_by or sum(map(self._count, rule.reads)) <= most_rows:
            return False
        return sum(self._largest(rule, table) for table in rule.reads) > most_rows

    def portions(
        self, rule: Rule, buckets: Sequence[int], suspects: str | None
    ) -> Iterator[tuple[Sequence[int], Partitions | None]]:
        """Key and frames of every partition in these buckets, in the order of keys; some of the buckets at a time where
        all rows together take too much memory. None in place of those that do so even then.

        buckets: as in `selection_sql`. suspects: the table that has their keys, None for all partitions.
        """
        asked = self._asked(rule, buckets, suspects)
        largest = 0
        left = [*self._some_at_a_time(asked)]
        while left:
            portion = left.pop(0)
            parts = self._parts(asked, portion)
            if not left:  # other rules have their turn before this one ends
                del asked
            size = sum(part.rows * _row_bytes(len(part.held)) for part in (parts or {}).values())
            if size > _LARGE_PORTIONS * self._portion_bytes:
                _release()
            largest = max(largest, size)
            partitions = None if parts is None else partitions_of(rule, parts)
            del parts
            yield portion.buckets, partitions
            del partitions
        if largest > self._portion_bytes // _LARGE_PORTIONS:
            _release()

    def _asked(self, rule: Rule, buckets: Sequence[int], suspects: str | None) -> Asked:
        wanted = {table: self._wanted(rule, table, buckets, suspects) for table in rule.reads}
        few = {
            table: self._few(rule, table, buckets, suspects)
            for table, rows in wanted.items()
            if self._count(table) > self._few_rows >= rows > 0 and table not in self._loaded
        }
        whole = {table for table, rows in wanted.items() if rows == self._count(table) > self._few_rows}
        return Asked(rule, buckets, suspects, wanted, whole, few, {})

    def _parts(self, asked: Asked, portion: Portion) -> dict[str, Part] | None:
        """Of each table that has any, the rows in these buckets; None where they take too much memory."""
        parts: dict[str, Part] = {}
        for table in (table for table, rows in asked.wanted.items() if rows):
            try:
                part = (
                    _few_of(asked.rule, table, asked.few[table], portion)
                    if table in asked.few
                    else self._part(asked, table, portion)
                )
            except TooManyBytes:
                return None
            if part is not None:
                parts[table] = part
        return parts

    def _some_at_a_time(self, asked: Asked) -> Iterator[Portion]:
        """The buckets in as many portions as all rows are times too large, or as there are files of dealt rows."""
        rule, buckets, wanted = asked.rule, asked.buckets, asked.wanted
        size = sum(rows * _row_bytes(len(rule.columns(table))) for table, rows in wanted.items())
        portions = self._times_too_large(size) if rule.partition_by else 1
        if portions >= _PORTIONS_TO_DEAL:
            many = [table for table, rows in wanted.items() if rows and table not in asked.few]
            portions = max(portions, self._dealt_files(rule, many))
        if portions == 1:
            yield Portion(buckets)
            return
        for number in range(portions):
            some = [bucket for bucket in buckets if bucket % portions == number]
            if some:
                yield Portion(some, number, portions)

    def _dealt_files(self, rule: Rule, tables: Iterable[str]) -> int:
        """Into how many files any of these tables is dealt: the rows of one file are in order, those of several have to
        be put in order. 1 where a table has to be asked again for each portion."""
        most = 1
        for table in tables:
            if self._load(table):
                continue
            place = self._tables.get(table)
            files = self._deal(rule, table, place) if isinstance(place, Path) else None
            if files is None:
                return 1
            most = max(most, len(files.paths))
        return most

    def _times_too_large(self, size: int) -> int:
        """As a power of 2."""
        return min(1 << (-(-size // self._portion_bytes) - 1).bit_length(), _MOST_PORTIONS) if size else 1

    def _wanted(self, rule: Rule, table: str, buckets: Sequence[int], suspects: str | None) -> int:
        """How many rows of a table a rule wants, at most."""
        every = self._count(table)
        if every <= self._few_rows:
            return every
        wanted: int = self._con.execute(wanted_count_sql(rule, table, buckets, suspects)).fetchall()[0][0]
        return wanted

    def _few(self, rule: Rule, table: str, buckets: Sequence[int], suspects: str | None) -> LoadedRows | None:
        """All rows that a rule wants of a large table, where they are few; None where they are too large."""
        query = wanted_rows_sql(rule, table, buckets, suspects)
        try:
            return loaded(self._con, query, table, 3 * self._most_bytes)
        except TooManyBytes:
            return None

    def _part(self, asked: Asked, table: str, portion: Portion) -> Part | None:
        """Rows of a table of which more than a few are wanted."""
        rule, suspects = asked.rule, asked.suspects
        names = _names(rule, table)
        if self._load(table):
            rows = self._loaded[table]
            if table in asked.whole and portion.portions == 1:
                return part_of(rule, rows, np.arange(len(rows)), names)
            if table not in asked.loaded:
                asked.loaded[table] = self._rows(rule, table, _view(table), asked.buckets, suspects)
            return part_of(rule, rows, asked.loaded[table].of(portion), names)
        place, most = self._tables.get(table), 3 * self._most_bytes
        if not isinstance(place, Path):
            query = wanted_rows_sql(rule, table, portion.buckets, suspects)
            rows = loaded(self._con, query, table, most)
            return part_of(rule, rows, np.arange(len(rows)), {name: name for name in rule.columns(table)})
        files = self._files(rule, table, place, portion)
        if files.small:
            if not any(files.rows):
                return None
            rows = self._portion(rule, table, files, portion)
            if table in asked.whole and files.exact and portion.is_whole:
                return part_of(rule, rows, np.arange(len(rows)), names)
            buckets = ALL_BUCKETS if files.exact and portion.is_whole else portion.buckets
            return part_of(rule, rows, self._numbers_among(rule, table, rows, buckets, suspects), names)
        numbers = self._rows(rule, table, files.source, portion.buckets, suspects).numbers
        if not len(numbers):
            return None
        rows = at_hand(files.paths, loaded_columns([rule], table), table, most, numbers)
        return part_of(rule, rows, np.arange(len(rows)), names)

    def _portion(self, rule: Rule, table: str, files: Dealt, portion: Portion) -> LoadedRows:
        """The rows of a portion of what was dealt, for all rules that look at it. Raises TooManyBytes."""
        key, columns = _key_of(rule, table), _columns_of_key(rule, table, self._together)
        found = self._portions.get(key)
        if found is None or not found.has(portion, columns):
            self._portions.pop(key, None)  # not needed while the next ones are loaded
            del found
            rows = files.loaded(columns, table, 3 * self._most_bytes)
            found = self._portions[key] = LoadedPortion(portion.number, portion.portions, rows)
        return found.rows

    def _files(self, rule: Rule, table: str, place: Path, portion: Portion) -> Dealt:
        """The files that have the rows of a portion, and where nothing was dealt all others, too."""
        files = self._deal(rule, table, place) if portion.portions >= _PORTIONS_TO_DEAL else None
        if files is None:
            return Dealt([place], [self._count(table)])
        return files.of(portion.number, portion.portions)

    def _deal(self, rule: Rule, table: str, place: Path) -> Dealt | None:
        """Deal the rows of a table, once, with the columns of all rules of this key that still may ask; None where
        nothing is dealt."""
        key = _key_of(rule, table)
        if self._folder is None or key in self._dealt:
            return self._dealt.get(key)
        columns = {*_columns_of_key(rule, table, self._waiting)} - {TOPIC}
        size = _row_bytes(len(columns))
        number = min(self._times_too_large(self._count(table) * size), _MOST_FILES)
        stem = f"dealt-{next(self._numbered)}-{table}"
        targets = [self._folder / f"{stem}-{part}" for part in range(number)]
        most = _LARGE_PORTIONS * self._portion_bytes // size
        in_order = [name for name in TABLES[table].column_names() if name in columns]
        try:
            self._dealt[key] = dealt(self._con, rule, table, place, in_order, targets, most)
        except OSError:  # no room: the rows are read from where they are, again for each portion
            self._dealt[key] = None
        return self._dealt[key]

    def _rows(self, rule: Rule, table: str, source: str, buckets: Sequence[int], suspects: str | None) -> WantedRows:
        query = wanted_numbers_sql(rule, table, source, buckets, suspects)
        found = self._con.execute(query).fetchnumpy()
        rows = np.asarray(found[ROW])
        order = np.argsort(rows)
        return WantedRows(rows[order], np.asarray(found[BUCKET])[order] if rule.partition_by else None)

    def _numbers_among(
        self, rule: Rule, table: str, rows: LoadedRows, buckets: Sequence[int], suspects: str | None
    ) -> Integers:
        """Which of the rows of a portion, loaded for all rules of the key, this rule wants in these buckets."""
        if suspects is None and table not in rule.rows and len(buckets) == len(ALL_BUCKETS):
            return np.arange(len(rows))
        self._show(rows, _PORTION)
        try:
            return self._rows(rule, table, _PORTION, buckets, suspects).numbers
        finally:
            self._con.unregister(_PORTION)

    def _show(self, rows: LoadedRows, view: str) -> None:
        """Make a view of rows with their numbers."""
        self._con.register(view, pa.table({**rows.columns, ROW: pa.array(np.arange(len(rows)))}))

    def _count(self, table: str) -> int:
        if table in self._known:
            return self._known[table]
        if table not in self._counts:
            self._counts[table] = self._con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        return self._counts[table]

    def _largest(self, rule: Rule, table: str) -> int:
        """How many rows of a table a partition has at most."""
        key = _key_of(rule, table)
        if key not in self._largest_by_key:
            (found,) = self._con.execute(largest_sql(rule, table)).fetchall()[0]
            self._largest_by_key[key] = found or 0
        return self._largest_by_key[key]

    def _load(self, table: str) -> bool:
        """Load a table for all rules that read it, once; False where it takes too much memory."""
        if table in self._loaded or table in self._too_large:
            return table in self._loaded
        columns = loaded_columns([one for one in self._waiting if table in one.reads], table)
        size = self._count(table) * _row_bytes(len(columns)) // _GUESSED_HIGH
        if max(size - self._most_bytes, size + sum(self._sizes.values()) - MOST_TOGETHER) > 0:
            self._too_large.add(table)
            return False
        try:
            if table in self._tables:
                place = self._tables[table]
                rows = at_hand([place] if isinstance(place, Path) else place, columns, table, self._most_bytes)
            else:
                rows = loaded(self._con, loaded_sql(columns, table), table, self._most_bytes)
        except TooManyBytes:
            self._too_large.add(table)
            return False
        self._loaded[table], self._sizes[table] = rows, rows.nbytes
        self._show(rows, _view(table))
        return True


def _release() -> None:
    """Give back what nobody uses: it would stay beside what comes next."""
    pa.default_memory_pool().release_unused()


def _row_bytes(columns: int) -> int:
    return _ROW_BYTES + _COLUMN_BYTES * columns


def _view(table: str) -> str:
    return f"wirewitness_rows_{table}"


def _key_of(rule: Rule, table: str) -> tuple[str, ...]:
    """The table and its columns by which it is dealt for the rule."""
    return (table, *(key_column(rule, table, key) for key in rule.partition_by))


def _columns_of_key(rule: Rule, table: str, others: Iterable[Rule]) -> list[str]:
    """Those that a rule wants of a table, and the others that look at it by the same key."""
    key = _key_of(rule, table)
    same = [one for one in others if table in one.reads and _key_of(one, table) == key]
    return loaded_columns([rule, *same], table)


def _names(rule: Rule, table: str) -> dict[str, str]:
    """The columns of the rule's frame -> those of a loaded table."""
    keys = {key: key_column(rule, table, key) for key in rule.partition_by}
    return {name: keys.get(name, name) for name in (*rule.partition_by, *rule.own_columns(table))}


def _few_of(rule: Rule, table: str, rows: LoadedRows | None, portion: Portion) -> Part | None:
    """Those of few rows that are in the portion. Raises TooManyBytes where they were too large."""
    if rows is None:
        raise TooManyBytes
    numbers = np.arange(len(rows))
    if portion.portions > 1:
        buckets = rows.columns[BUCKET].to_numpy()
        numbers = np.flatnonzero(buckets % portion.portions == portion.number)
    return part_of(rule, rows, numbers, {name: name for name in rule.columns(table)})
