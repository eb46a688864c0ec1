"""MQTT clients: their connections as lanes, how each ended, and both as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.charts.mqtt import connection_lanes as lanes_chart
from wirewitness.app.dashboard.charts.theme import pressed_in_chart
from wirewitness.app.dashboard.pager import pager
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, heading, line
from wirewitness.app.dashboard.views.exchange_filters import client_text
from wirewitness.app.dashboard.views.message import flow_link
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.timelines import domain_ms
from wirewitness.reports.protocols.mqtt.questions.rows import BARS, LANES, connection_lanes, lane_count
from wirewitness.reports.protocols.mqtt.sections.section import CLIENTS

_TAKEN_SHOWN = 5
_CONNECTIONS = (
    Column("ts", "Connected", "time"),
    Column("ts_end", "Until", "time"),
    Column("client_id", "Client", "text", 130),
    Column("client_address", "Address"),
    Column("version", "Version", "text", 62),
    Column("clean_start", "Clean", "flag"),
    Column("session_present", "Session", "flag"),
    Column("keep_alive_s", "Keep alive s", "plain"),
    Column("error_name", "Answer", "text", 150),
    Column("disconnected_by", "Disconnect by", "text", 92),
    Column("disconnect_reason_name", "Reason", "text", 130),
    Column("closed_by", "Closed by", "text", 72),
    Column("client_silence_ms", "Longest silence ms", "ms"),
    Column("pings_unanswered", "Pings unanswered", "count"),
)


def show(view: View) -> None:
    """Who was connected when, and how each connection ended."""
    heading("MQTT clients")
    if not lane_count(view.source):
        empty("No MQTT connection in the selected time.")
        return
    _lanes(view)
    st.subheader("Clients", anchor=False)
    client = paged_table(view.source, "clients", CLIENTS.query, CLIENTS.on_page, order="-connections", noun="client",
                         search=("client_id", "client_address", "user_names"), select=True)  # fmt: skip
    if client is not None:
        view.go("clients", who=client_text(client))
    st.subheader("Connections", anchor=False)
    query = "select * from mqtt_connections"
    chosen = paged_table(view.source, "connections", query, _CONNECTIONS, order="ts", noun="connection", select=True,
                         search=("client_id", "client_address"), keep=("flow_id",),
                         marked=state.value("flow"))  # fmt: skip
    flow_id = state.kept("flow", chosen["flow_id"] if chosen else None)
    if flow_id:
        flow_link(flow_id)
    else:
        line("Choose a row for the way to its messages.", "quiet")


def _lanes(view: View) -> None:
    """The chart of some clients, and the way to the others."""
    source = view.source
    every = lane_count(source)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        containing = ""
        if every > LANES or state.value("lanes.q"):
            containing = boxes.typed("Lanes of", "lanes.q", "Client id or address", hide_label=True, width=210)
        clients = lane_count(source, containing) if containing else every
        page = pager("lanes", clients, LANES, count(clients, "client"))
    lanes = connection_lanes(source, LANES, page * LANES, containing)
    if not lanes:
        empty("No client has that in its id or address.")
        return
    chart = lanes_chart(lanes, domain_ms(source))
    lane = pressed_in_chart(chart, "lanes-chart", "Connections of MQTT clients over time")
    if lane is not None:
        view.go("connections", flow=lane["flow_id"], message=None, line=None)
    said = ["A mark at the end of a bar says how the connection ended; a bar without one was open at the end.",
            "A press on a bar opens its messages."]  # fmt: skip
    if clients > LANES:
        said.append("Clients whose connections ended worst, and most often, come first.")
    if any(row["connections"] > BARS for row in lanes):
        said.append(f"Of a client with more than {BARS} connections the last {BARS} are drawn.")
    line(" ".join(said), "quiet")
    _ends(lanes)


def _ends(lanes: Sequence[Mapping[str, Any]]) -> None:
    """Who throws whom out, in words: clients with most take-overs first."""
    taken: dict[str, list[str]] = {}
    for row in lanes:
        if row["ending"] == "taken over":
            taken.setdefault(row["client"], []).append(row["taken_by"].rpartition(":")[0])
    for client, takers in sorted(taken.items(), key=lambda one: -len(one[1]))[:_TAKEN_SHOWN]:
        places = " and ".join(sorted(set(takers)))
        line(f"{client}: taken over {count(len(takers), 'time')}, by {places}.")
