"""Every exchange, filtered and paged where the rows are, and the chosen one with its fields and bytes."""

from __future__ import annotations

import streamlit as st

from app.dashboard import state
from app.dashboard.state import View
from app.dashboard.tables import Column, paged_table
from app.dashboard.text import heading
from app.dashboard.views.message import show_exchange
from reports.exchange_rows import STATUSES, exchange_query, operations

_COLUMNS = (
    Column("ts", "Time", "time"),
    Column("protocol", "Protocol", "text", "small"),
    Column("client_id", "Client"),
    Column("client_address", "Client address"),
    Column("client_port", "Port", "plain", "small"),
    Column("server_address", "Server"),
    Column("operation", "Operation"),
    Column("version", "Version", "text", "small"),
    Column("status", "Status", "text", "small"),
    Column("error_name", "Result"),
    Column("latency_ms", "Latency ms", "ms"),
    Column("request_bytes", "Request", "bytes"),
    Column("response_bytes", "Response", "bytes"),
    Column("request_packet", "Packet", "plain"),
)
_KEEP = ("flow_id", "request_message_id", "response_message_id")
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
    )  # fmt: skip
    wanted = state.value("message")  # asked for in any case, so that it stands in the URL
    if chosen is None:
        flow_id = wanted.split("-")[0]
    else:
        wanted = chosen["request_message_id"] or chosen["response_message_id"]
        flow_id = chosen["flow_id"]
        state.put("message", wanted)
    if wanted:
        if st.button("Whole conversation of this connection", icon=":material/swap_vert:", key="to-flow"):
            view.go("connections", flow=flow_id, message=wanted, line=None)
        show_exchange(view.source.opened, wanted, "exchange")
