"""KAF319 acks-wait: of requests to one partition only those with acks=all wait: its leader waits for a replica.

Finds
    Producers whose writes with acks=all are answered late by a broker that answers writes with acks=1 to the same
    partition at once. Question: who waits for whom (one class of requests slow, another to the same server fast).

Why it matters
    It looks like a slow broker or a slow producer and is neither. With acks=all the leader answers when all replicas in
    sync have the records, so one slow follower delays each of them until it leaves the in-sync replicas
    (replica.lag.time.max.ms). Producers run into request.timeout.ms and delivery.timeout.ms, and send again.

How it decides
    Produce requests to one partition at one server, in the time in which both classes were sent; `samples` of each
    class at least. From each latency the way is taken off: the handshake of its connection, else the quickest response
    to that client and class. Late: the median with acks=all is `ratio` times the median with acks=1 and `least_ms` ms
    at least, and its lower quarter is above nine tenths of those with acks=1. Requests that carry much more than the
    others (more than `most_bytes`) and clients that a quota makes wait (KAF304) do not count. One finding for each
    client. Refusals after a wait (REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND) count as responses.

False alarms
    A cluster across regions, where every write with acks=all waits for a replica far away by design: then the wait is
    as described, and meant.

What it cannot tell
    Which replica is slow: it shows at the leader, and in what followers ask it. Of requests alone, or of responses
    alone, nothing is said, nor where all producers of a partition use the same acks.

References
    Kafka's producer configuration acks, min.insync.replicas, replica.lag.time.max.ms; RemoteTimeMs of the broker's
    request metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median, quantiles
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import names_text
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, places_text
from wirewitness.analyser.kafka.rules.producers import evidence_of

BATCHES = "kafka_produce_batches"
KEYS = ("cluster_id",)
ALL, LEADER = -1, 1
# Looked at of each client, partition and acks.
_SAMPLE = 200
# With about so many of the others each client is compared, spread over the time of all.
_MOST_BESIDE = 1000


class _Late(NamedTuple):
    """One client's requests with acks=all to one partition, and how long those with acks=1 took; ms without the way."""

    rows: Sequence[Row]
    server: str
    ms: float
    others_ms: float


def detect(
    frames: Frames, *, samples: int = 5, ratio: float = 10.0, least_ms: float = 100.0, most_bytes: int = 1 << 16
) -> Iterator[Finding]:
    """One finding for each client whose requests wait."""
    connections = {row["flow_id"]: row for row in rows_of(frames[CONNECTIONS])}
    places: dict[tuple[object, ...], list[Row]] = {}
    for row in rows_of(frames[BATCHES]):
        connection = connections.get(row["flow_id"])
        if connection is not None and not connection["throttled"] and (row["batch_bytes"] or 0) <= most_bytes:
            places.setdefault((server_text(connection), row["topic"], row["topic_id"], row["partition"]), []).append(
                row
            )
    late: dict[tuple[object, object], list[_Late]] = {}
    for (server, *_), rows in places.items():
        for one in _late(rows, str(server), _ways(rows, connections), samples, ratio, least_ms):
            late.setdefault((one.rows[0]["client_address"], one.rows[0]["client_id"]), []).append(one)
    yield from map(_finding, late.values())


def _ways(rows: Sequence[Row], connections: Mapping[str, Row]) -> dict[tuple[object, ...], float]:
    """How long the way takes, in ms, by flow, client and acks."""
    quickest: dict[tuple[object, ...], float] = {}
    for row in rows:
        key = _class(row)
        quickest[key] = min(quickest.get(key, _latency_ms(row)), _latency_ms(row))
    flows = {row["flow_id"]: connections[row["flow_id"]] for row in rows}
    known = {flow: one["handshake_ms"] for flow, one in flows.items() if one["handshake_ms"] is not None}
    return {(row["flow_id"], *_class(row)): known.get(row["flow_id"], quickest[_class(row)]) for row in rows}


def _class(row: Row) -> tuple[object, ...]:
    return row["client_address"], row["client_id"], row["acks"]


def _latency_ms(row: Row) -> float:
    return float((row["ts_response"] - row["ts"]) / NS_PER_MS)


def _late(
    rows: Sequence[Row], server: str, ways: Mapping[tuple[object, ...], float], samples: int, ratio: float, least: float
) -> Iterator[_Late]:
    """Of one partition at one server."""
    waits = {row["exchange_id"]: max(_latency_ms(row) - ways[row["flow_id"], *_class(row)], 0.0) for row in rows}
    quick = [row for row in rows if row["acks"] == LEADER]
    quick = quick[:: max(1, len(quick) // _MOST_BESIDE)]
    by_client: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row["acks"] == ALL:
            by_client.setdefault(_class(row), []).append(row)
    for own in by_client.values():
        since, until = own[0]["ts"], own[-1]["ts"]
        compared(len(quick))
        beside = [waits[row["exchange_id"]] for row in quick if since <= row["ts"] <= until]
        mine = [waits[row["exchange_id"]] for row in own]
        if min(len(beside), len(mine)) < samples:
            continue
        ms, others_ms = median(mine), median(beside)
        apart = quantiles(mine, n=4)[0] > quantiles(beside, n=10)[8]
        if apart and ms >= max(least, ratio * others_ms):
            yield _Late(own, server, ms, others_ms)


def _finding(late: Sequence[_Late]) -> Finding:
    worst = max(late, key=lambda one: one.ms)
    rows = [row for one in late for row in one.rows]
    first = worst.rows[0]
    since, until = min(row["ts"] for row in rows), max(row["ts_response"] for row in rows)
    key = {"cluster": first["cluster_id"], "client_id": first["client_id"], "address": first["client_address"]}
    slowest = sorted(worst.rows, key=_latency_ms, reverse=True)[:10]
    return RULE.finding(
        subject=key,
        title=(
            f"acks=all waits for a replica: {worst.ms:,.0f} ms for {client_title(first)}, acks=1 only "
            f"{worst.others_ms:,.0f} ms"
        ),
        sentence=(
            f"Only requests with acks=all wait at {worst.server}: those of {client_text(first)} to "
            f"{places_text(rows, 3)} take {worst.ms:,.1f} ms in the median, those with acks=1 to the same partition "
            f"{worst.others_ms:,.1f} ms. So the leader waits for a replica in sync."
        ),
        next_step=(
            "Look at the followers of this partition: which of them is behind (kafka-topics --describe, the "
            "followers' disk and network). Until it leaves the in-sync replicas "
            "(replica.lag.time.max.ms) each write with acks=all waits for it."
        ),
        proof=Proof(since, until, evidence_of(slowest)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "server": worst.server,
            "where": names_text(sorted({one.server for one in late}), 3),
            "partitions": partitions_of(rows),
            "acks": "all",
            "waits_for_replicas": first["cluster_id"],
            "requests": len(rows),
            "median_ms": round(worst.ms, 3),
            "acks_1_median_ms": round(worst.others_ms, 3),
            "since": time_text(since),
            "until": time_text(until),
        },
    )


_PLACE = "(coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition)"
_ANSWERED = f"ts_response IS NOT NULL AND error_code IN (0, 7, 20) AND acks IN ({ALL}, {LEADER})"
# Partitions that are written in both ways, slowly in the one.
_BOTH = f"""
    SELECT {_PLACE} FROM {BATCHES} WHERE {_ANSWERED}
    GROUP BY coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition
    HAVING count(*) FILTER (acks = {ALL}) >= 5 AND count(*) FILTER (acks = {LEADER}) >= 5
        AND max(epoch_ns(ts_response) - epoch_ns(ts)) FILTER (acks = {ALL}) >= 100000000"""
_SAMPLED = f"""
    SELECT unnest(arg_min(exchange_id, hash(exchange_id), {_SAMPLE})) FROM {BATCHES}
    WHERE {_ANSWERED} AND {_PLACE} IN ({_BOTH})
    GROUP BY cluster_id, topic, topic_id, partition, client_address, client_id, acks"""

RULE = Rule(
    code="KAF319",
    question="waiting",
    name="acks-wait",
    severity="warning",
    confidence="high",
    reads={
        BATCHES: (
            "ts", "ts_response", "exchange_id", "flow_id", "client_id", "client_address", "topic", "topic_id",
            "partition", "acks", "batch_bytes", "file", "request_packet",
        ),
        CONNECTIONS: ("flow_id", "server_address", "server_port", "handshake_ms", "throttled"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={BATCHES: f"{_ANSWERED} AND exchange_id IN ({_SAMPLED})", CONNECTIONS: "requests > 0"},
    suspects=AnyRow(BATCHES),
)  # fmt: skip
