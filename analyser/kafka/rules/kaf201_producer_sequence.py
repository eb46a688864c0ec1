"""KAF201 producer-sequence: a broker refuses a producer because of its sequence numbers or its epoch.

Finds
    Requests of idempotent and transactional producers refused with 45 (out of order), 46 (duplicate), 59 (unknown
    producer), 47 and 90 (fenced), 48 (no such transaction), 120 (abort the transaction). One finding for each client
    and producer.

Why it matters
    These numbers are what makes a producer write each record once and in order. Out of order means that batches before
    are missing: records are lost, or another producer writes with the same id. Fenced means that a newer producer has
    taken over, or that the coordinator ended the transaction after transaction.timeout.ms: all that this one wrote in
    it is aborted.

How it decides
    Refused batches and transactional requests of one client are counted by producer id; a batch that is sent again
    counts once and is stored when the same records are accepted later, under a new epoch too. Repeats of a batch are
    normal, brokers answer them with success. The number that had to come next is that behind the last batch which was
    accepted.
    Out of order, duplicate, unknown (45, 46, 59): critical when records of batches outside transactions were not stored
    later, else a warning from `several` requests on, info below. Fenced and their like (47, 48, 90, 120): a warning
    from `several` on, else info: one fencing is what a hand-over does. KAF206 says when two fence each other in turn.
    Confidence high: errors are on the wire. A gap can hide a batch that is accepted later.

False alarms
    Errors that an application expects: an old instance that is fenced on purpose again and again.

What it cannot tell
    Of requests alone nothing is said: errors stand in answers, and what had to come next is known of accepted batches
    only. In a capture that begins late it is not known until the first one is accepted.

References
    Kafka protocol errors; KIP-98, KIP-360, KIP-588, KIP-890.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, sentence_start, shown
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import (
    client_numbers,
    client_text,
    error_text,
    partitions_of,
    place,
    places_text,
)
from wirewitness.analyser.kafka.rules.producers import (
    REFUSED,
    REFUSED_COLUMNS,
    SEQUENCE_ERRORS,
    batches_of,
    evidence_of,
    records_in,
    transactional_text,
)

EVENTS = "kafka_transactions"
KEYS = ("cluster_id", "client_address", "client_id")
_OUT_OF_ORDER = (45, 46, 59)
_CODES_SQL = f"error_code IN ({', '.join(map(str, SEQUENCE_ERRORS))})"
_FENCED = (
    "Look who else starts with this transactional id (KAF206), and whether the time between two requests of a "
    "transaction is longer than transaction.timeout.ms. The application has to close a fenced producer and abort a "
    "transaction after 120 (TRANSACTION_ABORTABLE)."
)
_ORDER = (
    "Look in the client's log for batches that expired or failed before (delivery.timeout.ms, KAF205), whether the "
    "partition lost its log or its leader (unclean election, topic made anew), and whether somebody else writes with "
    "this producer id."
)


def detect(frames: Frames, *, several: int = 3) -> Iterator[Finding]:
    """One finding for each producer id of this client."""
    batches, events = rows_of(frames[REFUSED]), rows_of(frames[EVENTS])
    producers: dict[Any, tuple[list[Row], list[Row]]] = {}
    for row in batches:
        producers.setdefault(row["transactional_id"] or row["producer_id"], ([], []))[0].append(row)
    for row in events:
        producers.setdefault(row["transactional_id"] or row["producer_id"], ([], []))[1].append(row)
    for own_batches, own_events in producers.values():
        yield _finding(own_batches, own_events, several)


def _finding(batches: Sequence[Row], events: Sequence[Row], several: int) -> Finding:
    rows = sorted([*batches, *events], key=lambda row: row["ts"])
    first, last = rows[0], rows[-1]
    codes = Counter({(row["error_code"], row["error_name"]): 0 for row in rows})
    for row in {row["exchange_id"]: row for row in rows}.values():
        codes[row["error_code"], row["error_name"]] += 1
    refused = batches_of(batches)
    left = [row for row in refused if row["ts_stored"] is None]
    lost = [row for row in left if not row["transactional"] and row["error_code"] in _OUT_OF_ORDER]
    is_order = any(code in _OUT_OF_ORDER for code, _ in codes)
    requests = codes.total()
    severity: Severity = "critical" if lost else "warning" if requests >= several else "info"
    key = {
        "cluster": first["cluster_id"],
        "address": first["client_address"],
        "client_id": first["client_id"],
        "transactional_id": first["transactional_id"],
        "producer_id": last["producer_id"],
    }
    topics = sorted({row["topic"] for row in batches if row["topic"]})
    return RULE.finding(
        severity=severity,
        provisional=True,
        subject=key,
        title=_title(rows, batches, requests),
        sentence=_sentence(rows, batches, codes, refused, left) + _sequence(batches),
        next_step=_ORDER if is_order else _FENCED,
        proof=Proof(first["ts"], last["ts"], evidence_of(rows)),
        numbers={
            **key,
            "clients": [client_numbers(first, transactional_id=first["transactional_id"])],
            "errors": {str(code): number for (code, _), number in codes.items()},
            "error_code": codes.most_common(1)[0][0][0],
            "requests_refused": requests,
            "refused_batches": len(refused),
            "refused_records": records_in(refused),
            "records_lost": records_in(lost),
            "records_not_stored": records_in(left),
            "partitions": partitions_of(batches),
            "topics": topics[:20],
            "where": names_text(topics, 3) or None,
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
        },
    )


def _title(rows: Sequence[Row], batches: Sequence[Row], requests: int) -> str:
    where = f" for {first_of(map(place, batches))}" if batches else ""
    return f"{count(requests, 'request')} refused by sequence or epoch: {client_title(rows[0])}{where}"


def _sentence(
    rows: Sequence[Row], batches: Sequence[Row], codes: Counter[Any], refused: Sequence[Row], left: Sequence[Row]
) -> str:
    first, last = rows[0], rows[-1]
    named = ", ".join(sorted(error_text(code, name) for code, name in codes))
    who = f"{client_text(first)} ({_producer(first)})"
    where = f" for {places_text(batches, 3)}" if batches else ""
    text = (
        f"{sentence_start(who)} was refused {count(codes.total(), 'request')}{where} because of its sequence or epoch, "
        f"{period_text(first['ts'], last['ts'])}. The broker said {named}."
    )
    if not refused:
        return text
    stored = records_in(refused) - records_in(left)
    parts = [f"{count(records_in(left), 'record was', 'records were')} not stored"] if left else []
    parts += [f"{count(stored, 'record was', 'records were')} stored later"] if stored else []
    return f"{text} Of its batches {' and '.join(parts)}."


def _producer(row: Row) -> str:
    named = row["transactional_id"]
    return transactional_text(named) if named else f"producer id {shown(row['producer_id'])}"


def _sequence(batches: Sequence[Row]) -> str:
    """What had to come, and what came."""
    for row in batches:
        expected, came = row["sequence_before"], row["base_sequence"]
        if row["error_code"] in _OUT_OF_ORDER and expected is not None and came is not None and came != expected:
            return f" On {place(row)} sequence {expected} had to come next, and {came} came."
    return ""


RULE = Rule(
    code="KAF201",
    question="refused",
    name="producer-sequence",
    severity="critical",
    confidence="high",
    reads={
        REFUSED: REFUSED_COLUMNS,
        EVENTS: (
            "ts", "exchange_id", "event", "transactional_id", "producer_id", "error_code", "error_name", "flow_id",
            "file", "request_packet",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={REFUSED: _CODES_SQL, EVENTS: f"{_CODES_SQL} AND event <> 'write_txn_markers'"},
)  # fmt: skip
