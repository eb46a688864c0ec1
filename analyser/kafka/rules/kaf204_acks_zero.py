"""KAF204 acks-zero: a producer does not want to know whether its records are stored.

Finds
    Produce requests with acks=0, one finding for each client.

Why it matters
    The broker does not answer them. A record that is refused (too large, no leader, no right) is lost and nobody is
    told; a broker that refuses one closes the connection at most. Throughput is hardly better than with acks=1.

How it decides
    Any batch sent with acks=0. Always info: metrics and traces are sent like this on purpose.
    Confidence high: acks stands in the request.

False alarms
    Records that may be lost.

What it cannot tell
    Of answers alone nothing is said: acks=0 has none. It needs nothing from before the capture.

References
    Kafka's protocol guide: Produce, acks; producer configuration acks.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of
from wirewitness.analyser.kafka.rules.producers import evidence_of, records_in

BATCHES = "kafka_produce_batches"
KEYS = ("cluster_id", "client_address", "client_id")


def detect(frames: Frames, *, batches_least: int = 1) -> Iterator[Finding]:
    """One finding for a client that sends `batches_least` batches or more with acks=0."""
    rows = rows_of(frames[BATCHES])
    if not rows or len(rows) < batches_least:
        return
    first, last = rows[0], rows[-1]
    topics = sorted({row["topic"] or row["topic_id"] or "?" for row in rows})
    key = {"cluster": first["cluster_id"], "address": first["client_address"], "client_id": first["client_id"]}
    yield RULE.finding(
        subject=key,
        title=(
            f"acks=0: {count(records_in(rows), 'record')} without a response, by {client_title(first)} to "
            f"{first_of(topics)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} writes with acks=0 to {names_text(topics, 3)}: "
            f"{count(records_in(rows), 'record')} in {count(len(rows), 'batch', 'batches')}, "
            f"{period_text(first['ts'], last['ts'])}. The broker responds to none of them, so a loss would not be seen."
        ),
        next_step="Set acks=all (or 1) in this producer, unless its records may be lost.",
        proof=Proof(first["ts"], last["ts"], evidence_of(rows)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "topics": topics[:20],
            "partitions": partitions_of(rows),
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "batches": len(rows),
            "records": records_in(rows),
        },
    )


RULE = Rule(
    code="KAF204",
    question="differs",
    name="acks-zero",
    severity="info",
    confidence="high",
    reads={BATCHES: ("ts", "exchange_id", "topic", "topic_id", "partition", "records_count", "file", "request_packet")},
    partition_by=KEYS,
    detect=detect,
    rows={BATCHES: "acks = 0"},
    suspects=AnyRow(BATCHES),
)
