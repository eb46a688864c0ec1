"""KAF335 one-in-flight: a producer sends one request at a time over a way that takes most of the time.

Finds
    Producers that send each Produce right after the response to the one before, while the round trip takes far longer
    than the broker. Question: who waits for whom (each request waits for the way of the one before).

Why it matters
    Broker and network look idle and nothing is lost, yet the producer gets no further: with one request on the way at a
    time its throughput is what one request holds for each round trip. More brokers or partitions change nothing.

How it decides
    Of the first thousand Produce requests of a connection whose handshake took `way_ms` or more: `requests` at least
    that were answered; nine tenths of them (share) were sent within a tenth of the handshake's time after the response
    before, and none before it; and the median response takes as long as the handshake, and a quarter longer at most.
    So the way is what they wait for, and something to send was there each time.

False alarms
    A producer with little to send that sends as soon as it may, and has no use for more.

What it cannot tell
    Whether the client's setting or its application does it: one that waits for each send looks the same. Where the
    capture was taken next to the broker the way does not show.

References
    max.in.flight.requests.per.connection, linger.ms and batch.size of producers; enable.idempotence keeps the order
    with five requests on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

_PART = 0.1
_LONGER = 1.25
_MOST_LOOKED_AT = 1000


class _Chain(NamedTuple):
    """Requests of a connection, one behind the other. ms: the median response."""

    connection: Row
    rows: Sequence[Row]
    ms: float

    @property
    def bytes_a_second(self) -> float:
        lasted: int = self.rows[-1]["ts_response"] - self.rows[0]["ts"]
        return sum(row["request_bytes"] or 0 for row in self.rows) / (lasted / (1000 * NS_PER_MS))


def detect(frames: Frames, *, requests: int = 50, share: float = 0.9, way_ms: float = 10.0) -> Iterator[Finding]:
    """One finding for a client and server: its connection with most such requests."""
    connections = {row["flow_id"]: row for row in rows_of(frames[CONNECTIONS])}
    flows: dict[str, list[Row]] = {}
    for row in rows_of(frames["exchanges"]):
        flows.setdefault(row["flow_id"], []).append(row)
    found: dict[tuple[object, ...], _Chain] = {}
    for flow, rows in flows.items():
        connection = connections.get(flow)
        if connection is None or len(rows) < requests or connection["handshake_ms"] < way_ms:
            continue
        took = median((row["ts_response"] - row["ts"]) / NS_PER_MS for row in rows)
        if _one_by_one(rows, connection["handshake_ms"], share) and _is_way(took, connection):
            chain, key = _Chain(connection, rows, took), (_who(connection), server_text(connection))
            if key not in found or len(found[key].rows) < len(rows):
                found[key] = chain
    yield from map(_finding, found.values())


def _who(row: Mapping[str, object]) -> tuple[object, object]:
    return row["client_address"], row["client_id"]


def _one_by_one(rows: Sequence[Row], way_ms: float, share: float) -> bool:
    gaps = [after["ts"] - before["ts_response"] for before, after in pairwise(rows)]
    if min(gaps) < 0:
        return False
    return bool(sum(gap <= _PART * way_ms * NS_PER_MS for gap in gaps) >= share * len(gaps))


def _is_way(took_ms: float, connection: Row) -> bool:
    way_ms: float = connection["handshake_ms"]
    return (1 - _PART) * way_ms <= took_ms <= _LONGER * way_ms


def _finding(chain: _Chain) -> Finding:
    connection, rows = chain.connection, chain.rows
    server, way_ms = server_text(connection), connection["handshake_ms"]
    size = round(median(row["request_bytes"] or 0 for row in rows))
    return RULE.finding(
        subject={**client_subject(connection), "server": server},
        title=f"One Produce at a time over {way_ms:,.0f} ms of way: {client_title(connection)} to {server}",
        sentence=(
            f"{sentence_start(client_text(connection))} sends each Produce to {server} only after the response to the "
            f"one before: {count(len(rows), 'request')} of about {size:,} bytes took {ms_text(chain.ms)} each, the way "
            f"alone (TCP handshake) {ms_text(way_ms)}. So {chain.bytes_a_second / 1000:,.1f} kB a second get through."
        ),
        next_step=(
            "Where this is too little, raise max.in.flight.requests.per.connection (up to 5 keep the order with "
            "enable.idempotence), do not wait for each send in the application, or fill requests (linger.ms, "
            "batch.size)."
        ),
        proof=Proof(
            rows[0]["ts"],
            rows[-1]["ts_response"],
            (Evidence(row["request_file"], row["request_packet"], row["request_message_id"]) for row in rows[:20]),
        ),
        numbers={
            **client_keys(connection),
            "clients": [client_numbers(connection)],
            "server": server_of(connection),
            "where": server,
            "requests": len(rows),
            "request_bytes": size,
            "median_ms": round(chain.ms, 3),
            "way_ms": round(way_ms, 3),
            "bytes_a_second": round(chain.bytes_a_second),
            "since": time_text(rows[0]["ts"]),
        },
    )


_ANSWERED = "operation = 'Produce' AND protocol = 'kafka' AND ts IS NOT NULL AND ts_response > ts"
_FAR = f"SELECT flow_id FROM {CONNECTIONS} WHERE handshake_ms >= 10 AND requests >= 50"
RULE = Rule(
    code="KAF335",
    question="waiting",
    name="one-in-flight",
    severity="info",
    confidence="medium",
    reads={
        "exchanges": (
            "ts", "ts_response", "flow_id", "request_bytes", "request_file", "request_packet", "request_message_id",
        ),
        CONNECTIONS: (
            "flow_id", "client_address", "client_id", "server_address", "server_port", "handshake_ms", "throttled",
        ),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        "exchanges": f"""{_ANSWERED} AND exchange_id IN (
            SELECT unnest(arg_min(exchange_id, ts, {_MOST_LOOKED_AT})) FROM exchanges
            WHERE {_ANSWERED} AND flow_id IN ({_FAR}) GROUP BY flow_id)""",
        CONNECTIONS: "handshake_ms >= 10 AND throttled = 0 AND coalesce(gap_bytes, 0) = 0",
    },
    suspects="SELECT cluster_id FROM r_exchanges GROUP BY cluster_id, flow_id HAVING count(*) >= 50",
)  # fmt: skip
