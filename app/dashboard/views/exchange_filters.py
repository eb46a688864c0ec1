"""The filters of the page of exchanges, for the ways that lead there. In: what to look for; out: URL values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FILTERS = (
    "protocol_of", "operation", "status", "slower", "client", "server", "named", "error", "file_of", "packet", "text",
)  # fmt: skip


def exchange_filters(**chosen: str | None) -> dict[str, str | None]:
    """All filters of the page: those that are given, the others cleared; its page and its chosen row too."""
    return {**dict.fromkeys((*FILTERS, "message", "exchanges.page", "exchanges.q")), **chosen}


def client_text(row: Mapping[str, Any]) -> str:
    """A client as the filter takes it: `id@address`, as far as both are known."""
    client_id, address = row.get("client_id"), row.get("client_address")
    return f"{client_id or ''}@{address}" if address else str(client_id or "")


def server_text(row: Mapping[str, Any]) -> str:
    """A server as the filter takes it: `address:port`."""
    address = str(row["server_address"])
    return f"{f'[{address}]' if ':' in address else address}:{row['server_port']}"
