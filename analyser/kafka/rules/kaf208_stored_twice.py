"""KAF208 stored-twice: a producer wrote records twice.

Finds
    Batches that were sent again under a new producer epoch, or without a producer id, although the first attempt was
    stored. One finding for each client and topic, with and without idempotence.

Why it matters
    The records stand twice in the log, and every consumer handles them twice. Without idempotence each retry of a batch
    that was stored does that. Idempotence holds within one epoch: a broker drops what it has by producer id, epoch and
    sequence. A client that gives up waiting for an answer and bumps its epoch takes that knowledge away from it.

How it decides
    The same partition, number of records, size and time of the first record, the later one accepted. With idempotence:
    the same producer id under a lower and a higher epoch. Without: the same client (newer records may stand behind,
    where the first record says the same), and a reason to send it again: the first attempt was refused with 7 or 20, or
    had no answer by then, which came never (it goes on over another connection, or a second later) or too late (a
    second at least lies between). Over a slow link the answer is too late for the client only: then it had opened the
    connection on which the same content (content_crc) comes again before that answer, and closed the first one within a
    second behind it. The first attempt was stored when it was answered with success, 7 or 20, or, without an answer,
    when offsets around it leave room for all of its records. Batches of transactions are left out.
    critical with idempotence, which promises that this does not happen, else warning; from `batches_least` batches on.
    Confidence high where the first attempt was answered, else medium.

False alarms
    An application that sends equal records with equal times on purpose.

What it cannot tell
    Of answers alone nothing is said. Where the first attempt was sent before the capture began it is not found; where
    its answer is missing, only the offsets around it tell whether it was stored. Message formats 0 and 1 (before
    Kafka 0.11) are not looked at without a producer id.

References
    KIP-98, KIP-360; confluentinc/librdkafka#4953. enable.idempotence, retries, request.timeout.ms of producers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from wirewitness.analyser.base.times import clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, sentence_start, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, partitions_of, place, places_text
from wirewitness.analyser.kafka.rules.producers import records_in

REPEATED = "kafka_repeated_batches"
NO_PRODUCER_ID = -1
_RETRIED = {7: "7 REQUEST_TIMED_OUT", 20: "20 NOT_ENOUGH_REPLICAS_AFTER_APPEND"}
_LOOK = (
    "Let consumers drop these offsets, or handle records by key. Look why responses came late (KAF303, KAF302, "
    "request.timeout.ms and delivery.timeout.ms of the producer) and whether the client library has a fix."
)
_USE_IDEMPOTENCE = (
    "Set enable.idempotence=true (acks=all) in this producer: brokers then drop a batch that they have. Let consumers "
    "drop these offsets, or handle records by key. Look why responses were missing or late (KAF303, KAF302, "
    "request.timeout.ms of the producer)."
)
KEYS = ("cluster_id", "topic", "client_address", "client_id")


def detect(frames: Frames, *, batches_least: int = 1) -> Iterator[Finding]:
    """At most two findings for the client: with and without idempotence."""
    rows = rows_of(frames[REPEATED])
    for plain in (False, True):
        own = [row for row in rows if (row["producer_id"] == NO_PRODUCER_ID) == plain]
        if len(own) >= batches_least:
            found = _finding(own, _led_to(own) if plain else _epochs(own), _USE_IDEMPOTENCE if plain else _LOOK)
            yield replace(found, severity="warning") if plain else found


def _epochs(rows: Sequence[Row]) -> str:
    first, unanswered = rows[0], sum(row["error_code"] is None for row in rows)
    silent = f" ({count(unanswered, 'first attempt')} without a known response)" if unanswered else ""
    return (
        f"Producer id {shown(first['producer_id'])} stored them under epoch {shown(first['producer_epoch'])}{silent} "
        f"and sent them again under epoch {first['again_epoch']}."
    )


def _led_to(rows: Sequence[Row]) -> str:
    """Why a client without a producer id sent the batches again."""
    why = Counter(_reason(row) for row in rows)
    moved = sum(row["again_flow_id"] != row["flow_id"] for row in rows)
    where = f", {moved} of them on another connection" if moved else ""
    waited = sorted(row["ts_again"] - row["ts"] for row in rows)
    reasons = names_text([f"{n} {text}" for text, n in why.items()])
    return (
        f"Without a producer id the broker cannot know a retry: of the first attempts {reasons}; sent again after "
        f"{seconds_text(waited[len(waited) // 2])} (median){where}."
    )


def _reason(row: Row) -> str:
    if row["error_code"]:
        return f"got {_RETRIED[row['error_code']]}"
    if row["ts_response"] is None:
        return "had no response"
    is_given_up = row["ts_response"] < row["ts_again"]
    return "had been given up when the response came" if is_given_up else "got the response too late"


def _finding(rows: Sequence[Row], told: str, next_step: str) -> Finding:
    first, again = rows[0], max(row["ts_again"] for row in rows)
    unanswered = sum(row["error_code"] is None for row in rows)
    key = {
        "cluster": first["cluster_id"],
        "topic": first["topic"],
        "address": first["client_address"],
        "client_id": first["client_id"],
    }
    return RULE.finding(
        confidence="medium" if unanswered == len(rows) else "high",
        subject=key,
        title=(
            f"{count(records_in(rows), 'record')} written twice by {client_title(first)}: {first_of(map(place, rows))}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} wrote {count(records_in(rows), 'record')} of {places_text(rows, 3)} "
            f"twice, in {count(len(rows), 'batch', 'batches')}, from {clock_text(first['ts'])} on, for "
            f"{seconds_text(again - first['ts'])}. {told} On "
            f"{place(first)} those at offset {_offset(first['base_offset'])} are at "
            f"{_offset(first['again_offset'])} again."
        ),
        next_step=next_step,
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
    name="stored-twice",
    severity="critical",
    confidence="high",
    reads={
        REPEATED: (
            "ts", "exchange_id", "partition", "records_count", "producer_id", "producer_epoch", "error_code",
            "ts_response", "base_offset", "flow_id", "again_flow_id", "again_exchange_id", "ts_again", "again_epoch",
            "again_offset", "file", "request_packet", "again_file", "again_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
)  # fmt: skip
