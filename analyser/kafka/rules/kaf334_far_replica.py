"""KAF334 far-replica: a consumer reads from a broker far away although a near one has the partition.

Finds
    Consumers that read a partition over a long way, while a broker that is near to them holds it, too. Question: who
    waits for whom (one server is slow for a client, another one with the same data is not).

Why it matters
    Every Fetch takes the long way, which costs time for each record, and money between zones. It looks like a slow
    broker, and only consumers of one place see it. From a follower records come later still: when it has them.

How it decides
    A client of a group read a partition at a broker, `fetches` times at least. The way is the quickest of the TCP
    handshake and all responses on that connection, five at least; to other brokers the quickest handshake from the same
    address. It is far when it takes `far_ms` or more and `ratio` times the way to another broker with the partition:
    the leader, or a replica in sync, by Metadata and by the addresses that the brokers advertise.
    A warning where the far one is no leader, so that somebody chose it (client.rack); of a far leader info, since
    consumers read from leaders unless told otherwise.

False alarms
    A consumer that is to read from a certain place on purpose.

What it cannot tell
    Anything where brokers advertise names, or where the consumer has no connection to the near one. How far a follower
    is behind.

References
    KIP-392: client.rack of consumers, broker.rack and replica.selector.class of brokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.addresses import endpoint_text, server_text
from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Lasting
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place, places_text

READS, LEADERS, BROKERS = "kafka_fetch_ranges", "kafka_leaders", "kafka_brokers"


class _Far(NamedTuple):
    """A run of reading at a far broker, and the near one. way_ms: to either of them."""

    row: Row
    server: str
    way_ms: float
    near: str
    near_ms: float
    leads: bool


class _World(NamedTuple):
    """Ways by client address and server, in ms; servers by node; terms of leaders by topic and partition."""

    connections: Mapping[str, Row]
    ways: Mapping[tuple[object, str], float]
    servers: Mapping[int, str]
    terms: Mapping[tuple[object, object], Lasting[Row]]


def detect(frames: Frames, *, fetches: int = 20, far_ms: float = 10.0, ratio: float = 10.0) -> Iterator[Finding]:
    """One finding for each client, far broker and near one."""
    world = _world(frames)
    quickest = {
        row["flow_id"]: row["latency_ms"] for row in rows_of(frames["exchanges"]) if row["latency_ms"] is not None
    }
    found: dict[tuple[object, ...], list[_Far]] = {}
    for row in rows_of(frames[READS]):
        connection = world.connections.get(row["flow_id"])
        if connection is None or row["fetches"] < fetches or row["flow_id"] not in quickest:
            continue
        way_ms = min(connection["handshake_ms"] or 0.0, quickest[row["flow_id"]])
        if way_ms < far_ms:
            continue
        far = _far(row, server_text(connection), way_ms, world)
        if far is not None and far.near_ms * ratio <= way_ms:
            found.setdefault((row["client_address"], row["client_id"], far.server, far.near), []).append(far)
    yield from map(_finding, found.values())


def _world(frames: Frames) -> _World:
    connections = {row["flow_id"]: row for row in rows_of(frames[CONNECTIONS])}
    ways: dict[tuple[object, str], float] = {}
    for row in connections.values():
        if row["handshake_ms"] is not None:
            key = (row["client_address"], server_text(row))
            ways[key] = min(ways.get(key, row["handshake_ms"]), row["handshake_ms"])
    servers: dict[int, str] = {}
    for row in rows_of(frames[BROKERS]):
        servers[row["node_id"]] = endpoint_text(row["host"], row["port"])
    terms: dict[tuple[object, object], list[Row]] = {}
    for row in rows_of(frames[LEADERS]):
        terms.setdefault((row["topic"], row["partition"]), []).append(row)
    return _World(
        connections,
        ways,
        servers,
        {place: Lasting((one["ts"], one["ts_until"], one) for one in own) for place, own in terms.items()},
    )


def _far(row: Row, server: str, way_ms: float, world: _World) -> _Far | None:
    """The nearest other broker that had the partition all the time; None where none is known."""
    every = world.terms.get((row["topic"], row["partition"]))
    term = every.only(row["ts"], row["ts_last"]) if every else None
    if term is None:
        return None
    leader, isr = term["leader_id"], term["isr"] or []
    named = {node: world.servers.get(node) for node in {leader, *isr}}
    if server not in world.servers.values():
        return None
    near = [
        (world.ways[row["client_address"], name], name)
        for name in named.values()
        if name is not None and name != server and (row["client_address"], name) in world.ways
    ]
    if not near:
        return None
    near_ms, name = min(near)
    return _Far(row, server, way_ms, name, near_ms, named.get(leader) == server)


def _finding(runs: Sequence[_Far]) -> Finding:
    # What it reads from a follower was chosen; what it reads from leaders there is told where that is all.
    far = [one for one in runs if not one.leads] or runs
    rows = [one.row for one in far]
    first, one = rows[0], far[0]
    way_ms = min(each.way_ms for each in far)
    leads = one.leads
    role = "its leader" if leads else "a follower"
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    return RULE.finding(
        severity="info" if leads else "warning",
        subject={**key, "server": one.server},
        title=f"Reads from {one.server}, {way_ms:,.0f} ms away, a near broker has it: {client_title(first)}, "
        f"{first_of(map(place, rows))}",
        sentence=(
            f"{sentence_start(client_text(first))} reads {places_text(rows, 3)} from {one.server}, {role}, "
            f"{ms_text(way_ms)} away ({count(sum(row['fetches'] for row in rows), 'Fetch request')}). {one.near} is "
            f"{ms_text(one.near_ms)} away and has the same data in sync."
        ),
        next_step=(
            "Set client.rack of this consumer to the broker.rack of the near broker, and replica.selector.class of the "
            "brokers to RackAwareReplicaSelector, if it may read from followers (KIP-392)."
            if leads
            else "Look at client.rack of this consumer and broker.rack of the brokers: the rack that it names is that "
            "of the far broker."
        ),
        proof=Proof(
            min(row["ts"] for row in rows),
            max(row["ts_last"] for row in rows),
            (Evidence(row["file"], row["request_packet"], row["exchange_id"]) for row in rows),
        ),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "partitions": partitions_of(rows),
            "server": one.server,
            "where": one.server,
            "near": one.near,
            "leads": leads,
            "way_ms": round(way_ms, 3),
            "near_ms": round(one.near_ms, 3),
            "fetches": sum(row["fetches"] for row in rows),
        },
    )


_FAR_FLOWS = f"SELECT flow_id FROM {CONNECTIONS} WHERE handshake_ms >= 10"
RULE = Rule(
    code="KAF334",
    question="waiting",
    name="far-replica",
    severity="warning",
    confidence="medium",
    reads={
        READS: (
            "ts", "ts_last", "exchange_id", "flow_id", "topic", "partition", "client_id", "client_address", "fetches",
            "file", "request_packet",
        ),
        CONNECTIONS: ("flow_id", "client_address", "server_address", "server_port", "handshake_ms"),
        "exchanges": ("flow_id", "latency_ms"),
        LEADERS: ("ts", "ts_until", "topic", "partition", "leader_id", "isr"),
        BROKERS: ("node_id", "host", "port"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        READS: f"flow_id IN ({_FAR_FLOWS})",
        CONNECTIONS: f"""handshake_ms IS NOT NULL AND client_address IN (
            SELECT client_address FROM {CONNECTIONS} WHERE handshake_ms >= 10)""",
        "exchanges": f"""exchange_id IN (
            SELECT arg_min(exchange_id, latency_ms) FROM exchanges
            WHERE protocol = 'kafka' AND latency_ms IS NOT NULL AND flow_id IN ({_FAR_FLOWS})
            GROUP BY flow_id HAVING count(*) >= 5)""",
        LEADERS: "leader_id >= 0",
        BROKERS: "node_id IS NOT NULL AND host IS NOT NULL AND port IS NOT NULL",
    },
    suspects=AnyRow(READS),
)  # fmt: skip
