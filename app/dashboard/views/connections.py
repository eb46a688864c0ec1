"""Connections, and one of them as a ladder: every message between client and server, with latencies and remarks."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from wirewitness.analyser.base.words import count
from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.components.ladder import ladder_lines, show_ladder
from wirewitness.app.dashboard.sidebar_times import moment_words
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import card, empty, facts, heading, html, line
from wirewitness.app.dashboard.text import show as show_markup
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.formats.words import size, span
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.exchange_rows import FLOWS, flow_row, message_count, messages_before

_LINES = 60
CONNECTION_COLUMNS = (
    Column("ts_first", "First packet", "time"),
    Column("protocol", "Protocol", "text", 68),
    Column("client_address", "Client address"),
    Column("client_port", "Client port", "plain", 60),
    Column("server_address", "Server"),
    Column("server_port", "Server port", "plain", 60),
    Column("packets", "Packets", "count"),
    Column("bytes_to_server", "To server", "bytes"),
    Column("bytes_to_client", "To client", "bytes"),
    Column("handshake_ms", "Handshake ms", "ms"),
    Column("gap_bytes", "Missing", "bytes"),
    Column("retransmitted_segments", "Retransmitted", "count"),
    Column("closed_by", "Closed by", "text", 72),
    Column("encapsulation", "Inside", "text"),
)


def show(view: View) -> None:
    """The page: the list, or the connection that the URL names."""
    wanted = state.value("flow")
    flow = flow_row(view.source, wanted) if wanted else None
    if flow is not None:
        _show_flow(view, flow)
        return
    heading("Connections")
    if wanted:
        card("No such connection", f"This capture has no connection {wanted}.", "warning")
    line("Choose a row to see every message of the connection.", "quiet")
    chosen = paged_table(
        view.source, "connections", FLOWS, CONNECTION_COLUMNS, order="ts_first", noun="connection", select=True,
        search=("client_address", "server_address", "protocol"), keep=("flow_id",), tall=True,
    )  # fmt: skip
    if chosen is not None:
        view.go("connections", flow=chosen["flow_id"], message=None, line=None)


def _show_flow(view: View, flow: dict[str, Any]) -> None:
    source = view.source
    view.link("connections", "All connections", icon=":material/arrow_back:", flow=None, message=None, line=None)
    client, server = (f"{flow[f'{side}_address']}:{flow[f'{side}_port']}" for side in ("client", "server"))
    heading(f"{client} to {server}")
    _facts(flow)
    total = message_count(source, flow["flow_id"])
    if not total:
        empty("No message of this connection could be decoded.")
        return
    chosen = state.value("message")
    first = _first_line(view, flow["flow_id"], chosen, total)
    _pager(first, total)
    lines = ladder_lines(source, flow["flow_id"], first, _LINES, chosen)
    clicked = show_ladder(client, server, lines, "ladder")
    if clicked is not None and clicked != chosen:
        state.put("message", clicked)
        state.put("line", str(first))
        st.rerun()
    if chosen:
        show_exchange(source.opened, chosen, "flow")
    else:
        line("Choose a message to see its fields and bytes.", "quiet")


def _facts(flow: dict[str, Any]) -> None:
    if flow["packets"] is None:
        _logged_facts(flow)
        return
    missing, again = flow["gap_bytes"], flow["retransmitted_segments"]
    facts(
        {
            "protocol": flow["protocol"] or "not identified",
            "first packet": f"{moment_words(flow['first_ns'], state.dated())} UTC",
            "lasted": span(flow["last_ns"] - flow["first_ns"]),
            "packets": f"{flow['packets']:,}",
            "to server": size(flow["bytes_to_server"]),
            "to client": size(flow["bytes_to_client"]),
            "handshake": f"{ms_text(flow['handshake_ms'])} ms" if flow["handshake_ms"] is not None else "not seen",
            "closed by": flow["closed_by"] or "still open",
            "missing": size(missing) if missing else "nothing",
            "retransmitted": f"{again:,}" if again else "",
            "inside": flow["encapsulation"],
        },
        {"missing": "warning" if missing else "plain", "retransmitted": "warning"},
    )


def _logged_facts(flow: dict[str, Any]) -> None:
    """What a request log knows of a connection."""
    missing = flow["missing_requests"]
    facts(
        {
            "protocol": flow["protocol"],
            "known from": "request log",
            "first request": f"{moment_words(flow['first_ns'], state.dated())} UTC",
            "lasted": span(flow["last_ns"] - flow["first_ns"]),
            "missing": "not known" if missing is None else count(missing, "request") if missing else "nothing",
        },
        {"missing": "warning" if missing else "plain"},
    )


def _first_line(view: View, flow_id: str, chosen: str, total: int) -> int:
    """The message at which the page begins: that of the URL, else the page with the chosen message."""
    first = state.number("line", -1)
    if first < 0 and chosen:
        before = messages_before(view.source, flow_id, chosen)
        first = before // _LINES * _LINES if before is not None else 0
    return max(min(first, total - 1), 0)


def _pager(first: int, total: int) -> None:
    if total <= _LINES:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        step = partial(state.put, "line")
        st.button("Earlier", icon=":material/chevron_left:", key="line-", disabled=first == 0, type="tertiary",
                  on_click=step, args=(str(max(first - _LINES, 0)),))  # fmt: skip
        show_markup(html('<span class="ww-quiet">messages {a} to {b} of {total}</span>', a=f"{first + 1:,}",
                         b=f"{min(first + _LINES, total):,}", total=f"{total:,}"))  # fmt: skip
        st.button("Later", icon=":material/chevron_right:", key="line+", disabled=first + _LINES >= total,
                  type="tertiary", on_click=step, args=(str(first + _LINES),))  # fmt: skip
