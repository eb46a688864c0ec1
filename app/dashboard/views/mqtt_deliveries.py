"""MQTT handshakes of QoS 1 and 2, and what reached which subscription."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.dashboard import state
from app.dashboard.charts.theme import show_chart
from app.dashboard.charts.traffic import latency_heat
from app.dashboard.state import View
from app.dashboard.tables import paged_table
from app.dashboard.text import empty, heading, line, small_table
from app.dashboard.views.message import show_exchange
from reports.formats.values import ms_text
from reports.questions.columns import Column
from reports.questions.mqtt_rows import (
    MISSING,
    UNFINISHED,
    delivery_latency,
)
from reports.questions.source import rows
from reports.questions.timelines import domain_ms, width_of
from reports.sections.mqtt import DELIVERIES, HANDSHAKES

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


def show(view: View) -> None:
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
