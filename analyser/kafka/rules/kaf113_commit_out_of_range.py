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
from itertools import pairwise

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, moment_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    committer_text,
    group_text,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.stored import (
    STORED,
    STORED_COLUMNS,
    Stored,
    by_committer,
    committers_numbers,
    proof_of_stored,
    stored_by_group,
)

KEYS = ("cluster_id", "topic", "partition")


def detect(frames: Frames, *, above: int = 1, gap_s: float = 10.0) -> Iterator[Finding]:
    """One finding per group with commits that are `above` the end of the log, or more."""
    groups = [*stored_by_group(frames[STORED])]
    if not groups:
        return
    cluster = first_value(frames[STORED], "cluster_id")
    for group in groups:
        found = [commit for commit in group if _beyond(commit) >= above and _is_whole(commit, gap_s)]
        if found:
            yield _finding(cluster, found)
    for group in groups:
        if any(commit.committed_offset < 0 for commit in group):
            yield _taken_away(cluster, group)


def _beyond(commit: Stored) -> int:
    """How far it is above the end that was known, and above the next one that was told; 0 where either is not known."""
    known, later = commit.log_end_offset, commit.next_log_end
    return 0 if known is None or later is None else commit.committed_offset - max(known, later)


def _is_whole(commit: Stored, gap_s: float) -> bool:
    lost = commit.client_gap_ts
    return lost is None or commit.ts_sent - lost > gap_s * NS_PER_S


def _finding(cluster: str | None, commits: Sequence[Stored]) -> Finding:
    worst = max(commits, key=lambda commit: commit.committed_offset - (commit.next_log_end or 0))
    log_end = worst.next_log_end or 0
    beyond = worst.committed_offset - log_end
    key = partition_key(cluster, worst)
    often = f"; {count(len(commits), 'commit')} of this kind" if len(commits) > 1 else ""
    return RULE.finding(
        subject=key,
        title=title_text(
            f"Commit beyond the log end: {{}}, {worst.committed_offset} over {log_end}, by {{}}",
            partition_text(worst), short_committer(worst),
        ),
        sentence=(
            f"{group_text(worst)}: {committer_text(worst)} stored offset "
            f"{worst.committed_offset} for {partition_text(worst)}, {count(beyond, 'message')} beyond "
            f"the end of its log ({log_end}){often}. "
            "A reader that starts there would be refused (OFFSET_OUT_OF_RANGE) and begin where auto.offset.reset says."
        ),
        next_step=(
            "Look at where this client takes the offsets from that it commits: each must be the offset of the last "
            "record that it handled, plus one. Before it restarts, set the group to what was handled: "
            "kafka-consumer-groups --reset-offsets --to-offset."
        ),
        proof=proof_of_stored(commits),
        numbers={
            **key,
            "commits": len(commits),
            "highest_beyond": beyond,
            "committed_offset": worst.committed_offset,
            "log_end_offset": log_end,
            "client_id": worst.client_id,
            "address": worst.client_address,
            "member": worst.member_id,
            "committers": committers_numbers(by_committer(commits)),
        },
    )  # fmt: skip


def _taken_away(cluster: str | None, group: Sequence[Stored]) -> Finding:
    """group: commits below 0, and those beside each of them."""
    commits = [commit for commit in group if commit.committed_offset < 0]
    last, before = commits[-1], [commit for commit in group if commit.step < commits[0].step]
    is_followed = group[-1].step > last.step
    is_made_good = is_followed and all(
        after.committed_offset >= 0 and after.identity == one.identity
        for one, after in pairwise(group)
        if one.committed_offset < 0
    )
    severity: Severity = "info" if not before else "warning" if is_made_good else "critical"
    lost = (
        f"the offset {before[-1].committed_offset} that was stored is gone"
        if before
        else "what was stored, if anything, is gone"
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
            f"{partition_text(last)} at {moment_text(last.ts_sent)}; {count(len(commits), 'commit')} of this kind. The "
            f"broker accepted it: {lost}. A reader that starts then begins where auto.offset.reset says. {now}"
        ),
        next_step=(
            f"Look at the code behind {committer_text(last)}: it commits a position that it does not have yet (-1, or "
            "another number with a meaning of its own in its library), mostly for a partition of which it has read "
            "nothing. Set the group to what was handled before members start: kafka-consumer-groups --reset-offsets "
            "--to-offset."
        ),
        proof=proof_of_stored(commits),
        numbers={
            **key,
            "commits": len(commits),
            "committed_offset": last.committed_offset,
            "client_id": last.client_id,
            "address": last.client_address,
            "member": last.member_id,
            "committers": committers_numbers(by_committer(commits)),
        },
    )  # fmt: skip


RULE = Rule(
    code="KAF113",
    question="went back",
    name="commit-out-of-range",
    severity="critical",
    confidence="high",
    reads={STORED: STORED_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={STORED: "near_below_0 OR next_log_end < committed_offset"},
    suspects=AnyRow(STORED),
)
