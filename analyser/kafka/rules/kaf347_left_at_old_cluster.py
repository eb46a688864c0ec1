"""KAF347 left-at-old-cluster: a group moved to another cluster, and a producer writes on where nobody reads any more.

Finds
    Producers that still write a topic at the cluster that its readers and other producers have left for another one.

Why it matters
    Every request of the producer succeeds, and nobody handles what it writes: the records are lost for the application
    until somebody carries them over. Nothing shows an error at either cluster.

How it decides
    A group read the topic at one cluster, ended there, and since then reads the topic of that name at another one (by
    `kafka_fetch_ranges`). Nobody has fetched the topic at the old cluster since. Another producer came over: its client
    wrote at the old one before and writes at the new one now. Who wrote at the old one on, for `gaps` of its own usual
    gaps between batches after the last of the others had come over and the group had begun there, and wrote nothing at
    the new one, was left behind. Provisional: it may follow later.

False alarms
    Something that carries the records over and fetches them from a broker that was not captured.

What it cannot tell
    Who reads at brokers that were not captured. Nothing is said of clusters that the capture cannot tell apart.

References
    bootstrap.servers of producers; MirrorMaker 2 (KIP-382) carries a topic over while clients move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, clock_text, seconds_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of, short
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_numbers, client_text
from wirewitness.analyser.kafka.rules.producers import topic_keys, topic_subject, topic_text

WRITERS, RUNS, FETCHES = "kafka_topic_writers", "kafka_fetch_ranges", "kafka_fetch_partitions"


class _Move(NamedTuple):
    """A group that went from one cluster to another with a topic. since: when it had left and begun there."""

    group: str
    old: str
    new: str
    left_ns: int
    since_ns: int


def detect(frames: Frames, *, gaps: float = 5.0) -> Iterator[Finding]:
    """One finding for each producer and topic."""
    writers = _by_topic(rows_of(frames[WRITERS]))
    fetched = {(row["cluster_id"], row["topic"]): row["ts"] for row in rows_of(frames[FETCHES])}
    for topic, runs in _by_topic(rows_of(frames[RUNS])).items():
        told: set[str] = set()
        for move in _moves(runs):
            own = writers.get(topic, [])
            came = _came_over(own, move)
            if not came or fetched.get((move.old, topic), 0) > move.left_ns:
                continue
            for row in _left(own, move, max(move.since_ns, *(one["ts"] for one in came)), gaps):
                if row["exchange_id"] not in told:
                    told.add(row["exchange_id"])
                    yield _finding(row, move, came)


def _by_topic(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["topic"], []).append(row)
    return found


def _moves(runs: Sequence[Row]) -> Iterator[_Move]:
    times: dict[str, dict[str, tuple[int, int]]] = {}
    for row in runs:
        begin, end = times.setdefault(row["group_id"], {}).get(row["cluster_id"], (row["ts"], row["ts_last"]))
        times[row["group_id"]][row["cluster_id"]] = (min(begin, row["ts"]), max(end, row["ts_last"]))
    for group, clusters in times.items():
        if len(clusters) == 2:
            (old, (_, left)), (new, (begun, _)) = sorted(clusters.items(), key=lambda one: one[1])
            if left <= begun:
                yield _Move(group, old, new, left, begun)


def _who(row: Mapping[str, object]) -> tuple[object, object]:
    return row["client_address"], row["client_id"]


def _came_over(writers: Sequence[Row], move: _Move) -> list[Row]:
    """Rows at the new cluster of clients that had written at the old one, and do not any more."""
    before = {_who(row): row["ts_last"] for row in writers if row["cluster_id"] == move.old}
    return [
        row for row in writers
        if row["cluster_id"] == move.new and _who(row) in before and before[_who(row)] <= row["ts"]
    ]  # fmt: skip


def _left(writers: Sequence[Row], move: _Move, since_ns: int, gaps: float) -> Iterator[Row]:
    there = {_who(row) for row in writers if row["cluster_id"] == move.new}
    for row in writers:
        stayed = row["cluster_id"] == move.old and _who(row) not in there and row["ts"] < move.left_ns
        if stayed and row["pace_ms"] and row["ts_last"] - since_ns >= gaps * row["pace_ms"] * NS_PER_MS:
            yield row


def _finding(row: Row, move: _Move, came: Sequence[Row]) -> Finding:
    topic, group = topic_text(row), printable(move.group, MAX_NAME)
    old, new = (f"cluster {printable(one, 40)}" for one in (move.old, move.new))
    others = {_who(one) for one in came}
    return RULE.finding(
        provisional=True,
        title=f"Still writes {first_of([topic])} at the old cluster, where nobody reads: {client_title(row)}",
        subject=topic_subject(row),
        sentence=(
            f"{sentence_start(client_text(row))} still writes {topic} at {old}, where nobody reads it since "
            f"{clock_text(move.left_ns)}: for {seconds_text(row['ts_last'] - move.left_ns)}. Group {group} reads it at "
            f"{new} since {clock_text(move.since_ns)}, and {count(len(others), 'other producer')} came over as well."
        ),
        next_step=(
            f"Give {row['client_id'] or 'this producer'} the new cluster's bootstrap.servers, and carry over what it "
            f"wrote since group {short(move.group)} left."
        ),
        proof=Proof(move.left_ns, row["ts_last"], evidence_of_ids((row["last_exchange_id"], came[0]["exchange_id"]))),
        numbers={
            **topic_keys(row),
            "address": row["client_address"],
            "client_id": row["client_id"],
            "clients": [client_numbers(row)],
            "topics": [row["topic"]],
            "where": row["topic"],
            "group": move.group,
            "new_cluster": move.new,
            "came_over": len(others),
            "since": time_text(move.left_ns),
            "until": time_text(row["ts_last"]),
        },
    )


_BOTH = f"""topic IN (
    SELECT topic FROM {RUNS} WHERE cluster_id IS NOT NULL AND group_id IS NOT NULL AND topic IS NOT NULL
    GROUP BY topic, group_id HAVING count(DISTINCT cluster_id) > 1)"""
_KNOWN = "cluster_id IS NOT NULL"
RULE = Rule(
    code="KAF347",
    question="stalled",
    name="left-at-old-cluster",
    severity="warning",
    confidence="medium",
    reads={
        WRITERS: (
            "ts", "ts_last", "cluster_id", "topic", "client_id", "client_address", "pace_ms", "exchange_id",
            "last_exchange_id",
        ),
        RUNS: ("ts", "ts_last", "cluster_id", "topic", "group_id"),
        FETCHES: ("ts", "cluster_id", "topic"),
    },
    partition_by=(),
    detect=detect,
    rows={
        WRITERS: f"{_KNOWN} AND {_BOTH}",
        RUNS: f"{_KNOWN} AND group_id IS NOT NULL AND {_BOTH}",
        # The last fetch of each topic at each cluster.
        FETCHES: f"""{_KNOWN} AND coalesce(replica_id, -1) < 0 AND {_BOTH} AND (cluster_id, topic, ts) IN (
            SELECT (cluster_id, topic, max(ts)) FROM {FETCHES}
            WHERE coalesce(replica_id, -1) < 0 GROUP BY cluster_id, topic)""",
    },
)  # fmt: skip
