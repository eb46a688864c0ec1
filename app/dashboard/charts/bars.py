"""Bars over time, stacked by kind. In: rows with a time `t` (Unix ms, start of a bin), kind, number; out: a chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from wirewitness.app.dashboard.charts.axes import Y_EXTENT_PX, time_x
from wirewitness.app.dashboard.charts.theme import HEIGHT, AnyChart, bin_text, clock, frame, with_pressed

Rows = Sequence[Mapping[str, Any]]


def time_bars(
    rows: Rows,
    width_ns: int,
    *,
    kind: str,
    value: str,
    colours: Mapping[str, str],
    title: str,
    per_second: bool = False,
    height: int = HEIGHT,
    domain: tuple[float, float] | None = None,
    opens: bool = False,
) -> AnyChart:
    """The numbers `value` of each bin on top of each other, by `kind`, in the order and with the colours given.

    Rows of other kinds are left out. per_second: the axis shows the rate. domain: the time of the axis in Unix ms.
    opens: a pressed bar tells its `kind` and `bin`, see `pressed_in_chart`.
    """
    names = list(colours)
    data = frame(_stacked(rows, width_ns, kind, value, names, 1e9 / width_ns if per_second else 1.0), _COLUMNS)
    tips = [clock(), alt.Tooltip("kind:N", title=kind), alt.Tooltip("number:Q", title=value, format=",")]
    if per_second:
        tips.append(alt.Tooltip("rate:Q", title="per second", format=",.1f"))
    legend = alt.Legend(title=None, orient="top", columns=_columns(names), labelLimit=260) if len(names) > 1 else None
    axis = alt.Axis(tickMinStep=0 if per_second else 1, tickCount=4, minExtent=Y_EXTENT_PX)
    chart: AnyChart = (
        alt.Chart(data, height=height)
        .mark_rect(clip=True, cursor="pointer" if opens else "default")
        .encode(
            time_x(domain=domain), alt.X2("t_end"),
            alt.Y("low:Q", title=title, axis=axis),
            alt.Y2("high"),
            alt.Color("kind:N", scale=alt.Scale(domain=names, range=list(colours.values())), legend=legend),
            tooltip=tips,
        )
    )  # fmt: skip
    return with_pressed(chart, "kind", "bin") if opens else chart


def _columns(names: Sequence[str]) -> int:
    """So many names stand side by side in a legend, on a narrow page too."""
    return max(_LEGEND_LETTERS // (max(map(len, names)) + _MARK_LETTERS), 1)


# What a row of a legend holds, and what stands beside each name.
_LEGEND_LETTERS, _MARK_LETTERS = 75, 4
_COLUMNS = ("t", "t_end", "kind", "number", "rate", "low", "high", "bin")


def _stacked(
    rows: Rows, width_ns: int, kind: str, value: str, names: Sequence[str], factor: float
) -> list[dict[str, Any]]:
    """Rows with the lower and upper end of their bar."""
    place = {name: number for number, name in enumerate(names)}
    ordered = sorted(
        (row for row in rows if row[kind] in place and row[value]), key=lambda row: (row["t"], place[row[kind]])
    )
    tops: dict[float, float] = {}
    found = []
    for row in ordered:
        low = tops.get(row["t"], 0.0)
        rate = row[value] * factor
        tops[row["t"]] = low + rate
        end = row["t"] + width_ns / 1e6
        found.append({"t": row["t"], "t_end": end, "kind": row[kind], "number": row[value], "rate": rate, "low": low,
                      "high": low + rate, "bin": bin_text(row["t"], end)})  # fmt: skip
    return found
