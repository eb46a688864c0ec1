"""The filters of the page of exchanges, for the ways that lead there. In: what to look for; out: URL values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirewitness.reports.base.questions.wanted_exchanges import named_exactly

FILTERS = (
    "operation", "status", "error", "slower", "client", "packet", "named", "partition_of", "server", "text",
    "protocol_of", "version_of", "file_of", "between", "took", "waits", "part_of",
)  # fmt: skip


def exchange_filters(**chosen: str | None) -> dict[str, str | None]:
    """All filters of the page: those that are given, the others cleared; its page and its chosen row too."""
    return {**dict.fromkeys((*FILTERS, "message", "exchanges.page", "exchanges.q")), **chosen}


def about_partition(row: Mapping[str, Any], *names: str | None) -> dict[str, str | None]:
    """Exchanges about the row's topic and partition; with `names`, those that name these as well, as a group."""
    named, partition = named_exactly(*names, row["topic"]), row["partition"]
    return exchange_filters(named=named, partition_of=str(partition) if partition is not None else None)


def client_text(row: Mapping[str, Any]) -> str:
    """A client as the filter takes it: `id@address`, as far as both are known."""
    client_id, address = row.get("client_id"), row.get("client_address")
    return f"{client_id or ''}@{address}" if address else str(client_id or "")


def server_text(row: Mapping[str, Any]) -> str:
    """A server as the filter takes it: `address:port`."""
    address = str(row["server_address"])
    return f"{f'[{address}]' if ':' in address else address}:{row['server_port']}"
