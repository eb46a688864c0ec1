"""Lines that go in steps, one for each bin of time, and each of which can be pressed.

In: a chart of the lines and its rows, with `t` and `t_end` (Unix ms) of each step and its value `shown`; out: a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from wirewitness.app.dashboard.charts.theme import HEIGHT, AnyChart, pressed_mark

# A line is thinner than what a hand can hit.
_HIT_PX = 11


def with_steps(
    lines: alt.Chart, data: pd.DataFrame, x: alt.X, y: alt.Y, tips: Sequence[Any], *fields: str, height: int = HEIGHT
) -> AnyChart:
    """The lines, whose steps tell these fields when they are pressed; to be shown by `pressed_in_chart`."""
    steps = (
        alt.Chart(data[data["shown"].notna() & data["t_end"].notna()])
        .mark_rule(clip=True, strokeWidth=_HIT_PX, opacity=0, cursor="pointer")
        .encode(x, y, alt.X2("t_end"), tooltip=list(tips))
        .add_params(pressed_mark(*fields))
    )
    chart: AnyChart = alt.layer(lines, steps).properties(height=height)
    return chart


def end_of_line(point: Mapping[str, Any], end: float) -> list[dict[str, Any]]:
    """What follows the last point before a time without data: the line goes to the end of its step, and stops."""
    last = {**point, "t": end, "t_end": None}
    return [last, {**last, **dict.fromkeys(point.keys() & {"ms", "value", "shown", "exchanges", "commands"})}]
