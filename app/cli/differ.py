"""`wirewitness differ`: what some exchanges have in common that others have not. In: captures and a condition; out: a
table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wirewitness.app.cli.conditions import query_limit
from wirewitness.app.cli.output import check_output, result_sink
from wirewitness.app.cli.results import write_blocks
from wirewitness.app.shared.failure import CallerError, Status
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

if TYPE_CHECKING:
    from wirewitness.reports.report.compare.distinguishing import Common


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--where", required=True, metavar="CONDITION",
              help="Which exchanges: a DuckDB SQL condition over the table exchanges.")  # fmt: skip
@click.option("--all-operations", is_flag=True,
              help="Compare with exchanges of all operations, not with those of the same ones alone.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, metavar="N",
              help="At most N lines as text; csv and jsonl have all.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["table", "csv", "jsonl"]), default="table", show_default=True)
@output_option
@reading_options
def differ(
    *,
    captures: tuple[str, ...],
    where: str,
    all_operations: bool,
    limit: int,
    form: str,
    output: str | None,
    **reading: Any,
) -> Status:
    """Show what exchanges of one kind have in common: the slow ones, the failed ones, those of one minute.

    Clients, addresses, connections, servers, versions, errors, minutes, sizes, topics, partitions, groups, collections,
    query shapes and more are counted among these exchanges and among all others of the same operations. What more of
    these have than chance gives them is shown, what explains most of them first.

    \b
    Examples:
      wirewitness differ incident.pcapng --where "latency_ms > 500"
      wirewitness differ incident.pcapng --where "operation = 'Produce' and status = 'error'"
      wirewitness differ incident.pcapng --where "status = 'unanswered'" --all-operations
      wirewitness differ incident.pcapng --where "client_id = 'billing-a'" --all-operations --format csv
    """
    check_output(output, captures)
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later
    from wirewitness.analyser.tables.queries import QueryError, QueryTooLarge
    from wirewitness.reports.report.compare.distinguishing import TABLES, common_of

    import_pandas_later()
    with open_analysis(captures, list(TABLES), reading) as analysis:
        try:
            found = common_of(analysis, f"{where}\n", all_operations=all_operations)
        except QueryTooLarge as error:
            raise query_limit(error, "the comparison") from error
        except QueryError as error:
            raise CallerError(f"--where: {error}") from error
        _write(found, where, form, limit, output)
        return status_of(analysis)


def _write(found: Common, where: str, form: str, limit: int, output: str | None) -> None:
    if form == "table":
        from wirewitness.reports.report.compared import common_blocks

        write_blocks(common_blocks(found, where, limit), output)
        return
    import pyarrow as pa

    from wirewitness.reports.base.formats.rows import csv_pieces, jsonl_pieces

    whole = ("chosen", "of_chosen", "rest", "of_rest")
    schema = pa.schema([
        ("dimension", pa.string()), ("value", pa.string()), *((name, pa.int64()) for name in whole),
        *((name, pa.float64()) for name in ("share", "share_of_rest", "chance")),
    ])  # fmt: skip
    batch = pa.RecordBatch.from_pylist(found.rows, schema=schema)
    pieces = csv_pieces([batch], schema.names) if form == "csv" else jsonl_pieces("exchanges", [batch], schema.names)
    with result_sink(output) as write:
        for piece in pieces:
            write(piece)
