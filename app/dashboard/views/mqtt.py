"""MQTT: clients and their connections, topics, handshakes and deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from analyser.words import count
from app.dashboard import state
from app.dashboard.charts.mqtt import connection_lanes as lanes_chart
from app.dashboard.charts.mqtt import messages_over_time
from app.dashboard.charts.theme import show_chart
from app.dashboard.charts.traffic import latency_heat
from app.dashboard.page_entry import protocol_page
from app.dashboard.state import View
from app.dashboard.tables import paged_table
from app.dashboard.text import empty, heading, line, small_table
from app.dashboard.views.exchange_filters import client_text
from app.dashboard.views.message import flow_link, show_exchange
from dissectors.mqtt.dissector import MQTT
from reports.formats.values import ms_text
from reports.questions.columns import Column
from reports.questions.mqtt_rows import (
    LANES,
    MISSING,
    UNFINISHED,
    below,
    connection_lanes,
    delivery_latency,
    lane_count,
    publishes,
    publishes_over_time,
    topic_levels,
)
from reports.questions.source import rows
from reports.questions.timelines import domain_ms, selected_span_ns, width_of
from reports.sections.mqtt import CLIENTS, DELIVERIES, HANDSHAKES

_TAKEN_SHOWN = 5
_CONNECTIONS = (
    Column("ts", "Connected", "time"),
    Column("ts_end", "Until", "time"),
    Column("client_id", "Client id", "text", 130),
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
_LEVELS = (
    Column("segment", "Level"),
    Column("topics", "Topics", "count"),
    Column("published", "Published", "count"),
    Column("per_second", "Per s", "rate"),
    Column("sent_on", "Sent on", "count"),
    Column("payload_bytes", "Payload", "bytes"),
    Column("publishers", "Publishers", "count"),
    Column("receivers", "Receivers", "count"),
    Column("retained", "Retained", "count"),
)
_MESSAGES = (
    Column("ts", "Time", "time"),
    Column("direction", "Direction"),
    Column("client_id", "Client id", "text", 110),
    Column("topic", "Topic", "text", "medium"),
    Column("qos", "QoS", "plain", 50),
    Column("retain", "Retain", "flag"),
    Column("dup", "Dup", "flag"),
    Column("payload_bytes", "Payload", "bytes"),
    Column("handshake", "Handshake"),
    Column("completed_ms", "Completed ms", "ms"),
    Column("deliveries", "Deliveries", "count"),
    Column("packet", "Packet", "plain"),
)
_UNFINISHED = (
    Column("ts", "Time", "time"),
    Column("client_id", "Client id"),
    Column("client_address", "Address"),
    Column("direction", "Direction"),
    Column("topic", "Topic"),
    Column("qos", "QoS", "plain", 50),
    Column("packet_identifier", "Packet id", "plain"),
    Column("handshake", "Handshake"),
    Column("packet", "Packet", "plain"),
    Column("last_step_packet", "Last step", "plain"),
)
_MISSING = (
    Column("ts", "Published", "time"),
    Column("topic", "Topic"),
    Column("client_id", "Publisher"),
    Column("subscriber_client_id", "Subscriber"),
    Column("subscriber_address", "Address"),
    Column("topic_filter", "Filter"),
    Column("status", "Status", "text", "small"),
    Column("waited_ms", "Waited ms", "ms"),
)


def show_clients(view: View) -> None:
    """Who was connected when, and how each connection ended."""
    heading("MQTT clients")
    lanes = connection_lanes(view.source)
    if not lanes:
        empty("No MQTT connection in the selected time.")
        return
    show_chart(lanes_chart(lanes, domain_ms(view.source)), describe="Connections of MQTT clients over time")
    line("A mark at the end of a bar says how the connection ended; a bar without one was open at the end.", "quiet")
    clients = lane_count(view.source)
    if clients > LANES:
        line(f"The {LANES} clients of {clients:,} whose connections ended worst, and most often.", "quiet")
    _ends(lanes)
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
        flow_link(view, flow_id)
    else:
        line("Choose a row for the way to its messages.", "quiet")


def _ends(lanes: Sequence[Mapping[str, Any]]) -> None:
    """Who throws whom out, in words: clients with most take-overs first."""
    taken: dict[str, list[str]] = {}
    for row in lanes:
        if row["ending"] == "taken over":
            taken.setdefault(row["client"], []).append(row["taken_by"].rpartition(":")[0])
    for client, takers in sorted(taken.items(), key=lambda one: -len(one[1]))[:_TAKEN_SHOWN]:
        places = " and ".join(sorted(set(takers)))
        line(f"{client}: taken over {count(len(takers), 'time')}, by {places}.")


def show_topics(view: View) -> None:
    """Topics level by level, with rates, and the messages below the chosen one."""
    heading("MQTT topics")
    under = state.value("under")
    _path(under)
    span_ns = selected_span_ns(view.source)
    width = width_of(view.source)
    over_time = publishes_over_time(view.source, width, under)
    if over_time:
        show_chart(messages_over_time(over_time, width, domain_ms(view.source)), describe="MQTT messages over time")
    length_ns = span_ns[1] - span_ns[0] if span_ns is not None else 1
    chosen = paged_table(view.source, "levels", topic_levels(under, length_ns), _LEVELS, order="-published",
                         noun="level", search=("segment",), select=True, keep=("deeper",))  # fmt: skip
    if chosen is not None:
        _descend(below(under) + chosen["segment"] or "/")
        st.rerun()
    st.subheader("Messages", anchor=False)
    message = paged_table(view.source, "publishes", publishes(under), _MESSAGES, order="ts", noun="message",
                          search=("topic", "client_id"), select=True, keep=("message_id",),
                          marked=state.value("message"))  # fmt: skip
    wanted = state.kept("message", message["message_id"] if message else None)
    if wanted:
        show_exchange(view.source.opened, wanted, "publish")


def _path(under: str) -> None:
    if not under:
        line("Choose a level to go down.", "quiet")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        above = under.rpartition("/")[0] if "/" in under else None
        st.button("Up", icon=":material/arrow_upward:", key="up", on_click=_descend, args=(above,))
        st.button("All topics", key="top", type="tertiary", on_click=_descend, args=(None,))
        st.code(f"{below(under)}#", language=None)


def _descend(under: str | None) -> None:
    """Look at another part of the tree; the message that was open lies elsewhere."""
    state.put("under", under)
    state.put("message", None)


def show_deliveries(view: View) -> None:
    """Handshakes of QoS 1 and 2, and what reached which subscription."""
    heading("MQTT deliveries")
    source = view.source
    st.subheader("Handshakes of QoS 1 and 2", anchor=False)
    handshakes = rows(source, HANDSHAKES.query)
    if handshakes:
        header = [column.title for column in HANDSHAKES.columns]
        small_table(header, [_handshake(row) for row in handshakes], numbers=(1, 3, 4, 5))
    else:
        empty("No message with QoS 1 or 2.")
    heat = delivery_latency(source, width_of(source))
    if heat:
        st.subheader("From publisher to subscriber", anchor=False)
        show_chart(
            latency_heat(heat, domain_ms(source), "messages"), describe="Latency from publisher to subscriber over time"
        )
    st.subheader("By subscription", anchor=False)
    paged_table(source, "filters", DELIVERIES.query, DELIVERIES.on_page, order="-missing", noun="subscription",
                search=("topic_filter",))  # fmt: skip
    unfinished, missing = st.tabs(["Handshakes not complete", "Not delivered"])
    marked = state.value("message")
    with unfinished:
        open_ = paged_table(source, "unfinished", UNFINISHED, _UNFINISHED, order="ts", noun="message", select=True,
                            search=("topic", "client_id"), keep=("message_id",), marked=marked)  # fmt: skip
    with missing:
        lost = paged_table(source, "missing", MISSING, _MISSING, order="ts", noun="message", select=True,
                           search=("topic", "client_id", "subscriber_client_id"), keep=("message_id",),
                           marked=marked)  # fmt: skip
    ids = [row["message_id"] for row in (open_, lost) if row is not None]
    wanted = state.kept("message", next((one for one in ids if one != marked), None))
    if wanted:
        show_exchange(source.opened, wanted, "delivery")
    else:
        line("Choose a row to see the message with its bytes.", "quiet")


def _handshake(row: dict[str, Any]) -> tuple[Any, ...]:
    direction = {"client_to_server": "to the server", "server_to_client": "to clients"}.get(row["direction"], "")
    messages = f"{row['messages']:,}"
    return direction, row["qos"], row["handshake"], messages, ms_text(row["median_ms"]), ms_text(row["max_ms"])


PAGES = (
    protocol_page(MQTT, "clients", "Clients", ":material/devices:", show_clients),
    protocol_page(MQTT, "topics", "Topics", ":material/account_tree:", show_topics),
    protocol_page(MQTT, "deliveries", "Deliveries", ":material/local_shipping:", show_deliveries),
)
