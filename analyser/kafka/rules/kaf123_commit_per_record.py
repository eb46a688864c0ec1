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

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.words import names_text
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    Identity,
    committer_key,
    committer_text,
    group_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import partition_names, partition_text, title_text
from wirewitness.analyser.kafka.rules.stored import (
    STORED,
    STORED_COLUMNS,
    Stored,
    by_committer,
    committers_numbers,
    proof_of_stored,
    stored_by_group,
)

KEYS = ("cluster_id", "group_id", "client_address", "client_id")


def detect(frames: Frames, *, rate: float = 50.0, least: int = 200, share: float = 0.8) -> Iterator[Finding]:
    """One finding per committer."""
    found: dict[Identity, list[Stored]] = {}
    for group in stored_by_group(frames[STORED]):
        for commit in group:
            found.setdefault(commit.identity, []).append(commit)
    for own in found.values():
        requests = len({commit.exchange_id for commit in own})
        times = [commit.ts_sent for commit in own]
        seconds = (max(times) - min(times)) / NS_PER_S
        steps = [commit.committed_offset - commit.own_before for commit in own if commit.own_before is not None]
        single = sum(step == 1 for step in steps) / len(steps) if steps else 0.0
        if requests >= least and requests >= rate * seconds and single >= share:
            yield _finding(first_value(frames[STORED], "cluster_id"), own, requests, seconds, single)


def _finding(cluster: str | None, own: Sequence[Stored], requests: int, seconds: float, single: float) -> Finding:
    own = sorted(own, key=lambda commit: (commit.ts, commit.ts_sent))
    last = own[-1]
    key = committer_key(cluster, last)
    named = [*dict.fromkeys((commit.topic, commit.partition) for commit in own)]
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
        proof=proof_of_stored([own[0], last]),
        numbers={
            **key,
            "partitions": partition_names(named),
            "commits": requests,
            "seconds": round(seconds, 3),
            "commits_per_second": round(per_second, 1),
            "share_of_single_steps": round(single, 3),
            "committers": committers_numbers(by_committer(own)),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF123",
    question="repeated",
    name="commit-per-record",
    severity="info",
    confidence="high",
    reads={STORED: STORED_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={STORED: "own_number IS NOT NULL"},
    suspects=f"""
        SELECT cluster_id, group_id, client_address, client_id FROM r_{STORED}
        GROUP BY cluster_id, group_id, client_address, client_id, member_id
        HAVING count(DISTINCT exchange_id) >= 200
            AND count(DISTINCT exchange_id) >= 50 * (max(ts_sent) - min(ts_sent)) / 1000000000
            AND avg((committed_offset - own_before = 1)::INT) >= 0.8""",
)
