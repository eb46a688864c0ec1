"""`wirewitness table`: the rows of one table. In: captures; out: rows as text, csv, jsonl or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from app.cli.conditions import check_condition, condition_error
from app.cli.failure import CallerError, Status
from app.cli.names import checked_columns, checked_table
from app.cli.options import output_option, reading_options
from app.cli.output import check_output, result_sink, whole_file, width_limit
from app.cli.reading import open_analysis, status_of

if TYPE_CHECKING:
    from analyser.analysis import Analysis


class Selection(NamedTuple):
    """Which rows and columns of which table."""

    table: str
    columns: list[str]
    where: str | None
    limit: int | None


@click.command(short_help="Show the rows of table NAME.")
@click.argument("name", metavar="NAME")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "jsonl", "parquet"]),
    default="table",
    show_default=True,
    help="parquet needs --output.",
)
@click.option("--columns", metavar="A,B", help="Only these columns, in this order.")
@click.option("--where", metavar="CONDITION", help="Only rows for which this DuckDB SQL condition holds.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N rows.")
@output_option
@reading_options
def table(
    *,
    name: str,
    captures: tuple[str, ...],
    form: str,
    columns: str | None,
    where: str | None,
    limit: int | None,
    output: str | None,
    **reading: Any,
) -> Status:
    """Show the rows of table NAME; `wirewitness tables` lists the tables.

    The format `table` is for people: rows that are wider than the terminal become one block each.

    \b
    Examples:
      wirewitness table exchanges incident.pcapng --columns ts,operation,client_id,latency_ms --limit 20
      wirewitness table kafka_offset_commits incident.pcapng --where "topic = 'payments' and partition = 3"
      wirewitness table messages incident.pcapng --format parquet --output messages.parquet
    """  # fmt: skip
    if form == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output FILE")
    selected = checked_table(name)
    selection = Selection(selected, checked_columns(columns, selected), where, limit)
    check_condition(where, selected)
    check_output(output, captures)
    with open_analysis(captures, _needed(selected), reading) as analysis:
        _write(analysis, selection, form, output)
        return status_of(analysis)


def _needed(name: str) -> list[str]:
    """Tables to read for a table; the findings need all that detectors look at."""
    if name != "findings":
        return [name]
    from analyser.detectors import tables_needed

    return [name, *sorted(tables_needed())]


def _write(analysis: Analysis, selection: Selection, form: str, output: str | None) -> None:
    from analyser.analysis import QueryError

    try:
        if form == "parquet" and output is not None:
            with whole_file(output) as path:
                analysis.write_parquet(
                    selection.table, path, columns=selection.columns, where=selection.where, limit=selection.limit
                )
            return
        with result_sink(output, text=form == "table") as write:
            for piece in _pieces(analysis, selection, form, None if output else width_limit()):
                write(piece)
    except QueryError as error:
        raise CallerError(condition_error(str(error), selection.table)) from error


def _pieces(analysis: Analysis, selection: Selection, form: str, width: int | None) -> Iterator[bytes]:
    from reports.aligned import aligned_pieces
    from reports.rows import csv_pieces, jsonl_pieces

    columns = selection.columns
    batches = analysis.batches(selection.table, columns=columns, where=selection.where, limit=selection.limit)
    if form == "csv":
        return csv_pieces(batches, columns)
    if form == "jsonl":
        return jsonl_pieces(selection.table, batches, columns)
    return aligned_pieces(batches, columns, width)
