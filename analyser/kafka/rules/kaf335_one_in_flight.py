"""KAF335 one-in-flight: a producer sends one request at a time over a way that takes most of the time.

Finds
    Producers that send each Produce right after the response to the one before, while the round trip takes far longer
    than the broker. Question: who waits for whom (each request waits for the way of the one before).

Why it matters
    Broker and network look idle and nothing is lost, yet the producer gets no further: with one request on the way at a
    time its throughput is what one request holds for each round trip. More brokers or partitions change nothing.

How it decides
    The way is what the TCP handshake took, or the time from SYN to the first request, which a capture beside the broker
    shows; there, no request of the opening may have come sooner after the response before it. Of the first thousand
    Produce requests of a connection whose way is `way_ms` or more: `requests` at least that were answered, and none
    sent before the response to the one before; nine tenths of them (share) came, as the client saw it, within a tenth
    of the way after that response; and the median time from one request to the next is as long as the way, from a tenth
    less to a quarter more. So the way is what they wait for, and something to send was there each time.
    warning where the records wait for ever longer in the client: by the times of their batches they were older in each
    quarter than in the one before, by `later_ways` ways at least in the end; and where nine tenths of the batches hold
    one record each and it went on so for four fifths of the connection's time. Else info: what comes up meanwhile goes
    with the next request.

False alarms
    A producer with little to send that sends as soon as it may, and has no use for more.

What it cannot tell
    Whether the client's setting or its application does it: one that waits for each send looks the same. Where TLS is
    spoken and the capture was taken beside the broker, the way does not show.

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
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, client_keys, client_subject
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

BATCHES = "kafka_produce_batches"
_PART = 0.1
_LONGER = 1.25
_OF_THE_TIME = 0.8
_MOST_LOOKED_AT = 1000
# Requests of an opening that are looked at: the one behind ApiVersions, and the one behind that.
_OPENING = 3


class _Chain(NamedTuple):
    """Produce requests of a connection, one behind the other, over a way of so many ms."""

    connection: Row
    rows: Sequence[Row]
    way_ms: float
    ages_ms: Sequence[float]
    single: bool

    @property
    def cycle_ms(self) -> float:
        """The median time from one to the next."""
        steps = [(after["ts"] - before["ts"]) / NS_PER_MS for before, after in pairwise(self.rows)]
        return float(median(steps))

    @property
    def bytes_a_second(self) -> float:
        lasted: int = self.rows[-1]["ts_response"] - self.rows[0]["ts"]
        return sum(row["request_bytes"] or 0 for row in self.rows) / (lasted / NS_PER_S)

    @property
    def is_busy(self) -> bool:
        """So it went for most of the connection's time, as far as it was looked at."""
        lived: int = (self.connection["observed_until"] or self.rows[-1]["ts"]) - self.connection["ts"]
        lasted: int = self.rows[-1]["ts"] - self.rows[0]["ts"]
        return lasted >= _OF_THE_TIME * lived or len(self.rows) >= _MOST_LOOKED_AT

    def falls_behind(self, later_ways: float) -> bool:
        """The records are older from quarter to quarter."""
        ages = self.ages_ms
        return ages[-1] - ages[0] >= later_ways * self.way_ms if len(ages) > 1 and _rises(ages) else False


def detect(
    frames: Frames, *, requests: int = 50, share: float = 0.9, way_ms: float = 10.0, later_ways: float = 5.0
) -> Iterator[Finding]:
    """One finding for a client and server: its connection with most such requests."""
    flows: dict[str, list[Row]] = {}
    for row in rows_of(frames["exchanges"]):
        flows.setdefault(row["flow_id"], []).append(row)
    batches: dict[str, list[Row]] = {}
    for row in rows_of(frames[BATCHES]):
        batches.setdefault(row["flow_id"], []).append(row)
    found: dict[tuple[object, ...], _Chain] = {}
    for connection in rows_of(frames[CONNECTIONS]):
        rows = flows.get(connection["flow_id"], [])
        chain = _chain(connection, rows, batches.get(connection["flow_id"], []), (requests, share, way_ms))
        key = (*_who(connection), server_text(connection))
        if chain is not None and (key not in found or len(found[key].rows) < len(chain.rows)):
            found[key] = chain
    for chain in found.values():
        yield _finding(chain, chain.falls_behind(later_ways))


def _chain(
    connection: Row, rows: Sequence[Row], batches: Sequence[Row], least: tuple[int, float, float]
) -> _Chain | None:
    requests, share, way_ms = least
    sent = [row for row in rows if row["operation"] == "Produce" and row["ts_response"] is not None]
    if len(sent) < max(requests, 2) or connection["handshake_ms"] is None:
        return None
    for way in _ways(connection, rows):
        if way >= way_ms and _one_by_one(sent, way, way - connection["handshake_ms"], share):
            single = sum(row["records_count"] == 1 for row in batches) >= share * len(batches) > 0
            return _Chain(connection, sent, way, _ages(batches), single)
    return None


def _who(row: Mapping[str, object]) -> tuple[object, object]:
    return row["client_address"], row["client_id"]


def _ways(connection: Row, rows: Sequence[Row]) -> list[float]:
    """What the handshake tells, and what the opening tells of the way between capture and client."""
    handshake: float = connection["handshake_ms"]
    opening = [row for row in rows if row["ts_response"] is not None][:_OPENING]
    whole = (opening[0]["ts"] - connection["ts"]) / NS_PER_MS
    beyond = (1 - _PART) * (whole - handshake) * NS_PER_MS
    is_way = len(opening) > 1 and all(
        after["ts"] - before["ts_response"] >= beyond for before, after in pairwise(opening)
    )
    return [handshake, whole] if is_way else [handshake]


def _one_by_one(rows: Sequence[Row], way_ms: float, beyond_ms: float, share: float) -> bool:
    """beyond_ms: of the way, what lies between the capture and the client."""
    gaps = [(after["ts"] - before["ts_response"]) / NS_PER_MS for before, after in pairwise(rows)]
    cycle = median((after["ts"] - before["ts"]) / NS_PER_MS for before, after in pairwise(rows))
    if min(gaps) < 0 or not (1 - _PART) * way_ms <= cycle <= _LONGER * way_ms:
        return False
    return bool(sum(abs(gap - beyond_ms) <= _PART * way_ms for gap in gaps) >= share * len(gaps))


def _ages(batches: Sequence[Row]) -> list[float]:
    """How old the records were when they were sent, in ms, by quarters of the batches; the clock may be off."""
    known = [row["ts"] / NS_PER_MS - row["base_timestamp"] for row in batches if (row["base_timestamp"] or -1) > 0]
    size = len(known) // 4
    return [median(known[n * size : (n + 1) * size]) for n in range(4)] if size else []


def _rises(values: Sequence[float]) -> bool:
    return all(before < after for before, after in pairwise(values))


def _finding(chain: _Chain, behind: bool) -> Finding:
    connection, rows, way_ms = chain.connection, chain.rows, chain.way_ms
    server = server_text(connection)
    size = round(median(row["request_bytes"] or 0 for row in rows))
    later = (
        f" Its records wait in the client for ever longer: in the last quarter they are sent "
        f"{ms_text(chain.ages_ms[-1] - chain.ages_ms[0])} later than in the first."
        if behind
        else ""
    )
    return RULE.finding(
        severity="warning" if behind or (chain.single and chain.is_busy) else "info",
        subject={**client_subject(connection), "server": server},
        title=f"One Produce at a time over {way_ms:,.0f} ms of way: {client_title(connection)} to {server}",
        sentence=(
            f"{sentence_start(client_text(connection))} sends each Produce to {server} only after the response to the "
            f"one before: {count(len(rows), 'request')} of about {size:,} bytes, {ms_text(chain.cycle_ms)} each, where "
            f"the way alone (TCP handshake) takes {ms_text(way_ms)}. So {1000 / chain.cycle_ms:,.1f} requests, "
            f"{chain.bytes_a_second / 1000:,.1f} kB a second get through.{later}"
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
            "each_ms": round(chain.cycle_ms, 3),
            "later_ms": round(chain.ages_ms[-1] - chain.ages_ms[0], 3) if behind else None,
            "way_ms": round(way_ms, 3),
            "bytes_a_second": round(chain.bytes_a_second),
            "since": time_text(rows[0]["ts"]),
        },
    )


_ANSWERED = "protocol = 'kafka' AND ts IS NOT NULL AND ts_response > ts"
_PRODUCE = f"operation = 'Produce' AND {_ANSWERED}"
# The way is asked for of the first request: what is near in both ways is not looked at.
_FAR = f"""SELECT own.flow_id FROM {CONNECTIONS} AS own
    LEFT JOIN exchanges AS first ON first.exchange_id = own.first_exchange_id
    WHERE own.requests >= 50 AND greatest(own.handshake_ms, (epoch_ns(first.ts) - epoch_ns(own.ts)) / 1e6) >= 10"""
RULE = Rule(
    code="KAF335",
    question="waiting",
    name="one-in-flight",
    severity="warning",
    confidence="medium",
    reads={
        "exchanges": (
            "ts", "ts_response", "flow_id", "operation", "request_bytes", "request_file", "request_packet",
            "request_message_id",
        ),
        CONNECTIONS: (
            "ts", "flow_id", "client_address", "client_id", "server_address", "server_port", "handshake_ms",
            "throttled", "observed_until",
        ),
        BATCHES: ("ts", "flow_id", "records_count", "base_timestamp"),
    },
    partition_by=("cluster_id",),
    detect=detect,
    rows={
        "exchanges": f"""{_ANSWERED} AND exchange_id IN (
            SELECT unnest(arg_min(exchange_id, ts, {_MOST_LOOKED_AT}) FILTER (operation = 'Produce')
                || arg_min(exchange_id, ts, {_OPENING}))
            FROM exchanges WHERE {_ANSWERED} AND flow_id IN ({_FAR}) GROUP BY flow_id)""",
        CONNECTIONS: "handshake_ms IS NOT NULL AND throttled = 0 AND coalesce(gap_bytes, 0) = 0",
        BATCHES: f"""exchange_id IN (
            SELECT unnest(arg_min(exchange_id, ts, {_MOST_LOOKED_AT}))
            FROM exchanges WHERE {_PRODUCE} AND flow_id IN ({_FAR}) GROUP BY flow_id)""",
    },
    suspects="""
        SELECT cluster_id FROM r_exchanges GROUP BY cluster_id, flow_id
        HAVING count(*) FILTER (operation = 'Produce') >= 50""",
    signs={"exchanges": "count(*) FILTER (protocol = 'kafka' AND operation = 'Produce') >= 50"},
)  # fmt: skip
