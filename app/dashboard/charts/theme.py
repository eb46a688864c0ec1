"""Colours and sizes that all charts share.

Categorical colours differ also for people with one of the common colour vision deficiencies (a test simulates them),
and stand out on a white and on a dark page. Where there are more kinds than colours, shapes differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import altair as alt
import pandas as pd
import streamlit as st

from wirewitness.app.dashboard.charts.axes import BEYOND_PX
from wirewitness.dissectors.registry import OPTIONAL, PROTOCOLS

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

# Columns of rows that are times in Unix ms. Vega writes times of tooltips in the browser's zone, so text goes along.
_TIMES = ("t", "t_end")

# The selection of a pressed mark.
_MARK = "mark"

# Heights are those of the whole chart, with legend and axis.
HEIGHT = 250
LOW = 170


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a table; with `columns` it has them even without rows. Times get a column `<name>_utc` to read."""
    made = pd.DataFrame(list(rows), columns=list(columns) or None)
    times = {name: pd.to_datetime(made[name], unit="ms") for name in _TIMES if name in made}
    for name, column in times.items():
        made[f"{name}_utc"] = column.dt.strftime("%d %b %H:%M:%S.%f").str.slice(stop=-3)
    return made


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
    made: AnyChart = chart.configure(padding={"left": 0, "top": 4, "right": BEYOND_PX, "bottom": 6}).configure_legend(
        offset=6
    )
    return made


def with_pressed(chart: AnyChart, *fields: str) -> AnyChart:
    """The chart, whose marks tell these fields when they are pressed; to be shown by `pressed_in_chart`."""
    made: AnyChart = chart.add_params(pressed_mark(*fields))
    return made


def pressed_mark(*fields: str) -> alt.Parameter:
    """The same, to be added to one layer of a chart."""
    return alt.selection_point(name=_MARK, fields=list(fields), empty=False)


def pressed_in_chart(chart: AnyChart, key: str, describe: str, width_px: int | None = None) -> dict[str, Any] | None:
    """Show a chart made with `with_pressed`; the fields of the mark that was just pressed."""
    note = f"{key}.pressed"
    event: Any = st.altair_chart(
        dense(chart), theme="streamlit", width=width_px or "stretch", key=key, selection_mode=_MARK, alt=describe,
        on_select=partial(st.session_state.__setitem__, note, True),
    )  # fmt: skip
    # A chart keeps its pressed mark; only the press itself leads on.
    if not st.session_state.pop(note, False):
        return None
    found = getattr(getattr(event, "selection", None), _MARK, None) or []
    return dict(found[0]) if found else None


def bin_text(t: float, t_end: float) -> str:
    """The ends of a bin, Unix ms, as the list of exchanges takes a time: `low-high` in ns."""
    return f"{round(t) * 1_000_000}-{round(t_end) * 1_000_000}"


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
