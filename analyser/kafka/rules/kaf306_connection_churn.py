"""KAF306 client-connection-churn: a client opens many times more connections than it usually does.

Finds
    Client addresses with a minute in which ten times as many connections to Kafka were opened as in their median one.

Why it matters
    Something closes connections: a broker that restarts, a limit that is reached, a login that fails, a crash loop.
    Each new one asks for versions and metadata again, which costs most while the cluster is busy already.

How it decides
    Connections to Kafka by minute, attempts that were refused or never answered included. The fullest minute has at
    least 10 times (times) the median of at least 5 minutes (minutes_least), and 30 connections (connections_least). The
    first minute does not count, since the capture may begin with the client.

False alarms
    A batch job that starts with many consumers.

What it cannot tell
    Anything of a capture that is shorter; NET103 and KAF314 look at shorter times. Which client behind an address
    it was, where its connections ended before they named a client id.

References
    The broker's connection-creation-rate; KIP-402 and KIP-612 (limits of connections).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.titles import first_of, who_title
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.minutes import by_minute
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import (
    CONNECTIONS,
    PLACE_COLUMNS,
    client_keys,
    clients_of,
    connections_proof,
    ended,
)


def detect(
    frames: Frames, *, times: float = 10.0, minutes_least: int = 5, connections_least: int = 30
) -> Iterator[Finding]:
    """At most one finding for this client address: its fullest minute."""
    rows = rows_of(frames[CONNECTIONS])
    opened = [row for row in rows if row["handshake"] is not None]
    if len(opened) < connections_least:
        return
    start, end = min(row["ts"] for row in rows), max(row["observed_until"] or ended(row) for row in rows)
    fullest, usual, minutes = by_minute(opened, start, end)
    if minutes >= minutes_least and len(fullest) >= max(times * max(usual, 1), connections_least):
        yield _finding(fullest, len(opened), minutes, usual)


def _finding(fullest: Sequence[Row], connections: int, minutes: int, usual: float) -> Finding:
    first, last = fullest[0], fullest[-1]
    named = next((row for row in fullest if row["client_id"]), first)
    failed = sum(row["handshake"] != "complete" for row in fullest)
    how = f" ({failed} of them refused or without a response)" if failed else ""
    servers = sorted({server_text(row) for row in fullest})
    names = sorted({row["client_id"] for row in fullest if row["client_id"]})
    address = first["client_address"] or "(unknown address)"
    who = f"{address} ({names_text(names, 3)})" if names else address
    return RULE.finding(
        subject={"cluster": first["cluster_id"], "address": first["client_address"]},
        title=(
            f"{len(fullest)} connections within a minute: {who_title(min(names, default=None), address)} to "
            f"{first_of(servers)}"
        ),
        sentence=(
            f"{who} opened {len(fullest)} connections{how} to {names_text(servers, 3)} within a minute, "
            f"{period_text(first['ts'], last['ts'])}. Its median is {usual:g} a minute "
            f"({count(connections, 'connection')} in {minutes} minutes)."
        ),
        next_step=(
            "Look what ended the connections before: broker restarts, connections.max.idle.ms, limits of connections, "
            "logins that fail, or a client that crashes and starts again."
        ),
        proof=connections_proof(fullest),
        numbers={
            **client_keys(named),
            "in_fullest_minute": len(fullest),
            "failed": failed,
            "median_per_minute": usual,
            "connections": connections,
            "minutes": minutes,
            "where": servers[0],
            "clients": clients_of(fullest),
        },
    )


RULE = Rule(
    code="KAF306",
    question="repeated",
    name="client-connection-churn",
    severity="warning",
    confidence="medium",
    reads={CONNECTIONS: (*PLACE_COLUMNS, "handshake", "observed_until")},
    partition_by=("cluster_id", "client_address"),
    detect=detect,
    suspects=f"""
        SELECT cluster_id, client_address FROM r_{CONNECTIONS} WHERE handshake IS NOT NULL
        GROUP BY ALL HAVING count(*) >= 30""",
)
