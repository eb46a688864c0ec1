"""MongoDB's commands by query shape, of two sources side by side. In: two sources; out: rows, what differs most first.

A shape is a command on a collection with its filter, sort order and the like, values left out: what one statement of an
application makes. Commands on no collection (hello, ping) are no shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.reports.base.questions.confidence import count_range, least_factor
from wirewitness.reports.base.questions.source import Source
from wirewitness.reports.report.compare.differing_operations import BLUR_MS, pairs, seconds_of
from wirewitness.reports.report.compare.quantiles import QUANTILES, quantile_factor, quantiles_of

Row = Mapping[str, Any]
SHAPE_TABLES = ("mongo_commands",)
# SQL: what people know a statement by.
SHAPE_NAME = "concat_ws(' ', command, concat_ws('.', database, collection), query_shape)"
_KEYS = ("command", "shape")
# What is measured of a shape -> the column, and what is next to nothing of it.
_MEASURES = {"ms": ("latency_ms", BLUR_MS), "returned": ("documents_returned", 1.0), "sent": ("documents_sent", 1.0)}
# Whoever waits for news, or leaves, says nothing of the statement.
_ASKED = f"""
    select coalesce(command, 'not decoded') as command, {SHAPE_NAME} as shape, shape_id, app_name, client_address,
           case when awaitable is not true and await_time_ms is null and tailable is not true then latency_ms end as ms,
           case when status = 'ok' then documents_returned end as returned, documents_sent as sent
    from mongo_commands where collection is not null and command is distinct from 'killCursors'"""
_OTHERS = "\n".join(
    f"left join {name} on {name}.command = counts.command and {name}.shape = counts.shape" for name in _MEASURES
)
_SHAPES = f"""
    with asked as ({_ASKED}),
    {", ".join(f"{name} as ({quantiles_of('select * from asked', _KEYS, name)})" for name in _MEASURES)},
    counts as (
        select command, shape, any_value(shape_id) as shape_id, count(*) as exchanges
        from asked group by command, shape)
    select counts.*, {", ".join(f"{name}.* exclude (command, shape)" for name in _MEASURES)}
    from counts {_OTHERS}"""


def shapes_between(a: Source, b: Source) -> list[dict[str, Any]]:
    """protocol, operation (the command), shape, shape_id; exchanges, per_second, p50_ms, p99_ms, documents returned and
    sent (p50_returned, ...) of both; their least factors (p50, p99, returned, sent, rate), differs.

    differs: of a shape that one side alone has, how many more it asked it at least.
    """
    seconds = (seconds_of(a), seconds_of(b))
    made = [_row(key, sides, seconds) for key, sides in pairs(a, b, _SHAPES, _KEYS).items()]
    return sorted(made, key=lambda row: (-row["differs"], row["shape"]))


def _row(key: tuple[Any, ...], sides: tuple[Row, Row], seconds: tuple[float, float]) -> dict[str, Any]:
    known: Row = sides[1] or sides[0]
    row: dict[str, Any] = {"protocol": "mongo", "operation": key[0], "shape": key[1], "shape_id": known["shape_id"]}
    for side, told, length_s in zip("ab", sides, seconds, strict=True):
        exchanges = told.get("exchanges", 0)
        row |= {f"exchanges_{side}": exchanges, f"per_second_{side}": exchanges / length_s}
        row |= {f"{name}_{value}_{side}": told.get(f"{name}_{value}") for value in _MEASURES for name in QUANTILES}
    factors = {name: quantile_factor(sides, name, "ms", BLUR_MS) for name in QUANTILES}
    for value, (_, blur) in _MEASURES.items():
        if value != "ms":
            factors[value] = quantile_factor(sides, "p50", value, blur)
    rates = [count_range(told.get("exchanges", 0)).over(s) for told, s in zip(sides, seconds, strict=True)]
    factors["rate"] = least_factor(rates[0], rates[1])
    return row | factors | {"differs": max(factors.values())}
