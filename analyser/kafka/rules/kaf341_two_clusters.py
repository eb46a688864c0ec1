"""KAF341 two-clusters: one address answers as two clusters.

Finds
    Servers (address and port) whose responses name two cluster ids or more, and the clients that were told which.

Why it matters
    A client that comes back to the same bootstrap server finds another cluster: topics, offsets and groups of the one
    are not there in the other. It reads and writes elsewhere than its siblings, and nothing tells it.

How it decides
    The cluster ids in responses to Metadata and DescribeCluster, by the server that sent them. In turn: an id came
    again after another one, so the address stands for both at once (a load balancer, a name or a port that leads to
    two clusters). Changed: one id up to a time, another one since, as when a broker is set up anew or joins another
    cluster.
    warning where they come in turn, or where one client (address and client id) was told both; else info.

False alarms
    Proxies that stand for several clusters on purpose. Addresses that were given to another server in a long capture.

What it cannot tell
    Versions of Metadata before 2 name no cluster; of requests alone nothing is said.

References
    KIP-78 (cluster id); KIP-899, KIP-1102 (clients that bootstrap again). bootstrap.servers of clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of

BROKERS = "kafka_brokers"
KEYS = ("server_address", "server_port")
_MOST = 20


def detect(frames: Frames) -> Iterator[Finding]:
    """At most one finding for the server."""
    rows = sorted(rows_of(frames[BROKERS]), key=lambda row: (row["ts"], row["exchange_id"] or ""))
    if len({row["wire_cluster_id"] for row in rows}) > 1:
        yield _finding(rows)


def _finding(rows: Sequence[Row]) -> Finding:
    # The first answer of each run of answers that name one cluster.
    turns = [next(run) for _, run in groupby(rows, key=lambda row: row["wire_cluster_id"])]
    clusters = list(dict.fromkeys(row["wire_cluster_id"] for row in turns))
    told: dict[tuple[str | None, str | None], dict[str, Row]] = {}
    for row in rows:
        told.setdefault((row["client_address"], row["client_id"]), {}).setdefault(row["wire_cluster_id"], row)
    # Clients without an id are not told apart.
    both = [next(iter(own.values())) for (_, name), own in told.items() if name is not None and len(own) > 1]
    in_turn = len(turns) > len(clusters)
    server = server_text(rows[0])
    named = names_text([printable(name, 60) for name in clusters], 3)
    how = (
        f"in turn, {count(len(turns) - 1, 'change')}"
        if in_turn
        else f"the last one since {moment_text(turns[-1]['ts'])}"
    )
    who = f" Told more than one: {names_text([client_text(row) for row in both], 3)}." if both else ""
    return RULE.finding(
        severity="warning" if in_turn or both else "info",
        title=f"{server} answers as {len(clusters)} clusters{', in turn' if in_turn else ''}",
        subject={"server": server},
        sentence=f"{sentence_start(server)} answers as {count(len(clusters), 'cluster')}: {named}; {how}.{who}",
        next_step=(
            "Look what this address leads to: a load balancer, a name, a mapped port or a proxy in front of brokers of "
            "several clusters, or a broker that was set up anew. Give each cluster its own bootstrap.servers; compare "
            "topics and groups of both for what went to the wrong one."
        ),
        proof=Proof(rows[0]["ts"], turns[-1]["ts"], evidence_of(turns)),
        numbers={
            "server": server,
            "where": server,
            "clusters": clusters[:_MOST],
            "changes": len(turns) - 1,
            "in_turn": in_turn,
            "clients": [client_numbers(row) for row in both][:_MOST],
            "clients_told": len(told),
            "since": time_text(turns[1]["ts"]),
        },
    )


RULE = Rule(
    code="KAF341",
    question="differs",
    name="two-clusters",
    severity="warning",
    confidence="high",
    reads={BROKERS: ("ts", "exchange_id", "wire_cluster_id", "client_id", "client_address", "file", "request_packet")},
    partition_by=KEYS,
    detect=detect,
    rows={BROKERS: "wire_cluster_id <> '' AND server_address IS NOT NULL"},
    suspects=f"SELECT {', '.join(KEYS)} FROM r_{BROKERS} GROUP BY ALL HAVING count(DISTINCT wire_cluster_id) > 1",
)  # fmt: skip
