"""KAF341 two-clusters: one address answers as two clusters, or a client works now on one cluster, now on another.

Finds
    Servers (address and port) whose responses name two cluster ids or more, and the clients that were told which.
    Clients whose connections go to brokers of one cluster, then of another one, and back, never to both at once: their
    bootstrap list has brokers of two clusters.

Why it matters
    A client that comes back to the same bootstrap server finds another cluster: topics, offsets and groups of the one
    are not there in the other. It reads and writes elsewhere than its siblings, and nothing tells it.

How it decides
    The cluster ids in responses to Metadata and DescribeCluster, by the server that sent them. In turn: an id came
    again after another one, so the address stands for both at once (a load balancer, a name or a port that leads to
    two clusters). Changed: one id up to a time, another one since, as when a broker is set up anew or joins another
    cluster.
    warning where they come in turn, or where one client (address and client id) was told both; else info.
    Clients: connections on which they read or write, by the cluster id that responses of this server name. A warning
    for a client whose connections went from one cluster to another and back, where no two of different clusters were
    open at the same time (who copies from one to the other has both) and some came after one of the same cluster (who
    goes round, as probes do, never has that).

False alarms
    Proxies that stand for several clusters on purpose. Tools that work on one cluster and then on the next.
    Addresses that were given to another server in a long capture.

What it cannot tell
    Versions of Metadata before 2 name no cluster; of requests alone nothing is said.

References
    KIP-78 (cluster id); KIP-899, KIP-1102 (clients that bootstrap again). bootstrap.servers of clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import moment_text, period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, PLACE_COLUMNS, connections_proof, ended
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of

BROKERS = "kafka_brokers"
_MOST = 20
# On brokers whose responses name a cluster, and not a component of endpoints that is put together from them.
_WORKS = "work > 0 AND client_id IS NOT NULL AND NOT starts_with(coalesce(cluster_id, 'component:'), 'component:')"


def detect(frames: Frames) -> Iterator[Finding]:
    """At most one finding for each server, and for each client."""
    servers: dict[str, list[Row]] = {}
    for row in sorted(rows_of(frames[BROKERS]), key=lambda row: (row["ts"], row["exchange_id"] or "")):
        servers.setdefault(server_text(row), []).append(row)
    for rows in servers.values():
        if len({row["wire_cluster_id"] for row in rows}) > 1:
            yield _finding(rows)
    clients: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of(frames[CONNECTIONS]):
        clients.setdefault((row["client_address"], row["client_id"]), []).append(row)
    for rows in clients.values():
        if _goes_to_and_fro(rows):
            yield _client(rows)


def _goes_to_and_fro(rows: Sequence[Row]) -> bool:
    """One cluster at a time: to another one and back, and not at each connection."""
    changes = sum(bool(one["cluster_id"] != after["cluster_id"]) for one, after in pairwise(rows))
    open_until: dict[str, int] = {}
    for row in rows:
        if any(until > row["ts"] for cluster, until in open_until.items() if cluster != row["cluster_id"]):
            return False
        open_until[row["cluster_id"]] = max(open_until.get(row["cluster_id"], 0), ended(row))
    return bool(1 < changes < len(rows) - 1)


def _client(rows: Sequence[Row]) -> Finding:
    first = rows[0]
    places: dict[str, dict[str, None]] = {}
    for row in rows:
        places.setdefault(row["cluster_id"], {})[server_text(row)] = None
    counted = Counter(row["cluster_id"] for row in rows)
    named = [
        f"cluster {printable(cluster, 60)} at {names_text(list(own), 2)} ({count(counted[cluster], 'connection')})"
        for cluster, own in places.items()
    ]
    return RULE.finding(
        severity="warning",
        title=f"{client_title(first)} works on {len(places)} clusters in turn",
        subject={"client": first["client_id"], "address": first["client_address"]},
        sentence=f"{sentence_start(client_text(first))} works on two clusters in turn, never on both at once: "
        f"{names_text(named, 3)}, {period_text(first['ts'], ended(rows[-1]))}. What it writes or reads is on one or "
        "the other, as it happens.",
        next_step="Look at its bootstrap.servers: all of them must be brokers of one cluster. Compare topics and "
        "groups of both for what went to the wrong one.",
        proof=connections_proof(rows[:_MOST]),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "clusters": list(places)[:_MOST],
            "connections": dict(counted.most_common(_MOST)),
            "clients": [client_numbers(first)],
            "since": time_text(first["ts"]),
        },
    )


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
    reads={
        BROKERS: (
            "ts", "exchange_id", "wire_cluster_id", "client_id", "client_address", "server_address", "server_port",
            "file", "request_packet",
        ),
        CONNECTIONS: (*PLACE_COLUMNS, "cluster_id"),
    },
    partition_by=(),
    detect=detect,
    rows={
        BROKERS: f"""
            wire_cluster_id <> '' AND (server_address, server_port) IN (
                SELECT (server_address, server_port) FROM {BROKERS}
                WHERE wire_cluster_id <> '' AND server_address IS NOT NULL
                GROUP BY server_address, server_port HAVING count(DISTINCT wire_cluster_id) > 1)""",
        CONNECTIONS: f"""
            {_WORKS} AND (client_address, client_id) IN (
                SELECT (client_address, client_id) FROM {CONNECTIONS}
                WHERE {_WORKS} GROUP BY client_address, client_id HAVING count(DISTINCT cluster_id) > 1)""",
    },
)  # fmt: skip
