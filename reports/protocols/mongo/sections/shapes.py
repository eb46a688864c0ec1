"""MongoDB commands by query shape, as `mloginfo --queries` shows them. In: an analysis; out: one row for each shape.

Hellos that wait for news and getMores that wait for documents are left out of latencies by the table itself (null).
"""

from __future__ import annotations

from typing import Any

from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, without_empty
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.questions.columns import PAGE, TEXT, Column, shown_as
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.sections.column_widths import room_of

# What a shape can be sorted by, with its column.
SORTS = {"sum": "sum_ms", "count": "count", "mean": "mean_ms", "max": "max_ms", "p95": "p95_ms", "errors": "errors"}

_PATTERN = Column("pattern", "Pattern", "text", 320)
COLUMNS = (
    Column("namespace", "Namespace"),
    Column("operation", "Operation", "text", 96),
    _PATTERN._replace(only=PAGE),
    Column("count", "Count", "count"),
    Column("min_ms", "Min ms", "ms", only=TEXT, spare=4),
    Column("max_ms", "Max ms", "ms"),
    Column("p95_ms", "p95 ms", "ms", spare=2),
    Column("sum_ms", "Sum ms", "ms"),
    Column("mean_ms", "Mean ms", "ms", spare=3),
    Column("errors", "Errors", "count"),
    Column("unanswered", "No response", "count", only=TEXT, heading="NO-RESPONSE"),
    Column("documents_returned", "Returned", "count", spare=1),
    Column("clients", "Clients", only=PAGE),
    Column("app_names", "Applications", only=PAGE),
    _PATTERN._replace(only=TEXT),
)

_SHAPES = """
    select coalesce(database, '?') || coalesce('.' || collection, '') as namespace,
           command as operation, query_shape as pattern, count(*) as count,
           min(latency_ms) as min_ms, max(latency_ms) as max_ms, quantile_cont(latency_ms, 0.95) as p95_ms,
           sum(latency_ms) as sum_ms, avg(latency_ms) as mean_ms,
           count(*) filter (status = 'error') as errors, count(*) filter (status = 'unanswered') as unanswered,
           sum(documents_returned)::bigint as documents_returned, sum(response_bytes)::bigint as response_bytes,
           string_agg(distinct client_address, ', ' order by client_address) as clients,
           string_agg(distinct app_name, ', ' order by app_name) as app_names, shape_id
    from mongo_commands where {condition}
    group by database, collection, command, query_shape, shape_id
    order by {sort} desc nulls last, count desc, namespace, operation, pattern"""

_WORK = "command is not null and collection is not null"
_ANY = "command is not null"


def shapes_sql(sort: str = "sum", *, every: bool = False, limit: int | None = None, condition: str = "true") -> str:
    """A SELECT over mongo_commands. sort: a key of SORTS. every: commands without a collection too.

    condition: SQL boolean over mongo_commands.
    """
    query = _SHAPES.format(condition=f"{_ANY if every else _WORK} and {condition}", sort=SORTS[sort])
    return query if limit is None else f"{query} limit {int(limit)}"


def shapes(source: Source, limit: int, condition: str = "true") -> list[dict[str, Any]]:
    """Shapes of the selected rows, those that took most time in sum first. condition: as for `shapes_sql`."""
    return rows(source, shapes_sql(limit=limit, condition=condition))


def shape_count(source: Source) -> int:
    """How many shapes there are."""
    query = f"select count(distinct shape_id) as shapes from mongo_commands where {_WORK}"
    return int(rows(source, query)[0]["shapes"])


def shape_blocks(found: list[dict[str, Any]]) -> list[Block]:
    """The table for people: latencies in ms, the pattern last, where it may take lines of its own."""
    if not found:
        return [Paragraph("No MongoDB command on a collection was seen.")]
    columns = shown_as(TEXT, COLUMNS)
    table = tuple(tuple(_cell(column, shape[column.name]) for column in columns) for shape in found)
    numbers = tuple(place for place, column in enumerate(columns) if column.kind != "text")
    header = tuple(column.capitals for column in columns)
    return [without_empty(Cells(header, table, numbers=numbers, wrapped=(len(columns) - 1,), **room_of(columns)))]


def _cell(column: Column, value: Any) -> str:
    if column.kind == "ms":
        return ms_text(value)
    if value is None or (value == 0 and column.name in ("errors", "unanswered")):
        return ""
    return f"{value:,}" if column.kind == "count" else str(value)
