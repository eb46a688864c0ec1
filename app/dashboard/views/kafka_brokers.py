"""Brokers, what changed among them, and what administrators changed."""

from __future__ import annotations

import streamlit as st

from wirewitness.analyser.tables.queries import literal
from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import heading, line
from wirewitness.app.dashboard.views.exchange_filters import about_partition, exchange_filters, server_text
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.protocols.kafka.questions.topics import ADMIN_CHANGES, LED_BY
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

_ADMIN = (
    Column("ts", "Time", "time"),
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    Column("operation", "Operation"),
    Column("resource_type", "Kind"),
    Column("resource_name", "Name", "text", 150),
    Column("change", "Change", "text", "large"),
    Column("error_name", "Error"),
)
_LED = (
    Column("topic", "Topic"),
    Column("partition", "Partition", "plain", 70),
    Column("leader_epoch", "Leader epoch", "plain"),
    Column("isr", "In sync"),
    Column("ts_first", "First reported", "time"),
    Column("ts_last", "Last reported", "time"),
)


def show(view: View) -> None:
    """The page."""
    heading("Kafka brokers")
    brokers, changes = VIEWS["brokers"][""], VIEWS["brokers"]["changes"]
    broker = paged_table(
        view.source, "brokers", brokers.sql, brokers.on_page, order="node_id", noun="broker", search=("host", "rack"),
        select=True, keep=("cluster_id",), marked=state.value("broker"),
    )  # fmt: skip
    if broker is not None:
        state.put("broker", str(broker["node_id"]))
        state.put("cluster", broker["cluster_id"])
        st.rerun()
    _led(view)
    st.subheader("Where clients connect", anchor=False)
    endpoints = VIEWS["brokers"]["endpoints"]
    endpoint = paged_table(
        view.source, "endpoints", endpoints.sql, endpoints.on_page, order="-exchanges", noun="endpoint", select=True,
        search=("server_address",),
    )  # fmt: skip
    if endpoint is not None:
        view.go("exchanges", **exchange_filters(protocol_of="kafka", server=server_text(endpoint)))
    st.subheader("Leaders and replicas that changed", anchor=False)
    leader = paged_table(view.source, "leaders", changes.sql, changes.on_page, order="ts", noun="change",
                         search=("topic",), select=True, keep=("exchange_id",),
                         marked=state.value("message"))  # fmt: skip
    st.subheader("What administrators changed", anchor=False)
    change = paged_table(
        view.source, "admin", ADMIN_CHANGES, _ADMIN, order="ts", noun="change", select=True, keep=("exchange_id",),
        search=("client_id", "operation", "resource_name", "change", "error_name"), marked=state.value("message"),
    )  # fmt: skip
    pressed = change if change is not None else leader
    wanted = state.kept("message", pressed["exchange_id"] if pressed is not None else None)
    if wanted:
        show_exchange(view.source.opened, wanted, "admin")
    else:
        line("A row opens the request and response that reported it.", "quiet")


def _led(view: View) -> None:
    """The partitions that the chosen broker leads; a row opens the exchanges about it."""
    node, cluster = state.value("broker"), state.value("cluster")
    if not node.removeprefix("-").isdecimal():
        line("A row opens the partitions that the broker leads.", "quiet")
        return
    st.subheader("Partitions that the chosen broker was reported to lead", anchor=False)
    query = LED_BY.format(node=int(node), cluster=f"cluster_id = {literal(cluster)}" if cluster else "true")
    led = paged_table(view.source, "led", query, _LED, order="topic", noun="partition", search=("topic",), select=True)
    if led is not None:
        view.go("exchanges", **about_partition(led))
