"""KAF101 dual-committer: two committers write the offsets of one partition.

Finds
    Two identities whose commits for the same cluster, group, topic and partition are accepted in turn: the older one
    commits again after the newer one began.

Why it matters
    A group stores one offset per partition, and the last commit wins. With two committers it jumps between two places:
    after the next rebalance or restart messages are delivered again, or skipped. The stored offset carries no client,
    member or host, so broker tools cannot name the committers. The broker checks the committer's member id and
    generation, not that the member owns the partition.

How it decides
    Accepted commits (error 0) of one partition are put into broker order: on one connection the order of the stream,
    between connections the time of the response. An identity is the member id, else address and client id. A commit is
    a return when another identity committed just before it and its own identity had committed earlier, and when the
    two commits lie within a window of `window_gaps` x the median time between commits of one identity, at least
    `window_s` seconds.
    critical: a return whose generation (or member epoch) is not above that of the other's commit. An accepted commit
        proves membership, so both were members at once; unless each had the partition assigned when it committed, or
        it is the committer's first one in the lower generation: a group that is deleted begins again at generation 1.
    warning: `without_members` returns where the membership is not on the wire (generation -1, no member id).
    info: the committer changed and nobody came back within the window, or came back in a newer generation: a hand-over.
        Silent where the assignments in the capture show that the new committer owns the partition.
    Gaps in the capture only hide commits: what was seen stands.

False alarms
    An offset reset by an admin tool is one commit without member id; it is left to KAF106 and KAF103. A static member
    that restarts gets a new member id in the same generation; that is a single hand-over. A partition that moves away
    and comes back does so in newer generations. Two connections that commit at the same moment are not ordered by this
    rule: it only asks who committed, not in which order two racing commits were stored.

What it cannot tell
    Requests alone say nothing, since only an accepted commit counts. What was written before the capture began is not
    seen: a first return may be a second one.

References
    segmentio/kafka-go#1308. Kafka ClassicGroup and ConsumerGroup validateOffsetCommit. KIP-848, KIP-1251.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from statistics import median
from typing import Any, NamedTuple

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import first_value
from analyser.detectors.kafka.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    IDENTITY_SQL,
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
)
from analyser.severity import Confidence, Severity
from analyser.times import NS_PER_S, period_text
from analyser.words import count

KEYS = ("cluster_id", "group_id", "topic", "partition")
# A member gets a new id with every restart: a sentence that names hundreds tells nothing.
_MOST_NAMED = 5


class _Turn(NamedTuple):
    """Another identity's commit, and the commit that came right after it.

    known: who wrote the second one had written in that generation before.
    """

    other: Commit
    again: Commit
    known: bool = False

    @property
    def commits(self) -> tuple[Commit, Commit]:
        return self.other, self.again


def detect(
    frames: Frames, *, window_gaps: float = 3.0, window_s: float = 60.0, without_members: int = 2
) -> Iterator[Finding]:
    """At most one finding for the partition: the worst that is true."""
    frame = frames[COMMITS]
    commits = _without_single_resets([c for c in commits_of(frame) if c.accepted])
    committers = by_identity(commits)
    if len(committers) < 2:
        return
    returns, hand_overs = _turns(commits, _window_ns(committers, window_gaps, window_s))
    together = [turn for turn in returns if _members_at_once(turn)]
    unknown = [turn for turn in returns if _no_membership(turn)]
    cluster = first_value(frame, "cluster_id")
    if together or len(unknown) >= without_members:
        yield _dual(cluster, commits, committers, together or unknown, bool(together))
        return
    unexplained = [turn for turn in (*hand_overs, *returns) if not _owns(turn.again)]
    if unexplained:
        yield _hand_over(cluster, commits, committers, sorted(unexplained, key=lambda turn: turn.again.done_ns))


def _without_single_resets(commits: Sequence[Commit]) -> list[Commit]:
    """An identity without member id that commits once is a reset by hand, not a second consumer."""
    alone = {i for i, own in by_identity(commits).items() if len(own) == 1 and not own[0].member_id}
    return [c for c in commits if c.identity not in alone]


def _window_ns(committers: Committers, gaps: float, least_s: float) -> float:
    between = [later.ts - earlier.ts for own in committers.values() for earlier, later in pairwise(own)]
    return max(gaps * median(between) if between else 0.0, least_s * NS_PER_S)


def _turns(commits: Sequence[Commit], window_ns: float) -> tuple[list[_Turn], list[_Turn]]:
    """(returns within the window, all other changes of the committer)."""
    returns: list[_Turn] = []
    hand_overs: list[_Turn] = []
    seen = {commits[0].identity: {commits[0].generation}}
    for other, again in pairwise(commits):
        if other.identity != again.identity:
            came_back = again.identity in seen and again.done_ns - other.done_ns <= window_ns
            known = again.generation in seen.get(again.identity, ())
            (returns if came_back else hand_overs).append(_Turn(other, again, known))
        seen.setdefault(again.identity, set()).add(again.generation)
    return returns, hand_overs


def _no_membership(turn: _Turn) -> bool:
    """Of one of them at least no membership is on the wire; one client with and without a member id may be one."""
    other, again = turn.commits
    one_client = may_be_one(other.client, again.client) and not (other.member_id and again.member_id)
    return not one_client and not (other.in_generation and again.in_generation)


def _members_at_once(turn: _Turn) -> bool:
    """Both were members of one generation, and not each of them the owner at its time.

    A lower one that it has only just got is that of a group that begins anew.
    """
    other, again = turn.commits
    if other.generation is None or again.generation is None:
        return False
    if _owns(other) and _owns(again):
        return False  # each had the partition then; generations begin again at 1 in a group that was deleted
    if again.generation > other.generation or not (other.in_generation and again.in_generation):
        return False
    return again.generation == other.generation or turn.known


def _owns(commit: Commit) -> bool:
    return commit.ownership_confidence == "high" and commit.owner_member_id == commit.member_id


def _dual(
    cluster: str | None, commits: Sequence[Commit], committers: Committers, turns: Sequence[_Turn], together: bool
) -> Finding:
    identities = dict.fromkeys(c.identity for turn in turns for c in turn.commits)
    own = {i: committers[i] for i in identities}
    stale = min(own.values(), key=lambda some: (some[-1].committed_offset, max(c.committed_offset for c in some)))
    last, highest = commits[-1], max(c.committed_offset for c in commits)
    furthest = accumulate((c.committed_offset for c in commits), max)
    worst = max(reached - c.committed_offset for reached, c in zip(furthest, commits, strict=True))
    who = "; ".join(
        f"{committer_text(some[-1])} wrote {offsets_text(some)} in {count(len(some), 'commit')}"
        for some in islice(own.values(), _MOST_NAMED)
    )
    more = f"; {len(own) - _MOST_NAMED} more" if len(own) > _MOST_NAMED else ""
    state = "while they were members at the same time" if together else "and no membership of theirs is on the wire"
    replay = highest - last.committed_offset
    sentence = (
        f"{group_text(last)}: {len(own)} committers write {partition_text(last)} in turn, {state}, "
        f"{period_text(min(turn.other.ts for turn in turns), max(turn.again.ts for turn in turns))}: {who}{more}. "
        f"The broker accepted all of it, and the last one wins: the stored offset is {last.committed_offset}, the "
        f"highest was {highest}. {_replay_text(replay, worst)}"
    )
    return _finding(
        cluster,
        committers,
        turns,
        severity="critical" if together else "warning",
        confidence="high" if together else "medium",
        sentence=sentence,
        next_step=_next_step(stale[-1]),
        measured={
            "returns": len(turns),
            "members_at_once": together,
            "highest_offset": highest,
            "last_offset": last.committed_offset,
            "replay_now": replay,
            "replay_worst": worst,
        },
    )


def _replay_text(now: int, worst: int) -> str:
    if worst == 0:
        return "So far no offset went back."
    again = f"delivered {count(worst, 'message')} again"
    if now == 0:
        return f"A restart now delivers nothing again; at the worst moment it would have {again}."
    return f"A restart now delivers {count(now, 'message')} again; at the worst moment it would have {again}."


def _next_step(stale: Commit) -> str:
    owner = ""
    if stale.owner_member_id and stale.owner_member_id != stale.member_id:
        owner = f" The partition is assigned to member {stale.owner_member_id}."
    return (
        f"Look at the process behind {committer_text(stale)}: it wrote the lowest position.{owner} Stop or restart it, "
        "and search its code for offsets that are kept or committed after the partition was revoked, and for a second "
        "consumer with the same group id that assigns partitions by hand."
    )


def _hand_over(
    cluster: str | None, commits: Sequence[Commit], committers: Committers, turns: Sequence[_Turn]
) -> Finding:
    other, again = turns[-1].commits
    times = "" if len(turns) == 1 else f" (the committer changed {len(turns)} times)"
    sentence = (
        f"{group_text(again)}: commits of {partition_text(again)} went over from {committer_text(other)}, "
        f"last at {other.committed_offset}, to {committer_text(again)}, first at {again.committed_offset}{times}."
    )
    return _finding(
        cluster,
        committers,
        turns,
        severity="info",
        confidence="high",
        sentence=sentence,
        next_step="Nothing to do if a rebalance or a restart is known for that time.",
        measured={"hand_overs": len(turns), "last_offset": commits[-1].committed_offset},
    )


def _finding(
    cluster: str | None,
    committers: Committers,
    turns: Sequence[_Turn],
    *,
    severity: Severity,
    confidence: Confidence,
    sentence: str,
    next_step: str,
    measured: dict[str, Any],
) -> Finding:
    proof = [c for turn in turns for c in turn.commits]
    key = partition_key(cluster, proof[0])
    identities = dict.fromkeys(c.identity for c in proof)
    return DETECTOR.finding(
        severity=severity,
        confidence=confidence,
        provisional=severity == "info",
        subject=key,
        sentence=sentence,
        next_step=next_step,
        proof=commit_proof(proof),
        numbers={**key, **measured, "committers": [committer_numbers(committers[i]) for i in identities]},
    )


DETECTOR = Detector(
    code="KAF101",
    name="dual-committer",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    suspects=f"SELECT {', '.join(KEYS)} FROM r_{COMMITS} GROUP BY ALL HAVING count(DISTINCT {IDENTITY_SQL}) > 1",
)
