"""KAF118 commit-rejected: the broker does not store a commit for another reason than membership.

Finds
    Commits answered with 3, 12, 14, 15, 16, 28, 29, 30, 69 or 100.

Why it matters
    The offset is not stored. The consumer works on, and everything since its last accepted commit is delivered again
    after a restart. Clients often only log this at a low level.

How it decides
    Rejected commits are counted as requests, per committer and error code, with their share of all its commits.
    14, 15 and 16 (the coordinator loads, is not there, or has moved) are retried: such a rejection is healed when the
    committer later has a commit accepted. Up to `retries` healed ones are normal and silent, more are info.
    Everything else is a warning.
    Confidence high: errors are on the wire. A gap can hide the commit that heals, so a finding may be overturned.

False alarms
    A topic that was deleted on purpose while consumers had it (3, 100).

References
    Kafka protocol errors; OffsetCommit and TxnOffsetCommit responses.
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
    by_identity,
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
RETRIED = (14, 15, 16)
MEANINGS = {
    3: ("UNKNOWN_TOPIC_OR_PARTITION", "Check whether the topic was deleted or has fewer partitions than it had."),
    12: ("OFFSET_METADATA_TOO_LARGE", "Shorten the commit's metadata or raise offset.metadata.max.bytes."),
    14: ("COORDINATOR_LOAD_IN_PROGRESS", "Look at the broker that leads the group's __consumer_offsets partition."),
    15: ("COORDINATOR_NOT_AVAILABLE", "Look whether __consumer_offsets has enough live replicas."),
    16: ("NOT_COORDINATOR", "Look why the client keeps asking a broker that no longer coordinates the group."),
    28: ("INVALID_COMMIT_OFFSET_SIZE", "Look at the size of the commit's metadata and at the broker's log."),
    29: ("TOPIC_AUTHORIZATION_FAILED", "Give the client's principal Read on the topic."),
    30: ("GROUP_AUTHORIZATION_FAILED", "Give the client's principal Read on the group."),
    69: ("GROUP_ID_NOT_FOUND", "The group is gone; let the consumer join again."),
    100: ("UNKNOWN_TOPIC_ID", "Check whether the topic was deleted and made again under its old name."),
}


def detect(frames: Frames, *, retries: int = 1) -> Iterator[Finding]:
    """One finding per committer and error code."""
    commits = commits_of(frames[COMMITS])
    cluster = first_value(frames[COMMITS], "cluster_id") if commits else None
    rejected: dict[tuple[Identity, int], list[Commit]] = {}
    accepted: dict[Identity, int] = {}
    for commit in commits:
        if commit.error_code in MEANINGS:
            rejected.setdefault((commit.identity, commit.error_code or 0), []).append(commit)
        if commit.accepted:
            accepted[commit.identity] = commit.done_ns
    totals = {identity: len(requests_of(own)) for identity, own in by_identity(commits).items()}
    for (identity, code), own in rejected.items():
        requests = requests_of(own)
        healed = code in RETRIED and accepted.get(identity, 0) > own[-1].done_ns
        if not healed or len(requests) > retries:
            yield _finding(cluster, own, len(requests), totals[identity], healed)


def _finding(cluster: str | None, rejected: Sequence[Commit], requests: int, total: int, healed: bool) -> Finding:
    last, code = rejected[-1], rejected[-1].error_code or 0
    name, advice = MEANINGS[code]
    key = committer_key(cluster, last)
    outcome = "Later commits got through" if healed else "Since then nothing of it is stored"
    return DETECTOR.finding(
        severity="info" if healed else "warning",
        provisional=True,
        subject={**key, "error": code},
        sentence=(
            f"{group_text(last)}: the broker rejected {count(requests, 'commit')} of {total:,} of "
            f"{committer_text(last)} for {partitions_text(rejected)} with error {code} ({name}). {outcome}."
        ),
        next_step=advice,
        proof=commit_proof(rejected),
        numbers={
            **key,
            "error_code": code,
            "rejected_requests": requests,
            "all_requests": total,
            "rejected_share": round(requests / total, 6),
            "healed": healed,
            **commits_numbers(rejected),
        },
    )


DETECTOR = Detector(
    code="KAF118",
    name="commit-rejected",
    severity="warning",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    suspects=f"SELECT {', '.join(KEYS)} FROM r_{COMMITS} WHERE error_code IN ({', '.join(map(str, MEANINGS))})",
)
