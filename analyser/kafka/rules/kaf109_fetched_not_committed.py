"""KAF109 fetched-not-committed: a member committed what it read, and then reads on without committing.

Finds
    A partition of which a client was given 1,000 records or more since the group's last commit, for longer than three
    of its usual gaps between commits.

Why it matters
    What it reads now is delivered again after the next restart, and the lag looks as if nobody read.

How it decides
    By the last run of reading of a partition (`kafka_fetch_ranges`) and the accepted commits of its group: the offset
    that the run had led to is `messages` or more above the last committed one, and it went on for `gaps` times the
    median gap between commits of that partition after the last commit. A client that never committed is KAF122.
    Confidence medium: a slow handler with deep buffers looks the same. Provisional: the commit may come.

False alarms
    A consumer that prefetches many records and handles them slowly: look at the gap itself.

What it cannot tell
    Of one direction alone nothing is said. In a capture that begins after the last commit there is none to compare
    with: that is KAF122's.

References
    Kafka's consumer configuration: enable.auto.commit, queued.min.messages of librdkafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, first_value, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import COMMITS
from wirewitness.analyser.kafka.rules.fetch_ranges import RUN_COLUMNS, RUNS, FetchRange, proof_of_runs, runs_of
from wirewitness.analyser.kafka.rules.names import (
    group_text,
    partition_text,
    short_who,
    title_text,
    who_numbers,
    who_text,
)

KEYS = ("cluster_id", "group_id", "topic", "partition")


def detect(frames: Frames, *, messages: int = 1000, gaps: float = 3.0, least: int = 4) -> Iterator[Finding]:
    """At most one finding. least: so many commits tell what is usual."""
    commits = sorted(rows_of(frames[COMMITS]), key=lambda row: row["ts"])
    if not len(frames[RUNS]) or len(commits) < least:
        return
    (run,), last = runs_of(frames[RUNS].take(np.array([len(frames[RUNS]) - 1]))), commits[-1]
    usual = median(later["ts"] - earlier["ts"] for earlier, later in pairwise(commits))
    behind = (run.next_offset or 0) - max(row["committed_offset"] for row in commits)
    waited = run.ts_last - last["ts"]
    gap = run.ts_last_gap is not None and run.ts_last_gap > last["ts"]
    if behind >= messages and waited > gaps * usual and not gap:
        yield _finding(first_value(frames[RUNS], "cluster_id"), run, last, behind, waited, round(usual), commits)


def _finding(
    cluster: str | None, run: FetchRange, last: Row, behind: int, waited: int, usual: int, commits: Sequence[Row]
) -> Finding:
    key: dict[str, Any] = {
        "cluster": cluster, "group": run.group_id, "topic": run.topic, "partition": run.partition,
    }  # fmt: skip
    return RULE.finding(
        provisional=True,
        subject=key,
        title=title_text(
            f"Reads without committing: {{}}, {count(behind, 'record')} in {seconds_text(waited)}, by {{}}",
            partition_text(*run.place), short_who(*run.client),
        ),
        sentence=(
            f"{group_text(run.group_id)}: {who_text(*run.client, run.member_id)} reads "
            f"{partition_text(*run.place)} up to {run.next_offset} and has not committed for {seconds_text(waited)}. "
            f"Its last commit was {last['committed_offset']} at {moment_text(last['ts'])}; before, it committed every "
            f"{seconds_text(usual)}. A restart would deliver {count(behind, 'record')} again."
        ),
        next_step=(
            "Look in the log of this client for commits that fail or are no longer called, and for a handler that is "
            "stuck on its buffer."
        ),
        proof=proof_of_runs(
            [run], [Evidence(last["file"], last["request_packet"], last["exchange_id"])], last["ts"]
        )._replace(ts_last_ns=run.ts_last),
        numbers={
            **key,
            "client_id": run.client_id,
            "address": run.client_address,
            "member": run.member_id,
            "messages_uncommitted": behind,
            "last_offset": last["committed_offset"],
            "fetched_to": run.next_offset,
            "seconds_since_commit": round(waited / NS_PER_S, 3),
            "usual_seconds": round(usual / NS_PER_S, 3),
            "commits": len(commits),
            "ts_last_commit": time_text(last["ts"]),
            "clients": [who_numbers(*run.client, run.member_id)],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF109",
    question="stalled",
    name="fetched-not-committed",
    severity="warning",
    confidence="medium",
    reads={
        RUNS: RUN_COLUMNS,
        COMMITS: ("ts", "exchange_id", "committed_offset", "file", "request_packet"),
    },
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0 AND committed_offset >= 0"},
    suspects=f"""
        SELECT runs.cluster_id, runs.group_id, runs.topic, runs.partition
        FROM (SELECT cluster_id, group_id, topic, partition, max(next_offset) AS reached, max(ts_last) AS ts_last
              FROM r_{RUNS} GROUP BY ALL) AS runs
        JOIN (SELECT cluster_id, group_id, topic, partition, max(committed_offset) AS stored, max(ts) AS ts
              FROM r_{COMMITS} GROUP BY ALL HAVING count(*) >= 4) AS commits
            ON runs.cluster_id IS NOT DISTINCT FROM commits.cluster_id AND runs.group_id = commits.group_id
            AND runs.topic = commits.topic AND runs.partition = commits.partition
        WHERE reached >= stored + 1000 AND ts_last > commits.ts""",
)
