"""Brokers, what changed among them, and what administrators changed."""

from __future__ import annotations

import streamlit as st

from app.dashboard import state
from app.dashboard.state import View
from app.dashboard.tables import paged_table
from app.dashboard.text import heading, line
from app.dashboard.views.exchange_filters import exchange_filters
from app.dashboard.views.message import show_exchange
from reports.questions.columns import Column
from reports.questions.kafka_topics import ADMIN_CHANGES
from reports.questions.kafka_views import VIEWS

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
    brokers, changes = VIEWS["brokers"][""], VIEWS["brokers"]["changes"]
    paged_table(
        view.source, "brokers", brokers.sql, brokers.on_page, order="node_id", noun="broker", search=("host", "rack")
    )
    st.subheader("Leaders and replicas that changed", anchor=False)
    leader = paged_table(view.source, "leaders", changes.sql, changes.on_page, order="ts", noun="change",
                         search=("topic",), select=True)  # fmt: skip
    if leader is not None:
        view.go("exchanges", **exchange_filters(named=leader["topic"]))
    st.subheader("What administrators changed", anchor=False)
    change = paged_table(
        view.source, "admin", ADMIN_CHANGES, _ADMIN, order="ts", noun="change", select=True, keep=("exchange_id",),
        search=("client_id", "operation", "resource_name", "change", "error_name"), marked=state.value("message"),
    )  # fmt: skip
    wanted = state.kept("message", change["exchange_id"] if change is not None else None)
    if wanted:
        show_exchange(view.source.opened, wanted, "admin")
    else:
        line("A row opens its request and answer, one of leaders the exchanges about its topic.", "quiet")
