"""What the rules about connections of Kafka clients share: how one is named, what proves it, numbers of a client.

In: rows of `kafka_connections` as dicts. Out: words, evidence, and parts of a finding's numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.kafka.rules.names import client_numbers

CONNECTIONS = "kafka_connections"
# Columns by which a connection is named and proven.
PLACE_COLUMNS = (
    "ts", "flow_id", "client_id", "client_address", "client_port", "server_address", "server_port", "file",
    "first_packet", "ts_last", "ts_closed", "first_exchange_id",
)  # fmt: skip
MOST_NAMED = 20


def ended(row: Mapping[str, Any]) -> int:
    """Unix ns of the connection's end, or of its last packet."""
    return int(row["ts_closed"] or row["ts_last"] or row["ts"])


def connections_proof(rows: Sequence[Row]) -> Proof:
    """Connections as proof, at least one: their first packets, with the request where there is one."""
    evidence = (Evidence(row["file"], row["first_packet"], row["first_exchange_id"]) for row in rows)
    return Proof(min(row["ts"] for row in rows), max(ended(row) for row in rows), evidence)


def by_client(rows: Iterable[Row]) -> dict[str | None, list[Row]]:
    """Connections by the client id of their requests; those without requests under None."""
    found: dict[str | None, list[Row]] = {}
    for row in rows:
        found.setdefault(row["client_id"], []).append(row)
    return found


def clients_of(rows: Iterable[Row]) -> list[Row]:
    """The clients of these connections for a finding's numbers, those with most connections first."""
    counted = Counter((row["client_address"], row["client_id"]) for row in rows)
    ranked = sorted(counted.items(), key=lambda one: (-one[1], str(one[0])))
    return [
        client_numbers({"client_address": address, "client_id": client_id}, connections=number)
        for (address, client_id), number in ranked[:MOST_NAMED]
    ]


def client_subject(row: Mapping[str, Any]) -> Row:
    """Standard keys of a finding about one client."""
    return {"cluster": row["cluster_id"], "client": row["client_id"], "address": row["client_address"]}


def client_keys(row: Mapping[str, Any]) -> Row:
    """The same among the numbers."""
    return {"cluster": row["cluster_id"], "client_id": row["client_id"], "address": row["client_address"]}
