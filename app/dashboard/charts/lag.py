"""How far behind a group was over time. In: rows of `reports.protocols.kafka.questions.lag_history`; out: a chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from wirewitness.app.dashboard.charts.axes import Domain, time_x
from wirewitness.app.dashboard.charts.theme import LOW, AnyChart, clock, colours, frame, with_pressed
from wirewitness.reports.base.formats.words import span

Rows = Sequence[Mapping[str, Any]]
LAG_UNITS = {"messages": "messages behind", "time": "time behind"}


def lag_lines(rows: Rows, places: Sequence[str], domain: Domain | None = None, unit: str = "messages") -> AnyChart:
    """How far behind each partition was. A band is from the least to the most of a bin, the line how the bin ended.

    rows: of `lag_over_time` with a `place`. unit: of LAG_UNITS. A partition with one bin is a point. A pressed line
    tells its `place`.
    """
    data = frame(lag_points(rows, domain[1] if domain else None), _LAG_COLUMNS)
    base = alt.Chart(data, height=LOW + 60)
    colour = alt.Color(
        "place:N",
        scale=colours(places),
        legend=alt.Legend(title=None, orient="right", symbolOpacity=1, symbolType="stroke"),
    )
    tips = [
        clock(), "place:N", alt.Tooltip("lag:Q", format=",", title="behind at its end"),
        alt.Tooltip("least:Q", format=",", title="least"), alt.Tooltip("most:Q", format=",", title="most"),
        alt.Tooltip("behind:N", title="time behind, at most"), alt.Tooltip("stored:Q", format=","),
        alt.Tooltip("log_end:Q", format=",", title="log end"),
    ]  # fmt: skip
    x = time_x(domain=domain)
    y = _UNIT_AXES[unit]()
    line = with_pressed(
        base.mark_line(interpolate="step-after", cursor="pointer").encode(x, y, colour, tooltip=tips), "place"
    )
    dots = base.mark_point(filled=True, size=45).encode(x, y, colour, tooltip=tips).transform_filter("datum.alone")
    band = base.mark_area(interpolate="step-after", opacity=0.28).encode(x, alt.Y("least:Q"), alt.Y2("most"), colour)
    # A layer without marks is read out as a picture that has no name.
    chart: AnyChart = alt.layer(*([] if unit == "time" else [band]), line, *([dots] if data["alone"].any() else []))
    return chart


_LAG_COLUMNS = ("t", "place", "lag", "least", "most", "stored", "log_end", "behind_s", "behind", "alone")
_SECONDS = (
    "datum.value >= 7200 ? format(datum.value / 3600, ',~r') + ' h' : "
    "datum.value >= 120 ? format(datum.value / 60, ',~r') + ' min' : format(datum.value, ',~r') + ' s'"
)


def lag_points(rows: Rows, until_ms: float | None) -> list[dict[str, Any]]:
    """The rows to draw; the last of each partition once more at `until_ms`, for it stands until then."""
    counts = Counter(row["place"] for row in rows if row["lag"] is not None)
    points = [
        {
            **{name: row[name] for name in ("t", "place", "lag", "least", "most", "stored", "log_end")},
            "behind_s": None if row["behind_ms"] is None else row["behind_ms"] / 1000,
            "behind": "not known" if row["behind_ms"] is None else span(round(row["behind_ms"] * 1e6)),
            "alone": counts[row["place"]] == 1,
        }
        for row in rows
    ]
    last = {point["place"]: point for point in points}
    held = [point for point in last.values() if until_ms is not None and point["t"] < until_ms]
    return points + [{**point, "t": until_ms, "alone": False} for point in held]


_UNIT_AXES: dict[str, Callable[[], alt.Y]] = {
    "messages": lambda: alt.Y("lag:Q", title=LAG_UNITS["messages"], axis=alt.Axis(tickMinStep=1)),
    "time": lambda: alt.Y("behind_s:Q", title=LAG_UNITS["time"], axis=alt.Axis(labelExpr=_SECONDS)),
}
