"""KAF118 commit-rejected: the broker does not store a commit for another reason than membership.

Finds
    Commits refused with 3, 12, 14, 15, 16, 28, 29, 30, 69 or 100.

Why it matters
    The offset is not stored. The consumer works on, and everything since its last accepted commit is delivered again
    after a restart. Clients often only log this at a low level.

How it decides
    Rejected commits are counted as requests, per committer and error code, with their share of all its commits.
    What became of each partition is looked up among the later commits of the whole group, whoever sent them: its offset
    is stored again once one at or above the rejected one is accepted. Else the last one accepted says where it stands.
    14, 15 and 16 (the coordinator loads, is not there, or has moved) are retried: such a rejection is healed when the
    committer later has a commit accepted, or all its partitions are stored again. Up to `retries` healed ones are
    normal and silent, more are info. Everything else is a warning.
    Confidence high: errors are on the wire. A gap can hide the commit that heals, so a finding may be overturned.

False alarms
    A topic that was deleted on purpose while consumers had it (3, 100).

What it cannot tell
    Of requests alone nothing is said: errors stand in answers. A rejection at the end of the capture may still be
    repeated.

References
    Kafka protocol errors; OffsetCommit and TxnOffsetCommit responses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    Identity,
    by_identity,
    commit_proof,
    commits_numbers,
    commits_of,
    committer_key,
    committer_text,
    group_text,
    partition_text,
    partitions_text,
    requests_of,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import MAX_LISTED, title_text
from wirewitness.dissectors.kafka.error_classes import error_class
from wirewitness.dissectors.kafka.error_codes import error_name

KEYS = ("cluster_id", "group_id")
RETRIED = (14, 15, 16)
# Topic and partition.
_Partition = tuple[str | None, int]
# Of membership KAF105 speaks.
CODES = (3, 12, 14, 15, 16, 28, 29, 30, 69, 100)


class _Stored(NamedTuple):
    """Accepted commits of a partition in broker order: when, and the highest offset of each and all after it."""

    times: list[int]
    highest_since: list[int]
    last: int

    def reaches(self, offset: int, after_ns: int) -> bool:
        """An offset as high was stored after that time."""
        place = bisect_right(self.times, after_ns)
        return place < len(self.times) and self.highest_since[place] >= offset


class _Outcome(NamedTuple):
    """What became of one partition's rejected offset. stored: the last accepted one; None where none was seen."""

    last: Commit
    rejected: int
    stored: int | None
    again: bool

    @property
    def numbers(self) -> dict[str, Any]:
        """For a finding: records are those between the stored and the rejected offset, null when not known."""
        return {
            "topic": self.last.topic,
            "partition": self.last.partition,
            "rejected_offset": self.rejected,
            "stored_offset": self.stored,
            "records": None if self.stored is None else max(self.rejected - self.stored, 0),
        }


def detect(frames: Frames, *, retries: int = 1) -> Iterator[Finding]:
    """One finding per committer and error code."""
    commits = commits_of(frames[COMMITS])
    cluster = first_value(frames[COMMITS], "cluster_id") if commits else None
    rejected: dict[tuple[Identity, int], list[Commit]] = {}
    accepted: dict[Identity, int] = {}
    for commit in commits:
        if commit.error_code in CODES:
            rejected.setdefault((commit.identity, commit.error_code or 0), []).append(commit)
        if commit.accepted:
            accepted[commit.identity] = commit.done_ns
    stored = _stored(commits)
    totals = {identity: len(requests_of(own)) for identity, own in by_identity(commits).items()}
    for (identity, code), own in rejected.items():
        requests = requests_of(own)
        outcomes = _outcomes(own, stored)
        got_through = accepted.get(identity, 0) > own[-1].done_ns or all(one.again for one in outcomes)
        healed = code in RETRIED and got_through
        if not healed or len(requests) > retries:
            yield _finding(cluster, own, outcomes, requests=len(requests), total=totals[identity], healed=healed)


def _stored(commits: Iterable[Commit]) -> dict[_Partition, _Stored]:
    found: dict[_Partition, list[Commit]] = {}
    for commit in commits:
        if commit.accepted:
            found.setdefault((commit.topic, commit.partition), []).append(commit)
    return {
        key: _Stored(
            [one.done_ns for one in own],
            [*accumulate((one.committed_offset for one in reversed(own)), max)][::-1],
            own[-1].committed_offset,
        )
        for key, own in found.items()
    }


def _outcomes(rejected: Sequence[Commit], stored: Mapping[_Partition, _Stored]) -> list[_Outcome]:
    by_partition: dict[_Partition, list[Commit]] = {}
    for commit in rejected:
        by_partition.setdefault((commit.topic, commit.partition), []).append(commit)
    return [_outcome(own, stored.get(key)) for key, own in by_partition.items()]


def _outcome(rejected: Sequence[Commit], stored: _Stored | None) -> _Outcome:
    highest, last = max(commit.committed_offset for commit in rejected), rejected[-1]
    if stored is None:
        return _Outcome(last, highest, None, again=False)
    return _Outcome(last, highest, stored.last, stored.reaches(highest, last.done_ns))


def _finding(
    cluster: str | None,
    rejected: Sequence[Commit],
    outcomes: Sequence[_Outcome],
    *,
    requests: int,
    total: int,
    healed: bool,
) -> Finding:
    last, code = rejected[-1], rejected[-1].error_code or 0
    name = error_name(code)
    key = committer_key(cluster, last)
    return RULE.finding(
        severity="info" if healed else "warning",
        provisional=True,
        subject={**key, "error": code},
        title=title_text(
            f"{requests:,} of {count(total, 'commit')} rejected: {{}} in group {{}}, {code} {name}",
            short_committer(last), last.group_id or "?",
        ),
        sentence=(
            f"{group_text(last)}: the broker rejected {requests:,} of {count(total, 'commit')} of "
            f"{committer_text(last)} for {partitions_text(rejected, 3)} with error {code} ({name}). "
            f"This was {period_text(rejected[0].ts, last.ts)}. {_fate(outcomes)}"
        ),
        next_step=error_class(code, "OffsetCommit").next_step,
        proof=commit_proof(rejected),
        numbers={
            **key,
            "error_code": code,
            "rejected_requests": requests,
            "all_requests": total,
            "rejected_share": round(requests / total, 6),
            "healed": healed,
            "not_stored": [one.numbers for one in outcomes if not one.again][:MAX_LISTED],
            **commits_numbers(rejected),
        },
    )  # fmt: skip


def _fate(outcomes: Sequence[_Outcome]) -> str:
    """What became of the partitions, the worst of those that were not stored again named with its offsets."""
    again = [one.last for one in outcomes if one.again]
    not_stored = [one for one in outcomes if not one.again]
    text = f"The offset of {partitions_text(again, 3)} was committed again later. " if again else ""
    if not not_stored:
        return text.rstrip()
    known = [one for one in not_stored if one.stored is not None]
    where = partitions_text([one.last for one in not_stored], 3)
    if not known:
        return f"{text}No commit for {where} was accepted in the capture."
    worst = max(known, key=lambda one: one.rejected - (one.stored or 0))
    stands = f"{partition_text(worst.last)} is at {worst.stored}"
    below = worst.rejected - (worst.stored or 0)
    cost = f", {count(below, 'message')} below: a restart would reprocess them" if below > 0 else ""
    return f"{text}For {where} no commit as high was accepted since; {stands}{cost}."


RULE = Rule(
    code="KAF118",
    question="refused",
    name="commit-rejected",
    severity="warning",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    suspects=AnyRow(COMMITS, f"error_code IN ({', '.join(map(str, CODES))})"),
)
