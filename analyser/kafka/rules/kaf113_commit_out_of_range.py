"""KAF113 commit-out-of-range: a group stored an offset that the log does not have.

Finds
    Accepted commits of an offset above the end of the partition's log, or below 0.

Why it matters
    A broker stores any offset. After the next rebalance or restart the group fetches there, is told
    OFFSET_OUT_OF_RANGE, and auto.offset.reset decides: everything again (earliest), or nothing of what was written
    meanwhile (latest). Once the log has grown past it, all records before it are skipped without an error. An offset
    below 0 takes away the one that was stored: OffsetFetch answers -1 from then on, as if nothing had been committed,
    and auto.offset.reset decides as well.

How it decides
    A commit counts when the log's end was known before it (see `log_end_offset`) and is below the committed offset, and
    a Fetch that was sent after the commit was answered tells a high watermark that is still below it, as does the last
    one sent within a second: request logs may tell seconds only. The end of a log only moves up, so it was below at the
    time of the commit. Commits within `gap_s` seconds after something of
    their client was lost do not count: the answer that told a higher end may be missing, and a follower's end, which
    other readers are told, is behind. A commit below 0 needs none of that. A finding for each group of a partition
    and each of both kinds; below 0 it is a warning when the same committer stores an offset again with the next commit,
    and info when none was stored before in the capture: then nothing may be lost.

False alarms
    After an unclean election the log is shorter than it was: commits of before are not looked at, since the end was
    above them then. A topic that is made anew begins without log end.

What it cannot tell
    Of one direction alone nothing is said: commits count when they are accepted, and the log's end stands in answers.
    Before anybody was told the log's end in the capture it is not known.

References
    Kafka's OffsetCommit: the coordinator does not know the log, and does not look whether an offset is below 0, which
    only the Java client does (KAFKA-4081); KIP-320 on truncation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, moment_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.columns import UNKNOWN
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commit_columns import CommitColumns, commit_columns
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    by_identity,
    commit_proof,
    committer_numbers,
    committer_text,
    group_text,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import title_text

FETCHES = "kafka_fetch_partitions"
KEYS = ("cluster_id", "topic", "partition")
_DOUBT_NS = NS_PER_S


class _Above(NamedTuple):
    """A commit, and the end of the log that was told after it."""

    commit: Commit
    log_end: int


def detect(frames: Frames, *, above: int = 1, gap_s: float = 10.0) -> Iterator[Finding]:
    """One finding per group with commits that are `above` the end of the log, or more."""
    groups: dict[str | None, list[_Above]] = {}
    stored = commit_columns(frames[COMMITS])
    stored = stored.take(stored.numbers["error_code"] == 0)
    commits = stored.accepted()
    lost = commits.numbers["client_gap_ts"]
    is_whole = (lost == UNKNOWN) | (commits.ts - lost > gap_s * NS_PER_S)
    for one in _above(commits.take(is_whole), frames[FETCHES], above):
        groups.setdefault(one.commit.group_id, []).append(one)
    taken_away = [of_group for of_group in stored.groups() if (of_group.offset < 0).any()]
    if groups or taken_away:
        cluster = first_value(frames[COMMITS], "cluster_id")
        yield from (_finding(cluster, found) for found in groups.values())
        yield from (_taken_away(cluster, of_group) for of_group in taken_away)


def _above(commits: CommitColumns, fetches: Frame, above: int) -> Iterator[_Above]:
    """Commits above the end that was known, and above the next one that was told."""
    at, end = fetches["ts"].numbers(), fetches["high_watermark"].numbers()
    order = np.lexsort((end, at))
    order = order[end[order] >= 0]
    at, end = at[order], end[order]
    known = commits.numbers["log_end_offset"]
    rows = np.flatnonzero((known != UNKNOWN) & (commits.offset - above >= known))
    after = np.searchsorted(at, commits.done_ns[rows])
    rows, after = rows[after < len(at)], after[after < len(at)]
    # Times may be a second wrong from connection to connection (a request log's, cut to seconds).
    within = np.searchsorted(at, commits.done_ns[rows] + _DOUBT_NS, side="right") - 1
    beyond = np.maximum(end[after], end[np.maximum(after, within)]) <= commits.offset[rows] - above
    yield from map(_Above, commits.commits(rows[beyond]), end[after[beyond]].tolist())


def _finding(cluster: str | None, found: Sequence[_Above]) -> Finding:
    commits = [one.commit for one in found]
    worst = max(found, key=lambda one: one.commit.committed_offset - one.log_end)
    beyond = worst.commit.committed_offset - worst.log_end
    committers = by_identity(commits)
    key = partition_key(cluster, worst.commit)
    often = f"; {count(len(commits), 'commit')} of this kind" if len(commits) > 1 else ""
    return RULE.finding(
        subject=key,
        title=title_text(
            f"Commit beyond the log end: {{}}, {worst.commit.committed_offset} over {worst.log_end}, by {{}}",
            partition_text(worst.commit), short_committer(worst.commit),
        ),
        sentence=(
            f"{group_text(worst.commit)}: {committer_text(worst.commit)} stored offset "
            f"{worst.commit.committed_offset} for {partition_text(worst.commit)}, {count(beyond, 'message')} beyond "
            f"the end of its log ({worst.log_end}){often}. "
            "A reader that starts there would be refused (OFFSET_OUT_OF_RANGE) and begin where auto.offset.reset says."
        ),
        next_step=(
            "Look at where this client takes the offsets from that it commits: each must be the offset of the last "
            "record that it handled, plus one. Before it restarts, set the group to what was handled: "
            "kafka-consumer-groups --reset-offsets --to-offset."
        ),
        proof=commit_proof(commits),
        numbers={
            **key,
            "commits": len(commits),
            "highest_beyond": beyond,
            "committed_offset": worst.commit.committed_offset,
            "log_end_offset": worst.log_end,
            "client_id": worst.commit.client_id,
            "address": worst.commit.client_address,
            "member": worst.commit.member_id,
            "committers": [committer_numbers(own) for own in committers.values()],
        },
    )  # fmt: skip


def _taken_away(cluster: str | None, stored: CommitColumns) -> Finding:
    rows, who = np.flatnonzero(stored.offset < 0), stored.committers()
    commits = [*stored.commits(rows)]
    last, before, after = commits[-1], stored.offset[: rows[0]], rows + 1
    is_followed = bool(after[-1] < len(stored))
    is_made_good = is_followed and bool(((stored.offset[after] >= 0) & (who[after] == who[rows])).all())
    severity: Severity = "info" if not len(before) else "warning" if is_made_good else "critical"
    lost = (
        f"the offset {before[-1]} that was stored is gone" if len(before) else "what was stored, if anything, is gone"
    )
    now = "An offset was stored again later." if is_followed else "Nothing has been stored since."
    key = partition_key(cluster, last)
    return RULE.finding(
        severity=severity,
        subject={**key, "kind": "below 0"},
        title=title_text(
            f"Offset below 0 committed: {{}}, {last.committed_offset}, by {{}}",
            partition_text(last), short_committer(last),
        ),
        sentence=(
            f"{group_text(last)}: {committer_text(last)} stored offset {last.committed_offset} for "
            f"{partition_text(last)} at {moment_text(last.ts)}; {count(len(commits), 'commit')} of this kind. The "
            f"broker accepted it: {lost}. A reader that starts then begins where auto.offset.reset says. {now}"
        ),
        next_step=(
            f"Look at the code behind {committer_text(last)}: it commits a position that it does not have yet (-1, or "
            "another number with a meaning of its own in its library), mostly for a partition of which it has read "
            "nothing. Set the group to what was handled before members start: kafka-consumer-groups --reset-offsets "
            "--to-offset."
        ),
        proof=commit_proof(commits),
        numbers={
            **key,
            "commits": len(commits),
            "committed_offset": last.committed_offset,
            "client_id": last.client_id,
            "address": last.client_address,
            "member": last.member_id,
            "committers": [committer_numbers(own) for own in by_identity(commits).values()],
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF113",
    question="went back",
    name="commit-out-of-range",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, FETCHES: ("ts", "high_watermark", "exchange_id")},
    partition_by=KEYS,
    detect=detect,
    suspects=f"""
        SELECT DISTINCT cluster_id, topic, partition FROM r_{COMMITS}
        WHERE error_code = 0 AND (committed_offset > log_end_offset OR committed_offset < 0)""",
)
