"""Kafka's clients: who they are, which library, what they ask for and in which versions."""

from __future__ import annotations

import streamlit as st

from app.dashboard.state import View
from app.dashboard.tables import Column, paged_table
from app.dashboard.text import heading
from reports.questions.kafka_topics import API_VERSIONS, CLIENTS

_CLIENTS = (
    Column("client_id", "Client"),
    Column("client_address", "Address"),
    Column("software_name", "Library"),
    Column("software_version", "Version"),
    Column("connections", "Connections", "count"),
    Column("exchanges", "Exchanges", "count"),
    Column("errors", "Errors", "count"),
    Column("unanswered", "No answer", "count"),
    Column("median_ms", "Median ms", "ms"),
    Column("p99_ms", "99 % ms", "ms"),
    Column("ts_first", "First", "time"),
    Column("ts_last", "Last", "time"),
)
_VERSIONS = (
    Column("operation", "API"),
    Column("version", "Version used"),
    Column("exchanges", "Exchanges", "count"),
    Column("clients", "Clients", "count"),
    Column("errors", "Errors", "count"),
)


def show(view: View) -> None:
    """The page."""
    heading("Kafka clients")
    paged_table(
        view.source, "clients", CLIENTS, _CLIENTS, order="-exchanges", noun="client",
        search=("client_id", "client_address", "software_name"),
    )  # fmt: skip
    st.subheader("API versions in use", anchor=False)
    paged_table(
        view.source, "versions", API_VERSIONS, _VERSIONS, order="operation", noun="version", search=("operation",)
    )
