"""Columns that a stage puts beside rows, wherever these lie. In: rows in memory or in a Parquet file, their columns.
Out: the rows with these columns; whole rows are never joined, and never all in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE
from wirewitness.analyser.engine.facts.columns import integers, taken_rows
from wirewitness.analyser.tables.coded import BATCH_ROWS, coded_table
from wirewitness.analyser.tables.parquet import temporary_options, temporary_reader
from wirewitness.analyser.tables.queries import literal


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


def in_order(pieces: Iterable[pa.Table], rows: int) -> pa.Table:
    """Columns for so many rows, in the order of these. pieces: have columns for some rows each, with their `row`, which
    is nowhere twice; a row that has none gets nulls."""
    told = pa.concat_tables(pieces).unify_dictionaries().combine_chunks()
    row = integers(told["row"])
    columns = told.drop_columns(["row"])
    if len(row) == rows and np.array_equal(row, np.arange(rows)):
        return columns
    places = np.full(rows, NOWHERE)
    places[row] = np.arange(len(row))
    return pa.table({name: taken_rows(columns[name], places) for name in columns.schema.names})


def answered(con: duckdb.DuckDBPyConnection, queries: Sequence[str]) -> pa.RecordBatchReader:
    """The rows of queries, which have the same columns, one after the other."""
    first = con.sql(queries[0]).to_arrow_reader(BATCH_ROWS)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        for query in queries[1:]:
            yield from con.sql(query).to_arrow_reader(BATCH_ROWS)

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def with_columns(rows: pa.Table | Path, columns: pa.RecordBatchReader) -> pa.Table | Path:
    """The rows with these columns, in the same order, in place of their own.

    Of a file, another file beside it, with as many rows in each row group.
    """
    if not isinstance(rows, Path):
        return _replaced(rows, coded_table(columns))
    import pyarrow.parquet as pq

    target = rows.with_name(f"{rows.stem}-with-context.parquet")
    with temporary_reader(rows) as source:
        schema = _replaced(source.schema_arrow.empty_table(), columns.schema.empty_table()).schema
        with pq.ParquetWriter(target, schema, **temporary_options(schema)) as writer:
            for number, added in enumerate(_in_groups(columns, source.metadata)):
                writer.write_table(_replaced(source.read_row_group(number), added))
    return target


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
    """Rows with these columns in place of their own of the same names; those that come as codes stay codes."""
    for name in columns.schema.names:
        place = rows.schema.get_field_index(name)
        column, field = columns.column(name), rows.schema.field(place)
        if pa.types.is_dictionary(column.type):
            field, column = field.with_type(column.type), _own_codes(column)
        elif pa.types.is_dictionary(field.type):
            column = pc.dictionary_encode(column)
        rows = rows.set_column(place, field, pc.cast(column, field.type))
    return rows


def _own_codes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of codes without texts of other rows, where these are many: a row group would have all of them."""
    texts = max((len(chunk.dictionary) for chunk in column.chunks), default=0)
    return column if texts <= len(column) else pc.dictionary_encode(pc.cast(column, column.type.value_type))
