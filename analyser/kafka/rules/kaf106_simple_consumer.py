"""KAF106 simple-consumer-in-managed-group: somebody commits to a group without being its member.

Finds
    OffsetCommits with generation -1 and an empty member id (consumers that assign partitions by hand, admin tools) in a
    group that has members.

Why it matters
    While the group has members the broker refuses such commits with 25, so that consumer's progress is never stored.
    While the group is empty it accepts them, and they overwrite what the members left: the next member starts there.

How it decides
    Refused with 25: the broker itself says that the group has members. warning.
    Accepted, in a group that has members elsewhere in the capture (group requests, or commits with a member id): info,
    from `repeated` requests of one client on warning, as an admin tool resets once and a consumer goes on.
    A group in which nobody ever is a member is used by simple consumers only; that is normal and silent.
    TxnOffsetCommit without member data is accepted in every live state and is not looked at.

False alarms
    A tool that resets partition by partition in many requests.

What it cannot tell
    Whether a commit was accepted stands in the answer: of requests alone nothing is said. That a group has members is
    known from their requests: in a short capture that lacks these, an accepted commit is taken for normal.

References
    Kafka ClassicGroup validateOffsetCommit: generation -1 is accepted only while the group is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value, values
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    by_identity,
    commit_proof,
    commits_numbers,
    commits_of,
    committer_key,
    committer_text,
    group_text,
    partitions_text,
    requests_of,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import title_text

KEYS = ("cluster_id", "group_id")
EVENTS = "kafka_group_events"
UNKNOWN_MEMBER_ID = 25

_SIMPLE_SQL = "api = 'OffsetCommit' AND generation = -1 AND coalesce(member_id, '') = ''"


def detect(frames: Frames, *, repeated: int = 2) -> Iterator[Finding]:
    """Per client at most one finding of refused and one of accepted commits."""
    commits = commits_of(frames[COMMITS])
    simple = [c for c in commits if c.api == "OffsetCommit" and c.generation == -1 and not c.member_id]
    if not simple:
        return
    cluster = first_value(frames[COMMITS], "cluster_id")
    managed = any(c.member_id for c in commits) or any(values(frames[EVENTS]["member_id"]))
    for own in by_identity(simple).values():
        refused = [c for c in own if c.error_code == UNKNOWN_MEMBER_ID]
        accepted = [c for c in own if c.accepted]
        if refused:
            yield _finding(cluster, refused, accepted=False, repeated=repeated)
        if accepted and (managed or refused):
            yield _finding(cluster, accepted, accepted=True, repeated=repeated)


def _finding(cluster: str | None, commits: Sequence[Commit], *, accepted: bool, repeated: int) -> Finding:
    last, requests = commits[-1], len(requests_of(commits))
    severity: Severity = "warning" if not accepted or requests >= repeated else "info"
    key = committer_key(cluster, last)
    what = (
        f"wrote offsets of {partitions_text(commits, 3)} in {count(requests, 'request')} without being a member, while "
        "the group was empty. Members that come later start at these offsets."
        if accepted
        else f"tried to commit {partitions_text(commits, 3)} {times(requests)} without being a member. The "
        "group has members, so the broker refused (25 UNKNOWN_MEMBER_ID): nothing of it is stored."
    )
    return RULE.finding(
        severity=severity,
        subject={**key, "outcome": "accepted" if accepted else "refused"},
        title=title_text(
            "Offsets written to an empty group: {}, by {}" if accepted
            else f"{count(requests, 'commit')} refused, not a member: group {{}}, by {{}}",
            last.group_id or "?", short_committer(last),
        ),
        sentence=f"{group_text(last)}: {committer_text(last)} {what} It did so {period_text(commits[0].ts, last.ts)}.",
        next_step=(
            "If this was a planned offset reset, nothing. Otherwise give the process its own group id, or let it "
            "subscribe instead of assigning partitions by hand."
        ),
        proof=commit_proof(commits),
        numbers={
            **key,
            "outcome": "accepted" if accepted else "refused",
            "requests": requests,
            **commits_numbers(commits),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF106",
    question="concurrent",
    name="simple-consumer-in-managed-group",
    severity="warning",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, EVENTS: ("ts", "member_id")},
    partition_by=KEYS,
    detect=detect,
    # Of members' own commits and group requests the first of each member is enough: they only prove that there are any.
    rows={
        COMMITS: f"({_SIMPLE_SQL}) OR (member_id <> '' AND (group_id, member_id, ts) IN ("
        f"SELECT (group_id, member_id, min(ts)) FROM {COMMITS} GROUP BY cluster_id, group_id, member_id))",
        EVENTS: "event <> 'describe' AND member_id <> '' AND (group_id, member_id, ts) IN ("
        f"SELECT (group_id, member_id, min(ts)) FROM {EVENTS} GROUP BY cluster_id, group_id, member_id)",
    },
    suspects=AnyRow(COMMITS, _SIMPLE_SQL),
)
