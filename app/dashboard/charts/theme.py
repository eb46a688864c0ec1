"""Colours, time axes and sizes that all charts share.

Categorical colours differ also for people with one of the common colour vision deficiencies (a test simulates them),
and stand out on a white and on a dark page. Where there are more kinds than colours, shapes differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

import altair as alt
import pandas as pd
import streamlit as st

from dissectors.registry import OPTIONAL, PROTOCOLS

PALETTE = ("#2f7fc1", "#e07b00", "#1d9a74", "#774411", "#aabbdd", "#ccbb77", "#665577", "#00bbff", "#ff99aa", "#335544")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
# Those that a capture holds together have colours that differ for everybody; optional ones bring their own.
PROTOCOL = {
    **dict(zip(PROTOCOLS, PALETTE, strict=False)),
    **{name: dissector.colour for name, dissector in OPTIONAL.items()},
    "not identified": "#7a8a99",
}
BAD, QUIET = "#d64545", "#8a94a0"

AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart

Domain: TypeAlias = tuple[float, float]

# Columns of rows that are times in Unix ms. Vega writes times of tooltips in the browser's zone, so text goes along.
_TIMES = ("t", "t_end")

_SHORT_MS = 10_000
# Room for the labels of a vertical axis, so that the time axes of charts one above the other begin at one place.
Y_EXTENT_PX = 46
# Heights are those of the whole chart, with legend and axis.
HEIGHT = 250
LOW = 170


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a table; with `columns` it has them even without rows. Times get a column `<name>_utc` to read."""
    made = pd.DataFrame(list(rows), columns=list(columns) or None)
    times = {name: pd.to_datetime(made[name], unit="ms") for name in _TIMES if name in made}
    days = {day for column in times.values() for day in column.dt.date.dropna().unique()}
    shape = "%H:%M:%S.%f" if len(days) < 2 else "%d %b %H:%M:%S.%f"
    for name, column in times.items():
        made[f"{name}_utc"] = column.dt.strftime(shape).str.slice(stop=-3)
    return made


def time_x(field: str = "t", domain: Domain | None = None, *, titled: bool = True) -> alt.X:
    """A time axis in UTC over a column of Unix ms; below it the day or days. titled: whether these are written."""
    ends = [_date(at_ms) for at_ms in domain] if domain else alt.Undefined
    scale = alt.Scale(type="utc", domain=ends, nice=False)
    axis = alt.Axis(
        labelOverlap=True, tickCount=8, grid=False, format=_time_format(domain), titleAnchor="end", titlePadding=2,
        titleFontSize=10, titleFontWeight="normal",
    )  # fmt: skip
    return alt.X(f"{field}:T", scale=scale, title=days(domain) if titled else None, axis=axis)


def days(domain: Domain | None) -> str:
    """`20 Nov 2026, UTC` or `20 Nov to 23 Nov 2026, UTC`: the days of a time in Unix ms."""
    if domain is None:
        return "UTC"
    first, last = (datetime.fromtimestamp(at_ms / 1000, UTC) for at_ms in domain)
    end = f"{last.day} {last:%b %Y}"
    if first.date() == last.date():
        return f"{end}, UTC"
    year = f" {first.year}" if first.year != last.year else ""
    return f"{first.day} {first:%b}{year} to {end}, UTC"


def _time_format(domain: Domain | None) -> str:
    """What tells neighbouring ticks apart; the day where there is more than one."""
    if domain is None:
        return "%H:%M:%S"
    first, last = (datetime.fromtimestamp(at_ms / 1000, UTC) for at_ms in domain)
    if first.date() != last.date():
        return "%d %b %H:%M"
    return "%H:%M:%S.%L" if domain[1] - domain[0] < _SHORT_MS else "%H:%M:%S"


def log_ticks(low: float, high: float) -> list[float]:
    """Whole powers of ten from below `low` to above `high`; with 2 and 5 times them where these are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1,) if last - first > 3 else (1, 2, 5)
    ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [round(tick, 6) for tick in ticks if tick <= 10.0**last]


def latency_axis(ticks: Sequence[float]) -> alt.Axis:
    """A logarithmic axis of ms that says `200 us`, `5 ms`, `2 s`."""
    text = (
        "datum.value < 1 ? format(datum.value * 1000, '~r') + ' µs' : "
        "datum.value < 1000 ? format(datum.value, '~r') + ' ms' : format(datum.value / 1000, ',~r') + ' s'"
    )
    return alt.Axis(values=list(ticks), labelExpr=text, labelOverlap=True, grid=False, minExtent=Y_EXTENT_PX)


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


def show_chart(chart: AnyChart, key: str | None = None, describe: str = "", width_px: int | None = None) -> None:
    """The chart over the page's width, or as wide as told, in the colours of the page.

    describe: constant text for screen readers.
    """
    st.altair_chart(dense(chart), theme="streamlit", width=width_px or "stretch", key=key, alt=describe or None)


def chosen_in_chart(chart: AnyChart, key: str, selection: str, field: str, describe: str) -> str | None:
    """Show the chart; what the mark that was just pressed has in `field`, if the chart has such a selection."""
    event: Any = st.altair_chart(
        dense(chart), theme="streamlit", width="stretch", key=key, on_select="rerun", selection_mode=selection,
        alt=describe,
    )  # fmt: skip
    found = getattr(getattr(event, "selection", None), selection, None) or []
    first = found[0] if isinstance(found, list) and found else {}
    value = first.get(field) if hasattr(first, "get") else None
    return str(value) if value else None
