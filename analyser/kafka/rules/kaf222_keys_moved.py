"""KAF222 keys-moved: from one moment on the keys of a topic go to other partitions than before.

Finds
    Topics whose writers put the same keys into other partitions since partitions were added, or since their partitioner
    is another one.

Why it matters
    Records of one key are in order within a partition only. Now the older ones are in one partition and the newer ones
    in another: a consumer may handle the newer first, two members handle one key at the same time, tables and joins
    that are kept by partition lack what was there, and compaction never removes the last value at the old place.

How it decides
    By keys of first records (`kafka_moved_keys`): of those that a client wrote both before and after the moment,
    `least` and `share` of all went to another partition and stayed there; at most `strays` of them went to the old one
    again or to more than two. Partitions were added where numbers are written to that were not before, or where the
    change is in the capture, at most 10 minutes before (twice the usual metadata.max.age.ms): then it is named.

False alarms
    Topics whose readers care for no order, and keep nothing by key.

What it cannot tell
    Compressed batches do not show their keys, and of a batch only the first record's is looked at.

References
    kafka-topics.sh --alter --partitions; partitioner.class, partitioner of librdkafka; KIP-480.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import NS_PER_S, clock_text, time_text
from wirewitness.analyser.base.titles import first_of
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.names import client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import evidence_of, topic_keys, topic_text

MOVED, CHANGES = "kafka_moved_keys", "kafka_admin_changes"
_LEAST = 10
_LEARNT_NS = 600 * NS_PER_S
_SHOWN, _MOST = 3, 20


def detect(frames: Frames, *, least: int = _LEAST, share: float = 0.3, strays: float = 0.05) -> Iterator[Finding]:
    """At most one finding for a topic."""
    moved = [
        row
        for row in rows_of(frames[MOVED])
        if row["moved_count"] >= max(least, share * row["keys_count"])
        and row["late_count"] + row["unsteady_count"] <= strays * row["keys_count"]
    ]
    if moved:
        changes = [row for row in rows_of(frames[CHANGES]) if row["ts"] <= max(one["ts"] for one in moved)]
        yield _finding(moved, changes[-1] if changes else None)


def _finding(moved: Sequence[Row], change: Row | None) -> Finding:
    first = min(moved, key=lambda row: row["ts"])
    until = max(row["ts_last"] for row in moved)
    topic = topic_text(first)
    keys, all_keys = max((row["moved_count"], row["keys_count"]) for row in moved)
    return RULE.finding(
        title=f"Keys go to other partitions since {clock_text(first['ts'])}: {first_of([topic])}",
        subject=topic_keys(first),
        sentence=(
            f"Since {clock_text(first['ts'])} {keys} of {count(all_keys, 'key')} of {topic} go to other partitions "
            f"than before. {_why(moved, change)} Records of these keys are in two partitions now, and no longer in "
            f"order across that time. They are written by {names_text([client_text(row) for row in moved], _SHOWN)}."
        ),
        next_step=(
            "Let readers handle what is in the old partitions before they go on where order counts. For keyed topics "
            "make a new topic with more partitions and write the records anew, instead of adding partitions; give all "
            "writers one partitioner."
        ),
        proof=Proof(first["ts"], until, evidence_of(moved)),
        numbers={
            **topic_keys(first),
            "where": first["topic"],
            "topics": [first["topic"]],
            "moved": keys,
            "keys": all_keys,
            "partitions_added": _added(moved, change),
            "changed_by": client_numbers(change) if change is not None else None,
            "since": time_text(first["ts"]),
            "clients": [client_numbers(row) for row in moved][:_MOST],
        },
    )


def _added(moved: Sequence[Row], change: Row | None) -> bool:
    """By what was written, or by the change: other keys may have gone to the new partitions before."""
    known = change is not None and change["ts"] >= min(row["ts"] for row in moved) - _LEARNT_NS
    return known or any((row["highest_after"] or 0) > (row["highest_before"] or 0) for row in moved)


def _why(moved: Sequence[Row], change: Row | None) -> str:
    if not _added(moved, change):
        return "No partition was written to that was not before: the partitioner is another one."
    by = f" by {client_text(change)} at {clock_text(change['ts'])}" if change is not None else ""
    highest = max(row["highest_after"] or 0 for row in moved)
    return f"Partitions were added{by}, up to number {highest}: where a key goes depends on how many there are."


RULE = Rule(
    code="KAF222",
    question="differs",
    name="keys-moved",
    severity="warning",
    confidence="high",
    reads={
        MOVED: (
            "ts", "ts_last", "exchange_id", "client_id", "client_address", "keys_count", "moved_count", "late_count",
            "unsteady_count", "highest_before", "highest_after", "file", "request_packet",
        ),
        CHANGES: ("ts", "client_id", "client_address", "resource_name"),
    },
    partition_by=("cluster_id", "topic"),
    keys={CHANGES: {"topic": "resource_name"}},
    detect=detect,
    rows={
        CHANGES: """operation = 'CreatePartitions' AND resource_type = 'topic' AND coalesce(error_code, 0) = 0
            AND NOT coalesce(validate_only, false) AND ts IS NOT NULL"""
    },
    suspects=AnyRow(MOVED, f"moved_count >= {_LEAST}"),
)  # fmt: skip
