"""MongoDB commands by query shape, as `mloginfo --queries` shows them. In: an analysis; out: one row for each shape.

Hellos that wait for news and getMores that wait for documents are left out of latencies by the table itself (null).
"""

from __future__ import annotations

from typing import Any

from reports.formats.document import Block, Cells, Paragraph, without_empty
from reports.formats.values import ms_text
from reports.questions.source import Source, rows

# What a shape can be sorted by, with its column.
SORTS = {"sum": "sum_ms", "count": "count", "mean": "mean_ms", "max": "max_ms", "p95": "p95_ms", "errors": "errors"}

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


def shapes_sql(sort: str = "sum", *, every: bool = False, limit: int | None = None) -> str:
    """A SELECT over mongo_commands. sort: a key of SORTS. every: commands without a collection too."""
    query = _SHAPES.format(condition=_ANY if every else _WORK, sort=SORTS[sort])
    return query if limit is None else f"{query} limit {int(limit)}"


def shapes(source: Source, limit: int) -> list[dict[str, Any]]:
    """Shapes of the selected rows, those that took most time in sum first."""
    return rows(source, shapes_sql(limit=limit))


def shape_count(source: Source) -> int:
    """How many shapes there are."""
    query = f"select count(distinct shape_id) as shapes from mongo_commands where {_WORK}"
    return int(rows(source, query)[0]["shapes"])


def shape_blocks(found: list[dict[str, Any]]) -> list[Block]:
    """The table for people: latencies in ms, the pattern last, where it may take lines of its own."""
    if not found:
        return [Paragraph("No MongoDB command on a collection was seen.")]
    header = (
        *("NAMESPACE", "OPERATION", "COUNT", "MIN MS", "MAX MS", "95% MS", "SUM MS", "MEAN MS"),
        *("ERRORS", "NO ANSWER", "RETURNED", "PATTERN"),
    )
    table = tuple(
        (
            shape["namespace"],
            shape["operation"],
            f"{shape['count']:,}",
            *(ms_text(shape[name]) for name in ("min_ms", "max_ms", "p95_ms", "sum_ms", "mean_ms")),
            f"{shape['errors']:,}" if shape["errors"] else "",
            f"{shape['unanswered']:,}" if shape["unanswered"] else "",
            "" if shape["documents_returned"] is None else f"{shape['documents_returned']:,}",
            shape["pattern"] or "",
        )
        for shape in found
    )
    return [without_empty(Cells(header, table, numbers=tuple(range(2, 11)), wrapped=(11,)))]
