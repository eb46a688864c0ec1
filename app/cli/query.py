"""`wirewitness query`: one SELECT over all tables. In: captures and SQL; out: rows as text, csv, jsonl or Parquet."""

from __future__ import annotations

from typing import Any

import click

from wirewitness.app.cli.output import check_output
from wirewitness.app.cli.results import write_query
from wirewitness.app.cli.rows import checked_form, format_option, limit_option, payload_option
from wirewitness.app.shared.failure import CallerError, Status
from wirewitness.app.shared.names import say_renamed, unknown_name
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of


@click.command()
@click.argument("captures", nargs=-1, metavar="CAPTURE...")
@click.argument("sql", required=False, metavar="SQL")
@format_option
@limit_option
@payload_option
@output_option
@reading_options
def query(
    *,
    captures: tuple[str, ...],
    sql: str | None,
    form: str,
    raw: bool,
    limit: int | None,
    output: str | None,
    **reading: Any,
) -> Status:
    """Answer one SELECT in DuckDB's SQL; `wirewitness tables` lists tables and columns.

    Only the tables that SQL names are read; --from, --to and --protocol narrow their rows. The query sees no files and
    nothing else outside the capture. Times can be calculated with, then in microseconds; epoch_ns(ts) alone and
    comparisons are exact.

    \b
    Examples:
      wirewitness query incident.pcapng "select operation, count(*), median(latency_ms) from exchanges group by all"
      wirewitness query incident.pcapng "from findings select code, severity, sentence"
      wirewitness query a.pcapng b.pcapng "select client_id, max(committed_offset) from kafka_offset_commits
        where topic = 'payments' group by all" --format csv
    """  # fmt: skip
    if sql is None or not captures:
        raise click.UsageError("a capture and a query are needed: wirewitness query CAPTURE... SQL")
    from wirewitness.analyser.tables.renamed import renamed_tables_in

    form = checked_form(form, output, raw=raw)
    tables = _tables_of(sql, [*captures])
    say_renamed(renamed_tables_in(sql), quiet=reading["quiet"])
    check_output(output, captures)
    with open_analysis(captures, tables, reading) as analysis:
        write_query(
            analysis,
            sql if limit is None else f"SELECT * FROM ({sql.rstrip().rstrip(';')}\n) LIMIT {limit}",
            form,
            output,
        )
        return status_of(analysis)


def _tables_of(sql: str, captures: list[str]) -> list[str]:
    """Tables that the query needs. CallerError for SQL that cannot be answered, before any capture is read."""
    from wirewitness.analyser.analysis.all_rules import tables_needed
    from wirewitness.analyser.tables.queries import QueryError, missing_table, tables_in
    from wirewitness.analyser.tables.tables import ALL_TABLES

    try:
        named = tables_in(sql)
    except QueryError as error:
        missing = missing_table(error)
        if missing is not None:
            unknown, known = unknown_name(missing, ALL_TABLES, "table")
            raise CallerError(f"query: {unknown}", known) from error
        hint = "; the query is the last argument" if any(" " in capture for capture in captures) else ""
        raise CallerError(f"query: {error}{hint}") from error
    return [*named, *(sorted(tables_needed()) if "findings" in named else [])]
