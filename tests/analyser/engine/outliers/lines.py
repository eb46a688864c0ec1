"""Lines of the table `stands_out` of plain rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.rows import connection_from_rows
from wirewitness.analyser.analysis.all_rules import populations, question_of
from wirewitness.analyser.engine.outliers.table import lines

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def at(second: float) -> int:
    """Unix time in ns."""
    return 1_800_000_000 * 10**9 + round(second * 1e9)


def exchange(number: int, client: str, operation: str, second: float, **more: Any) -> dict[str, Any]:
    """A request of a client that was answered after a millisecond."""
    return {
        "exchange_id": f"f-{client}-{number}", "flow_id": f"f-{client}", "ts": at(second), "operation": operation,
        "ts_response": at(second) + 10**6, "latency_ms": 1.0, "client_id": client, "client_address": "a",
        "server_address": "s", "server_port": 1, "status": "ok", "direction": "client_to_server",
        "request_file": "x.pcap", "request_packet": number + 1,
    } | more  # fmt: skip


def found(rows: Rows) -> list[dict[str, Any]]:
    """The rows of the table."""
    table: list[dict[str, Any]] = lines(connection_from_rows(rows), populations(), question_of).to_pylist()
    return table


def said(rows: Rows) -> list[str]:
    """Measure and sentence of each."""
    return [f"{row['measure']}: {row['sentence']}" for row in found(rows)]
