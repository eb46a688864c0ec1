"""Brokers, what changed among them, and what administrators changed."""

from __future__ import annotations

import streamlit as st

from app.dashboard.state import View
from app.dashboard.tables import Column, paged_table
from app.dashboard.text import heading
from reports.questions.kafka_topics import ADMIN_CHANGES, BROKERS, LEADER_CHANGES

_BROKERS = (
    Column("node_id", "Broker", "plain"),
    Column("host", "Host"),
    Column("port", "Port", "plain"),
    Column("rack", "Rack"),
    Column("was_controller", "Named controller", "flag"),
    Column("was_fenced", "Fenced", "flag"),
    Column("led", "Partitions led", "count"),
    Column("endpoints", "Endpoints told", "count"),
    Column("ts_first", "First told", "time"),
    Column("ts_last", "Last told", "time"),
    Column("cluster_id", "Cluster"),
)
_LEADERS = (
    Column("ts", "Time", "time"),
    Column("topic", "Topic"),
    Column("partition", "Partition", "plain"),
    Column("leader_before", "Leader before", "plain"),
    Column("leader_id", "Leader", "plain"),
    Column("leader_epoch", "Epoch", "plain"),
    Column("isr_before", "In sync before"),
    Column("isr", "In sync"),
)
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


def show(view: View) -> None:
    """The page."""
    heading("Kafka brokers")
    paged_table(view.source, "brokers", BROKERS, _BROKERS, order="node_id", noun="broker", search=("host", "rack"))
    st.subheader("Leaders and replicas that changed", anchor=False)
    paged_table(view.source, "leaders", LEADER_CHANGES, _LEADERS, order="ts", noun="change", search=("topic",))
    st.subheader("What administrators changed", anchor=False)
    paged_table(
        view.source, "admin", ADMIN_CHANGES, _ADMIN, order="ts", noun="change",
        search=("client_id", "operation", "resource_name", "change", "error_name"),
    )  # fmt: skip
