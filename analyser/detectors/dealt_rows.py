"""Rows of a large table dealt to files by a key, once for all rules that have this key.

In: a Parquet file with codes. Out: as many such files as somebody wants, with all rows of a partition in one of them,
in the order of the table. Rules that look at some partitions at a time would read the whole file for each portion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from analyser.detectors.detector import Detector
from analyser.detectors.held import Integers
from analyser.detectors.loaded import numbered_files, without_others
from analyser.detectors.partition_sql import BUCKET, buckets_sql
from analyser.registry.coded import BATCH_ROWS
from analyser.registry.parquet import TEMPORARY

# So many rows are dealt at a time: each file gets its own of them as a row group.
_ROWS = 1 << 17
# Where one file would get more, there is little to win.
_MOST_OF_ALL = 0.75


class Dealt(NamedTuple):
    """The files: number n has the buckets whose remainder is n. rows: how many each has."""

    paths: Sequence[Path]
    rows: Sequence[int]

    def of(self, number: int, portions: int) -> Dealt:
        """Those that have the buckets with this remainder, where there are so many portions; both are powers of 2.

        Where there are fewer files than portions, the one file has others, too.
        """
        first, step = number % len(self.paths), min(portions, len(self.paths))
        return Dealt(self.paths[first::step], self.rows[first::step])

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
) -> Dealt | None:
    """Deal rows by the detector's key; None where nearly all would come into one file.

    columns: that will be wanted. targets: the files, a power of 2. Raises OSError where there is no room for them.
    """
    import pyarrow.parquet as pq

    numbers = _numbers(con, detector, table, path) % len(targets)
    sizes = np.bincount(numbers, minlength=len(targets)).tolist()
    if max(sizes) > _MOST_OF_ALL * len(numbers):
        return None
    with ExitStack() as stack:
        file = stack.enter_context(pq.ParquetFile(path))
        schema = pa.schema([file.schema_arrow.field(name) for name in columns])
        codes = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        writers = [
            stack.enter_context(
                pq.ParquetWriter(one, schema, compression=TEMPORARY, use_dictionary=codes, write_statistics=False)
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
            pa.default_memory_pool().release_unused()  # else as much again stays as all of them take
    return Dealt(targets, sizes)


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
