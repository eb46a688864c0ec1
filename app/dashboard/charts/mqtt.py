"""Connections and messages of MQTT clients over time. In: rows of `reports.questions.mqtt_rows`; out: charts."""

from __future__ import annotations

import altair as alt

from app.dashboard.charts.bars import Rows, time_bars
from app.dashboard.charts.theme import BAD, PALETTE, QUIET, AnyChart, clock, frame, time_x
from reports.questions.mqtt_rows import ENDS

_END_COLOURS = dict(zip(ENDS, (BAD, "#d98e04", "#8e6bbf", "#1d9a74", QUIET), strict=True))


def connection_lanes(rows: Rows, domain: tuple[float, float] | None = None) -> AnyChart:
    """A lane for each client, a bar for each of its connections, coloured by how it ended; a refused one is a point."""
    lanes = list(dict.fromkeys(row["client"] for row in rows))
    present = [name for name in ENDS if any(row["ending"] == name for row in rows)]
    base = alt.Chart(frame(rows), height=max(18 * len(lanes), 60))
    colour = alt.Color(
        "ending:N", scale=alt.Scale(domain=present, range=[_END_COLOURS[name] for name in present]),
        legend=alt.Legend(title=None, orient="top"),
    )  # fmt: skip
    lane = alt.Y("client:N", sort=lanes, title=None, axis=alt.Axis(labelLimit=220, labelOverlap=False))
    tips = [
        clock(title="from"), clock("t_end", "until"), "client:N", "client_address:N", "ending:N", "version:N",
        alt.Tooltip("keep_alive_s:Q", title="keep alive s"), alt.Tooltip("published:Q", format=","),
        alt.Tooltip("received:Q", format=","),
    ]  # fmt: skip
    bars = base.mark_bar(height=10, cornerRadius=2, stroke="white", strokeWidth=0.5).encode(
        time_x(domain=domain), alt.X2("t_end"), lane, colour, tooltip=tips
    )  # fmt: skip
    starts = base.mark_tick(thickness=2, size=12).encode(time_x(domain=domain), lane, colour, tooltip=tips)
    chart: AnyChart = alt.layer(bars, starts)
    return chart


def messages_over_time(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Messages a second: published by clients, sent on by the server."""
    return time_bars(
        rows, width_ns, kind="kind", value="messages", per_second=True, title="messages/s", domain=domain,
        colours={"published": PALETTE[0], "sent on": PALETTE[1]},
    )  # fmt: skip
