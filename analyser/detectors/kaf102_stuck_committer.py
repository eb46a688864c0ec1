"""KAF102 stuck-committer: one committer writes the same offset again and again although reading goes on.

Finds
    A committer that writes one offset repeatedly for a partition while another committer, its own later commits, or its
    own fetch position are ahead of that offset.

Why it matters
    The stored offset stays behind, or falls back to the same place again and again, although the messages are
    consumed. Lag tools see an offset that moves now and then and stay quiet. At the next rebalance or restart all
    messages since the stuck offset are delivered again.

How it decides
    Accepted commits of one committer (member id, else address and client id) to one partition, in broker order. A
    commit of a value that this committer wrote before is a return when, since it wrote that value first,
    - another committer's accepted commit was ahead of it, or
    - its own commit since the last time was ahead of it (1000, 500, 1010, 500) and no Fetch, ListOffsets or OffsetFetch
      of this client at or below the value lies between, or
    - its fetch position is ahead of it and moved on since.
    `returns` returns to one value are a finding: critical when commits were ahead, warning when only the fetch position
    was (the application may be slow, or it forgot to commit).
    Ahead means more than one offset, or one while the log end is further: the last offset of a log can be a control
    record, which no application sees.

False alarms
    An automatic committer that repeats an unchanged position while nothing is fetched is not a finding. Neither is a
    consumer that waits with its prefetched messages: its fetch position does not move. One that skips messages without
    committing (a filter with manual commits) looks stuck until it commits: that is the warning.

References
    Burrow's STALL rule, but per committer: over all commits of a partition two committers never stall.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from analyser.detectors.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    IDENTITY_SQL,
    Commit,
    Identity,
    by_group,
    commits_of,
    committer_numbers,
    committer_text,
    count_text,
    evidence_of,
    first_value,
    group_text,
    partition_key,
    partition_text,
)
from analyser.detectors.framework import Detector, Frames
from analyser.detectors.positions import READ_TABLES, Reads, reads_of
from analyser.findings import Finding, some_evidence, subject_text

KEYS = ("cluster_id", "topic", "partition")
_OTHERS = 64


class _Return(NamedTuple):
    """A repeated value and what was ahead of it: a commit, or a fetch position."""

    commit: Commit
    ahead: Commit | None
    position: int


class _Last(NamedTuple):
    """What is known of one committer's value: its first and last commit in broker order, and where it fetched then."""

    first: int
    last: int
    position: int | None


def detect(frames: Frames, *, returns: int = 5) -> Iterator[Finding]:
    """One finding per group, committer and value."""
    accepted = [c for c in commits_of(frames[COMMITS]) if c.accepted]
    if len(accepted) <= returns:
        return
    cluster = first_value(frames[COMMITS], "cluster_id")
    reads = reads_of(frames)
    for commits in by_group(accepted).values():
        for (_, value), found in _returns(commits, reads).items():
            if len(found) >= returns:
                yield _finding(cluster, commits, value, found)


def _returns(commits: Sequence[Commit], reads: Reads) -> dict[tuple[Identity, int], list[_Return]]:
    """Returns of every (committer, value), in broker order; one pass over the commits."""
    found: dict[tuple[Identity, int], list[_Return]] = {}
    values: dict[tuple[Identity, int], _Last] = {}
    highest = _Highest(commits)
    for index, commit in enumerate(commits):
        key = (commit.identity, commit.committed_offset)
        position = reads.position_at(commit.client, commit.ts)
        seen = values.get(key)
        if seen is not None:
            again = _return(commits, index, seen, position, highest, reads)
            if again is not None:
                found.setdefault(key, []).append(again)
        highest.add(index)
        values[key] = _Last(index if seen is None else seen.first, index, position)
    return found


def _return(
    commits: Sequence[Commit], index: int, seen: _Last, position: int | None, highest: _Highest, reads: Reads
) -> _Return | None:
    commit, before = commits[index], commits[seen.last]
    other = highest.by_others(commit.identity, seen.first)
    if other is not None and _ahead(other.committed_offset, commit):
        return _Return(commit, other, other.committed_offset)
    own = highest.by_itself(commit.identity, seen.last)
    if own is not None and _ahead(own.committed_offset, commit):
        if not reads.went_back(commit.client, before.ts, commit.ts, commit.committed_offset):
            return _Return(commit, own, own.committed_offset)
        return None
    moved = position is not None and seen.position is not None and position > seen.position
    if moved and position is not None and _ahead(position, commit):
        return _Return(commit, None, position)
    return None


def _ahead(offset: int, commit: Commit) -> bool:
    """More than one offset ahead, or exactly one while the log is known to go on behind it."""
    lead = offset - commit.committed_offset
    return lead > 1 or (lead == 1 and commit.log_end_offset is not None and commit.log_end_offset > offset)


class _Highest:
    """The highest commit since some index, kept for each committer as a falling stack of candidates.

    Other committers are looked at up to `_OTHERS`, the latest ones first: a member gets a new id with every restart.
    """

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._commits = commits
        self._stacks: dict[Identity, list[int]] = {}

    def add(self, index: int) -> None:
        commit = self._commits[index]
        stack = self._stacks[commit.identity] = self._stacks.pop(commit.identity, [])
        while stack and self._commits[stack[-1]].committed_offset <= commit.committed_offset:
            stack.pop()
        stack.append(index)

    def by_itself(self, identity: Identity, since: int) -> Commit | None:
        """The committer's highest commit after that index."""
        stack = self._stacks.get(identity, [])
        place = bisect_right(stack, since)
        return self._commits[stack[place]] if place < len(stack) else None

    def by_others(self, identity: Identity, since: int) -> Commit | None:
        """The highest commit after that index by anybody else."""
        others = islice((other for other in reversed(self._stacks) if other != identity), _OTHERS)
        found = [self.by_itself(other, since) for other in others]
        return max((c for c in found if c is not None), key=lambda c: c.committed_offset, default=None)


def _finding(cluster: str | None, commits: Sequence[Commit], value: int, found: Sequence[_Return]) -> Finding:
    last = found[-1].commit
    overtaken = [r for r in found if r.ahead is not None]
    worst = max(found, key=lambda r: r.position)
    own = [c for c in commits if c.identity == last.identity]
    same_value = [c for c in own if c.committed_offset == value]
    ahead = dict.fromkeys(r.ahead.identity for r in overtaken if r.ahead is not None)
    committers = [[c for c in commits if c.identity == i] for i in {last.identity: None, **ahead}]
    key = partition_key(cluster, last)
    proof = [c for r in found for c in (r.ahead, r.commit) if c is not None]
    return Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        severity="critical" if overtaken else "warning",
        confidence="high" if overtaken else "medium",
        provisional=not overtaken,
        subject=subject_text(**key),
        sentence=_sentence(last, value, len(same_value), worst),
        next_step=_next_step(last, bool(overtaken)),
        ts_first_ns=min(c.ts for c in same_value),
        ts_last_ns=max(c.ts for c in same_value),
        evidence=some_evidence(evidence_of([same_value[0], *proof])),
        numbers={
            **key,
            "stuck_offset": value,
            "commits_of_it": len(same_value),
            "returns": len(found),
            "ahead_offset": worst.position,
            "ahead_by_commits": len(overtaken),
            "last_offset": commits[-1].committed_offset,
            "replay": worst.position - value,
            "committers": [committer_numbers(some) for some in committers],
        },
    )


def _sentence(last: Commit, value: int, times: int, worst: _Return) -> str:
    if worst.ahead is None:
        ahead = f"although it had fetched up to {worst.position}"
    elif worst.ahead.identity == last.identity:
        ahead = f"although it had committed {worst.position} itself"
    else:
        ahead = f"although {committer_text(worst.ahead)} had committed {worst.position}"
    return (
        f"{group_text(last)}: {committer_text(last)} wrote offset {value} of {partition_text(last)} "
        f"{times} times {ahead}. Whoever starts at {value} gets {count_text(worst.position - value, 'message')} again."
    )


def _next_step(last: Commit, overtaken: bool) -> str:
    if not overtaken:
        return (
            f"Ask why {committer_text(last)} does not commit what it fetches: a record that fails again and again, a "
            "worker that hangs, or a code path that never marks its messages."
        )
    return (
        f"Look at the process behind {committer_text(last)}: it holds an old offset of this partition and commits it "
        "on a timer. Restart it to stop the damage; then search for its own offset store or for commits out of order."
    )


DETECTOR = Detector(
    code="KAF102",
    name="stuck-committer",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, **READ_TABLES},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    # Six commits of one value by one committer, and something further in that partition.
    suspects=f"""
        SELECT repeated.cluster_id, repeated.topic, repeated.partition FROM (
            SELECT cluster_id, topic, partition, min(committed_offset) AS lowest FROM (
                SELECT cluster_id, topic, partition, committed_offset FROM r_{COMMITS}
                GROUP BY cluster_id, topic, partition, group_id, {IDENTITY_SQL}, committed_offset HAVING count(*) > 5)
            GROUP BY ALL) AS repeated
        JOIN (
            SELECT cluster_id, topic, partition, max(furthest) AS furthest FROM (
                SELECT cluster_id, topic, partition, committed_offset AS furthest FROM r_{COMMITS}
                UNION ALL
                SELECT cluster_id, topic, partition, fetch_offset FROM r_kafka_fetch_partitions)
            GROUP BY ALL) AS ahead
        ON repeated.cluster_id IS NOT DISTINCT FROM ahead.cluster_id
            AND repeated.topic IS NOT DISTINCT FROM ahead.topic AND repeated.partition = ahead.partition
        WHERE furthest > lowest""",
)
