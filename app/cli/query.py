"""`wirewitness query`: one SELECT over all tables. In: captures and SQL; out: rows as text, csv, jsonl or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from app.cli.failure import CallerError, Status
from app.cli.names import unknown_name
from app.cli.options import output_option, reading_options
from app.cli.output import check_output, result_sink, whole_file, width_limit
from app.cli.reading import open_analysis, status_of
from app.cli.rows import check_format, format_option, limit_option, payload_option

if TYPE_CHECKING:
    import pyarrow as pa

    from analyser.analysis import Analysis


@click.command(short_help="Answer one SQL SELECT over all tables.")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.argument("sql", metavar="SQL")
@format_option
@limit_option
@payload_option
@output_option
@reading_options
def query(
    *,
    captures: tuple[str, ...],
    sql: str,
    form: str,
    limit: int | None,
    output: str | None,
    **reading: Any,
) -> Status:
    """Answer one SELECT in DuckDB's SQL; `wirewitness tables` lists tables and columns.

    Only the tables that SQL names are read; --from, --to and --protocol narrow their rows. The query sees no files and
    nothing else outside the capture.

    \b
    Examples:
      wirewitness query incident.pcapng "select operation, count(*), median(latency_ms) from exchanges group by all"
      wirewitness query incident.pcapng "from findings select code, severity, sentence"
      wirewitness query a.pcapng b.pcapng "select client_id, max(committed_offset) from kafka_offset_commits
        where topic = 'payments' group by all" --format csv
    """  # fmt: skip
    check_format(form, output)
    tables = _tables_of(sql, [*captures])
    check_output(output, captures)
    with open_analysis(captures, tables, reading) as analysis:
        _write(
            analysis,
            sql if limit is None else f"SELECT * FROM ({sql.rstrip().rstrip(';')}\n) LIMIT {limit}",
            form,
            output,
        )
        return status_of(analysis)


def _tables_of(sql: str, captures: list[str]) -> list[str]:
    """Tables that the query needs. CallerError for SQL that cannot be answered, before any capture is read."""
    from analyser.detectors import tables_needed
    from analyser.queries import QueryError, missing_table, tables_in
    from analyser.tables import TABLES

    try:
        named = tables_in(sql)
    except QueryError as error:
        missing = missing_table(error)
        if missing is not None:
            raise CallerError(f"query: {unknown_name(missing, TABLES, 'table')}") from error
        hint = "; the query is the last argument" if any(" " in capture for capture in captures) else ""
        raise CallerError(f"query: {error}{hint}") from error
    return [*named, *(sorted(tables_needed()) if "findings" in named else [])]


def _write(analysis: Analysis, sql: str, form: str, output: str | None) -> None:
    from analyser.queries import QueryError

    try:
        batches = _batches(analysis, sql)
        first = next(batches)
        if form == "parquet" and output is not None:
            with whole_file(output) as path:
                _write_parquet(chain([first], batches), first.schema, path)
            return
        with result_sink(output, text=form == "table") as write:
            for piece in _pieces(chain([first], batches), first.schema.names, form, None if output else width_limit()):
                write(piece)
    except QueryError as error:
        raise CallerError(f"query: {error}") from error


def _batches(analysis: Analysis, sql: str) -> Iterator[pa.RecordBatch]:
    """Rows of the result in plain types; at least one batch, so that columns are known."""
    from reports.plain import plain_batch

    return (plain_batch(batch) for batch in analysis.query(sql))


def _write_parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, path: Any) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema))


def _pieces(batches: Iterator[pa.RecordBatch], columns: list[str], form: str, width: int | None) -> Iterator[bytes]:
    from reports.aligned import aligned_pieces
    from reports.rows import csv_pieces, jsonl_pieces

    if form == "csv":
        return csv_pieces(batches, columns)
    if form == "jsonl":
        return jsonl_pieces("", batches, columns)
    return aligned_pieces(batches, columns, width)
