"""KAF219 transactional-id-expired: a producer rested for so long that the broker forgot its transactional id.

Finds
    Producers whose next transaction is refused with INVALID_PRODUCER_ID_MAPPING (49) after a pause.

Why it matters
    The producer is of no use any more: its application has to make a new one, and many do not, or drop the records of
    this transaction. It happens to those that write seldom, again and again.

How it decides
    A request of a transaction that is refused with 49, of a transactional id that had success before; the pause between
    both is told.
    warning. Confidence high: the answer says it.

False alarms
    None known.

What it cannot tell
    The broker's setting. An id whose success lies before the capture is told without the pause.

References
    transactional.id.expiration.ms (7 days by default), transaction.remove.expired.transaction.cleanup.interval.ms;
    producer.id.expiration.ms of idempotent producers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

TRANSACTIONS = "kafka_transactions"
_EXPIRED = 49
_OF_TRANSACTIONS = (
    "event IN ('init_producer_id', 'add_partitions_to_txn', 'add_offsets_to_txn', 'txn_offset_commit', 'end_txn') "
    "AND error_code IS NOT NULL"
)


def detect(frames: Frames) -> Iterator[Finding]:
    """One finding for each transactional id."""
    rows = rows_of(frames[TRANSACTIONS])
    refused = [row for row in rows if row["error_code"] == _EXPIRED]
    if refused:
        before = [row for row in rows if row["error_code"] == 0 and row["ts"] < refused[0]["ts"]]
        yield _finding(refused, before[-1] if before else None)


def _finding(refused: Sequence[Row], before: Row | None) -> Finding:
    first, last = refused[0], refused[-1]
    name = printable(first["transactional_id"] or "?", 120)
    rest = None if before is None else first["ts"] - before["ts"]
    pause = "" if rest is None else f", after a pause of {seconds_text(rest)}"
    return RULE.finding(
        title=f"Transactional id expired while its producer rested: {client_title(first)}",
        subject={"cluster": first["cluster_id"], "transactional_id": first["transactional_id"]},
        sentence=f"{sentence_start(client_text(first))} was refused with error {_EXPIRED} "
        f"(INVALID_PRODUCER_ID_MAPPING) {times(len(refused))}, first at {moment_text(first['ts'])}{pause}: the broker "
        f"does not know transactional id {name} any more.",
        next_step="Raise transactional.id.expiration.ms of the brokers above the longest pause of this producer, or "
        "let the application make a new producer and write the transaction again.",
        proof=Proof(
            first["ts"],
            last["ts"],
            [Evidence(row["file"], row["request_packet"], row["exchange_id"]) for row in refused],
        ),
        numbers={
            "cluster": first["cluster_id"],
            "transactional_id": first["transactional_id"],
            "where": first["transactional_id"],
            "error_code": _EXPIRED,
            "refusals": len(refused),
            "pause_s": None if rest is None else round(rest / NS_PER_S, 3),
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "clients": [client_numbers(first)],
        },
    )


RULE = Rule(
    code="KAF219",
    question="refused",
    name="transactional-id-expired",
    severity="warning",
    confidence="high",
    reads={
        TRANSACTIONS: ("ts", "exchange_id", "client_id", "client_address", "error_code", "file", "request_packet"),
    },
    partition_by=("cluster_id", "transactional_id"),
    detect=detect,
    rows={TRANSACTIONS: _OF_TRANSACTIONS},
    suspects=AnyRow(TRANSACTIONS, f"error_code = {_EXPIRED}"),
    signs={TRANSACTIONS: f"count(*) FILTER (error_code = {_EXPIRED}) > 0"},
)  # fmt: skip
