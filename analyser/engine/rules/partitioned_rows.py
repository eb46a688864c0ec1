"""Rows of a large table dealt to files by a key, once for all rules that have this key.

In: a Parquet file with codes. Out: as many files as somebody wants, with all rows of a partition in one of them, in the
order of the table. Rules that look at some partitions at a time would read the whole file for each portion.

Where no file gets too many rows (`small`), all rows of one are loaded at once, for all rules that look at them. Others
are Parquet files, of which rules take rows by their numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, compress
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import Held, Integers, TakenRows
from wirewitness.analyser.engine.rules.frame import Frame, Span
from wirewitness.analyser.engine.rules.loaded import LoadedRows, loaded_batches, numbered_files, without_others
from wirewitness.analyser.engine.rules.partition_sql import BUCKET, BUCKETS, buckets_sql
from wirewitness.analyser.engine.rules.partition_stream import Key, empty
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.tables.coded import BATCH_ROWS
from wirewitness.analyser.tables.parquet import TEMPORARY, temporary_reader

# What a rule asks for, and the portions in which it gets that: some buckets at a time where all rows are too many.
#
# In: a rule, which of its rows are wanted, and where they were found. Out: `Asked`, `Portion`, and the rows of one.


class Portion(NamedTuple):
    """Some buckets: those with this remainder, where there are so many portions."""

    buckets: Sequence[int]
    number: int = 0
    portions: int = 1

    @property
    def is_whole(self) -> bool:
        """Has it all of those?"""
        return len(self.buckets) * self.portions == BUCKETS


class WantedRows(NamedTuple):
    """Numbers of rows, rising, and the bucket of each; none where the rule has no key."""

    numbers: Integers
    buckets: Integers | None

    def of(self, portion: Portion) -> Integers:
        """Those in a portion of the buckets that these rows are in."""
        if self.buckets is None or portion.portions == 1:
            return self.numbers
        found: Integers = self.numbers[self.buckets % portion.portions == portion.number]
        return found


class Asked(NamedTuple):
    """What a rule asks for.

    buckets, suspects: as in `selection_sql`. wanted: how many rows of each table, at most. whole: tables of which it is
    known that all rows are wanted. few: those of which the wanted rows are at hand, None where they were too large.
    loaded: which rows of loaded tables are wanted, as that becomes known.
    """

    rule: Rule
    buckets: Sequence[int]
    suspects: str | None
    wanted: Mapping[str, int]
    whole: Collection[str]
    few: Mapping[str, LoadedRows | None]
    loaded: dict[str, WantedRows]


class LoadedPortion(NamedTuple):
    """Rows of one portion, with the columns that all rules want which look at it."""

    number: int
    portions: int
    rows: LoadedRows

    def has(self, portion: Portion, columns: Collection[str]) -> bool:
        """Are these columns of that portion here?"""
        same = (self.number, self.portions) == (portion.number, portion.portions)
        return same and self.rows.columns.keys() >= {*columns}


# The rows that one rule wants of a table, as partitions. In: loaded rows and the numbers of those that are wanted.
# Out: `Part`, and of the parts of all its tables key and frames of each partition.

Partitions = Iterator[tuple[Key, dict[str, Frame]]]


class Part(NamedTuple):
    """Rows of a table that one rule wants, sorted by key. spans: of each partition its first row and the one behind."""

    held: Held
    rows: int
    spans: Mapping[Key, tuple[int, int]]


def part_of(rule: Rule, rows: LoadedRows, numbers: Integers, names: Mapping[str, str]) -> Part | None:
    """The rows with these numbers; None where there are none. names: of the frame's columns -> those of the rows."""
    if not len(numbers):
        return None
    keys = [names[key] for key in rule.partition_by]
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
    are_all = len(numbers) == len(rows) and bool((np.diff(numbers) == 1).all())
    return Part(TakenRows(rows.held, None if are_all else numbers, names), len(numbers), spans)


def partitions_of(rule: Rule, parts: Mapping[str, Part]) -> Partitions:
    """Key and frames of every partition that has rows in any part, in the order of keys. parts: by their tables."""
    nothing = {table: empty(rule, table) for table in rule.reads}
    for key in sorted({key for part in parts.values() for key in part.spans}, key=_null_first):
        frames = dict(nothing)
        for table, part in parts.items():
            if key in part.spans:
                frames[table] = Frame(nothing[table].schema, [Span(part.held, *part.spans[key])])
        yield key, frames


def _null_first(key: Key) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in key)


# So many rows are dealt at a time: each file gets its own of them as a row group.
_ROWS = 1 << 17
# Where one file would get more, there is little to win.
_MOST_OF_ALL = 0.75


class Dealt(NamedTuple):
    """The files: number n has the buckets whose remainder is n.

    rows: how many each has. columns: those that were dealt. small: they can be `loaded`. exact: of some files, no other
    buckets than those asked for.
    """

    paths: Sequence[Path]
    rows: Sequence[int]
    columns: Sequence[str] = ()
    small: bool = False
    exact: bool = False

    def of(self, number: int, portions: int) -> Dealt:
        """Those that have the buckets with this remainder, where there are so many portions; both are powers of 2.

        Where there are fewer files than portions, the one file has others, too.
        """
        first, step = number % len(self.paths), min(portions, len(self.paths))
        exact = portions <= len(self.paths)
        return self._replace(paths=self.paths[first::step], rows=self.rows[first::step], exact=exact)

    def loaded(self, columns: Sequence[str], table: str, most_bytes: int) -> LoadedRows:
        """All rows with these columns, of files that are small and have any. Raises TooManyBytes."""
        paths = [*compress(self.paths, self.rows)]
        schema = _schema(paths[0], columns)
        batches = chain.from_iterable(_read(path, schema) for path in paths)
        return loaded_batches(batches, schema, columns, table, most_bytes)

    @property
    def source(self) -> str:
        """What stands behind FROM for the rows, with their numbers over all files."""
        return numbered_files(self.paths, self.rows)

    def remove(self) -> None:
        """The files are not needed any more."""
        for path in self.paths:
            path.unlink(missing_ok=True)


def dealt(
    con: duckdb.DuckDBPyConnection,
    rule: Rule,
    table: str,
    path: Path,
    columns: Sequence[str],
    targets: Sequence[Path],
    most_small: int,
) -> Dealt | None:
    """Deal rows by the rule's key; None where nearly all would come into one file.

    columns: that will be wanted. targets: the files, a power of 2. most_small: files with more rows are too large to be
    loaded as a whole. Raises OSError where there is no room for them.
    """
    import pyarrow.parquet as pq

    numbers = _numbers(con, rule, table, path) % len(targets)
    sizes = np.bincount(numbers, minlength=len(targets)).tolist()
    if max(sizes) > _MOST_OF_ALL * len(numbers):
        return None
    small = max(sizes) <= most_small
    with ExitStack() as stack:
        file = stack.enter_context(temporary_reader(path))
        schema = pa.schema([file.schema_arrow.field(name) for name in columns])
        codes = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        writers = [
            stack.enter_context(
                _ipc_writer(one, schema)
                if small
                else pq.ParquetWriter(one, schema, compression=TEMPORARY, use_dictionary=codes, write_statistics=False)
            )
            for one in targets
        ]
        start = 0
        for rows in _together(file.iter_batches(BATCH_ROWS, columns=columns)):
            own = numbers[start : start + rows.num_rows]
            start += rows.num_rows
            order = np.argsort(own, kind="stable")
            ends = np.cumsum(np.bincount(own, minlength=len(targets)))
            sorted_rows = rows.take(pa.array(order)).combine_chunks()
            for writer, first, end in zip(writers, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
                if first < end:
                    writer.write_table(_compact(sorted_rows.slice(first, end - first), schema))
            del rows, sorted_rows
    return Dealt(targets, sizes, columns, small)


def _ipc_writer(path: Path, schema: pa.Schema) -> pa.RecordBatchStreamWriter:
    return pa.ipc.new_stream(path, schema, options=pa.ipc.IpcWriteOptions(compression=TEMPORARY))


def _schema(path: Path, columns: Sequence[str]) -> pa.Schema:
    """Of these columns of a small file, in the order of the file."""
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as batches:
        return pa.schema([field for field in batches.schema if field.name in columns])


def _read(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """These columns of a small file."""
    with pa.OSFile(str(path), "rb") as file:
        with pa.ipc.open_stream(file) as batches:
            places = [batches.schema.get_field_index(name) for name in schema.names]
        file.seek(0)
        with pa.ipc.open_stream(file, options=pa.ipc.IpcReadOptions(included_fields=places)) as batches:
            yield from batches


def _numbers(con: duckdb.DuckDBPyConnection, rule: Rule, table: str, path: Path) -> Integers:
    """The bucket of each row, in the order of the file."""
    query = buckets_sql(rule, table, numbered_files([path], [0]))
    return np.asarray(con.execute(query).fetchnumpy()[BUCKET])


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows, many at a time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= _ROWS:
            yield pa.Table.from_batches(held).unify_dictionaries()
            held = []
    if held:
        yield pa.Table.from_batches(held).unify_dictionaries()


def _compact(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of the schema without the texts of others, which a file would get as well."""
    columns = [without_others(one) for column in rows.columns for one in column.chunks]
    columns = [
        one.dictionary_encode() if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(one.type) else one
        for one, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)
