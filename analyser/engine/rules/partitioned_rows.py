"""Rows of a large table dealt to files by a key, once for all rules that have this key.

In: a Parquet file with codes. Out: as many files as somebody wants, with all rows of a partition in one of them, in the
order of the table. Rules that look at some partitions at a time would read the whole file for each portion.

Where no file gets too many rows (`small`), all rows of one are loaded at once, for all rules that look at them. Others
are Parquet files, of which rules take rows by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, compress
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.loaded import LoadedRows, loaded_batches, numbered_files, without_others
from wirewitness.analyser.engine.rules.partition_sql import BUCKET, buckets_sql
from wirewitness.analyser.engine.rules.rule import Detector
from wirewitness.analyser.tables.coded import BATCH_ROWS
from wirewitness.analyser.tables.parquet import TEMPORARY, temporary_reader

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
    detector: Detector,
    table: str,
    path: Path,
    columns: Sequence[str],
    targets: Sequence[Path],
    most_small: int,
) -> Dealt | None:
    """Deal rows by the detector's key; None where nearly all would come into one file.

    columns: that will be wanted. targets: the files, a power of 2. most_small: files with more rows are too large to be
    loaded as a whole. Raises OSError where there is no room for them.
    """
    import pyarrow.parquet as pq

    numbers = _numbers(con, detector, table, path) % len(targets)
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


def _numbers(con: duckdb.DuckDBPyConnection, detector: Detector, table: str, path: Path) -> Integers:
    """The bucket of each row, in the order of the file."""
    query = buckets_sql(detector, table, numbered_files([path], [0]))
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
