"""The table of MongoDB commands, and the one that is open below it."""

from __future__ import annotations

from wirewitness.app.dashboard import state
from wirewitness.app.dashboard.state import View
from wirewitness.app.dashboard.tables import paged_table
from wirewitness.app.dashboard.views.message import show_exchange
from wirewitness.reports.base.questions.columns import Column

_COMMANDS = (
    Column("ts", "Time", "time"),
    Column("command", "Command"),
    Column("database", "Database"),
    Column("collection", "Collection"),
    Column("client_address", "Address"),
    Column("app_name", "Application"),
    Column("latency_ms", "Latency ms", "ms"),
    Column("status", "Status", "text", "small"),
    Column("error_name", "Error"),
    Column("documents_returned", "Returned", "count"),
    Column("response_bytes", "Answer", "bytes"),
    Column("request_packet", "Packet", "plain"),
)


def command_table(view: View, query: str) -> None:
    """The commands of a SELECT, page by page; the chosen one with its bytes."""
    chosen = paged_table(view.source, "commands", query, _COMMANDS, order="ts", noun="command", select=True,
                         search=("command", "collection", "client_address", "app_name"),
                         keep=("exchange_id",), marked=state.value("message"))  # fmt: skip
    wanted = state.kept("message", chosen["exchange_id"] if chosen else None)
    if wanted:
        show_exchange(view.source.opened, wanted, "command")
