"""What an analysis gives to callers: tables, findings, queries, whatever it is an analysis of.

In: a source of tables (captures that were read now, or a dataset). Out: Arrow, pandas and Parquet by table name, within
a fixed amount of memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from wirewitness.analyser.analysis.selection import shown_rows
from wirewitness.analyser.analysis.table_source import TableSource
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.parquet import parquet_options
from wirewitness.analyser.tables.queries import (
    QueryError,
    QueryTooLarge,
    UnreadableRows,
    answer,
    failures_told,
    in_microseconds,
    name_list,
    needs_microseconds,
    old_tables,
    quoted,
    renamed_column,
    select,
    words_of_tables,
)
from wirewitness.analyser.tables.renamed import column_note, old_rows, renamed_tables_in, table_note, table_now
from wirewitness.analyser.tables.result_types import held_by_arrow
from wirewitness.analyser.tables.tables import PANDAS_TYPES, arrow_schema, readable_table
from wirewitness.analyser.tables.times_of_day import lacks_time_of_day, with_times_of_day

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

BATCH_ROWS = 1 << 15
BATCH_BYTES = 16 << 20
ROW_GROUP_ROWS = 1 << 16


class UnknownTable(KeyError):
    """No table of that name was asked for or exists."""


class Analysis:
    """The tables of some captures or of a dataset. Close it (or use `with`) to remove its temporary files.

    unread: inputs that could not be read. failures: rules that broke. One
    rule's fault costs no other rule's findings; whoever shows findings must say that some may be missing. faults:
    sentences about what else is left out by a fault of our own.
    """

    def __init__(self, source: TableSource, options: ReadOptions) -> None:
        self.options = options
        self.unread = source.unread
        self.failures = source.failures
        self.faults = source.faults
        self._source = source

    def __enter__(self) -> Analysis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def remarks(self) -> list[str]:
        """Sentences for people, about the inputs and what was concluded from them."""
        return self._source.remarks

    def close(self) -> None:
        """Remove temporary files; the analysis cannot be used afterwards."""
        self._source.close()

    def tables(self) -> list[str]:
        """Names of the tables that this analysis holds."""
        return list(self._source.names)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A DuckDB connection with a view of every table; it reaches no other files and no Python variables."""
        for name in self._source.names:
            self._source.ensure(name)
        return self._source.con

    def arrow(
        self, name: str, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
    ) -> pa.Table:
        """A table as Arrow, in its registered order. Raises UnknownTable, QueryError."""
        _warn_of_old_name(name)
        return self._arrow(name, columns, where, limit)

    def table(self, name: str) -> pd.DataFrame:
        """A table as pandas, with the registered types."""
        _warn_of_old_name(name)
        frame: pd.DataFrame = self._arrow(name).to_pandas(
            types_mapper=_pandas_type, timestamp_as_object=False, date_as_object=False
        )
        return frame.astype({column.name: PANDAS_TYPES[column.kind] for column in readable_table(name).columns})

    def findings(self) -> pd.DataFrame:
        """The findings table as pandas."""
        return self.table("findings")

    def batches(
        self, name: str, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """A table in Arrow batches, in its registered order, within bounded memory."""
        schema = self._output_schema(name, columns)
        narrowed = self._conditions(name, where)
        # Where nothing is asked of rows, DuckDB has nothing to do.
        streamed = None if narrowed or name != table_now(name) else self._source.stream(name, schema.names)
        rows = self._selected(name, schema, narrowed, limit) if streamed is None else _of_usual_size(streamed)
        yield from rows if limit is None else _first_rows(rows, limit)

    def write_parquet(
        self,
        name: str,
        path: str | Path | BinaryIO,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> int:
        """Write a table to a Parquet file, or a stream (zstd); the number of rows written."""
        import pyarrow.parquet as pq

        schema = self._output_schema(name, columns)
        whole = limit is None and name == table_now(name) and not self._conditions(name, where)
        batches = self._source.stream(name, schema.names) if whole else None
        if batches is None:
            batches = self.batches(name, columns, where, limit)
        count = 0
        with pq.ParquetWriter(path, schema, **parquet_options(schema)) as writer:
            for group in _row_groups(batches):
                writer.write_table(pa.Table.from_batches(group, schema))
                count += sum(batch.num_rows for batch in group)
        return count

    def sql(self, query: str) -> pa.Table:
        """One SELECT over all tables, of few rows. Raises QueryError, UnreadableRows."""
        text = _over(query, self._under_old_names(query))
        named = words_of_tables(text) & {*self._source.names}
        if not named:  # of the catalog, perhaps
            return answer(self.connection, text)
        for name in named:
            self._source.ensure(name)
        return answer(self._source.con, text)

    def query(self, query: str) -> Iterator[pa.RecordBatch]:
        """One SELECT over the selected rows, in batches, the first of which is empty. Raises QueryError.

        DuckDB compares times in nanoseconds and no more than that: where a query calculates with them, all its times
        are in microseconds.
        """
        for old in renamed_tables_in(query):
            _warn_of_old_name(old)
        try:
            reader, first = self._begun(query)
        except QueryTooLarge:
            raise
        except QueryError as error:
            if not lacks_time_of_day(error):
                raise QueryError(renamed_column(error, query) or str(error)) from error
            reader, first = self._begun(with_times_of_day(self.connection, query))
        yield from first
        with failures_told():
            yield from reader

    # ------------------------------------------------------------------------------------------------------------------

    def _arrow(
        self, name: str, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
    ) -> pa.Table:
        batches = list(self.batches(name, columns, where, limit))
        return pa.Table.from_batches(batches, self._output_schema(name, columns))

    def _begun(self, query: str) -> tuple[pa.RecordBatchReader, list[pa.RecordBatch]]:
        con = self._source.con
        try:
            return _started(con, _over(query, [*self._narrowed(), *self._under_old_names(query)]))
        except QueryError as error:
            if not needs_microseconds(error):
                raise
            parts = [*self._narrowed(microseconds=True), *self._under_old_names(query)]
            return _started(con, _over(query, parts))

    def _narrowed(self, microseconds: bool = False) -> Iterator[str]:
        """Tables that are not as their views, as parts of a WITH."""
        for name in self._source.names:
            condition = self._conditions(name, None)
            if not condition and not microseconds:
                self._source.ensure(name)
                continue
            rows = f"(SELECT * FROM {self._source.narrowed(name, self.options)} WHERE {condition or 'true'})"
            yield f"{quoted(name)} AS ({in_microseconds(name, rows) if microseconds else rows})"

    def _under_old_names(self, query: str) -> Iterator[str]:
        """Tables that a query calls by their old names, as parts of a WITH."""
        return (part for name, part in old_tables(query) if name in self._source.names)

    def _output_schema(self, name: str, columns: Sequence[str] | None) -> pa.Schema:
        if table_now(name) not in self._source.names:
            raise UnknownTable(f"no table {name} in this analysis; there are {', '.join(self._source.names)}")
        schema = arrow_schema(name)
        if columns is None:
            return schema
        unknown = [column for column in columns if column not in schema.names]
        if unknown:
            now = column_note(unknown[0], [name])
            raise QueryError(now or f"table {name} has no column {', '.join(unknown)}")
        return pa.schema([schema.field(column) for column in columns])

    def _conditions(self, name: str, where: str | None) -> str:
        """What rows have to fulfil, empty where nothing is asked."""
        return " AND ".join([*shown_rows(table_now(name), self.options), *([f"({where}\n)"] if where else [])])

    def _selected(self, name: str, schema: pa.Schema, narrowed: str, limit: int | None) -> Iterator[pa.RecordBatch]:
        for piece in self._source.pieces(table_now(name), self.options):
            rows = piece.source if name == table_now(name) else old_rows(name, piece.source)
            text = f"SELECT {name_list(schema.names)} FROM {rows} AS {quoted(name)}"
            text += f" WHERE {narrowed}" if narrowed else ""
            text += f" ORDER BY {piece.order}" if piece.order else ""
            text += f" LIMIT {int(limit)}" if limit is not None else ""
            with failures_told():
                for batch in select(self._source.con, text).to_arrow_reader(BATCH_ROWS):
                    yield _cast_kept(name, batch, schema) if piece.kept else batch.cast(schema)


def _warn_of_old_name(name: str) -> None:
    """For who calls a method of an analysis; the command line says it itself."""
    if name != table_now(name):
        warnings.warn(table_note(name), DeprecationWarning, stacklevel=3)


def _cast_kept(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """UnreadableRows for what no table of ours has, such as nothing in a column that may not be null."""
    try:
        return batch.cast(schema)
    except (ValueError, pa.ArrowException) as error:
        raise UnreadableRows(f"rows of {name} cannot be read: {error}") from error


def _over(query: str, tables: Iterable[str]) -> str:
    """The query over these parts of a WITH instead of the views."""
    named = ", ".join(tables)
    return f"WITH {named} SELECT * FROM ({query.rstrip().rstrip(';')}\n)" if named else query


def _started(con: duckdb.DuckDBPyConnection, query: str) -> tuple[pa.RecordBatchReader, list[pa.RecordBatch]]:
    """A query's batches, and those read already: an empty one for the columns, and the first. Raises QueryError."""
    with failures_told():
        reader = held_by_arrow(select(con, query)).to_arrow_reader(BATCH_ROWS)
        first = next(reader, None)
    return reader, [pa.RecordBatch.from_pylist([], schema=reader.schema), *([] if first is None else [first])]


def _of_usual_size(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, small batches put together: up to BATCH_ROWS, unless fewer of them are large."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= BATCH_ROWS or sum(one.nbytes for one in held) >= BATCH_BYTES:
            yield from _together(held)
            held = []
    yield from _together(held)


def _together(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(batches).combine_chunks().to_batches(BATCH_ROWS) if batches else []


def _first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def _pandas_type(kind: pa.DataType) -> Any:
    import pandas as pd

    makers: dict[pa.DataType, Callable[[], Any]] = {
        pa.int64(): pd.Int64Dtype,
        pa.string(): pd.StringDtype,
        pa.bool_(): pd.BooleanDtype,
    }
    maker = makers.get(kind)
    return maker() if maker else None


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches in lists of about ROW_GROUP_ROWS rows: many small row groups cost time and space."""
    group: list[pa.RecordBatch] = []
    for batch in batches:
        group.append(batch)
        if sum(held.num_rows for held in group) >= ROW_GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group
