"""KAF343 partition-left-out: a group reads a topic, but for some of its partitions.

Finds
    Partitions that are written and that nobody of a group reads, while its members read the other ones of the topic.

Why it matters
    What is written there is never handled, and no tool shows it: the group has no stored offset and so no lag there.

How it decides
    In the time in which the group was seen reading the topic (`kafka_fetch_ranges`), `batches_least` batches or more
    went to the partition; nobody of the group fetched it, committed it or asked for its offset. Then one of these
    holds. The group's assignment, as its leader sent it or a description told it, names partitions of the topic and
    never this one: it is newer than what the leader knows, or its assignor leaves it out. Or the readers are no members
    (assign), more partitions are read than left out, and somebody at another address than theirs writes it, so that
    more than one host was captured. Provisional: members learn of new partitions when they ask for metadata again.
    Confidence high by an assignment, else medium.

False alarms
    Applications that leave partitions to another group on purpose; clients that assign partitions by hand, of which
    one that reads the rest was not captured.

What it cannot tell
    Of answers alone nothing is said. Where the assignment of a group of members was not captured, another member may
    read the partition: nothing is said. Nor of partitions that nobody writes.

References
    metadata.max.age.ms of consumers; KafkaConsumer.assign; kafka-topics.sh --alter --partitions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import first_of, short
from wirewitness.analyser.base.words import count, names_text
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import (
    client_numbers,
    client_text,
    group_text,
    partition_names,
    partition_text,
)

BATCHES, RUNS, COMMITS, ASKED = (
    "kafka_produce_batches", "kafka_fetch_ranges", "kafka_offset_commits", "kafka_offset_fetches",
)  # fmt: skip
OWNERSHIP = "kafka_ownership"
KEYS = ("cluster_id", "topic")
_LEAST = 5
# What tells the parts of all members at once.
_PLANS = ("sync_leader", "describe")
_LOOPBACK = ("127.", "::1")
_MOST = 20


def detect(frames: Frames, *, batches_least: int = _LEAST) -> Iterator[Finding]:
    """At most one finding for a group."""
    written = _by(frames, BATCHES, "partition")
    owned, groups = _by(frames, OWNERSHIP, "group_id"), _by(frames, RUNS, "group_id")
    handled = {
        (row["group_id"], row["partition"])
        for table in (RUNS, COMMITS, ASKED, OWNERSHIP)
        for row in rows_of(frames[table])
    }
    for group, runs in groups.items():
        since, until = min(run["ts"] for run in runs), max(run["ts_last"] for run in runs)
        left_out = {
            partition: own
            for partition, rows in written.items()
            if (group, partition) not in handled and len(own := _between(rows, since, until)) >= batches_least
        }
        plan = [row for row in owned.get(group, ()) if row["source"] in _PLANS and not row["shared"]]
        if left_out and (plan or _is_by_hand(runs, left_out)):
            yield _finding(runs, left_out, bool(plan))


def _by(frames: Frames, table: str, name: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows_of(frames[table]):
        if row[name] is not None:
            found.setdefault(row[name], []).append(row)
    return found


def _between(rows: Sequence[Row], since: int, until: int) -> Sequence[Row]:
    times = [row["ts"] for row in rows]
    return rows[bisect_left(times, since) : bisect_right(times, until)]


def _is_by_hand(runs: Sequence[Row], left_out: Mapping[int, Sequence[Row]]) -> bool:
    """No reader is a member, most is read, and more than the hosts of the readers was captured."""
    if any(run["member_id"] for run in runs) or len({run["partition"] for run in runs}) <= len(left_out):
        return False
    readers = {run["client_address"] for run in runs}
    writers = {row["client_address"] for rows in left_out.values() for row in rows}
    return bool(writers - readers) or all(str(one).startswith(_LOOPBACK) for one in readers)


def _finding(runs: Sequence[Row], left_out: Mapping[int, Sequence[Row]], by_plan: bool) -> Finding:
    cluster, topic, group = (runs[0][name] for name in ("cluster_id", "topic", "group_id"))
    rows = sorted((row for own in left_out.values() for row in own), key=lambda row: row["ts"])
    records = sum(row["records_count"] or 0 for row in rows)
    read = sorted({run["partition"] for run in runs})
    readers = {(run["client_address"], run["client_id"]): run for run in runs}
    key = {"cluster": cluster, "group": group, "topic": topic}
    names = [partition_text(topic, partition) for partition in sorted(left_out)]
    why = (
        f"No member is assigned {'it' if len(names) == 1 else 'them'}: the assignment of the group's leader has other "
        "partitions of the topic only."
        if by_plan
        else f"Its readers are no members, but take partitions by hand ({names_text(list(map(str, read)), 5)})."
    )
    return RULE.finding(
        confidence="high" if by_plan else "medium",
        provisional=True,
        title=f"Nobody of group {short(group)} reads {first_of(names)}: {count(records, 'record')} written",
        subject=key,
        sentence=(
            f"{group_text(group)} reads {count(len(read), 'partition')} of the topic and never {names_text(names, 3)}, "
            f"where {count(records, 'record')} were written {period_text(rows[0]['ts'], rows[-1]['ts'])}. {why} It "
            f"reads with {names_text([client_text(run) for run in readers.values()], 3)}."
        ),
        next_step=(
            "Look whether partitions were added: members learn of them after metadata.max.age.ms, or when they are "
            "restarted. If not, look at the group's assignor (partition.assignment.strategy), if it is one of its own. "
            "Where partitions are given by hand, list them from the topic instead of a fixed list. What was written "
            "there waits at its beginning: mind auto.offset.reset=latest."
        ),
        proof=Proof(
            rows[0]["ts"],
            rows[-1]["ts"],
            [Evidence(row["file"], row["request_packet"], row["exchange_id"]) for row in (*rows[:8], *runs[-8:])],
        ),
        numbers={
            **key,
            "partitions": partition_names((topic, partition) for partition in left_out),
            "partitions_read": partition_names((topic, partition) for partition in read),
            "records_waiting": records,
            "by_plan": by_plan,
            "where": names[0],
            "clients": [client_numbers(run) for run in readers.values()][:_MOST],
            "since": time_text(rows[0]["ts"]),
            "until": time_text(rows[-1]["ts"]),
        },
    )


RULE = Rule(
    code="KAF343",
    question="stalled",
    name="partition-left-out",
    severity="warning",
    confidence="high",
    reads={
        BATCHES: (
            "ts", "partition", "client_id", "client_address", "records_count", "exchange_id", "file", "request_packet",
        ),
        RUNS: (
            "ts", "ts_last", "group_id", "partition", "client_id", "client_address", "member_id", "exchange_id", "file",
            "request_packet",
        ),
        COMMITS: ("group_id", "partition"),
        ASKED: ("group_id", "partition"),
        OWNERSHIP: ("group_id", "partition", "shared", "source"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={BATCHES: "error_code = 0 AND topic IS NOT NULL", RUNS: "topic IS NOT NULL"},
    suspects=f"""
        SELECT DISTINCT parts.cluster_id, parts.topic
        FROM (SELECT cluster_id, topic, partition FROM r_{BATCHES} GROUP BY ALL HAVING count(*) >= {_LEAST}) AS parts
        JOIN (SELECT DISTINCT cluster_id, topic, group_id FROM r_{RUNS}) AS groups
            ON parts.cluster_id IS NOT DISTINCT FROM groups.cluster_id AND parts.topic = groups.topic
        LEFT JOIN (SELECT DISTINCT cluster_id, topic, partition, group_id FROM r_{RUNS}) AS runs
            ON parts.cluster_id IS NOT DISTINCT FROM runs.cluster_id AND parts.topic = runs.topic
            AND parts.partition = runs.partition AND groups.group_id = runs.group_id
        WHERE runs.partition IS NULL""",
)  # fmt: skip
