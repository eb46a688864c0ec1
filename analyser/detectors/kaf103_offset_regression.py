"""KAF103 offset-regression: a stored offset went back.

Finds
    An accepted commit whose offset is below that of the accepted commit before it, for the same cluster, group, topic
    and partition.

Why it matters
    Whoever takes the partition over next starts at the stored offset: everything between the lower and the higher
    offset is delivered again. If the offset recovers before that, nobody notices, and the next rebalance hits another
    partition.

How it decides
    Accepted commits (error 0) of one partition are put into broker order: on one connection the order of the stream,
    between connections the time of the response. Commits on different connections that were open at the same time are
    not compared. Each step back belongs to the committer that made it:
    seek (info): between the two commits this client fetched at or below the lower offset, or ListOffsets or OffsetFetch
        told it that very offset (any below it too, if it sent no Fetch in that time).
    admin reset (info): no member id, by a client that commits the partition once.
    stale: everything else. The same member wrote an older offset of its own (commits built at the same time and sent
        out of order), or another member wrote an old one. warning; critical from `repeated` times on.
    transaction (info): the commit before is a TxnOffsetCommit; when its transaction was aborted, work starts again at
        the older offset.
    Confidence is high when this client's fetches of the partition are in the capture without a gap between the two
    commits, when the later commit was on its way before the earlier one was answered (no client can seek that fast), or
    when the assignments say that another member owns the partition; else medium: a seek cannot be excluded.

False alarms
    A rewind whose Fetch went to a broker that was not captured. Two racing connections are left out, so a real step
    back between them can be missed.

References
    Burrow's REWIND rule, without its waiver for offsets that recovered. IBM/sarama#2940, fixed by #2947 in v1.43.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from analyser.detectors.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    Identity,
    by_group,
    by_identity,
    commits_of,
    committer_numbers,
    committer_text,
    count_text,
    evidence_of,
    first_value,
    group_text,
    partition_key,
    partition_text,
    racing,
    sent_together,
)
from analyser.detectors.framework import Detector, Frames
from analyser.detectors.positions import READ_TABLES, Reads, explained_by_reading, reads_of
from analyser.findings import Confidence, Finding, Severity, some_evidence, subject_text

KEYS = ("cluster_id", "topic", "partition")
Cause = Literal["seek", "admin reset", "transaction", "stale"]


class _Step(NamedTuple):
    """One step back: the commit before, the lower one, why."""

    before: Commit
    after: Commit
    cause: Cause

    @property
    def delta(self) -> int:
        return self.before.committed_offset - self.after.committed_offset


def detect(frames: Frames, *, repeated: int = 2) -> Iterator[Finding]:
    """One finding per group, committer, and kind of step (by the same committer or over another's offset)."""
    cluster = first_value(frames[COMMITS], "cluster_id") if len(frames[COMMITS]) else None
    accepted = [c for c in commits_of(frames[COMMITS]) if c.accepted]
    groups = {group: own for group, own in by_group(accepted).items() if _goes_back(own)}
    if not groups:
        return
    reads = reads_of(frames)
    for commits in groups.values():
        steps: dict[tuple[Identity, bool, Cause], list[_Step]] = {}
        for step in _steps(commits, reads):
            same = step.before.identity == step.after.identity
            steps.setdefault((step.after.identity, same, step.cause), []).append(step)
        for own in steps.values():
            yield _finding(cluster, commits, own, reads=reads, repeated=repeated)


def _goes_back(commits: Sequence[Commit]) -> bool:
    return any(b.committed_offset < a.committed_offset for a, b in pairwise(commits))


def _steps(commits: Sequence[Commit], reads: Reads) -> Iterator[_Step]:
    times = {identity: len(own) for identity, own in by_identity(commits).items()}
    for before, after in pairwise(commits):
        if after.committed_offset < before.committed_offset and not racing(before, after):
            yield _Step(before, after, _cause(before, after, reads, once=times[after.identity] == 1))


def _cause(before: Commit, after: Commit, reads: Reads, once: bool) -> Cause:
    if not after.member_id and once and after.api == "OffsetCommit":
        return "admin reset"
    if explained_by_reading(reads, before, after):
        return "seek"
    if before.api == "TxnOffsetCommit":
        return "transaction"
    return "stale"


def _finding(
    cluster: str | None, commits: Sequence[Commit], steps: Sequence[_Step], *, reads: Reads, repeated: int
) -> Finding:
    same = steps[0].before.identity == steps[0].after.identity
    worst = max(steps, key=lambda step: step.delta)
    cause, last = worst.cause, steps[-1].after
    severity: Severity = "info" if cause != "stale" else "critical" if len(steps) >= repeated else "warning"
    sure = all(_certain(step, reads) for step in steps)
    confidence: Confidence = "high" if sure or cause in ("seek", "admin reset") else "medium"
    key = partition_key(cluster, last)
    others = dict.fromkeys(s.before.identity for s in steps if s.before.identity != last.identity)
    committers = [[c for c in commits if c.identity == i] for i in (last.identity, *others)]
    stored, highest = commits[-1].committed_offset, max(c.committed_offset for c in commits)
    together = sum(sent_together(s.before, s.after) for s in steps)
    return Finding(
        code=DETECTOR.code,
        name=DETECTOR.name,
        severity=severity,
        confidence=confidence,
        provisional=False,
        subject=subject_text(**key),
        sentence=_sentence(steps, worst, same, reads) + _still_back(stored, highest),
        next_step=_next_step(worst, same, together),
        ts_first_ns=min(s.before.ts for s in steps),
        ts_last_ns=max(s.after.ts for s in steps),
        evidence=some_evidence(evidence_of(c for step in steps for c in (step.before, step.after))),
        numbers={
            **key,
            "cause": cause,
            "same_committer": same,
            "steps_back": len(steps),
            "sent_before_answer": together,
            "worst_delta": worst.delta,
            "worst_from": worst.before.committed_offset,
            "worst_to": worst.after.committed_offset,
            "total_delta": sum(step.delta for step in steps),
            "last_offset": stored,
            "replay_now": highest - stored,
            "fetches_seen": reads.sees_fetches(last.client),
            "committers": [committer_numbers(own) for own in committers],
        },
    )


def _certain(step: _Step, reads: Reads) -> bool:
    """Not a seek: its Fetch would have been seen, it came too early, or its member does not own the partition."""
    before, after = step.before, step.after
    foreign = after.ownership_confidence == "high" and after.owner_member_id != after.member_id
    whole = after.client_gap_ts is None or after.client_gap_ts < before.ts
    return foreign or sent_together(before, after) or (whole and reads.sees_fetches(after.client))


def _sentence(steps: Sequence[_Step], worst: _Step, same: bool, reads: Reads) -> str:
    after, before = worst.after, worst.before
    times = "once" if len(steps) == 1 else f"{len(steps)} times"
    step = f"at worst from {before.committed_offset} to {after.committed_offset} ({count_text(worst.delta, 'message')})"
    head = f"{group_text(after)}: the stored offset of {partition_text(after)} went back {times}, {step}"
    who = committer_text(after)
    if worst.cause == "seek":
        return f"{head}, because {who} turned back by itself: it read at or below that offset before it committed."
    if worst.cause == "admin reset":
        return f"{head}: {who} set it, as an admin tool does; before it {committer_text(before)} had committed."
    if worst.cause == "transaction":
        return f"{head}: the offset before {who} was committed in a transaction, which may have been aborted."
    doubt = "" if reads.sees_fetches(after.client) else " (its fetches of this partition are not in the capture)"
    if same:
        return f"{head}: {who} wrote an older offset of its own after a newer one and did not seek{doubt}."
    return f"{head}: {who} wrote a stale offset over that of {committer_text(before)}{doubt}."


def _still_back(stored: int, highest: int) -> str:
    if stored >= highest:
        return " The last commit in the capture is the highest again; a rebalance in between delivers messages twice."
    return f" It still stands at {stored}: a restart now delivers {count_text(highest - stored, 'message')} again."


def _next_step(worst: _Step, same: bool, together: int) -> str:
    if worst.cause != "stale":
        return "Nothing to do if this was intended."
    if same:
        hint = f" In {together} cases the second commit left before the first was answered." if together else ""
        return (
            "Look for commits that are built concurrently and sent out of order in this client (several threads or "
            "goroutines that commit one session; for example IBM/sarama before v1.43.3, issue #2940, fixed by #2947)."
            f"{hint} Update the client library, or let one thread commit."
        )
    return (
        f"Find the process behind {committer_text(worst.after)} and stop it committing this partition: its offset is "
        "old. Look for offsets that it keeps after the partition was revoked."
    )


DETECTOR = Detector(
    code="KAF103",
    name="offset-regression",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, **READ_TABLES},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: "error_code = 0"},
    suspects=f"""
        SELECT cluster_id, topic, partition FROM (
            SELECT cluster_id, topic, partition, committed_offset, max(committed_offset) OVER (
                PARTITION BY cluster_id, group_id, topic, partition ORDER BY coalesce(ts_response, ts)
                RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS highest
            FROM r_{COMMITS})
        WHERE committed_offset < highest""",
)
