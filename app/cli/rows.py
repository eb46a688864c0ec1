"""Rows of a table to standard output or a file. In: an analysis, what to select; out: text, csv, jsonl, Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wirewitness.app.cli.conditions import condition_error, query_limit
from wirewitness.app.cli.output import result_sink, whole_file, width_limit
from wirewitness.app.shared.failure import CallerError

if TYPE_CHECKING:
    import pyarrow as pa

    from wirewitness.analyser.analysis.analysis import Analysis


RAW_CSV = "csv --raw"


class Selection(NamedTuple):
    """Which rows and columns of which table."""

    table: str
    columns: list[str]
    where: str | None
    limit: int | None


_form_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "jsonl", "parquet"]),
    default="table",
    show_default=True,
    help="parquet needs --output.",
)
_raw_option = click.option(
    "--raw", is_flag=True, help="csv with the exact text; else what a spreadsheet would calculate begins with '."
)


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--format and --raw."""
    return _form_option(_raw_option(command))


limit_option = click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N rows.")
columns_option = click.option("--columns", metavar="A,B", help="Only these columns, in this order.")
where_option = click.option("--where", metavar="CONDITION", help="Only rows for which this DuckDB SQL condition holds.")
payload_option = click.option(
    "--payload", is_flag=True, help="Show what applications sent: keys, values and headers of records."
)


def checked_form(form: str, output: str | None, *, raw: bool) -> str:
    """The format, RAW_CSV where the exact text is wanted. A usage error for what does not go together."""
    if form == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output FILE")
    if raw and form != "csv":
        raise click.UsageError("--raw is for --format csv; jsonl and parquet are always exact")
    return RAW_CSV if raw else form


def write_rows(analysis: Analysis, selection: Selection, form: str, output: str | None) -> None:
    """Write the selected rows. CallerError when the condition cannot be computed, LimitError for too many rows."""
    from wirewitness.analyser.tables.queries import QueryError, QueryTooLarge

    try:
        if form == "parquet" and output is not None:
            with whole_file(output) as file:
                analysis.write_parquet(
                    selection.table, file, columns=selection.columns, where=selection.where, limit=selection.limit
                )
            return
        with result_sink(output, text=form == "table") as write:
            for piece in _pieces(analysis, selection, form, None if output else width_limit()):
                write(piece)
    except QueryTooLarge as error:
        raise query_limit(error, f"rows of {selection.table}") from error
    except QueryError as error:
        raise CallerError(*condition_error(str(error), selection.table)) from error


def _pieces(analysis: Analysis, selection: Selection, form: str, width: int | None) -> Iterator[bytes]:
    columns = selection.columns
    batches = analysis.batches(selection.table, columns=columns, where=selection.where, limit=selection.limit)
    return formatted(batches, columns, form, width, selection.table)


def formatted(
    batches: Iterator[pa.RecordBatch], columns: list[str], form: str, width: int | None, table: str = ""
) -> Iterator[bytes]:
    """Rows in one of the text formats. width: of the terminal for `table`; table: whose columns may hold JSON."""
    from wirewitness.reports.base.formats.plain import aligned_pieces
    from wirewitness.reports.base.formats.rows import csv_pieces, jsonl_pieces

    if form in {"csv", RAW_CSV}:
        return csv_pieces(batches, columns, raw=form == RAW_CSV)
    if form == "jsonl":
        return jsonl_pieces(table, batches, columns)
    return aligned_pieces(batches, columns, width)
