"""Every exchange, filtered and paged where the rows are, and the chosen one with its fields and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.broker_files import with_lines
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.text import heading, line
from wirewitness.app.dashboard.views.exchange_boxes import chosen_filters
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.exchange_rows import constant
from wirewitness.reports.base.questions.exchange_text import exchanges_say
from wirewitness.reports.base.questions.wanted_exchanges import exchange_query

_COLUMNS = (
    Column("ts", "Time", "time"),
    Column("request_packet", "Packet", "plain", 60),
    Column("protocol", "Protocol", "text", 68),
    Column("client_id", "Client", "text", 105),
    Column("client_address", "Address", "text", 95),
    Column("server_address", "Server", "text", 95),
    Column("operation", "Operation", "text", 110),
    Column("says", "What it says", "more", 270),
    Column("status", "Status", "text", 62),
    Column("error_name", "Error", "text", 150),
    Column("latency_ms", "Latency ms", "ms", 78),
    Column("request_bytes", "Request", "bytes", 74),
    Column("response_bytes", "Answer", "bytes", 74),
    Column("version", "Version", "text", 62),
    Column("client_port", "Client port", "plain", 60),
    Column("response_packet", "Answer packet", "plain"),
    Column("request_file", "File"),
)
# A column that says the same in every row is said once, above.
_HIDDEN_WHERE_CONSTANT = {
    "protocol": "protocol", "client_id": "client", "client_address": "address", "server_address": "server",
    "operation": "operation", "version": "version", "status": "status", "error_name": "error",
    "client_port": "port", "request_file": "file",
}  # fmt: skip
_KEEP = ("request_message_id", "response_message_id", "exchange_id", "status")


def show(view: View) -> None:
    """The page."""
    heading("Exchanges")
    query = exchange_query(chosen_filters(view))
    same = constant(view.source, query, list(_HIDDEN_WHERE_CONSTANT))
    said = ", ".join(_said(name, value) for name, value in same.items() if value is not None)
    if said:
        line(f"All of them: {said}.", "quiet")
    chosen = paged_table(
        view.source, "exchanges", query, with_lines(view.source, _COLUMNS), hidden=same, order="ts",
        noun="exchange", select=True, keep=_KEEP, marked=state.value("message"), more=partial(_with_words, view),
        tinted=True, tall=True,
    )  # fmt: skip
    wanted = state.kept("message", _message_id(chosen))
    if not wanted:
        line("Choose a row to see the fields and bytes of its request and its answer.", "quiet")
    else:
        show_exchange(view.source.opened, wanted, "exchange")


def _with_words(view: View, rows: pa.Table) -> pa.Table:
    """The rows with what each says."""
    ids = rows.column("exchange_id").to_pylist()
    times_ns = rows.column("ts").cast(pa.int64()).to_pylist()
    said = exchanges_say(view.source.everything(), dict(zip(ids, times_ns, strict=True)))
    return rows.append_column("says", pa.array([said.get(one) for one in ids], pa.string()))


def _said(name: str, value: object) -> str:
    """A column with its one value."""
    return f"{_HIDDEN_WHERE_CONSTANT[name]} {PurePath(str(value)).name if name == 'request_file' else value}"


def _message_id(chosen: Mapping[str, Any] | None) -> str | None:
    if chosen is None:
        return None
    found: str | None = chosen["request_message_id"] or chosen["response_message_id"]
    return found
