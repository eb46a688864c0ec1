"""KAF210 transaction-per-record: a producer makes a transaction of its own for each record.

Finds
    Producers that commit transactions of one record, many a second.

Why it matters
    Each transaction costs AddPartitionsToTxn, EndTxn and a marker in each partition beside its record, and readers of
    committed records wait for each marker. What could be one batch takes four round trips, and the log doubles.

How it decides
    By the fact `kafka_transaction_spans`: `transactions` committed ones of one transactional id or more, half of them
    with `records` record at most, `per_second` a second or more while it was at work.

False alarms
    An application that needs each record visible by itself, at a high rate.

What it cannot tell
    Why the application does so. Of transactions whose batches are not in the capture the records are not known.

References
    KafkaProducer: beginTransaction, commitTransaction; KIP-98; commit.interval.ms of Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from wirewitness.analyser.base.times import NS_PER_S, period_text, time_text
from wirewitness.analyser.base.titles import client_title
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text

SPANS = "kafka_transaction_spans"
_TRANSACTIONS, _RECORDS, _PER_SECOND = 100, 1, 10


def detect(
    frames: Frames, *, transactions: int = _TRANSACTIONS, records: int = _RECORDS, per_second: float = _PER_SECOND
) -> Iterator[Finding]:
    """At most one finding for a transactional id."""
    rows = rows_of(frames[SPANS])
    if len(rows) < transactions or median(row["records_count"] for row in rows) > records:
        return
    lasts = max(rows[-1]["ts"] - rows[0]["ts"], 1)
    if len(rows) >= per_second * lasts / NS_PER_S:
        yield _finding(rows, len(rows) * NS_PER_S / lasts)


def _finding(rows: Sequence[Row], rate: float) -> Finding:
    first, last = rows[0], rows[-1]
    name = printable(first["transactional_id"] or "?", 80)
    records = sum(row["records_count"] for row in rows)
    key = {"cluster": first["cluster_id"], "transactional_id": first["transactional_id"]}
    return RULE.finding(
        subject=key,
        title=f"A transaction for each record: {client_title(first)}, {rate:,.0f} a second",
        sentence=(
            f"{sentence_start(client_text(first))} committed {count(len(rows), 'transaction')} with "
            f"{count(records, 'record')} (transactional id {name}), {period_text(first['ts'], last['ts'])}: a "
            f"transaction for each record, {rate:,.1f} a second."
        ),
        next_step=(
            "Commit a transaction for a batch of records or for some time (Kafka Streams: commit.interval.ms), and not "
            "for each record."
        ),
        proof=Proof(
            first["ts"],
            last["ts"],
            [Evidence(row["file"], row["request_packet"], row["exchange_id"]) for row in (*rows[:8], *rows[-8:])],
        ),
        numbers={
            **key,
            "client_id": last["client_id"],
            "transactions": len(rows),
            "records": records,
            "per_second": round(rate, 1),
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
            "clients": [client_numbers(last)],
        },
    )


RULE = Rule(
    code="KAF210",
    question="growing",
    name="transaction-per-record",
    severity="warning",
    confidence="high",
    reads={SPANS: ("ts", "client_id", "client_address", "records_count", "exchange_id", "file", "request_packet")},
    partition_by=("cluster_id", "transactional_id"),
    detect=detect,
    rows={SPANS: "outcome = 'committed' AND records_count > 0 AND transactional_id IS NOT NULL"},
    suspects=f"""
        SELECT cluster_id, transactional_id FROM r_{SPANS} GROUP BY ALL
        HAVING count(*) >= {_TRANSACTIONS} AND median(records_count) <= {_RECORDS}""",
)
