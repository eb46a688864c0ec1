"""MQTT handshakes of QoS 1 and 2, and what reached which subscription; a row lists the messages behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from wirewitness.app.dashboard import boxes, state
from wirewitness.app.dashboard.charts.theme import pressed_in_chart
from wirewitness.app.dashboard.charts.traffic import latency_heat
from wirewitness.app.dashboard.few_rows import grid
from wirewitness.app.dashboard.opened import Selected
from wirewitness.app.dashboard.pager import beside
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import empty, heading, line
from wirewitness.app.dashboard.views.asked import ask, show_asked
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.base.questions.timelines import domain_ms, width_of
from wirewitness.reports.base.questions.wanted_exchanges import in_cell
from wirewitness.reports.protocols.mqtt.questions.rows import acknowledged, delivered, delivery_latency
from wirewitness.reports.protocols.mqtt.sections.section import DELIVERIES, HANDSHAKES

_KINDS = (
    Column("direction", "Direction"),
    Column("qos", "QoS", "plain", 50),
    Column("handshake", "Handshake"),
    Column("messages", "Messages", "count"),
    Column("median_ms", "Median ms", "ms"),
    Column("max_ms", "Max ms", "ms"),
)
_WAYS = {"client_to_server": "to the server", "server_to_client": "to clients"}
_ACKNOWLEDGED = (
    Column("ts", "Time", "time"),
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    Column("direction", "Direction"),
    Column("topic", "Topic"),
    Column("qos", "QoS", "plain", 50),
    Column("packet_identifier", "Packet id", "plain"),
    Column("handshake", "Handshake"),
    Column("packet", "Packet", "plain"),
    Column("last_step_packet", "Last step", "plain"),
)
_DELIVERED = (
    Column("ts", "Published", "time"),
    Column("topic", "Topic"),
    Column("client_id", "Publisher"),
    Column("subscriber_client_id", "Subscriber"),
    Column("subscriber_address", "Address"),
    Column("topic_filter", "Filter"),
    Column("status", "Status", "text", "small"),
    Column("latency_ms", "Latency ms", "ms"),
    Column("waited_ms", "Waited ms", "ms"),
)
_BELOW = {"handshakes": "Messages by handshake", "deliveries": "Messages by subscription"}


def show(view: View) -> None:
    """The page. What is chosen of each table stands in the URL, and which of the two is listed below."""
    heading("MQTT deliveries")
    source = view.source
    st.subheader("Handshakes of QoS 1 and 2", anchor=False)
    _handshakes(source)
    heat = delivery_latency(source, width_of(source))
    if heat:
        st.subheader("From publisher to subscriber", anchor=False)
        chart = latency_heat(heat, domain_ms(source), "messages")
        cell = pressed_in_chart(chart, "heat", "Latency from publisher to subscriber over time")
        if cell is not None:
            ask(between=cell["bin"], took=cell["took"], below="deliveries", subscription=None)
    st.subheader("By subscription", anchor=False)
    subscription = paged_table(source, "filters", DELIVERIES.query, DELIVERIES.on_page, order="-missing",
                               noun="subscription", search=("topic_filter",), select=True)  # fmt: skip
    if subscription is not None:
        _list("deliveries", "subscription", subscription, "topic_filter", "share_name")
    st.subheader("Messages", anchor=False)
    below = boxes.segments("Which messages", "below", _BELOW)
    pressed = _by_handshake(source) if below == "handshakes" else _by_subscription(source)
    wanted = state.kept("message", pressed["message_id"] if pressed is not None else None)
    if wanted:
        show_exchange(source.opened, wanted, "delivery")
    else:
        marks = "A row of the tables above or a cell of the chart" if heat else "A row of the tables above"
        line(f"A row opens the message with its bytes. {marks} lists its messages.", "quiet")


def _handshakes(source: Selected) -> None:
    kinds = rows(source, HANDSHAKES.query)
    if not kinds:
        empty("No message with QoS 1 or 2.")
        return
    shown = [row | {"direction": _WAYS.get(row["direction"], "")} for row in kinds]
    place = grid("kinds", shown, _KINDS, "kind", select=True)
    if place is not None:
        _list("handshakes", "kind", kinds[place], "direction", "qos", "handshake")


def _list(below: str, name: str, row: Mapping[str, Any], *columns: str) -> None:
    """List the messages behind a row."""
    state.put(name, json.dumps([row[column] for column in columns]))
    state.put("below", below)
    state.put("message", None)
    st.rerun()


def _chosen(name: str, length: int) -> list[Any]:
    """What `_list` wrote; nothing where the address has something else."""
    try:
        found = json.loads(state.value(name) or "[]")
    except ValueError:
        return []
    return found if isinstance(found, list) and len(found) == length else []


def _by_handshake(source: Selected) -> dict[str, Any] | None:
    chosen = _chosen("kind", 3)
    if chosen and isinstance(chosen[1], int):
        direction, qos, handshake = chosen
        query = acknowledged(str(direction or "") or None, qos, str(handshake))
        _said(f"QoS {qos} {_WAYS.get(str(direction), '')}, handshake {handshake}", "kind")
    else:
        query = acknowledged()
        line("Those whose handshake is not complete.", "quiet")
    return paged_table(source, "acknowledged", query, _ACKNOWLEDGED, order="ts", noun="message", select=True,
                       search=("topic", "client_id"), keep=("message_id",), marked=state.value("message"))  # fmt: skip


def _by_subscription(source: Selected) -> dict[str, Any] | None:
    chosen = _chosen("subscription", 2)
    asked = show_asked(("between", "took"))
    within = in_cell(asked["between"], asked["took"]) if any(asked.values()) else ""
    if chosen:
        topic_filter, share = str(chosen[0]), str(chosen[1] or "")
        query = delivered(topic_filter, share or None, within)
        _said(f"All for {topic_filter}{f' shared as {share}' if share else ''}", "subscription")
    else:
        query = delivered(within=within)
        line("Of all subscriptions." if within else "Those that did not arrive, of all subscriptions.", "quiet")
    return paged_table(source, "delivered", query, _DELIVERED, order="ts", noun="message", select=True,
                       search=("topic", "client_id", "subscriber_client_id"), keep=("message_id",),
                       marked=state.value("message"))  # fmt: skip


def _said(words: str, name: str) -> None:
    """What is listed, and the way back to what is wrong."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        beside(words)
        st.button("Only what went wrong", key=f"all-{name}", type="tertiary", on_click=state.put, args=(name, None))
