"""Traffic, errors and latency over time. In: rows of `reports.questions.timelines`; out: charts."""

from __future__ import annotations

import altair as alt

from app.dashboard.charts.bars import Rows, time_bars
from app.dashboard.charts.theme import BAD, HEIGHT, LOW, PROTOCOL, QUIET, Y_EXTENT_PX, AnyChart, clock, frame, time_x

BRUSH = "range"
_PLURALS = {"error": "errors", "no answer": "unanswered"}


def exchange_rate(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Exchanges a second, stacked by protocol; a range of time can be dragged out."""
    data = [{**row, "protocol": row["protocol"] or "not identified"} for row in rows]
    present = {row["protocol"] for row in data}
    names = [*(name for name in PROTOCOL if name in present), *sorted(present - PROTOCOL.keys())]
    chart: AnyChart = time_bars(
        data, width_ns, kind="protocol", value="exchanges", colours={name: PROTOCOL.get(name, QUIET) for name in names},
        title="exchanges/s", per_second=True, domain=domain,
    ).add_params(alt.selection_interval(name=BRUSH, encodings=["x"]))  # fmt: skip
    return chart


def trouble(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Errors and requests without an answer, by bin."""
    data = [
        {"t": row["t"], "kind": kind, "exchanges": row[name]}
        for row in rows for name, kind in (("errors", "error"), ("unanswered", "no answer"))
    ]  # fmt: skip
    present = {row["kind"] for row in data if row["exchanges"]}
    colours = {kind: colour for kind, colour in (("error", BAD), ("no answer", QUIET)) if kind in present}
    return time_bars(data, width_ns, kind="kind", value="exchanges", colours=colours,
                     title=" and ".join(_PLURALS[kind] for kind in colours), height=LOW, domain=domain)  # fmt: skip


def latency_heat(rows: Rows, domain: tuple[float, float] | None = None, noun: str = "exchanges") -> AnyChart:
    """How many exchanges took how long, when. noun: what they are called."""
    chart: AnyChart = (
        alt.Chart(frame(rows), height=HEIGHT)
        .mark_rect()
        .encode(
            time_x(domain=domain), alt.X2("t_end"),
            alt.Y("low_ms:Q", scale=alt.Scale(type="log"), title="latency, ms",
                  axis=alt.Axis(format="~g", grid=False, minExtent=Y_EXTENT_PX)),
            alt.Y2("high_ms"),
            alt.Color("exchanges:Q", title=noun, scale=alt.Scale(scheme="viridis", type="log"),
                      legend=alt.Legend(orient="top", gradientLength=160, titleOrient="left")),
            tooltip=[clock(), alt.Tooltip("low_ms:Q", format="~g", title="from ms"),
                     alt.Tooltip("high_ms:Q", format="~g", title="to ms"),
                     alt.Tooltip("exchanges:Q", title=noun, format=",")],
        )
    )  # fmt: skip
    return chart


def latency_lines(rows: Rows, domain: tuple[float, float] | None = None) -> AnyChart:
    """Median, 95th and 99th percentile over time."""
    named = {"p50_ms": "median", "p95_ms": "95 %", "p99_ms": "99 %"}
    data = frame([{"t": r["t"], "of": of, "ms": r[key]} for r in rows for key, of in named.items()])
    chart: AnyChart = (
        alt.Chart(data, height=HEIGHT)
        .mark_line(point=len(rows) < 40, interpolate="step-after")
        .encode(
            time_x(domain=domain),
            alt.Y("ms:Q", scale=alt.Scale(type="symlog", constant=1), title="latency, ms",
                  axis=alt.Axis(minExtent=Y_EXTENT_PX)),
            alt.Color("of:N", scale=alt.Scale(domain=["median", "95 %", "99 %"], range=["#2f7fc1", "#d98e04", BAD]),
                      legend=alt.Legend(title=None, orient="top")),
            tooltip=[clock(), "of:N", alt.Tooltip("ms:Q", format=",.3f")],
        )
    )  # fmt: skip
    return chart
