"""KAF215 one-broker-slow: of the brokers that a producer writes to, one responds many times later than all others.

Finds
    Brokers whose responses to Produce that wait for no replica come late for a client that gets quick ones from at
    least two others at the same time.

Why it matters
    Every record of the partitions that this broker leads waits, and a producer's buffer fills with them: in the end it
    waits for all partitions. A mean over all brokers hides it. So does a comparison with the broker's own past, where
    it was slow all the time.

How it decides
    Of each broker that got `requests_least` such requests of the client: the latency that a tenth of them exceeds. That
    of one broker is `slow_ms` at least, and `times_others` times that of each other one, two or more. No replica is
    waited for with acks=1, nor with acks=all where Metadata says that the topic has one replica. A broker that is far
    away is late by the same time each time: the latency is also `times_others` times what its quickest responses took.
    Its batches are not larger than those of the others (`bytes_times`), no quota made the client wait, late responses
    come in five different seconds at least, and `unexplained_least` more requests were late than segments were sent
    again, for the way may lose packets.
    Confidence high: clients, requests and time are the same, only the broker differs.

False alarms
    A broker that leads far busier partitions: it is slow, and not by its own fault.

What it cannot tell
    Whether its disk, its processor or its network card is slow. Where acks=all waits for replicas, and of acks=0,
    nothing is said. Of one direction alone nothing is said.

References
    The broker's request metrics (RequestQueueTimeMs, LocalTimeMs); KAF302 (a broker that became slow).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, ms_text, period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import CONNECTIONS, client_keys
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

BATCHES, EXCHANGES, TOLD = "kafka_produce_batches", "exchanges", "kafka_partitions"
_LEAST, _SLOW_MS, _TIMES = 50, 100.0, 10.0
_SECONDS = 5
_MOST = 20


class _Broker(NamedTuple):
    """A broker's requests of one client: sorted by latency; the median size of their batches."""

    rows: Sequence[Row]
    size: float

    def latency(self, part: float) -> float:
        """So large a part of the requests took no longer, in ms."""
        return float(self.rows[min(int(part * len(self.rows)), len(self.rows) - 1)]["latency_ms"])

    @property
    def p90(self) -> float:
        return self.latency(0.9)


def detect(
    frames: Frames,
    *,
    requests_least: int = _LEAST,
    slow_ms: float = _SLOW_MS,
    times_others: float = _TIMES,
    bytes_times: float = 3.0,
    unexplained_least: int = 10,
) -> Iterator[Finding]:
    """At most one finding for the client."""
    sizes: dict[str, int] = {}
    for row in rows_of(frames[BATCHES]):
        sizes[row["exchange_id"]] = sizes.get(row["exchange_id"], 0) + (row["batch_bytes"] or 0)
    again = Counter[str]()
    for row in rows_of(frames[CONNECTIONS]):
        again[server_text(row)] += row["retransmitted_segments"] or 0
    servers: dict[str, list[Row]] = {}
    for row in rows_of(frames[EXCHANGES]):
        if row["exchange_id"] in sizes:
            servers.setdefault(server_text(row), []).append(row)
    brokers = [
        _Broker(sorted(rows, key=lambda row: row["latency_ms"]), median(sizes[row["exchange_id"]] for row in rows))
        for rows in servers.values()
        if len(rows) >= requests_least
    ]
    if len(brokers) < 3:
        return
    *others, slow = sorted(brokers, key=lambda one: one.p90)
    usual = max(others[-1].p90, slow.latency(0.05), 1e-3)
    late = [row for row in slow.rows if row["latency_ms"] >= max(slow_ms, times_others * usual)]
    if (
        slow.p90 >= max(slow_ms, times_others * usual)
        and slow.size <= bytes_times * median(one.size for one in others)
        and len({row["ts"] // NS_PER_S for row in late}) >= _SECONDS
        and len(late) >= unexplained_least + again[server_text(slow.rows[0])]
    ):
        yield _finding(slow, others, late)


def _finding(slow: _Broker, others: Sequence[_Broker], late: Sequence[Row]) -> Finding:
    first, server = slow.rows[0], server_text(slow.rows[0])
    since, until = min(row["ts"] for row in late), max(row["ts"] for row in late)
    beside = names_text([f"{server_text(one.rows[0])} {ms_text(one.p90)}" for one in others], 4)
    return RULE.finding(
        title=f"{server} is slow, the other brokers are not: Produce of {client_title(first)}",
        subject={"cluster": first["cluster_id"], "server": server, "client": first["client_id"]},
        sentence=f"{sentence_start(server)} responds late to Produce of {client_text(first)}: a tenth of "
        f"{count(len(slow.rows), 'request')} took {ms_text(slow.p90)} or more, {period_text(since, until)}, the "
        f"longest {ms_text(slow.latency(1.0))}; of other brokers: {beside}. It waits for no replica with "
        "these: this broker is slow.",
        next_step="Look at this broker's disks, processor time (steal, throttling) and request metrics; move leaders "
        "away from it (kafka-leader-election.sh, kafka-reassign-partitions.sh) until it is well.",
        proof=Proof(
            since,
            until,
            [Evidence(row["request_file"], row["request_packet"], row["exchange_id"]) for row in late[-_MOST:]],
        ),
        numbers={
            **client_keys(first),
            "operation": "Produce",
            "server": server,
            "where": server,
            "requests": len(slow.rows),
            "p90_ms": round(slow.p90, 3),
            "longest_ms": round(slow.latency(1.0), 3),
            "others_p90_ms": {server_text(one.rows[0]): round(one.p90, 3) for one in others[:_MOST]},
            "since": time_text(since),
            "until": time_text(until),
            "clients": [client_numbers(first)],
        },
    )


_KEYS = ("cluster_id", "client_address", "client_id")
RULE = Rule(
    code="KAF215",
    question="waiting",
    name="one-broker-slow",
    severity="warning",
    confidence="high",
    reads={
        BATCHES: ("ts", "exchange_id", "batch_bytes"),
        EXCHANGES: (
            "ts", "exchange_id", "server_address", "server_port", "latency_ms", "request_file", "request_packet",
        ),
        CONNECTIONS: ("ts", "server_address", "server_port", "retransmitted_segments"),
    },
    asks=(TOLD,),
    partition_by=_KEYS,
    detect=detect,
    rows={
        BATCHES: f"""
            batch_bytes IS NOT NULL AND error_code = 0 AND (acks = 1 OR acks = -1 AND topic IN (
                SELECT topic FROM {TOLD} WHERE replicas IS NOT NULL GROUP BY topic HAVING max(len(replicas)) = 1))""",
        EXCHANGES: """
            protocol = 'kafka' AND operation = 'Produce' AND latency_ms IS NOT NULL AND server_address IS NOT NULL
            AND coalesce(throttle_time_ms, 0) = 0""",
    },
    suspects=f"""
        SELECT {", ".join(_KEYS)}
        FROM (SELECT {", ".join(_KEYS)}, server_address, server_port, quantile_disc(latency_ms, 0.9) AS p90
              FROM r_{EXCHANGES} GROUP BY ALL HAVING count(*) >= {_LEAST})
        GROUP BY ALL HAVING count(*) >= 3 AND max(p90) >= {_SLOW_MS}""",
)  # fmt: skip
