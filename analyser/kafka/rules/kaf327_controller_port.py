"""KAF327 controller-port: a client connects to a controller instead of a broker.

Finds
    Clients whose connection leads to a listener of KRaft controllers: it answers ApiVersions, and offers neither
    Metadata nor Produce nor FindCoordinator.

Why it matters
    Nothing that a producer or consumer needs is there. Client libraries say little about it: some wait without a word,
    others try again for ever.

How it decides
    What ApiVersions offered on the connection: requests of brokers to controllers are among it (BrokerRegistration,
    BrokerHeartbeat or Vote), and Metadata, Produce and FindCoordinator are not. The client sent nothing there but for
    ApiVersions, Metadata and a login, and its address is not that of a server of Kafka: brokers and controllers go
    there by right, and so do admin tools (KIP-919), which then ask for something.
    Confidence high: the offer is on the wire.

False alarms
    Monitors that look only whether the port answers.

What it cannot tell
    Whether the client reached a broker by another address that was not captured. Where ApiVersions lies before the
    capture, of requests alone, and of a request log, which may lack lines, nothing is said.

References
    KIP-500, KIP-919 (bootstrap.controllers); controller.listener.names, bootstrap.servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import (
    CONNECTIONS,
    PLACE_COLUMNS,
    client_keys,
    client_subject,
    connections_proof,
)
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

OFFERED = "kafka_api_versions"
_OF_CONTROLLERS = (52, 62, 63)
_OF_CLIENTS = (0, 3, 10)


def detect(frames: Frames) -> Iterator[Finding]:
    """One finding for each client and server."""
    offers = {row["flow_id"] for row in rows_of(frames[OFFERED])}
    connections = rows_of(frames[CONNECTIONS])
    servers = {row["server_address"] for row in connections if row["answered"]}
    found: dict[tuple[str | None, str | None, str], list[Row]] = {}
    for row in connections:
        seen = row["all_seen_until"] is not None and row["flow_id"] in offers
        if seen and row["client_address"] not in servers:
            found.setdefault((row["client_address"], row["client_id"], server_text(row)), []).append(row)
    for own in found.values():
        # A request log may lack lines, and has no ACKs.
        if not any(row["work"] or row["others"] or row["acked_by_server"] is None for row in own):
            yield _finding(own)


def _finding(own: Sequence[Row]) -> Finding:
    first, server = own[0], server_text(own[0])
    until = max(row["all_seen_until"] for row in own)
    return RULE.finding(
        provisional=True,
        title=f"Connected to a controller, {server}: {client_title(first)}",
        subject={**client_subject(first), "server": server},
        sentence=f"{sentence_start(client_text(first))} connected to {server}, "
        f"{count(len(own), 'connection')} {period_text(first['ts'], until)}, and did nothing there: this is a port of "
        "KRaft controllers, which answers ApiVersions and offers no Metadata, Produce or FindCoordinator.",
        next_step="Set bootstrap.servers of this client to the listener of brokers (9092 by default), not to one of "
        "controller.listener.names.",
        proof=connections_proof(own),
        numbers={
            **client_keys(first),
            "server": server,
            "where": server,
            "connections": len(own),
            "since": time_text(first["ts"]),
            "until": time_text(until),
            "clients": [client_numbers(first, connections=len(own))],
        },
    )


RULE = Rule(
    code="KAF327",
    question="refused",
    name="controller-port",
    severity="warning",
    confidence="high",
    reads={
        OFFERED: ("ts", "flow_id", "api_key"),
        CONNECTIONS: (*PLACE_COLUMNS, "answered", "work", "others", "acked_by_server", "all_seen_until"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        # One row of each connection on which a controller answered.
        OFFERED: f"""
            api_key = 18 AND max_version IS NOT NULL AND flow_id IN (
                SELECT flow_id FROM {OFFERED} WHERE max_version IS NOT NULL GROUP BY flow_id
                HAVING bool_or(api_key IN {_OF_CONTROLLERS}) AND NOT bool_or(api_key IN {_OF_CLIENTS}))""",
    },
    suspects=AnyRow(OFFERED),
)  # fmt: skip
