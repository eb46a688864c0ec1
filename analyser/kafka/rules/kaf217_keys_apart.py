"""KAF217 keys-apart: producers of one topic put the same keys into different partitions.

Finds
    Writers of a topic that choose partitions in different ways, as clients with different default partitioners do.

Why it matters
    All records of a key are to be in one partition: readers rely on it for order, joins and state, and a compacted
    topic keeps two values of one key. Nothing fails; results are wrong now and then.

How it decides
    By the fact `kafka_key_places`: clients that each keep a key in one partition, and that wrote at the same time. Of
    `least` keys that others write too, `share` lie in another partition than theirs.
    Confidence high: the keys and partitions are in the requests.

False alarms
    Partitions that are chosen on purpose, by writer or region, where readers know it.

What it cannot tell
    Which of two is right. Keys are those of first records of uncompressed batches.

References
    partitioner of librdkafka (consistent_random: CRC-32) and of its bindings, partitioner.class of the Java client
    (murmur2); KIP-480, KIP-794.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text, who_text
from wirewitness.analyser.kafka.rules.producers import topic_keys, topic_subject, topic_text

PLACES = "kafka_key_places"
_SHOWN = 3


def detect(frames: Frames, *, least: int = 10, share: float = 0.3) -> Iterator[Finding]:
    """One finding for each writer that differs from the others."""
    rows = rows_of(frames[PLACES])
    others = [row for row in rows if row["apart_count"] < share * row["keys_count"]]
    for row in rows:
        if row["keys_count"] >= least and row["apart_count"] >= share * row["keys_count"]:
            yield _finding(row, others)


def _finding(row: Row, others: list[Row]) -> Finding:
    topic = topic_text(row)
    names = [who_text(one["client_address"], one["client_id"]) for one in others[:_SHOWN]]
    told = ", ".join(names) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
    return RULE.finding(
        title=f"Keys lie in other partitions than those of other writers: {client_title(row)} in {first_of([topic])}",
        subject=topic_subject(row),
        sentence=f"{sentence_start(client_text(row))} puts {row['apart_count']} of {count(row['keys_count'], 'key')} "
        f"of {topic} into other partitions than {told or 'the other writers'}: they choose them in different ways.",
        next_step="Give all writers of the topic the same partitioner (librdkafka: partitioner=murmur2_random is what "
        "Java clients do), and write the records that lie elsewhere anew.",
        proof=Proof(row["ts"], row["ts_last"], [Evidence(row["file"], row["request_packet"], row["exchange_id"])]),
        numbers={
            **topic_keys(row),
            "where": row["topic"],
            "keys": row["keys_count"],
            "apart": row["apart_count"],
            "writers": row["writers_count"],
            "clients": [client_numbers(row), *(client_numbers(one) for one in others[:_SHOWN])],
        },
    )


RULE = Rule(
    code="KAF217",
    question="differs",
    name="keys-apart",
    severity="warning",
    confidence="high",
    reads={
        PLACES: (
            "ts", "ts_last", "exchange_id", "client_id", "client_address", "keys_count", "apart_count", "writers_count",
            "file", "request_packet",
        ),
    },
    partition_by=("cluster_id", "topic"),
    detect=detect,
    suspects=AnyRow(PLACES, "apart_count > 0"),
)  # fmt: skip
