"""Traffic, errors and latency over time. In: rows of `reports.base.questions.timelines`; out: charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from wirewitness.app.dashboard.charts.axes import latency_axis, log_ticks, time_x
from wirewitness.app.dashboard.charts.bars import Rows, time_bars
from wirewitness.app.dashboard.charts.steps import end_of_line, with_steps
from wirewitness.app.dashboard.charts.theme import (
    BAD,
    HEIGHT,
    LOW,
    PALETTE,
    PROTOCOL,
    QUIET,
    AnyChart,
    bin_text,
    clock,
    frame,
    with_pressed,
)

BRUSH = "range"
# What stands for a protocol that is not known.
UNKNOWN = "not identified"
_PLURALS = {"error": "errors", "no response": "unanswered"}
# Kinds of trouble, and the status of such exchanges.
TROUBLES = {"error": "error", "no response": "unanswered"}


def exchange_rate(
    rows: Rows, width_ns: int, domain: tuple[float, float] | None = None, *, opens: bool = False
) -> AnyChart:
    """Exchanges a second, stacked by protocol; a range of time can be dragged out.

    opens: instead of that a pressed bar tells its `kind` (the protocol) and `bin`.
    """
    data = [{**row, "protocol": row["protocol"] or UNKNOWN} for row in rows]
    present = {row["protocol"] for row in data}
    names = [*(name for name in PROTOCOL if name in present), *sorted(present - PROTOCOL.keys())]
    chart: AnyChart = time_bars(
        data, width_ns, kind="protocol", value="exchanges", colours={name: PROTOCOL.get(name, QUIET) for name in names},
        title="exchanges/s", per_second=True, domain=domain, opens=opens,
    )  # fmt: skip
    return chart if opens else chart.add_params(alt.selection_interval(name=BRUSH, encodings=["x"]))


def trouble(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Errors and requests without an answer, by bin; a pressed bar tells its `kind` (of TROUBLES) and `bin`."""
    data = [
        {"t": row["t"], "kind": kind, "exchanges": row[name]}
        for row in rows for name, kind in (("errors", "error"), ("unanswered", "no response"))
    ]  # fmt: skip
    present = {row["kind"] for row in data if row["exchanges"]}
    colours = {kind: colour for kind, colour in (("error", BAD), ("no response", QUIET)) if kind in present}
    return time_bars(data, width_ns, kind="kind", value="exchanges", colours=colours,
                     title=" and ".join(_PLURALS[kind] for kind in colours), height=LOW, domain=domain,
                     opens=True)  # fmt: skip


def latency_heat(rows: Rows, domain: tuple[float, float] | None = None, noun: str = "exchanges") -> AnyChart:
    """How many exchanges took how long, when. noun: what they are called. A pressed cell tells its `bin` and `took`."""
    ticks = log_ticks(min(row["low_ms"] for row in rows), max(row["high_ms"] for row in rows))
    cells = [{**row, "bin": bin_text(row["t"], row["t_end"]), "took": _took(row)} for row in rows]
    chart: AnyChart = (
        alt.Chart(frame(cells), height=HEIGHT)
        .mark_rect(clip=True, cursor="pointer")
        .encode(
            time_x(domain=domain), alt.X2("t_end"),
            alt.Y("low_ms:Q", scale=alt.Scale(type="log"), title="latency", axis=latency_axis(ticks)),
            alt.Y2("high_ms"),
            alt.Color("exchanges:Q", title=noun, scale=alt.Scale(scheme="viridis", type="log"),
                      legend=alt.Legend(orient="top", gradientLength=160, titleOrient="left")),
            tooltip=[clock(), alt.Tooltip("low_ms:Q", format="~g", title="from ms"),
                     alt.Tooltip("high_ms:Q", format="~g", title="to ms"),
                     alt.Tooltip("exchanges:Q", title=noun, format=",")],
        )
    )  # fmt: skip
    return with_pressed(chart, "bin", "took")


def at_least(ms: float) -> str:
    """That something took so many ms or more, as the list of exchanges takes it."""
    text = f"{ms:.6f}"
    return f"{text if float(text) <= ms else f'{max(ms - 1e-6, 0):.6f}'}-"


def _took(row: Mapping[str, Any]) -> str:
    """The ends of a cell, ms, as the list of exchanges takes a latency."""
    return f"{row['low_ms']:g}-{row['high_ms']:g}"


PERCENTILES = {"p50_ms": "median", "p95_ms": "p95", "p99_ms": "p99"}
_LEAST_MS = 0.001


def latency_lines(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Median, 95th and 99th percentile over time; no line where a bin of `width_ns` has none.

    A pressed step of a line tells its `bin` and `took`: that it took so long, or longer.
    """
    data = frame(percentile_points(rows, width_ns))
    measured = [max(row[key], _LEAST_MS) for row in rows for key in PERCENTILES]
    ticks = log_ticks(min(measured), max(measured))
    names = list(PERCENTILES.values())
    x = time_x(domain=domain)
    y = alt.Y("shown:Q", scale=alt.Scale(type="log"), title="latency", axis=latency_axis(ticks))
    tips = [clock(), "of:N", alt.Tooltip("ms:Q", format=",.3f"), alt.Tooltip("exchanges:Q", format=",")]
    lines = (
        alt.Chart(data)
        .mark_line(clip=True, point=len(rows) < 40, interpolate="step-after")
        .encode(
            x, y,
            alt.Color("of:N", scale=alt.Scale(domain=names, range=[PALETTE[0], PALETTE[1], BAD]),
                      legend=alt.Legend(title=None, orient="top")),
            alt.StrokeDash("of:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 2], [2, 2]]), legend=None),
            tooltip=tips,
        )
    )  # fmt: skip
    return with_steps(lines, data, x, y, tips, "bin", "took")


def percentile_points(rows: Rows, width_ns: int) -> list[dict[str, Any]]:
    """A point for each percentile and bin, one without a value behind each bin that is followed by an empty one."""
    width_ms = width_ns / 1e6
    held = {row["t"] for row in rows}
    points: list[dict[str, Any]] = []
    for row in rows:
        for key, of in PERCENTILES.items():
            shown = max(row[key], _LEAST_MS)
            end = row["t"] + width_ms
            points.append({"t": row["t"], "t_end": end, "of": of, "ms": row[key], "shown": shown,
                           "exchanges": row["exchanges"], "bin": bin_text(row["t"], end),
                           "took": at_least(row[key])})  # fmt: skip
            if end not in held:
                points += end_of_line(points[-1], end)
    return points
