"""`wirewitness records`: Kafka records as a console consumer prints them. In: captures; out: a row for each record."""

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
from wirewitness.app.shared.names import checked_columns
from wirewitness.app.shared.options import output_option, reading_options
from wirewitness.app.shared.reading import open_analysis, status_of

TABLE = "kafka_records"
_WHERE_IT_IS = "api,topic,partition,offset,timestamp"
_SIZES = f"{_WHERE_IT_IS},key_bytes,value_bytes,headers_count,codec,control"
_PAYLOAD = f"{_WHERE_IT_IS},key,value,headers,control"


@click.command()
@click.argument("captures", nargs=-1, required=True, metavar="CAPTURE...")
@click.option("--topic", multiple=True, metavar="NAME", help="Only this topic. Repeatable.")
@click.option(
    "--partition", multiple=True, type=click.IntRange(min=0), metavar="N", help="Only this partition. Repeatable."
)
@click.option("--from-offset", type=int, metavar="N", help="Only offsets from this one on.")
@click.option("--to-offset", type=int, metavar="N", help="Only offsets before this one.")
@click.option(
    "--api",
    type=click.Choice(["Produce", "Fetch", "Segment"], case_sensitive=False),
    help="Only what was written, read, or lies in a segment.",
)
@payload_option
@format_option
@columns_option
@where_option
@limit_option
@output_option
@reading_options
def records(
    *,
    captures: tuple[str, ...],
    topic: tuple[str, ...],
    partition: tuple[int, ...],
    from_offset: int | None,
    to_offset: int | None,
    api: str | None,
    form: str,
    raw: bool,
    columns: str | None,
    where: str | None,
    limit: int | None,
    output: str | None,
    **reading: Any,
) -> Status:
    """Show the records that producers wrote and consumers read, or that a broker has in its log segments.

    A record that is written and read is shown once for each time: --api Produce or --api Fetch shows one side. Sizes
    are shown; keys, values and headers only with --payload. Bytes that are no UTF-8 are shown as hexadecimal digits,
    which the columns key_encoding and value_encoding say. Control records, such as a transaction's markers, take an
    offset and are no messages: the column control says what each is. Columns are those of the table kafka_records.

    \b
    Examples:
      wirewitness records incident.pcapng --topic payments --partition 3 --limit 20
      wirewitness records incident.pcapng --topic payments --api Fetch --payload --format jsonl
      wirewitness records incident.pcapng --topic payments --partition 3 --from-offset 1000 --to-offset 1010 --payload
      wirewitness records orders-3/00000000000000000000.log --payload --limit 20
      wirewitness records incident.pcapng --where "not crc_ok or error is not null"
      wirewitness records incident.pcapng --payload --format parquet --output records.parquet
    """  # fmt: skip
    form = checked_form(form, output, raw=raw)
    shown = columns or (_PAYLOAD if reading["payload"] else _SIZES)
    check_condition(where, TABLE)
    from wirewitness.analyser.tables.queries import literal

    conditions = [
        f"topic IN ({', '.join(map(literal, topic))})" if topic else None,
        f"partition IN ({', '.join(map(str, partition))})" if partition else None,
        None if from_offset is None else f'"offset" >= {from_offset}',
        None if to_offset is None else f'"offset" < {to_offset}',
        None if api is None else f"api = {literal(api)}",
        None if where is None else f"({where}\n)",
    ]
    condition = " AND ".join(condition for condition in conditions if condition) or None
    selection = Selection(TABLE, checked_columns(shown, TABLE), condition, limit)
    if where is None and "decoded" not in selection.columns:  # else more may be needed than is shown
        reading["payload_columns"] = _payload_of(selection.columns)
    check_output(output, captures)
    with open_analysis(captures, [TABLE], reading) as analysis:
        write_rows(analysis, selection, form, output)
        return status_of(analysis)


def _payload_of(columns: list[str]) -> tuple[str, ...]:
    """The columns of payload that these are, or are made from; "key" where that is none, which costs least."""
    return tuple(name for name in ("key", "value", "headers") if {name, f"{name}_encoding"} & {*columns}) or ("key",)
