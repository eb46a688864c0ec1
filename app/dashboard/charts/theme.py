"""Colours, time axes and sizes that all charts share.

Categorical colours follow Okabe and Ito's set, which people with any colour vision tell apart, made a little lighter or
darker so that each stands out on a white and on a dark page. Where there are more kinds than colours, shapes differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import altair as alt
import pandas as pd
import streamlit as st

from dissectors.registry import OPTIONAL, PROTOCOLS

PALETTE = ("#2f7fc1", "#e07b00", "#1d9a74", "#c9599b", "#8e6bbf", "#b59a00", "#4fb0e5", "#c8463c", "#7a8a99", "#9a6a3f")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
# Protocols have their own colours, of this palette or not.
PROTOCOL = {
    **{name: dissector.colour for name, dissector in {**PROTOCOLS, **OPTIONAL}.items()},
    "not identified": "#7a8a99",
}
BAD, QUIET = "#d64545", "#8a94a0"

AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart

# Columns of rows that are times in Unix ms. Vega writes times of tooltips in the browser's zone, so text goes along.
_TIMES = ("t", "t_end")

_SHORT_MS, _LONG_MS = 10_000, 36 * 3_600_000
# Room for the labels of a vertical axis, so that the time axes of charts one above the other begin at one place.
Y_EXTENT_PX = 34
# Heights are those of the whole chart, with legend and axis.
HEIGHT = 250
LOW = 170


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a table; with `columns` it has them even without rows. Times get a column `<name>_utc` to read."""
    made = pd.DataFrame(list(rows), columns=list(columns) or None)
    for name in _TIMES:
        if name in made:
            made[f"{name}_utc"] = pd.to_datetime(made[name], unit="ms").dt.strftime("%H:%M:%S.%f").str.slice(stop=-3)
    return made


def time_x(field: str = "t", domain: tuple[float, float] | None = None, title: str | None = None) -> alt.X:
    """A time axis in UTC over a column of Unix ms."""
    ends = [_date(at_ms) for at_ms in domain] if domain else alt.Undefined
    scale = alt.Scale(type="utc", domain=ends, nice=False)
    axis = alt.Axis(labelOverlap=True, tickCount=8, grid=False, format=_time_format(domain))
    return alt.X(f"{field}:T", scale=scale, title=title, axis=axis)


def _time_format(domain: tuple[float, float] | None) -> str:
    """What tells neighbouring ticks apart."""
    span_ms = domain[1] - domain[0] if domain else _SHORT_MS
    if span_ms < _SHORT_MS:
        return "%H:%M:%S.%L"
    return "%H:%M:%S" if span_ms < _LONG_MS else "%d %b %H:%M"


def _date(at_ms: float) -> alt.DateTime:
    """A time for the end of an axis; a plain number there is not always taken for ms."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return alt.DateTime(
        year=at.year, month=at.month, date=at.day, hours=at.hour, minutes=at.minute, seconds=at.second,
        milliseconds=at.microsecond // 1000, utc=True,
    )  # fmt: skip


def clock(field: str = "t", title: str = "UTC") -> alt.Tooltip:
    """The time of a mark with ms."""
    return alt.Tooltip(f"{field}_utc:N", title=title)


def colours(names: Sequence[str]) -> alt.Scale:
    """The palette over these names in their order."""
    return alt.Scale(domain=list(names), range=[PALETTE[i % len(PALETTE)] for i in range(len(names))])


def shapes(names: Sequence[str]) -> alt.Scale:
    """Circles for the first ten names, another shape for the next ten: colour and shape together differ."""
    return alt.Scale(domain=list(names), range=[SHAPES[i // len(PALETTE) % len(SHAPES)] for i in range(len(names))])


def dense(chart: AnyChart) -> AnyChart:
    """The chart with less air around it than Streamlit gives it, so that more of its height is picture."""
    made: AnyChart = chart.configure(padding={"left": 0, "top": 4, "right": 6, "bottom": 6}).configure_legend(offset=6)
    return made


def show_chart(chart: AnyChart, key: str | None = None, describe: str = "") -> None:
    """The chart over the page's width, in the colours of the page. describe: constant text for screen readers."""
    st.altair_chart(dense(chart), theme="streamlit", width="stretch", key=key, alt=describe or None)
