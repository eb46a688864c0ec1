"""KAF105 fenced-commits: the broker refuses the commits of a member that is no longer one.

Finds
    Commits answered with 22 ILLEGAL_GENERATION, 25 UNKNOWN_MEMBER_ID, 27 REBALANCE_IN_PROGRESS, 82 FENCED_INSTANCE_ID,
    110 FENCED_MEMBER_EPOCH or 113 STALE_MEMBER_EPOCH.

Why it matters
    The offset is safe: the broker kept it. But the refused member goes on working on partitions that others have, so
    messages are processed twice, and what it did is never stored.

How it decides
    Refused commits are counted as requests, per member (else address and client id), generation and error code; 113 may
    stand at single partitions of a request. A refusal is healed when the same committer later has a commit accepted for
    one of the same partitions, at the refused offset or above. 27 is everyday while a rebalance is under way, and
    healed when the committer has any later commit accepted.
    warning: `zombie` refusals with one code that are not healed: the committer does not notice that it is out.
    info: fewer, or healed ones. A healed 27 is not reported.
    Confidence high: errors are on the wire. Healing can be hidden by a gap, so a finding may be overturned.

False alarms
    A burst of asynchronous commits that was under way when the session timed out counts each request.

References
    Kafka protocol errors. KIP-345 (82), KIP-848 (110, 113), KIP-1251 (113 at partitions).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import first_value
from analyser.detectors.kafka.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    Identity,
    commit_proof,
    commits_numbers,
    commits_of,
    committer_key,
    committer_text,
    group_text,
    partitions_text,
    requests_of,
)
from analyser.words import count

KEYS = ("cluster_id", "group_id", "client_address", "client_id")
REBALANCE_IN_PROGRESS = 27
MEANINGS = {
    22: "ILLEGAL_GENERATION, its generation is over",
    25: "UNKNOWN_MEMBER_ID, the group does not know this member",
    27: "REBALANCE_IN_PROGRESS, the group is rebalancing",
    82: "FENCED_INSTANCE_ID, another process has its static member name",
    110: "FENCED_MEMBER_EPOCH, the coordinator has fenced this member",
    113: "STALE_MEMBER_EPOCH, its member epoch is old",
}


def detect(frames: Frames, *, zombie: int = 3) -> Iterator[Finding]:
    """One finding per committer, generation and error code."""
    commits = commits_of(frames[COMMITS])
    cluster = first_value(frames[COMMITS], "cluster_id") if commits else None
    refused: dict[tuple[Identity, int | None, int], list[Commit]] = {}
    for commit in commits:
        if commit.error_code in MEANINGS and not _simple(commit):
            refused.setdefault((commit.identity, commit.generation, commit.error_code or 0), []).append(commit)
    latest = _Accepted(commits)
    for (_, _, code), own in refused.items():
        requests = list(requests_of(own).values())
        standing = [request for request in requests if not latest.heals(request, code)]
        if code == REBALANCE_IN_PROGRESS and not standing:
            continue
        yield _finding(cluster, own, len(requests), len(standing), zombie)


def _simple(commit: Commit) -> bool:
    """A simple consumer's commit, see KAF106. TxnOffsetCommit without member data is never fenced by generation."""
    return not commit.member_id and (commit.generation is None or commit.generation < 0)


class _Accepted:
    """Accepted commits of each committer: the last one at all, and the last of each partition."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._any: dict[Identity, int] = {}
        self._partitions: dict[tuple[Identity, str | None, int], list[tuple[int, int]]] = {}
        for commit in commits:
            if commit.accepted:
                self._any[commit.identity] = commit.done_ns
                place = (commit.identity, commit.topic, commit.partition)
                self._partitions.setdefault(place, []).append((commit.done_ns, commit.committed_offset))

    def heals(self, request: Sequence[Commit], code: int) -> bool:
        """The committer got through later, for one of these partitions (for 27: at all)."""
        if code == REBALANCE_IN_PROGRESS:
            return self._any.get(request[0].identity, 0) > request[0].done_ns
        return any(self._later(commit) for commit in request)

    def _later(self, commit: Commit) -> bool:
        stored = self._partitions.get((commit.identity, commit.topic, commit.partition), ())
        for done_ns, offset in reversed(stored):
            if done_ns <= commit.done_ns:
                return False
            if offset >= commit.committed_offset:
                return True
        return False


def _finding(cluster: str | None, refused: Sequence[Commit], requests: int, standing: int, zombie: int) -> Finding:
    last, code = refused[-1], refused[-1].error_code or 0
    is_zombie = standing >= zombie
    key = committer_key(cluster, last)
    outcome = (
        "Not one got through later: it works on partitions that are no longer its own"
        if is_zombie
        else "The offset is safe, the broker kept the stored one"
    )
    return DETECTOR.finding(
        severity="warning" if is_zombie else "info",
        provisional=True,
        subject={**key, "error": code, "generation": last.generation},
        sentence=(
            f"{group_text(last)}: the broker refused {count(requests, 'commit')} of "
            f"{committer_text(last)} for {partitions_text(refused)} with error {code} ({MEANINGS[code]}). {outcome}."
        ),
        next_step=(
            f"Restart the process behind {committer_text(last)} and look why it missed the rebalance: processing "
            "longer than max.poll.interval.ms, a pause longer than the session timeout, or a generation that is kept."
            if is_zombie
            else "Nothing to do if it happened once around a rebalance."
        ),
        proof=commit_proof(refused),
        numbers={
            **key,
            "error_code": code,
            "generation": last.generation,
            "refused_requests": requests,
            "not_healed": standing,
            **commits_numbers(refused),
        },
    )


DETECTOR = Detector(
    code="KAF105",
    name="fenced-commits",
    severity="warning",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    suspects=f"SELECT {', '.join(KEYS)} FROM r_{COMMITS} WHERE error_code IN ({', '.join(map(str, MEANINGS))})",
)
