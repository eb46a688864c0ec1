"""KAF123 commit-per-record: a member commits after each record.

Finds
    A client that sends more than 50 commits in a second, nearly all of them one record further than the one before.

Why it matters
    Each commit is a write to __consumer_offsets and a round trip: it costs throughput, and the coordinator has to serve
    it for all groups of its partition.

How it decides
    Accepted commits of one committer in the group. Over `least` commits or more the rate is at least `rate` in a
    second, and at least `share` of the steps between commits of one partition are one record.

False alarms
    An application that must commit each record before it may go on.

What it cannot tell
    Of requests alone nothing is said: only accepted commits count. Lost commits make the rate lower, never higher.

References
    Kafka's consumer configuration: enable.auto.commit, auto.commit.interval.ms.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.words import names_text
from wirewitness.analyser.engine.rules.columns import Integers
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import places_of
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commit_columns import CommitColumns, commit_columns
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    committer_key,
    committer_text,
    group_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import partition_names, partition_text, title_text

KEYS = ("cluster_id", "group_id", "client_address", "client_id")


def detect(frames: Frames, *, rate: float = 50.0, least: int = 200, share: float = 0.8) -> Iterator[Finding]:
    """One finding per committer."""
    commits = commit_columns(frames[COMMITS]).accepted()
    committers = commits.committers()
    for rows in places_of(committers):
        own = commits.take(rows)
        requests = len(np.unique(own.texts["exchange_id"].codes))
        seconds = float(own.ts.max() - own.ts.min()) / NS_PER_S
        steps = _steps(own)
        single = float((steps == 1).mean()) if len(steps) else 0.0
        if requests >= least and requests >= rate * seconds and single >= share:
            yield _finding(first_value(frames[COMMITS], "cluster_id"), own, requests, seconds, single)


def _steps(commits: CommitColumns) -> Integers:
    """How far each commit is above the one before of its partition."""
    place = commits.numbers["partition"] + (commits.texts["topic"].codes.astype(np.int64) << 32)
    order = np.lexsort((np.arange(len(place)), place))
    steps: Integers = np.diff(commits.offset[order])[np.diff(place[order]) == 0]
    return steps


def _finding(cluster: str | None, own: CommitColumns, requests: int, seconds: float, single: float) -> Finding:
    last = own[len(own) - 1]
    key = committer_key(cluster, last)
    topics, rows = own.texts["topic"], range(len(own))
    places = {(int(code), int(part)): None for code, part in zip(topics.codes, own.numbers["partition"], strict=True)}
    named = [(topics.name(code), part) for code, part in places]
    where = names_text(sorted(partition_text(*one) for one in named))
    per_second = requests / max(seconds, 1e-3)
    return RULE.finding(
        subject=key,
        title=title_text(
            f"Commit after each record: {{}} in group {{}}, {per_second:,.0f} per second",
            short_committer(last), last.group_id or "?",
        ),
        sentence=(
            f"{group_text(last)}: {committer_text(last)} commits after each record, {requests:,} commits in "
            f"{seconds:.1f} s ({per_second:.0f} per second). {single:.0%} of them are one record above the one before, "
            f"of {where}."
        ),
        next_step=(
            "Commit once for each poll or every few seconds (enable.auto.commit, or commitAsync after the batch), if "
            "handling a few records again after a crash is no harm."
        ),
        proof=Proof(int(own.ts.min()), int(own.ts.max()), own.evidence(np.array([rows[0], rows[-1]]))),
        numbers={
            **key,
            "partitions": partition_names(named),
            "commits": requests,
            "seconds": round(seconds, 3),
            "commits_per_second": round(per_second, 1),
            "share_of_single_steps": round(single, 3),
            "committers": [own.numbers_of(np.arange(len(own)))],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF123",
    question="repeated",
    name="commit-per-record",
    severity="info",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    suspects=f"""
        SELECT cluster_id, group_id, client_address, client_id FROM r_{COMMITS}
        GROUP BY cluster_id, group_id, client_address, client_id, member_id
        HAVING count(DISTINCT exchange_id) >= 200
            AND count(DISTINCT exchange_id) >= 50 * (max(ts) - min(ts)) / 1000000000""",
)
