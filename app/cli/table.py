"""`wirewitness table`: the rows of one table. In: captures; out: rows as text, csv, jsonl or Parquet."""

from __future__ import annotations

from typing import Any

import click

from wirewitness.app.cli.conditions import check_condition
from wirewitness.app.cli.output import check_output
from wirewitness.app.cli.rows import (
    Selection,
    checked_form,
    columns_option,
    format_option,
    limit_option,
    payload_option,
    where_option,
    write_rows,
)
from wirewitness.app.shared.failure import Status
from wirewitness.app.shared.names import checked_columns, readable_name
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@format_option
@columns_option
@where_option
@limit_option
@payload_option
@output_option
@reading_options
def table(
    *,
    name: str,
    captures: tuple[str, ...],
    form: str,
    raw: bool,
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
    form = checked_form(form, output, raw=raw)
    selected = readable_name(name, quiet=reading["quiet"])
    selection = Selection(selected, checked_columns(columns, selected), where, limit)
    check_condition(where, selected)
    check_output(output, captures)
    from wirewitness.analyser.decoding.run.pandas_later import import_pandas_later

    import_pandas_later()
    with open_analysis(captures, _needed(selected), reading) as analysis:
        write_rows(analysis, selection, form, output)
        return status_of(analysis)


def _needed(name: str) -> list[str]:
    """Tables to read for a table; the findings need all that rules look at."""
    from wirewitness.analyser.tables.renamed import table_now

    if name != "findings":
        return [table_now(name)]
    from wirewitness.analyser.analysis.all_rules import tables_needed

    return [name, *sorted(tables_needed())]
