"""Kafka's clients: who they are, which library, what they ask for and in which versions."""

from __future__ import annotations

import streamlit as st

from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import heading, line
from wirewitness.app.dashboard.views.exchange_filters import client_text, exchange_filters
from wirewitness.app.dashboard.workload_column import with_owners
from wirewitness.reports.protocols.kafka.questions.views import VIEWS


def show(view: View) -> None:
    """The page."""
    heading("Kafka clients")
    clients, versions = VIEWS["clients"][""], VIEWS["clients"]["versions"]
    of_kafka = f"select * from ({clients.sql}) where protocol = 'kafka'"
    chosen = paged_table(
        view.source, "clients", of_kafka, with_owners(view.source, clients.on_page), order="-exchanges", noun="client",
        select=True, search=("client_id", "client_address", "software_name", "client_owner"),
    )  # fmt: skip
    if chosen is not None:
        view.go("clients", who=client_text(chosen))
    line("A row opens what is known of the client.", "quiet")
    st.subheader("API versions in use", anchor=False)
    version = paged_table(
        view.source, "versions", versions.sql, versions.on_page, order="operation", noun="version",
        search=("operation",), select=True,
    )  # fmt: skip
    if version is not None:
        view.go(
            "exchanges",
            **exchange_filters(protocol_of="kafka", operation=version["operation"], version_of=version["version"]),
        )
