"""MongoDB commands over time and by shape, for charts and tables. In: a source; out: rows, or SELECTs over tables.

Times `t` are Unix ms (floats).
"""

from __future__ import annotations

from typing import Any

from analyser.registry.queries import literal
from reports.questions.source import Source, rows
from reports.questions.timelines import LATENCY_STEP, heat_cells

_KINDS = 7

_OVER_TIME = """
    with most as (
        select command from mongo_commands where command is not null
        group by command order by count(*) desc, command limit {kinds})
    select epoch_ns(ts) // {width} * {width} / 1e6 as t, coalesce(most.command, 'other') as kind, count(*) as commands
    from mongo_commands left join most using (command) group by all order by all"""
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


def command_latency(source: Source, width_ns: int, shape_id: str = "") -> list[dict[str, Any]]:
    """t, t_end, low_ms, high_ms, exchanges: cells of a heat map, of one shape where one is named."""
    condition = f"shape_id = {literal(shape_id)}" if shape_id else "true"
    return heat_cells(rows(source, _SHAPE_HEAT.format(width=int(width_ns), condition=condition)), width_ns)


def commands_of(shape_id: str) -> str:
    """A SELECT of the commands of one shape."""
    return f"select * from mongo_commands where shape_id = {literal(shape_id)}"
