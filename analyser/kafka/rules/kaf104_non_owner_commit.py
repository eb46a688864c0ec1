"""KAF104 non-owner-commit: a member commits a partition that is assigned to another member.

Finds
    Accepted commits of a member for a partition whose owner, at the time of the commit, was another member.

Why it matters
    The broker checks that a committer is a member of the current generation, not that it owns the partition. So a
    member can overwrite a peer's offset with error 0, and nothing in any log says so.

How it decides
    The owner comes from the assignments in the capture (SyncGroup of the leader or of a member, ConsumerGroupHeartbeat,
    describe answers) at the time of the commit: critical, confidence high. Where no assignment is in the capture, the
    owner is the one member of this group whose client fetched the partition in the last seconds before the commit:
    warning, confidence low. Commits without member id are left to KAF106. Nothing is said of the owner's own
    client (address and client id) under another member id, when the owner's last commit is earlier: it was started
    again.

False alarms
    A member that must give a partition up may commit it until another member gets it: in that time the partition has no
    owner, and nothing is reported. Owners known from fetches only can be wrong when two members share address and
    client id; then no owner is concluded.

What it cannot tell
    In a capture that begins after the last rebalance there is no assignment: then only who reads is known. Requests
    alone say nothing, since only an accepted commit counts. After a gap in the capture owners are not known until the
    next assignment.

References
    Kafka ClassicGroup and ConsumerGroup validateOffsetCommit; KIP-1251 checks partitions only for a lagging epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    Committers,
    by_identity,
    commit_proof,
    commits_of,
    committer_numbers,
    committer_text,
    group_text,
    may_be_one,
    offsets_text,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import member_name, title_text

KEYS = ("cluster_id", "group_id", "topic", "partition")


def detect(frames: Frames, *, commits_least: int = 1) -> Iterator[Finding]:
    """One finding per committer that is not the owner, of at least `commits_least` such commits."""
    commits = [c for c in commits_of(frames[COMMITS]) if c.accepted]
    cluster = first_value(frames[COMMITS], "cluster_id") if commits else None
    committers = by_identity(commits)
    for own in committers.values():
        foreign = [c for c in own if c.member_id and c.owner_member_id and c.owner_member_id != c.member_id]
        foreign = [c for c in foreign if not _goes_on(c, committers.get((c.owner_member_id,), ()))]
        sure = [c for c in foreign if c.ownership_confidence == "high"]
        if len(foreign) >= commits_least:
            yield _finding(cluster, committers, sure or foreign, sure=bool(sure), stored=commits[-1].committed_offset)


def _goes_on(commit: Commit, owners: Sequence[Commit]) -> bool:
    """The owner's client has stopped under its member id, and commits under this one: it was started again."""
    return bool(owners) and may_be_one(owners[-1].client, commit.client) and owners[-1].done_ns < commit.ts


def _finding(
    cluster: str | None,
    committers: Committers,
    foreign: Sequence[Commit],
    *,
    sure: bool,
    stored: int,
) -> Finding:
    last = foreign[-1]
    owner = last.owner_member_id
    owners = committers.get((owner,), ())
    named = committer_text(owners[-1]) if owners else f"member {member_name(owner or '?')}"
    key = partition_key(cluster, last)
    how = "is assigned to" if sure else "is read by"
    told = [committers[last.identity], *([owners] if owners else [])]
    return RULE.finding(
        severity="critical" if sure else "warning",
        confidence="high" if sure else "low",
        subject=key,
        title=title_text(
            "Commit to a partition of another member: {}, " + offsets_text(foreign) + ", by {}",
            partition_text(last), short_committer(last),
        ),
        sentence=(
            f"{group_text(last)}: {committer_text(last)} committed {offsets_text(foreign)} of "
            f"{partition_text(last)}, but the partition {how} {named}. "
            f"These are {count(len(foreign), 'commit')}, {period_text(foreign[0].ts, last.ts)}. The broker accepted "
            "them: it does not check who owns a partition."
        ),
        next_step=(
            f"Find out why the process behind {committer_text(last)} still commits this partition: offsets kept past a "
            "rebalance, a commit for all partitions it ever had, or offsets taken from another store."
        ),
        proof=commit_proof(foreign),
        numbers={
            **key,
            "foreign_commits": len(foreign),
            "owner_member_id": owner,
            "ownership_confidence": "high" if sure else "low",
            "last_offset": stored,
            "committers": [committer_numbers(own) for own in told],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF104",
    question="concurrent",
    name="non-owner-commit",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    suspects=AnyRow(COMMITS, "member_id <> '' AND owner_member_id <> member_id"),
)
