"""KAF208 duplicate-across-epochs: an idempotent producer wrote records twice.

Finds
    Batches that were sent again under a new producer epoch although the first attempt was stored. One finding for each
    client and topic.

Why it matters
    Idempotence holds within one epoch: a broker drops what it has by producer id, epoch and sequence. A client that
    gives up waiting for an answer and bumps its epoch takes that knowledge away from the broker; the records then stand
    twice in the log, and every consumer handles them twice.

How it decides
    The same producer id, partition, number of records, size and time of the first record, under a lower and a higher
    epoch, the later one accepted. The first attempt was stored when it was answered with success, 7 or 20, or, without
    an answer, when offsets around it leave room for all of its records. Batches of transactions are left out.
    critical from `batches_least` batches on. Confidence high where the first attempt was answered, else medium.

False alarms
    An application that sends equal records with equal times on purpose.

What it cannot tell
    Of answers alone nothing is said. Where the first attempt was sent before the capture began it is not found; where
    its answer is missing, only the offsets around it tell whether it was stored.

References
    KIP-98, KIP-360; confluentinc/librdkafka#4953.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, sentence_start, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place, places_text
from wirewitness.analyser.kafka.rules.producers import records_in

REPEATED = "kafka_repeated_batches"
KEYS = ("cluster_id", "topic", "client_address", "client_id")


def detect(frames: Frames, *, batches_least: int = 1) -> Iterator[Finding]:
    """At most one finding for the client."""
    rows = rows_of(frames[REPEATED])
    if len(rows) >= batches_least:
        yield _finding(rows)


def _finding(rows: Sequence[Row]) -> Finding:
    first, again = rows[0], max(row["ts_again"] for row in rows)
    unanswered = sum(row["error_code"] is None for row in rows)
    key = {
        "cluster": first["cluster_id"],
        "topic": first["topic"],
        "address": first["client_address"],
        "client_id": first["client_id"],
    }
    silent = f" ({count(unanswered, 'first attempt')} without a known response)" if unanswered else ""
    return RULE.finding(
        confidence="medium" if unanswered == len(rows) else "high",
        subject=key,
        title=(
            f"{count(records_in(rows), 'record')} written twice by {client_title(first)}: {first_of(map(place, rows))}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} wrote {count(records_in(rows), 'record')} of {places_text(rows, 3)} "
            f"twice, in {count(len(rows), 'batch', 'batches')}, from {clock_text(first['ts'])} on, for "
            f"{seconds_text(again - first['ts'])}. Producer id {shown(first['producer_id'])} stored them under epoch "
            f"{shown(first['producer_epoch'])}{silent} and sent them again under epoch {first['again_epoch']}. On "
            f"{place(first)} those at offset {_offset(first['base_offset'])} are at "
            f"{_offset(first['again_offset'])} again."
        ),
        next_step=(
            "Let consumers drop these offsets, or handle records by key. Look why responses came late (KAF303, KAF302, "
            "request.timeout.ms and delivery.timeout.ms of the producer) and whether the client library has a fix."
        ),
        proof=Proof(first["ts"], again, [one for row in rows for one in _evidence(row)]),
        numbers={
            **key,
            "clients": [client_numbers(first, producer_id=first["producer_id"])],
            "producer_id": first["producer_id"],
            "partitions": partitions_of(rows),
            "where": first["topic"],
            "repeated_batches": len(rows),
            "records_again": records_in(rows),
            "unanswered_first": unanswered,
            "offsets": [[row["base_offset"], row["again_offset"]] for row in rows[:40]],
            "since": time_text(first["ts"]),
            "until": time_text(again),
        },
    )


def _offset(offset: int | None) -> str:
    return "(not known)" if offset is None else str(offset)


def _evidence(row: Row) -> list[Evidence]:
    return [
        Evidence(row["file"], row["request_packet"], row["exchange_id"]),
        Evidence(row["again_file"], row["again_packet"], row["again_exchange_id"]),
    ]


RULE = Rule(
    code="KAF208",
    question="repeated",
    name="duplicate-across-epochs",
    severity="critical",
    confidence="high",
    reads={
        REPEATED: (
            "ts", "exchange_id", "partition", "records_count", "producer_id", "producer_epoch", "error_code",
            "base_offset", "again_exchange_id", "ts_again", "again_epoch", "again_offset", "file", "request_packet",
            "again_file", "again_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
)  # fmt: skip
