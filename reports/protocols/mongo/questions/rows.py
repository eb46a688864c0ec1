"""MongoDB commands over time and by shape, for charts and tables. In: a source; out: rows, or SELECTs over tables.

Times `t` are Unix ms (floats).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.questions.timelines import LATENCY_STEP, heat_cells

_KINDS = 7
MOST_NAMES = 500

_OVER_TIME = """
    with most as (
        select command from mongo_commands where command is not null
        group by command order by count(*) desc, command limit {kinds})
    select epoch_ns(ts) // {width} * {width} / 1e6 as t, coalesce(most.command, 'other') as kind, count(*) as commands
    from mongo_commands left join most using (command) group by all order by all"""
# Of each bin the figures of the shapes that are asked for.
_SHAPES_OVER_TIME = """
    select epoch_ns(ts) // {width} * {width} / 1e6 as t, shape_id, count(*) as commands, avg(latency_ms) as mean_ms,
           quantile_cont(latency_ms, 0.95) as p95_ms, sum(latency_ms) as sum_ms
    from mongo_commands where shape_id in ({ids}) and {condition} group by all order by all"""
_CLIENTS = """
    select {column} as name from mongo_commands where {column} is not null
    group by {column} order by count(*) desc, {column} limit {most}"""
_SHAPE_HEAT = f"""
    select epoch_ns(ts) // {{width}} * {{width}} / 1e6 as t,
           {LATENCY_STEP} as step, count(*) as exchanges
    from mongo_commands where latency_ms is not null and {{condition}} group by all order by all"""

CURSORS = """
    select *, coalesce(ended_by, 'open') as ended, (epoch_ns(ts_last) - epoch_ns(ts)) / 1e6 as lived_ms
    from mongo_cursors"""
TRANSACTIONS = "select * from mongo_transactions"


def commands_over_time(source: Source, width_ns: int) -> list[dict[str, Any]]:
    """t, kind (the most frequent commands, `other` for the rest), commands."""
    return rows(source, _OVER_TIME.format(width=int(width_ns), kinds=_KINDS))


def commands_from(address: str = "", app_name: str = "") -> str:
    """An SQL condition over mongo_commands: those of a client's address, of an application; "" stands for any."""
    wanted = {"client_address": address, "app_name": app_name}
    return " and ".join(f"{name} = {literal(value)}" for name, value in wanted.items() if value) or "true"


def addresses_and_apps(source: Source) -> tuple[list[str], list[str]]:
    """Addresses of clients and names of applications, those with most commands first, at most MOST_NAMES of each."""
    columns = ("client_address", "app_name")
    found = [rows(source, _CLIENTS.format(column=column, most=MOST_NAMES)) for column in columns]
    return [row["name"] for row in found[0]], [row["name"] for row in found[1]]


def shapes_over_time(
    source: Source, width_ns: int, shape_ids: Sequence[str], condition: str = "true"
) -> list[dict[str, Any]]:
    """t, shape_id, commands, mean_ms, p95_ms, sum_ms of these shapes. condition: of `commands_from`."""
    if not shape_ids:
        return []
    ids = ", ".join(map(literal, shape_ids))
    return rows(source, _SHAPES_OVER_TIME.format(width=int(width_ns), ids=ids, condition=condition))


def command_latency(source: Source, width_ns: int, shape_id: str = "", condition: str = "true") -> list[dict[str, Any]]:
    """t, t_end, low_ms, high_ms, exchanges: cells of a heat map, of one shape where one is named."""
    if shape_id:
        condition = f"shape_id = {literal(shape_id)} and {condition}"
    return heat_cells(rows(source, _SHAPE_HEAT.format(width=int(width_ns), condition=condition)), width_ns)


def commands_of(shape_id: str, condition: str = "true") -> str:
    """A SELECT of the commands of one shape."""
    return f"select * from mongo_commands where shape_id = {literal(shape_id)} and {condition}"
