"""KAF220 reads-aborted: a consumer takes records of aborted transactions for data.

Finds
    Consumers with isolation.level=read_uncommitted that are given records of transactions that were aborted, in topics
    that others read committed.

Why it matters
    The producer took these records back. Whoever does not ask for committed ones handles them all the same, and those
    that are written again in the next transaction a second time. It is the default of Kafka's consumer.

How it decides
    By the fact `kafka_aborted_reads`: its Fetch requests say isolation_level 0, and their responses hold batches whose
    transaction was aborted.
    warning where other clients read the topic with isolation_level 1, from `least` such records on; else info.
    Confidence high: requests, offsets and the end of the transaction are on the wire.

False alarms
    Tools that look at everything on purpose.

What it cannot tell
    Whether the application drops them by itself. Of a transaction whose end is not in the capture nothing is said.

References
    isolation.level; KIP-98.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import topic_keys, topic_text

READS = "kafka_aborted_reads"


def detect(frames: Frames, *, least: int = 10) -> Iterator[Finding]:
    """One finding for each client and group."""
    for row in rows_of(frames[READS]):
        yield _finding(row, apart=row["committed_readers"] > 0 and row["aborted_count"] >= least)


def _finding(row: Row, *, apart: bool) -> Finding:
    topic = topic_text(row)
    group = f", group {printable(row['group_id'], 120)}," if row["group_id"] else ""
    others = f" {count(row['committed_readers'], 'other client')} of the topic read committed records only."
    key = {"cluster": row["cluster_id"], "topic": row["topic"], "group": row["group_id"], "client": row["client_id"]}
    return RULE.finding(
        severity="warning" if apart else "info",
        title=f"Reads records of aborted transactions in {first_of([topic])}: {client_title(row)}",
        subject={**key, "address": row["client_address"]},
        sentence=f"{sentence_start(client_text(row))}{group} was given {count(row['aborted_count'], 'record')} of "
        f"aborted transactions among {row['records_count']:,} of {topic}, {period_text(row['ts'], row['ts_last'])}: it "
        f"fetches with isolation_level 0 (read_uncommitted).{others if apart else ''}",
        next_step="Set isolation.level=read_committed of this consumer, unless it is to see what was aborted.",
        proof=Proof(row["ts"], row["ts_last"], evidence_of_ids((row["exchange_id"], row["last_exchange_id"]))),
        numbers={
            **topic_keys(row),
            "where": row["topic"],
            "group": row["group_id"],
            "transactional_id": row["transactional_id"],
            "aborted": row["aborted_count"],
            "records": row["records_count"],
            "committed_readers": row["committed_readers"],
            "since": time_text(row["ts"]),
            "until": time_text(row["ts_last"]),
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="KAF220",
    question="differs",
    name="reads-aborted",
    severity="warning",
    confidence="high",
    reads={
        READS: (
            "ts", "ts_last", "exchange_id", "client_id", "client_address", "group_id", "aborted_count", "records_count",
            "committed_readers", "transactional_id", "last_exchange_id",
        ),
    },
    partition_by=("cluster_id", "topic"),
    detect=detect,
)  # fmt: skip
