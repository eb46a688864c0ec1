"""KAF130 handler-paused: a member stood still with records in hand, while its heartbeats went on.

Finds
    Members that committed nothing for many of their usual gaps although they had been given records, and then went on.

Why it matters
    One record that takes long, or a call that hangs, holds up all partitions of the member. The group looks healthy,
    since heartbeats come from a thread of their own; past max.poll.interval.ms the member is thrown out as well.

How it decides
    By the fact `kafka_member_pauses`: two commits of one member in one generation are five of its usual gaps apart and
    twice as long as any other two, at least three heartbeats were answered between, and the member had been given
    records beyond its commits. It fires where, at the end of the pause, at least `steps` commits' worth of records
    were behind. Warning from `gaps` of its usual gaps on, else info. A pause that lasts to the end of the capture is
    KAF107.

False alarms
    An application that pauses on purpose (pause and resume), or that commits by size of its batches.

What it cannot tell
    Which record it was, where the next commit moves several partitions. Of requests alone
    nothing is said, since nobody knows what was given.

References
    KafkaConsumer: max.poll.interval.ms, pause; KIP-62 (heartbeats of a thread of their own).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import (
    group_text,
    partition_text,
    short_who,
    title_text,
    who_numbers,
    who_text,
)

PAUSES = "kafka_member_pauses"
_STEPS = 5


def detect(frames: Frames, *, steps: int = _STEPS, gaps: float = 10.0) -> Iterator[Finding]:
    """One finding per member: its longest pause."""
    longest: dict[str, Row] = {}
    for row in rows_of(frames[PAUSES]):
        if (row["records_behind"] or row["records_in_hand"] or 0) >= steps:
            before = longest.get(row["member_id"])
            longest[row["member_id"]] = row if before is None or _lasts(row) > _lasts(before) else before
    for row in longest.values():
        yield _finding(row, "warning" if _lasts(row) >= gaps * row["usual_gap_ms"] * NS_PER_MS else "info")


def _lasts(row: Row) -> int:
    return int(row["ts_last"] - row["ts"])


def _finding(row: Row, severity: Severity) -> Finding:
    key = {"cluster": row["cluster_id"], "group": row["group_id"], "client": row["client_id"]}
    client = (row["client_address"], row["client_id"])
    known = row["partition"] is not None
    where = partition_text(row["topic"], row["partition"]) if known else count(row["partitions"], "partition")
    told = known and row["committed_offset"] is not None
    first = f": the first record that waited is {row['committed_offset']} of {where}" if told else ""
    behind = row["records_behind"]
    waits = f", and {count(behind, 'record')} waited at the end" if behind is not None else ""
    return RULE.finding(
        severity=severity,
        subject=key,
        title=title_text(
            f"Handled nothing for {seconds_text(_lasts(row))} while heartbeats went on: {{}} in group {{}}",
            short_who(*client), row["group_id"] or "?",
        ),
        sentence=(
            f"{group_text(row['group_id'])}: {who_text(*client, row['member_id'])} committed nothing of {where} "
            f"for {seconds_text(_lasts(row))} from {moment_text(row['ts'])} on, while "
            f"{count(row['heartbeats'], 'heartbeat')} went on; before, it did every "
            f"{seconds_text(row['usual_gap_ms'] * 1e6)}. It had "
            f"{count(row['records_in_hand'], 'record')} in hand{waits}."
        ),
        next_step=(
            f"Look in the log of the application what it did then{first}. Give calls of the handler a time limit, and "
            "work that takes long a queue of its own."
        ),
        proof=Proof(
            row["ts"],
            row["ts_last"],
            [Evidence(row["file"], row["request_packet"], row["exchange_id"]),
             Evidence(None, None, row["next_exchange_id"])],
        ),
        numbers={
            **key,
            "client_id": row["client_id"],
            "member": row["member_id"],
            "where": where,
            "committed_offset": row["committed_offset"],
            "seconds": round(_lasts(row) / NS_PER_S, 3),
            "usual_gap_ms": round(row["usual_gap_ms"], 1),
            "heartbeats": row["heartbeats"],
            "records_in_hand": row["records_in_hand"],
            "records_behind": behind,
            "since": time_text(row["ts"]),
            "until": time_text(row["ts_last"]),
            "clients": [who_numbers(*client, row["member_id"])],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF130",
    question="stalled",
    name="handler-paused",
    severity="warning",
    confidence="high",
    reads={
        PAUSES: (
            "ts", "ts_last", "member_id", "client_id", "client_address", "topic", "partition", "committed_offset",
            "partitions", "usual_gap_ms", "heartbeats", "records_in_hand", "records_behind", "exchange_id",
            "next_exchange_id", "file", "request_packet",
        ),
    },
    partition_by=("cluster_id", "group_id"),
    detect=detect,
    rows={PAUSES: "usual_gap_ms IS NOT NULL AND records_in_hand IS NOT NULL"},
)  # fmt: skip
