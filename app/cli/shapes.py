"""`wirewitness shapes`: MongoDB commands by query shape. In: captures; out: a row for each shape."""

from __future__ import annotations

from typing import Any

import click

from wirewitness.app.cli.output import check_output
from wirewitness.app.cli.results import write_blocks, write_query
from wirewitness.app.cli.rows import checked_form, format_option, limit_option
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option(
    "--sort", type=click.Choice(["sum", "count", "mean", "max", "p95", "errors"]), default="sum", show_default=True,
    help="What the first rows have most of; latencies as the client saw them on the wire.",
)  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Commands that name no collection too: hello, ping, endSessions.")
@format_option
@limit_option
@output_option
@reading_options
def shapes(
    *,
    captures: tuple[str, ...],
    sort: str,
    every: bool,
    form: str,
    raw: bool,
    limit: int | None,
    output: str | None,
    **reading: Any,
) -> Status:
    """Group MongoDB commands by namespace, operation and query shape: which queries take the time.

    A shape keeps the keys of filter, sort and pipeline and replaces the values. The columns are those of
    `mloginfo --queries`; csv, jsonl and parquet have more. Latency is from request to first reply, in ms.

    \b
    Examples:
      wirewitness shapes incident.pcapng
      wirewitness shapes incident.pcapng --sort count --limit 10
      wirewitness shapes incident.pcapng --format csv --output shapes.csv
    """
    form = checked_form(form, output, raw=raw)
    check_output(output, captures)
    from wirewitness.reports.protocols.mongo.sections.shapes import shape_blocks, shapes_sql

    query = shapes_sql(sort, every=every, limit=limit)
    with open_analysis(captures, ["mongo_commands"], reading) as analysis:
        if form != "table":
            write_query(analysis, query, form, output)
            return status_of(analysis)
        from wirewitness.reports.base.questions.source import rows

        write_blocks(shape_blocks(rows(analysis, query)), output)
        return status_of(analysis)
