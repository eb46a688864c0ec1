"""Columns that a stage puts beside rows, wherever these lie. In: rows in memory or in a Parquet file, a query for the
columns. Out: the rows with these columns; whole rows are never joined, and never all in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from analyser.registry.coded import BATCH_ROWS, coded_table
from analyser.registry.parquet import temporary_options, temporary_reader
from analyser.registry.queries import literal


@contextmanager
def numbered(con: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | Path) -> Iterator[None]:
    """A view of the rows with their numbers from 0 on, as `row`, until the block ends."""
    if isinstance(rows, Path):
        source = f"read_parquet({literal(str(rows))}, file_row_number = true)"
        con.execute(
            f"CREATE TEMP VIEW {name} AS SELECT * EXCLUDE (file_row_number), file_row_number AS row FROM {source}"
        )
    else:
        con.register(name, rows.append_column("row", pa.array(np.arange(rows.num_rows))))
    yield
    con.execute(f"DROP VIEW {name}")


def with_columns(con: duckdb.DuckDBPyConnection, rows: pa.Table | Path, queries: Sequence[str]) -> pa.Table | Path:
    """The rows with the columns of queries, one row for each, in place of their own.

    queries: SELECTs of the same columns, each for the rows behind those of the one before. Of a file, another file
    beside it, with as many rows in each row group.
    """
    columns = _one_after_the_other(con, queries)
    if not isinstance(rows, Path):
        return _replaced(rows, coded_table(columns))
    import pyarrow.parquet as pq

    target = rows.with_name(f"{rows.stem}-with-context.parquet")
    with (
        temporary_reader(rows) as source,
        pq.ParquetWriter(target, schema := source.schema_arrow, **temporary_options(schema)) as writer,
    ):
        for number, added in enumerate(_in_groups(columns, source.metadata)):
            writer.write_table(_replaced(source.read_row_group(number), added))
    return target


def _one_after_the_other(con: duckdb.DuckDBPyConnection, queries: Sequence[str]) -> pa.RecordBatchReader:
    first = con.sql(queries[0]).to_arrow_reader(BATCH_ROWS)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        for query in queries[1:]:
            yield from con.sql(query).to_arrow_reader(BATCH_ROWS)

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def _in_groups(columns: pa.RecordBatchReader, groups: pa.parquet.FileMetaData) -> Iterator[pa.Table]:
    """The rows of a reader, as many at a time as the row groups of a file have."""
    waiting = columns.schema.empty_table()
    for number in range(groups.num_row_groups):
        wanted = groups.row_group(number).num_rows
        while waiting.num_rows < wanted:
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([columns.read_next_batch()])])
        yield waiting.slice(0, wanted)
        waiting = waiting.slice(wanted)


def _replaced(rows: pa.Table, columns: pa.Table) -> pa.Table:
    """Rows with these columns in place of their own of the same names."""
    for name in columns.schema.names:
        place = rows.schema.get_field_index(name)
        column, kind = columns.column(name), rows.schema.types[place]
        if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        rows = rows.set_column(place, rows.schema.field(place), column.cast(kind))
    return rows
