"""Every exchange, filtered and paged where the rows are, and the chosen one with its fields and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.dashboard import state
from app.dashboard.state import View
from app.dashboard.tables import paged_table
from app.dashboard.text import heading, line
from app.dashboard.views.message import flow_link, show_exchange
from reports.questions.columns import Column
from reports.questions.exchange_rows import STATUSES, exchange_query, operations

_COLUMNS = (
    Column("ts", "Time", "time"),
    Column("protocol", "Protocol", "text", 68),
    Column("client_id", "Client"),
    Column("client_address", "Client address"),
    Column("client_port", "Port", "plain", 60),
    Column("server_address", "Server"),
    Column("operation", "Operation"),
    Column("version", "Version", "text", 62),
    Column("status", "Status", "text", 80),
    Column("error_name", "Result"),
    Column("latency_ms", "Latency ms", "ms"),
    Column("request_bytes", "Request", "bytes"),
    Column("response_bytes", "Response", "bytes"),
    Column("request_packet", "Packet", "plain"),
)
_KEEP = ("request_message_id", "response_message_id")
_ANY_LATENCY = ("1", "10", "100", "1000", "10000")


def show(view: View) -> None:
    """The page."""
    heading("Exchanges")
    one, two, three, four = st.columns([3, 2, 2, 4])
    with one:
        operation = state.choice("Operation", "operation", operations(view.source), none="any")
    with two:
        status = state.choice("Status", "status", STATUSES, none="any")
    with three:
        slower = state.choice("Latency", "slower", _ANY_LATENCY, none="any", shown=lambda ms: f"over {ms} ms")
    with four:
        client = state.typed("Client", "client", "client id or address")
    query = exchange_query(operation, status, float(slower) if slower else None, client)
    chosen = paged_table(
        view.source, "exchanges", query, _COLUMNS, order="ts", noun="exchange", select=True, keep=_KEEP,
        marked=state.value("message"),
    )  # fmt: skip
    wanted = state.kept("message", _message_id(chosen))
    if not wanted:
        line("Choose a row to see the fields and bytes of its request and its answer.", "quiet")
    else:
        flow_link(view, wanted.split("-")[0], wanted)
        show_exchange(view.source.opened, wanted, "exchange")


def _message_id(chosen: Mapping[str, Any] | None) -> str | None:
    if chosen is None:
        return None
    found: str | None = chosen["request_message_id"] or chosen["response_message_id"]
    return found
