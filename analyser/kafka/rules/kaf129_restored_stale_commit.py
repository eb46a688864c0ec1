"""KAF129 restored-stale-commit: a commit that had failed is sent again later and stored over a newer one.

Finds
    An accepted commit of an offset that the same client had sent before without success (refused or unanswered), after
    a higher offset of the partition had been accepted.

Why it matters
    The stored offset goes back: whoever takes the partition over next reads again what had been committed.

How it decides
    Commits of one group and partition in broker order. The failed commit and the later one have the same client
    (address and client id) and offset; between them a higher offset was accepted. A fetch of that client at or below
    the offset in between makes it a seek, which is none. Warning; critical where the stored offset is still lower at
    the end; info where none of the client's fetches is in the capture, since it may have turned back by itself, and
    where the coordinator was moving (errors 14, 15, 16, which libraries answer by sending the commit again, within 30
    s) and the client's next commits made it good within 5 s.
    A commit whose answer the capture lost (bytes of the client are missing) may have been accepted: it did not fail.

False alarms
    A replay that seeks by OffsetFetch alone.

What it cannot tell
    A capture that began after the commit failed has only the later one: KAF103 tells that the offset went back, and not
    why. Requests alone say nothing.

References
    spring-projects/spring-kafka#3186 (failed commits are kept and committed again).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.base.times import moment_text, time_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.columns import UNKNOWN, Booleans, Integers
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import numbered, pairs
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commit_columns import CommitColumns, commit_columns
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    Identity,
    commit_proof,
    committer_text,
    group_text,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.coordinator_moves import LATER, Refused, is_made_good
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.positions import READ_TABLES, Reads, reads_of

KEYS = ("cluster_id", "topic", "partition")


class _Restored(NamedTuple):
    """failed: the commit without success; newer: the highest accepted after it; late: the same offset, accepted.

    brief: a coordinator that moved made the client send it again, and it was made good at once.
    """

    failed: Commit
    newer: Commit
    late: Commit
    brief: bool


_COORDINATOR_MOVED = (
    "The group's coordinator moved, and the client's library sent refused commits again; its next commits made it "
    "good. Look at why the coordinator moved; a member that took the partition over meanwhile read this again."
)
_UNSEEN = " It may have turned back by itself: its fetches of this partition are not in the capture."


def detect(frames: Frames) -> Iterator[Finding]:
    """One finding per group and client."""
    commits = commit_columns(frames[COMMITS])
    if commits.is_accepted().all():
        return
    reads = reads_of(frames)
    for group in commits.groups():
        found: dict[Identity, list[_Restored]] = {}
        for restored in _restored(group, reads):
            found.setdefault(restored.late.client, []).append(restored)
        for client, own in found.items():
            yield _finding(first_value(frames[COMMITS], "cluster_id"), own, group, seen=reads.sees_fetches(client))


def _restored(commits: CommitColumns, reads: Reads) -> Iterator[_Restored]:
    """Of all commits only those are looked at whose client had both success and none with their offset."""
    accepted, numbers = commits.is_accepted(), commits.numbers
    failed = ~accepted & ((numbers["error_code"] != UNKNOWN) | (numbers["client_gap_ts"] == UNKNOWN))
    keys = numbered(pairs(commits.clients(), commits.offset))
    both = np.bincount(keys, failed) * np.bincount(keys, accepted) > 0
    highest = _highest(commits, accepted)
    failures: dict[int, int] = {}
    for row in np.flatnonzero((failed | accepted) & both[keys]).tolist():
        key = int(keys[row])
        if failed[row]:
            failures[key] = row
            continue
        before, high = failures.pop(key, None), int(highest[row - 1]) if row else -1
        if before is None or high < 0 or commits.offset[high] <= commits.offset[row]:
            continue
        refused, newer, late = commits[before], commits[high], commits[row]
        if newer.done_ns > refused.ts and not reads.went_back(late.client, newer.ts, late.ts, late.committed_offset):
            later = map(commits.__getitem__, range(row + 1, min(row + 1 + LATER, len(commits))))
            brief = Refused([refused]).is_sent_again(late) and is_made_good(newer, late, later)
            yield _Restored(refused, newer, late, brief)


def _highest(commits: CommitColumns, accepted: Booleans) -> Integers:
    """For each row which accepted commit up to it is the highest, the last one of several; -1 for none."""
    offsets = np.where(accepted, commits.offset, UNKNOWN)
    is_highest = accepted & (offsets == np.maximum.accumulate(offsets))
    found: Integers = np.maximum.accumulate(np.where(is_highest, np.arange(len(commits)), -1))
    return found


def _finding(cluster: str | None, restored: Sequence[_Restored], commits: CommitColumns, *, seen: bool) -> Finding:
    worst = max(restored, key=lambda one: one.newer.committed_offset - one.late.committed_offset)
    failed, newer, late, _ = worst
    brief = all(one.brief for one in restored)
    key = partition_key(cluster, late)
    back = newer.committed_offset - late.committed_offset
    stored = int(commits.accepted().offset[-1])
    compared(len(commits))
    committers = commits.committers()
    own = {commits.identity(int(row)): one for one, row in zip(*np.unique(committers, return_index=True), strict=True)}
    # Without an answer, or a limit ended the wait for it.
    error = "got no known response" if failed.error_code is None else f"was refused with error {failed.error_code}"
    still = stored < newer.committed_offset
    by = "" if newer.identity == late.identity else f" of {committer_text(newer)}"
    return RULE.finding(
        severity="info" if brief or not seen else "critical" if still else "warning",
        confidence="high" if seen else "low",
        subject={**key, "client": late.client_id, "address": late.client_address},
        title=title_text(
            f"Old offset committed again: {{}}, {newer.committed_offset} to {late.committed_offset}, by {{}}",
            partition_text(late), short_committer(late),
        ),
        sentence=(
            f"{group_text(late)}: {committer_text(late)} committed the old offset {late.committed_offset} of "
            f"{partition_text(late)} over the newer {newer.committed_offset}{by}: {count(back, 'message')} back. "
            f"It did so at {moment_text(late.ts)}; the same commit at {moment_text(failed.ts)} {error}. "
            + (f"The committed offset is still {stored}." if still else "Later commits are higher again.")
            + ("" if seen else _UNSEEN)
        ),
        next_step=_COORDINATOR_MOVED
        if brief
        else (
            "Look in this client for failed commits that are kept and committed again later (a framework that retries "
            "asynchronous commits, for example spring-kafka#3186): drop them once newer offsets are known."
        ),
        proof=commit_proof([failed, newer, late]),
        numbers={
            **key,
            "times": len(restored),
            "restored_offset": late.committed_offset,
            "newer_offset": newer.committed_offset,
            "messages_back": back,
            "error_code": failed.error_code,
            "last_offset": stored,
            "ts_failed": time_text(failed.ts),
            "ts_restored": time_text(late.ts),
            "committers": [
                commits.numbers_of(np.flatnonzero(committers == own[who]))
                for who in dict.fromkeys((late.identity, newer.identity))
            ],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF129",
    question="went back",
    name="restored-stale-commit",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, **READ_TABLES},
    partition_by=KEYS,
    detect=detect,
    suspects=f"""
        SELECT failed.cluster_id, failed.topic, failed.partition
        FROM (FROM r_{COMMITS} WHERE coalesce(error_code, -1) <> 0) AS failed
        JOIN (FROM r_{COMMITS} WHERE error_code = 0) AS late
            ON failed.cluster_id IS NOT DISTINCT FROM late.cluster_id AND failed.topic = late.topic
            AND failed.partition = late.partition AND failed.group_id = late.group_id
            AND failed.committed_offset = late.committed_offset AND failed.client_id IS NOT DISTINCT FROM late.client_id
        WHERE late.ts > failed.ts""",
)
