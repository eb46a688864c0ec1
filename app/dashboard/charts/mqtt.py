"""Connections and messages of MQTT clients over time. In: rows of `reports.protocols.mqtt.questions.rows`; out:
charts."""

from __future__ import annotations

import altair as alt

from wirewitness.app.dashboard.charts.axes import Domain, time_x
from wirewitness.app.dashboard.charts.bars import Rows, time_bars
from wirewitness.app.dashboard.charts.theme import BAD, PALETTE, QUIET, AnyChart, clock, frame, with_pressed
from wirewitness.reports.protocols.mqtt.questions.rows import ENDS

END_COLOURS = dict(zip(ENDS, (BAD, "#8e6bbf", "#d98e04", "#4fb0e5", "#1d9a74", QUIET), strict=True))
_LANE_PX, _FRAME_PX = 20, 104


def connection_lanes(rows: Rows, domain: Domain | None = None) -> AnyChart:
    """A lane for each client, a bar for each of its connections, with a mark at its end that says how it ended.

    A pressed bar or mark tells its `flow_id`.
    Bars take turns between two shades and have an edge, so that one that follows at once on another is told from it.
    """
    lanes = list(dict.fromkeys(row["client"] for row in rows))
    present = [name for name in ENDS if any(row["ending"] == name for row in rows)]
    data = frame([{**row, "shade": 0.55 if number % 2 else 0.8} for number, row in enumerate(rows)])
    # Height of the whole chart: a lane stays as high, and legend and axis have their room, with one client as with all.
    base = alt.Chart(data, height=_LANE_PX * len(lanes) + _FRAME_PX)
    colour = alt.Color(
        "ending:N", scale=alt.Scale(domain=present, range=[END_COLOURS[name] for name in present]),
        legend=alt.Legend(title=None, orient="top"),
    )  # fmt: skip
    lane = alt.Y("client:N", sort=lanes, title=None, axis=alt.Axis(labelLimit=220, labelOverlap=False))
    tips = [
        clock(title="from"), clock("t_end", "until"), "client:N", "client_address:N", alt.Tooltip("how:N", title="end"),
        "version:N", alt.Tooltip("keep_alive_s:Q", title="keep alive s"), alt.Tooltip("published:Q", format=","),
        alt.Tooltip("received:Q", format=","),
    ]  # fmt: skip
    bars = base.mark_bar(height=11, clip=True, cursor="pointer").encode(
        time_x(domain=domain), alt.X2("t_end"), lane, colour,
        alt.Opacity("shade:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1]), legend=None), tooltip=tips,
    )  # fmt: skip
    bars = with_pressed(bars, "flow_id")
    ends = base.mark_tick(thickness=3, size=16, clip=True, cursor="pointer").encode(
        time_x("t_end", domain=domain), lane, colour, tooltip=tips
    ).transform_filter("datum.ending != 'open at the end'")  # fmt: skip
    chart: AnyChart = alt.layer(bars, ends) if present != ["open at the end"] else bars
    return chart


def messages_over_time(rows: Rows, width_ns: int, domain: tuple[float, float] | None = None) -> AnyChart:
    """Messages a second: published by clients, forwarded by the server. A pressed bar tells its `kind` and `bin`."""
    return time_bars(
        rows, width_ns, kind="kind", value="messages", per_second=True, title="messages/s", domain=domain,
        colours={"published": PALETTE[0], "forwarded": PALETTE[1]}, opens=True,
    )  # fmt: skip
