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
    truncated (warning): OffsetForLeaderEpoch told the reader that the log ends below where it was (KIP-320), it went
        back there and committed. The records behind that end are gone; what has their offsets now are others.
    moved (warning): between the two commits a reader of the group began elsewhere because the offset was gone or could
        not be read: the group or its offsets were deleted (by whom is said), OffsetFetch answered -1, or the log did
        not reach it (`kafka_fetch_ranges`). What is delivered again counts from where it began, not from the lower
        commit. Offsets of a topic that was made anew are another log's and no step back.
    seek (info): between the two commits this client fetched at or below the lower offset, or ListOffsets or OffsetFetch
        told it that very offset (any below it too, if it sent no Fetch in that time).
    admin reset (info): no member id, by a client that commits the partition once, or that reads nothing of it while
        the client does whose offset it replaced. What came of it is told: records were read again when the group's
        OffsetFetch got the new offset and its reader began there; the reset was lost when another client committed a
        higher offset over it and nobody had begun there.
    reset lost (info): the commit before is such a tool's, and the committer went on from its own last offset: a reset
        to a later offset was written over by a client that had not stopped.
    sent again (info): the coordinator was moving and had refused this commit (errors 14, 15, 16), the client's library
        sent it again within 30 s, and its next commits made it good within 5 s.
    overtaken: the partition belongs to the committer, which went on from its own last offset, and the commit before is
        by a member to which it did not belong then: that one stored an offset ahead of what was read, and is named.
        warning; critical from `repeated` times on.
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

What it cannot tell
    Only accepted commits count: of requests alone nothing is said, nor of answers alone, which name no offset. In a
    capture that begins late the first commit seen is compared with none. A capture at the coordinator alone lacks the
    fetches that other brokers get: then a seek cannot be excluded, and the sentence says so.

References
    Burrow's REWIND rule, without its waiver for offsets that recovered. IBM/sarama#2940, fixed by #2947 in v1.43.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.kafka.rules.commits import (
    Identity,
    committer_text,
    group_text,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.fetch_range_columns import FetchRangeColumns
from wirewitness.analyser.kafka.rules.fetch_ranges import RUN_COLUMNS, RUNS, FetchRange
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.offset_reset_findings import cause_text, numbers_of
from wirewitness.analyser.kafka.rules.offset_resets import (
    MOVED_SQL,
    Jump,
    is_made_anew,
    jump_of,
    position_before,
)
from wirewitness.analyser.kafka.rules.step_backs import TOLD_BY_READERS, Cause, Step, steps_of
from wirewitness.analyser.kafka.rules.stored import (
    EDGES_SQL,
    STORED,
    STORED_COLUMNS,
    Stored,
    by_committer,
    committers_numbers,
    stored_by_group,
)

KEYS = ("cluster_id", "topic", "partition")


class _Group(NamedTuple):
    """What findings of a group share: its last commit, its highest offset, the commits of each committer."""

    last: Stored
    highest: int
    own: Mapping[Identity, Sequence[Stored]]


def detect(frames: Frames, *, repeated: int = 2) -> Iterator[Finding]:
    """One finding per group, committer, and kind of step (by the same committer or over another's offset)."""
    begun: dict[str | None, list[FetchRange]] = {}
    for run in FetchRangeColumns(frames[RUNS]).each():
        if is_made_anew(run) or jump_of(run) is not None:
            begun.setdefault(run.group_id, []).append(run)
    for group in stored_by_group(frames[STORED]):
        if group[0].group_id:
            found: dict[tuple[Identity, bool, Cause], list[Step]] = {}
            highest = max(commit.committed_offset for commit in group)
            shared = _Group(group[-1], highest, by_committer(group))
            for step in steps_of(group, begun.get(group[0].group_id, [])):
                found.setdefault((step.after.identity, step.same, step.cause), []).append(step)
            for steps in found.values():
                yield _finding(first_value(frames[STORED], "cluster_id"), steps, shared, repeated)


def _finding(cluster: str | None, steps: Sequence[Step], group: _Group, repeated: int) -> Finding:
    worst, last, cause = max(steps, key=lambda step: step.delta), steps[-1].after, steps[0].cause
    severity: Severity = "warning" if cause in TOLD_BY_READERS else "info"
    if cause in ("stale", "overtaken"):
        severity = "critical" if len(steps) >= repeated else "warning"
    is_sure = cause not in ("stale", "overtaken", "transaction", "sent again") or all(step.certain for step in steps)
    confidence: Confidence = "high" if is_sure else "medium"
    again = max((step.again for step in steps if step.again is not None), default=None)
    key = partition_key(cluster, last)
    stored, highest = group.last.committed_offset, group.highest
    # What lies behind a foreign offset, or behind the end of a truncated log, was not read before.
    is_elsewhere = cause in ("overtaken", "truncated", "reset lost")
    is_told = is_elsewhere or (cause == "admin reset" and steps[-1].following is not None)
    jumps = [step.jump for step in steps if step.jump is not None]
    behind, back = [step.before.identity for step in steps], [last.identity]
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        subject=key,
        title=_title(worst, len(steps)),
        sentence=_sentence(steps, worst, again, group.last) + ("" if is_told else _still_back(stored, highest)),
        next_step=_next_step(steps, worst),
        proof=Proof(
            min(step.before.ts_sent for step in steps), max(step.after.ts_sent for step in steps), _evidence(steps)
        ),
        numbers={
            **key,
            "cause": cause,
            "same_committer": worst.same,
            "steps_back": len(steps),
            "sent_before_answer": sum(step.together for step in steps),
            "records_again": again,
            "records_lost": _lost(jumps) if cause == "truncated" else None,
            "resets_lost": len(steps) if cause == "reset lost" else sum(step.over is not None for step in steps),
            **({"changed_by": numbers_of(jumps)["changed_by"]} if jumps else {}),
            "worst_delta": worst.delta,
            "worst_from": worst.before.committed_offset,
            "worst_to": worst.after.committed_offset,
            "total_delta": sum(step.delta for step in steps),
            "last_offset": stored,
            "replay_now": 0 if is_elsewhere else highest - stored,
            "fetches_seen": bool(last.fetches_seen),
            "committers": committers_numbers(group.own, behind + back if cause == "overtaken" else back + behind),
        },
    )


def _evidence(steps: Sequence[Step]) -> Iterator[Evidence]:
    """Both commits of each step; of resets of which one was lost the next one, too."""
    is_lost = any(step.over for step in steps)
    for step in steps:
        yield step.before.evidence
        yield step.after.evidence
        if is_lost and step.following is not None:
            yield step.following.evidence


def _lost(jumps: Sequence[Jump]) -> int:
    """Records behind the end of a truncated log that had been read."""
    return max((position_before(jump.run) or jump.begins) - jump.begins for jump in jumps)


def _title(worst: Step, back: int) -> str:
    before, after, over = worst.before, worst.after, worst.over
    place, who = partition_text(after), short_committer(after)
    way = f"{before.committed_offset} to {after.committed_offset}"
    again = f" {back:,} times" if back > 1 else ""
    if worst.cause == "truncated":
        return title_text(f"Offset moved backwards{again}: {{}}, {way}, its log was truncated", place)
    if worst.cause == "reset lost":
        return title_text(f"Offset reset to {before.committed_offset} was lost: {{}}, overwritten by {{}}", place, who)
    if over is not None:
        words = f"Offset reset to {after.committed_offset} was lost: {{}}, overwritten by {{}}"
        return title_text(words, place, short_committer(over))
    if worst.cause == "admin reset":
        return title_text(f"Offset reset{again}: {{}}, {way}, by {{}}", place, who)
    if worst.cause == "overtaken":
        words = f"Offset committed ahead of the owner{again}: {{}}, {way}, by {{}}"
        return title_text(words, place, short_committer(before))
    return title_text(f"Offset moved backwards{again}: {{}}, {way}, by {{}}", place, who)


def _sentence(steps: Sequence[Step], worst: Step, again: int | None, end: Stored) -> str:
    before, after, cause, over = worst.before, worst.after, worst.cause, worst.over
    often = "" if len(steps) == 1 else f" {len(steps):,} times, at worst"
    step = f"{often} from {before.committed_offset} to {after.committed_offset} ({count(worst.delta, 'message')})"
    place, who = partition_text(after), committer_text(after)
    head = f"{group_text(after)}: the committed offset of {place} moved back{step}"
    start, other = sentence_start(who), committer_text(before)
    twice = "" if again is None else f" {count(again, 'message')} {'is' if again == 1 else 'are'} reprocessed."
    if over is not None:
        return (
            f"{group_text(after)}: {who} set the committed offset of {place} from {before.committed_offset} to "
            f"{after.committed_offset}, and the reset was lost. {_overwritten(after, over)}"
        )
    if cause == "reset lost":
        return (
            f"{group_text(after)}: {other} set the committed offset of {place} to {before.committed_offset}, and the "
            f"reset was lost. {_overwritten(before, after)}"
        )
    if cause == "transaction":
        return f"{head}, by {who}. The offset before was committed in a transaction, which may have been aborted."
    if cause in TOLD_BY_READERS:
        jump = next(step.jump for step in steps if step.jump is not None)
        if cause == "moved":
            return f"{head}. {sentence_start(cause_text([jump]))}. {start} committed from there.{twice}"
        lost = _lost([step.jump for step in steps if step.jump is not None])
        return (
            f"{head}, because the log was truncated at {jump.begins} (OffsetForLeaderEpoch). "
            f"About {count(lost, 'acknowledged record')} are gone."
        )
    if cause == "overtaken":
        now = " It is there now." if end.identity != steps[-1].after.identity else ""
        return (
            f"{head}. {sentence_start(other)}, to which the partition is not assigned, had committed ahead of {who}, "
            f"which reads it. A restart after such a commit would skip up to {count(worst.delta, 'message')}.{now}"
        )
    doubt = "" if after.fetches_seen else " Its fetches of this partition are not in the capture."
    did_not = "" if doubt else " and did not seek"
    told = {
        "seek": f"read at or below that offset before it committed (a seek).{twice}",
        "admin reset": f"set it, as an admin tool does; before, {other} had committed.{twice if again else ''}",
        "sent again": "sent it again after the group's coordinator, which was moving, had refused it, and committed "
        "the newer offset again within 5 s.",
        "stale": f"committed an older offset of its own after a newer one{did_not}.{doubt}"
        if worst.same
        else f"committed a stale offset over that of {other}.{doubt}",
    }
    return f"{head}. {start} {told[cause]}"


def _overwritten(reset: Stored, over: Stored) -> str:
    later = (over.ts_sent - reset.ts_sent) / NS_PER_S
    return f"It was overwritten {later:,.1f} s later by {committer_text(over)} with {over.committed_offset}."


def _still_back(stored: int, highest: int) -> str:
    if stored >= highest:
        return " The last commit in the capture is the highest again; a rebalance in between would reprocess messages."
    return f" The committed offset is still {stored}; a restart would reprocess {count(highest - stored, 'message')}."


def _next_step(steps: Sequence[Step], worst: Step) -> str:
    cause = worst.cause
    if cause == "reset lost" or all(step.over for step in steps):
        return (
            "To set offsets, stop every process of the group first, also those that commit without membership; then "
            "reset again and look at --describe before they start."
        )
    if cause == "overtaken":
        return (
            f"Find the process behind {committer_text(worst.before)} and stop it committing this partition. Look for "
            "offsets that it takes from elsewhere (the end of the log, another store), or for a partition that it "
            "kept after it was revoked. What a restart skipped is still in the log: reset the group to read it."
        )
    if cause in _WHERE:
        return (
            "Look whether handling these messages twice did harm (payments, counters, mails). If no replay was meant, "
            f"look {_WHERE[cause]}."
        )
    if cause != "stale":
        return _NEXT_STEPS[cause]
    who = committer_text(worst.after)
    if worst.same and len(steps) > 1 and all(step.before.flow_id != step.after.flow_id for step in steps):
        return (
            f"Each of them came over another connection than the commit before it: look on the host of {who} for a "
            "second process that uses the same member id, such as one that was forked, or restored from an image, "
            "after the client had joined; or for two threads with a connection each."
        )
    if worst.same:
        early = sum(step.together for step in steps)
        hint = f" In {early} cases the second commit was sent before the response to the first." if early else ""
        return (
            "Look for commits that are built concurrently and sent out of order in this client (several threads or "
            "goroutines that commit one session; for example IBM/sarama before v1.43.3, issue #2940, fixed by #2947)."
            f"{hint} Update the client library, or let one thread commit."
        )
    return (
        f"Find the process behind {who} and stop it committing this partition: its offset is old. Look for offsets "
        "that it keeps after the partition was revoked."
    )


_WHERE: dict[Cause, str] = {
    "moved": "for who or what removed the offset (offsets.retention.minutes must exceed the longest stop of the group)",
    "seek": "for a seek in the application, or for positions that it keeps elsewhere",
    "admin reset": "for who ran the tool (kafka-consumer-groups --reset-offsets, alterConsumerGroupOffsets)",
}
_NEXT_STEPS: dict[Cause, str] = {
    "truncated": "Look which broker became leader, and whether it was in sync (unclean.leader.election.enable, "
    "min.insync.replicas, producers with acks=1). What is gone can only come from its producers.",
    "transaction": "Nothing to do if the transaction was aborted: what it wrote was taken back with it.",
    "sent again": "Look at why the coordinator moved; a member that took the partition over meanwhile read this again.",
}

RULE = Rule(
    code="KAF103",
    question="went back",
    name="offset-regression",
    severity="critical",
    confidence="high",
    reads={STORED: STORED_COLUMNS, RUNS: RUN_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={STORED: f"near_step_back OR {EDGES_SQL}", RUNS: MOVED_SQL},
    suspects=AnyRow(STORED, "below_commit > 0"),
)
