"""Finished rows of one table, for DuckDB to read: few stay in memory, many lie in a temporary Parquet file.

In: batches with the registered columns, texts as codes where that saves memory (`analyser/tables/coded.py`). Out:
`Kept`, which says where the rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from wirewitness.analyser.tables.coded import BATCH_ROWS, Coder, coded_schema, one_table
from wirewitness.analyser.tables.parquet import temporary_options

# What may stay in memory, where all that is done to all other tables comes beside it.
SMALL_ROWS, SMALL_BYTES = 1 << 17, 16 << 20
# Batches leave pieces behind between those that stay, which so many bytes of them make worth giving back.
_RELEASED_BYTES = 48 << 20


class Kept(NamedTuple):
    """Where the rows of a table are: in memory, or in a file where `table` is None."""

    rows: int
    table: pa.Table | None
    path: Path

    @property
    def place(self) -> pa.Table | Path:
        """The rows, or the file that has them."""
        return self.path if self.table is None else self.table


def kept(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> Kept:
    """Keep rows. schema: of the table, with texts everywhere. path: of the file, should there be many."""
    waiting = iter(batches)
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in waiting:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows > SMALL_ROWS or size > SMALL_BYTES:
            return _in_file(held, waiting, schema, path)
    return Kept(rows, one_table(held, schema), path)


def kept_table(rows: pa.Table, path: Path) -> Kept:
    """Keep rows that are in memory; where they take much, as codes and in a file."""
    if rows.nbytes <= SMALL_BYTES:
        return Kept(rows.num_rows, rows, path)
    coder = Coder()
    return kept(map(coder.batch, rows.to_batches(max_chunksize=BATCH_ROWS)), rows.schema, path)


def kept_already(rows: pa.Table | Path, path: Path) -> Kept:
    """Rows that somebody keeps. path: of the file that they would be in."""
    if not isinstance(rows, Path):
        return Kept(rows.num_rows, rows, path)
    import pyarrow.parquet as pq

    return Kept(pq.read_metadata(rows).num_rows, None, rows)


def _in_file(first: list[pa.RecordBatch], others: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> Kept:
    """The same in a file. A batch is a row group: its texts and codes go there as they are, and nothing waits."""
    import pyarrow.parquet as pq

    found = coded_schema(first, schema)
    rows = size = 0
    with pq.ParquetWriter(path, found, **temporary_options(found)) as writer:
        for batch in chain(_emptied(first), others):
            rows += batch.num_rows
            size += batch.nbytes
            writer.write_table(pa.Table.from_batches([batch]).cast(found))
            if size > _RELEASED_BYTES:
                pa.default_memory_pool().release_unused()
                size = 0
    return Kept(rows, None, path)


def _emptied(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while batches:
        yield batches.pop(0)
