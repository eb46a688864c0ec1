"""Commands of MongoDB. In: rows of `reports.protocols.mongo.questions.rows` and
`reports.protocols.mongo.sections.shapes`; out: charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from wirewitness.app.dashboard.charts.axes import Y_EXTENT_PX, Domain, latency_axis, log_ticks, time_x
from wirewitness.app.dashboard.charts.bars import Rows, time_bars
from wirewitness.app.dashboard.charts.steps import end_of_line, with_steps
from wirewitness.app.dashboard.charts.theme import (
    HEIGHT,
    PALETTE,
    QUIET,
    AnyChart,
    bin_text,
    clock,
    colours,
    frame,
    with_pressed,
)
from wirewitness.reports.base.formats.printable import visible

_TEXT = 90


def shape_times(rows: Rows) -> AnyChart:
    """Bars of the time that each shape took in total, the longest first; a pressed one tells its `shape_id`."""
    data = frame([{**row, "name": shape_name(row), "ms": row["sum_ms"] or 0} for row in rows])
    digits = ",.0f" if max((row["sum_ms"] or 0 for row in rows), default=0) >= 10 else ",.2f"
    chart: AnyChart = (
        alt.Chart(data, height=max(24 * len(rows), 48))
        .mark_bar(height=13, color=PALETTE[2], cursor="pointer")
        .encode(
            alt.X("ms:Q", title="ms in total", axis=alt.Axis(tickCount=6, format=digits)),
            alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=330, labelOverlap=False)),
            tooltip=["namespace:N", "operation:N", "pattern:N", alt.Tooltip("count:Q", format=","),
                     alt.Tooltip("mean_ms:Q", format=",.3f"), alt.Tooltip("p95_ms:Q", format=",.3f"),
                     alt.Tooltip("max_ms:Q", format=",.3f")],
        )
    )  # fmt: skip
    return with_pressed(chart, "shape_id")


SHAPE_MEASURES = {"mean_ms": "mean latency", "p95_ms": "p95 latency", "sum_ms": "time in total", "commands": "commands"}
_LEAST_MS = 0.001


def shape_lines(
    rows: Rows, names: Mapping[str, str], width_ns: int, measure: str, domain: Domain | None = None
) -> AnyChart:
    """Several shapes over time, a line for each; no line where a bin of `width_ns` has no command of it.

    names: shape id -> name, in the order of colours. measure: of SHAPE_MEASURES. A pressed step tells its `shape_id`
    and `bin`.
    """
    data = frame(shape_points(rows, names, width_ns, measure), _SHAPE_COLUMNS)
    scale = colours(list(names.values()))
    y = alt.Y("shown:Q", title=SHAPE_MEASURES[measure], axis=alt.Axis(minExtent=Y_EXTENT_PX, tickMinStep=1))
    if measure != "commands":
        ends = data["shown"].dropna()
        y = alt.Y("shown:Q", title=SHAPE_MEASURES[measure], scale=alt.Scale(type="log"),
                  axis=latency_axis(log_ticks(ends.min(), ends.max())))  # fmt: skip
    x = time_x(domain=domain)
    tips = [
        clock(), "shape:N", alt.Tooltip("value:Q", format=",.3~f", title=SHAPE_MEASURES[measure]),
        alt.Tooltip("commands:Q", format=","),
    ]  # fmt: skip
    lines = (
        alt.Chart(data)
        .mark_line(clip=True, point=alt.OverlayMarkDef(size=24), interpolate="step-after")
        .encode(
            x, y,
            alt.Color("shape:N", scale=scale,
                      legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=900, symbolType="stroke")),
            alt.StrokeDash("shape:N", scale=alt.Scale(domain=scale.domain, range=_DASHES[: len(names)]), legend=None),
            tooltip=tips,
        )
    )  # fmt: skip
    return with_steps(lines, data, x, y, tips, "shape_id", "bin", height=HEIGHT + 16 * len(names))


_SHAPE_COLUMNS = ("t", "t_end", "shape", "shape_id", "value", "shown", "commands", "bin")
# Lines differ without their colour as well.
_DASHES = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [1, 3], [10, 4]]
SHAPES_TOGETHER = len(_DASHES)


def shape_points(rows: Rows, names: Mapping[str, str], width_ns: int, measure: str) -> list[dict[str, Any]]:
    """A point for each bin of a shape, one without a value behind each bin that is followed by an empty one."""
    width_ms = width_ns / 1e6
    held = {(row["shape_id"], row["t"]) for row in rows if row[measure] is not None}
    points: list[dict[str, Any]] = []
    for row in rows:
        if row[measure] is None:
            continue
        shown = row[measure] if measure == "commands" else max(row[measure], _LEAST_MS)
        end = row["t"] + width_ms
        point = {"t": row["t"], "t_end": end, "shape": names[row["shape_id"]], "shape_id": row["shape_id"],
                 "value": row[measure], "shown": shown, "commands": row["commands"],
                 "bin": bin_text(row["t"], end)}  # fmt: skip
        points.append(point)
        if (row["shape_id"], end) not in held:
            points += end_of_line(point, end)
    return points


def commands(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Commands a second by name; a pressed bar tells its `kind` and `bin`."""
    names = sorted({row["kind"] for row in rows} - {"other"})
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)} | {"other": QUIET}
    return time_bars(rows, width_ns, kind="kind", value="commands", colours=colours, title="commands/s",
                     per_second=True, domain=domain, opens=True)  # fmt: skip


def shape_name(row: Mapping[str, Any]) -> str:
    """Short and unlike the others': the shape's id tells two apart whose patterns begin alike."""
    text = f"{row['namespace']} {row['operation']} {row['pattern'] or ''}".strip()
    text = visible(text)
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 8]}.. {str(row['shape_id'])[:5]}"
