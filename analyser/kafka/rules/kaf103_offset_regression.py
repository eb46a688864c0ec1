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

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.base.severity import Confidence, Severity
from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.columns import UNKNOWN, Booleans, Integers
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame import numbered, pairs, places_of, together
from wirewitness.analyser.engine.rules.frame_rows import first_value
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commit_columns import CommitColumns, commit_columns
from wirewitness.analyser.kafka.rules.commits import (
    COMMIT_COLUMNS,
    COMMITS,
    Commit,
    committer_text,
    group_text,
    partition_key,
    partition_text,
    short_committer,
)
from wirewitness.analyser.kafka.rules.coordinator_moves import LATER, MADE_GOOD_S, MOVING, Refused, is_made_good
from wirewitness.analyser.kafka.rules.fetch_range_columns import FetchRangeColumns
from wirewitness.analyser.kafka.rules.fetch_ranges import RUN_COLUMNS, RUNS, FetchRange
from wirewitness.analyser.kafka.rules.names import title_text
from wirewitness.analyser.kafka.rules.offset_reset_findings import cause_text, numbers_of
from wirewitness.analyser.kafka.rules.offset_resets import (
    MOVED_SQL,
    OWN_CHOICE,
    Jump,
    is_made_anew,
    jump_of,
    position_before,
)
from wirewitness.analyser.kafka.rules.positions import READ_TABLES, Reads, reads_of

KEYS = ("cluster_id", "topic", "partition")
Cause = Literal[
    "truncated", "moved", "seek", "admin reset", "reset lost", "transaction", "sent again", "overtaken", "stale"
]
CAUSES: tuple[Cause, ...] = get_args(Cause)
_CODE_OF = {cause: code for code, cause in enumerate(CAUSES)}


class _Step(NamedTuple):
    """One step back: the commit before, the lower one."""

    before: Commit
    after: Commit

    @property
    def delta(self) -> int:
        return self.before.committed_offset - self.after.committed_offset


class _Reset(NamedTuple):
    """What came of an offset that a tool set. again: records read again from there. over: the commit that replaced it,
    by another client, with a higher offset."""

    again: int
    over: Commit | None

    @property
    def is_lost(self) -> bool:
        """It was written over before anybody had begun there."""
        return self.over is not None and not self.again


class _Steps(NamedTuple):
    """Steps back of one kind by one committer: the rows of the lower commits, each with the row before it.

    same: they went back behind commits of their own. jumps: where readers were moved to, of the causes "truncated" and
    "moved". resets: what came of each, of the cause "admin reset".
    """

    commits: CommitColumns
    committers: Integers
    rows: Integers
    same: bool
    cause: Cause
    jumps: list[Jump]
    resets: list[_Reset]

    def deltas(self) -> Integers:
        return self.commits.offset[self.rows - 1] - self.commits.offset[self.rows]

    def worst(self) -> _Step:
        row = int(self.rows[self.deltas().argmax()])
        return _Step(self.commits[row - 1], self.commits[row])

    def sent_together(self) -> int:
        """How many lower commits were on their way before the commit before them was answered."""
        return int((self.commits.ts[self.rows] < self.commits.done_ns[self.rows - 1]).sum())

    def again(self, reads: Reads) -> int | None:
        """Messages delivered again at worst by one step; None where nothing tells."""
        if self.cause == "moved":
            return max(jump.again for jump in self.jumps)
        if self.cause == "admin reset":
            return max(reset.again for reset in self.resets)
        return max(self._fetched_again(reads)) if self.cause == "seek" else None

    def lost(self) -> int | None:
        """Records behind the end of a truncated log that had been read."""
        if self.cause != "truncated":
            return None
        return max((position_before(jump.run) or jump.begins) - jump.begins for jump in self.jumps)

    def worst_reset(self) -> _Reset:
        """What came of the worst of the resets."""
        return self.resets[int(self.deltas().argmax())]

    def _fetched_again(self, reads: Reads) -> Iterator[int]:
        """For each client how far it fetched below the commit before, at worst."""
        offset, ts = self.commits.offset, self.commits.ts
        for client, places in self.commits.by_client(self.rows):
            rows = self.rows[places]
            lowest = reads.lowest(client, ts[rows - 1], ts[rows], offset[rows])
            yield int((offset[rows - 1] - lowest).max())

    def certain(self, reads: Reads) -> bool:
        """None is a seek: its Fetch would be there, it came too early, or its member does not own the partition.

        Of overtaken ones: assignments tell who owns the partition.
        """
        texts, numbers = self.commits.texts, self.commits.numbers
        if self.cause == "overtaken":
            is_assigned = texts["ownership_confidence"].among(("high",))
            return bool((is_assigned[self.rows - 1] & is_assigned[self.rows]).all())
        before_ns = self.commits.ts[self.rows - 1]
        owners, members = together(texts["owner_member_id"], texts["member_id"])
        is_foreign = (owners != members)[self.rows] & texts["ownership_confidence"].among(("high",))[self.rows]
        answered = numbers["ts_response"][self.rows - 1]
        is_too_early = (answered == UNKNOWN) | (self.commits.ts[self.rows] < answered)
        is_whole = numbers["client_gap_ts"][self.rows] < before_ns  # UNKNOWN is below every time
        clients = self.commits.by_client(self.rows)
        seen = np.zeros(len(self.rows), dtype=bool)
        for client, places in clients:
            seen[places] = reads.sees_fetches(client)
        return bool((is_foreign | is_too_early | (is_whole & seen)).all())

    def come_over_another_connection(self) -> bool:
        """A committer goes back behind its own commits again and again, each time from another connection."""
        flows = self.commits.texts["flow_id"].codes
        return self.same and len(self.rows) > 1 and bool((flows[self.rows] != flows[self.rows - 1]).all())

    def evidence(self) -> list[Evidence]:
        """Both commits of each step; of a reset that was lost the next one, too."""
        following = [np.minimum(self.rows + 1, len(self.commits) - 1)] if any(r.is_lost for r in self.resets) else []
        return self.commits.evidence(np.stack([self.rows - 1, self.rows, *following], axis=1).reshape(-1))

    def numbers_of_committers(self) -> list[dict[str, Any]]:
        """Of the one that went back, then of those whose commits it went behind; of overtaken ones these first."""
        behind, back = self.rows - 1, self.rows[-1:]
        who = self.committers[np.concatenate([behind, back] if self.cause == "overtaken" else [back, behind])]
        return [self.commits.numbers_of(np.flatnonzero(self.committers == one)) for one in dict.fromkeys(who.tolist())]


def detect(frames: Frames, *, repeated: int = 2) -> Iterator[Finding]:
    """One finding per group, committer, and kind of step (by the same committer or over another's offset)."""
    commits = commit_columns(frames[COMMITS])
    accepted = commits.accepted()
    groups = [group for group in accepted.groups() if group[0].group_id and (np.diff(group.offset) < 0).any()]
    if not groups:
        return
    cluster, reads = first_value(frames[COMMITS], "cluster_id"), reads_of(frames)
    begun = [run for run in FetchRangeColumns(frames[RUNS]).each() if is_made_anew(run) or jump_of(run) is not None]
    refused = Refused(commits.commits(np.flatnonzero(np.isin(commits.numbers["error_code"], MOVING))))
    for group in groups:
        compared(len(begun))
        own = [run for run in begun if run.group_id == group[0].group_id]
        for steps in _steps(group, reads, own, refused):
            yield _finding(cluster, steps, reads=reads, repeated=repeated)


def _steps(commits: CommitColumns, reads: Reads, begun: Sequence[FetchRange], refused: Refused) -> Iterator[_Steps]:
    """The steps back of a group by committer and kind, in order of the first of each. begun: by time. refused: by
    coordinators that moved."""
    lower = np.flatnonzero(np.diff(commits.offset) < 0) + 1
    lower = lower[~commits.racing(lower - 1, lower)]
    moved = _moved(commits, lower, begun)
    lower = (
        lower[[not is_made_anew(moved[row]) if row in moved else True for row in lower.tolist()]] if moved else lower
    )
    jumps = {row: jump for row, run in moved.items() if (jump := jump_of(run)) is not None}
    committers = commits.committers()
    causes = _causes(commits, committers, lower, reads)
    for place, row in enumerate(lower.tolist()):
        if row in jumps:
            causes[place] = _CODE_OF["truncated" if jumps[row].cause == "truncated" else "moved"]
    if refused:
        causes[_are_sent_again(commits, lower, causes, refused)] = _CODE_OF["sent again"]
    same = committers[lower - 1] == committers[lower]
    kinds = numbered((committers[lower] * 2 + same) * len(CAUSES) + causes)
    for places in places_of(kinds):
        rows, cause = lower[places], CAUSES[causes[places[0]]]
        own = [jumps[row] for row in rows.tolist()] if cause in _TOLD_BY_READERS else []
        set_by_tool = rows.tolist() if cause == "admin reset" else []
        resets = [_after_reset(commits, committers, row, begun) for row in set_by_tool]
        yield _Steps(commits, committers, rows, bool(same[places[0]]), cause, own, resets)


def _after_reset(commits: CommitColumns, committers: Integers, row: int, begun: Sequence[FetchRange]) -> _Reset:
    """What came of the commit of a tool."""
    before, reset = commits[row - 1].committed_offset, commits[row]
    compared(len(begun))
    starts = [run.first_offset for run in begun if run.change_exchange_id == reset.exchange_id]
    again = max((before - start for start in starts if start is not None), default=0)
    is_over = row + 1 < len(commits) and committers[row + 1] != committers[row]
    over = commits[row + 1] if is_over and commits.offset[row + 1] > commits.offset[row] else None
    return _Reset(max(again, 0), over)


def _moved(commits: CommitColumns, lower: Integers, begun: Sequence[FetchRange]) -> dict[int, FetchRange]:
    """For lower commits the last begin of reading since the one before that went elsewhere for another reason than its
    own choice."""
    found: dict[int, FetchRange] = {}
    for row in lower.tolist() if begun else ():
        first = bisect_right(begun, commits.ts[row - 1], key=lambda run: run.ts)
        last = bisect_right(begun, commits.ts[row], key=lambda run: run.ts)
        for run in reversed(begun[first:last]):
            jump = jump_of(run)
            if jump is None or (jump.again and jump.cause not in OWN_CHOICE):
                found[row] = run
                break
    return found


def _causes(commits: CommitColumns, committers: Integers, lower: Integers, reads: Reads) -> Integers:
    """For each lower commit the cause that commits and reads tell, as its place in CAUSES."""
    apis, offset, ts = commits.texts["api"], commits.offset, commits.ts
    is_seek = np.zeros(len(lower), dtype=bool)
    for client, places in commits.by_client(lower):
        rows = lower[places]
        is_seek[places] = reads.turned_back(client, ts[rows - 1], ts[rows], offset[rows])
    tools = _are_of_tools(commits, committers, reads)
    is_transaction = apis.among(("TxnOffsetCommit",))[lower - 1]
    is_overtaken = _are_overtaken(commits, committers, lower)
    is_lost = tools[lower - 1] & (committers[lower - 1] != committers[lower]) & _went_on(commits, committers, lower)
    kinds: dict[Cause, npt.NDArray[np.bool_]] = {
        "overtaken": is_overtaken, "admin reset": tools[lower], "reset lost": is_lost, "seek": is_seek,
        "transaction": is_transaction,
    }  # fmt: skip
    found: Integers = np.select([*kinds.values()], [_CODE_OF[cause] for cause in kinds], _CODE_OF["stale"])
    return found


def _are_of_tools(commits: CommitColumns, committers: Integers, reads: Reads) -> Booleans:
    """Which commits are a tool's: without member id, by a client that commits once, or reads nothing while others do.

    Where nobody is seen reading, a client without fetches may read elsewhere.
    """
    who, rows = np.unique(committers, return_index=True)
    sees = np.array([reads.sees_fetches(commits.client(row)) for row in rows.tolist()], dtype=bool)
    silent = (~sees & sees.any())[np.searchsorted(who, committers)]
    is_once = (np.bincount(committers) == 1)[committers]
    plain = ~commits.texts["member_id"].is_told() & commits.texts["api"].among(("OffsetCommit",))
    found: Booleans = plain & (is_once | silent)
    return found


def _went_on(commits: CommitColumns, committers: Integers, lower: Integers) -> Booleans:
    """Which of these commits are not below the one before of the same committer; without one they are not."""
    order = np.argsort(committers, kind="stable")
    own_before = np.full(len(committers), np.iinfo(np.int64).max)
    follows = np.flatnonzero(np.diff(committers[order]) == 0) + 1
    own_before[order[follows]] = commits.offset[order[follows - 1]]
    found: Booleans = own_before[lower] <= commits.offset[lower]
    return found


def _are_overtaken(commits: CommitColumns, committers: Integers, lower: Integers) -> Booleans:
    """Of which lower commits the owner went on by itself, behind one of a member that did not own the partition."""
    owners, members = together(commits.texts["owner_member_id"], commits.texts["member_id"])
    before = lower - 1
    is_member = commits.texts["member_id"].is_told()
    both = is_member[lower] & is_member[before] & (members[before] != members[lower])
    by_owner, over_foreign = owners[lower] == members[lower], owners[before] == members[lower]
    has_own = np.ones(len(committers), dtype=bool)
    has_own[np.unique(committers, return_index=True)[1]] = False
    went_on = both & (_went_on(commits, committers, lower) | ~has_own[lower])
    known = went_on & by_owner & over_foreign
    # Where a capture begins owners are not known yet: the same two members are in the same case as later.
    unknown = went_on & (by_owner | (owners[lower] < 0)) & (over_foreign | (owners[before] < 0))
    found: Booleans = known | unknown & np.isin(*_pairs_of(committers, lower, known))
    return found


def _pairs_of(committers: Integers, lower: Integers, known: Booleans) -> tuple[Integers, Integers]:
    """A number for the two committers of each lower commit, and the numbers of the known ones."""
    found = pairs(committers[lower - 1], committers[lower])
    return found, found[known]


def _are_sent_again(commits: CommitColumns, lower: Integers, causes: Integers, refused: Refused) -> list[int]:
    """Places of the stale ones among the lower commits that were sent again after a refusal, and made good."""
    stale = np.flatnonzero(causes == _CODE_OF["stale"])
    found = []
    for place, stored in zip(stale.tolist(), commits.commits(lower[stale]), strict=True):
        if refused.is_sent_again(stored):
            row = int(lower[place])
            later = map(commits.__getitem__, range(row + 1, min(row + 1 + LATER, len(commits))))
            if is_made_good(commits[row - 1], stored, later):
                found.append(place)
    return found


def _finding(cluster: str | None, steps: _Steps, *, reads: Reads, repeated: int) -> Finding:
    commits, same, cause, back = steps.commits, steps.same, steps.cause, len(steps.rows)
    worst, last, together = steps.worst(), commits[int(steps.rows[-1])], steps.sent_together()
    severity: Severity = "warning" if cause in _TOLD_BY_READERS else "info"
    if cause in ("stale", "overtaken"):
        severity = "critical" if back >= repeated else "warning"
    sure = cause in (*_TOLD_BY_READERS, "seek", "admin reset", "reset lost") or steps.certain(reads)
    again = steps.again(reads)
    confidence: Confidence = "high" if sure else "medium"
    key = partition_key(cluster, last)
    stored, highest = int(commits.offset[-1]), int(commits.offset.max())
    # What lies behind a foreign offset, or behind the end of a truncated log, was not read before.
    replay = 0 if cause in ("overtaken", "truncated", "reset lost") else highest - stored
    is_replaced = bool(steps.resets) and steps.rows[-1] < len(commits) - 1
    is_told = is_replaced or cause in ("overtaken", "truncated", "reset lost")
    return RULE.finding(
        severity=severity,
        confidence=confidence,
        subject=key,
        title=_title(steps, worst),
        sentence=_sentence(steps, worst, again, reads) + ("" if is_told else _still_back(stored, highest)),
        next_step=_next_step(steps, worst, together),
        proof=Proof(int(commits.ts[steps.rows - 1].min()), int(commits.ts[steps.rows].max()), steps.evidence()),
        numbers={
            **key,
            "cause": cause,
            "same_committer": same,
            "steps_back": back,
            "sent_before_answer": together,
            "records_again": again,
            "records_lost": steps.lost(),
            "resets_lost": back if cause == "reset lost" else sum(reset.is_lost for reset in steps.resets),
            **({"changed_by": numbers_of(steps.jumps)["changed_by"]} if steps.jumps else {}),
            "worst_delta": worst.delta,
            "worst_from": worst.before.committed_offset,
            "worst_to": worst.after.committed_offset,
            "total_delta": sum(steps.deltas().tolist()),
            "last_offset": stored,
            "replay_now": replay,
            "fetches_seen": reads.sees_fetches(last.client),
            "committers": steps.numbers_of_committers(),
        },
    )


def _title(steps: _Steps, worst: _Step) -> str:
    before, after, back = worst.before, worst.after, len(steps.rows)
    place, who = partition_text(after), short_committer(after)
    way = f"{before.committed_offset} to {after.committed_offset}"
    again = f" {back:,} times" if back > 1 else ""
    if steps.cause == "truncated":
        return title_text(f"Offset moved backwards{again}: {{}}, {way}, its log was truncated", place)
    if steps.cause == "reset lost":
        return title_text(f"Offset reset to {before.committed_offset} was lost: {{}}, overwritten by {{}}", place, who)
    if steps.cause == "admin reset":
        over = steps.worst_reset()
        if over.over is not None and over.is_lost:
            words = f"Offset reset to {after.committed_offset} was lost: {{}}, overwritten by {{}}"
            return title_text(words, place, short_committer(over.over))
        return title_text(f"Offset reset{again}: {{}}, {way}, by {{}}", place, who)
    if steps.cause == "overtaken":
        words = f"Offset committed ahead of the owner{again}: {{}}, {way}, by {{}}"
        return title_text(words, place, short_committer(before))
    return title_text(f"Offset moved backwards{again}: {{}}, {way}, by {{}}", place, who)


def _sentence(steps: _Steps, worst: _Step, again: int | None, reads: Reads) -> str:
    after, before, cause, back = worst.after, worst.before, steps.cause, len(steps.rows)
    often = "" if back == 1 else f" {back:,} times, at worst"
    step = f"{often} from {before.committed_offset} to {after.committed_offset} ({count(worst.delta, 'message')})"
    head = f"{group_text(after)}: the committed offset of {partition_text(after)} moved back{step}"
    who = committer_text(after)
    start = sentence_start(who)
    twice = "" if again is None else f" {count(again, 'message')} {'is' if again == 1 else 'are'} reprocessed."
    if cause == "truncated":
        return (
            f"{head}, because the log was truncated at {steps.jumps[0].begins} (OffsetForLeaderEpoch). "
            f"About {count(steps.lost() or 0, 'acknowledged record')} are gone."
        )
    if cause == "moved":
        return f"{head}. {sentence_start(cause_text(steps.jumps[:1]))}. {start} committed from there.{twice}"
    if cause == "seek":
        return f"{head}. {start} read at or below that offset before it committed (a seek).{twice}"
    if cause == "admin reset":
        reset = steps.worst_reset()
        if reset.over is not None and reset.is_lost:
            later = (reset.over.ts - after.ts) / NS_PER_S
            return (
                f"{group_text(after)}: {who} set the committed offset of {partition_text(after)} from "
                f"{before.committed_offset} to {after.committed_offset}, and the reset was lost. It was overwritten "
                f"{later:,.1f} s later by {committer_text(reset.over)} with {reset.over.committed_offset}."
            )
        known = twice if again else ""
        return f"{head}. {start} set it, as an admin tool does; before, {committer_text(before)} had committed.{known}"
    if cause == "sent again":
        return (
            f"{head}. {start} sent it again after the group's coordinator, which was moving, had refused it, and "
            f"committed the newer offset again within {MADE_GOOD_S} s."
        )
    if cause == "reset lost":
        later = (after.ts - before.ts) / NS_PER_S
        return (
            f"{group_text(after)}: {committer_text(before)} set the committed offset of {partition_text(after)} to "
            f"{before.committed_offset}, and the reset was lost. It was overwritten {later:,.1f} s later by {who} "
            f"with {after.committed_offset}."
        )
    if cause == "transaction":
        return f"{head}, by {who}. The offset before was committed in a transaction, which may have been aborted."
    if cause == "overtaken":
        now = " It is there now." if steps.committers[-1] != steps.committers[steps.rows[-1]] else ""
        return (
            f"{head}. {sentence_start(committer_text(before))}, to which the partition is not assigned, had committed "
            f"ahead of {who}, which reads it. A restart after such a commit would skip up to "
            f"{count(worst.delta, 'message')}.{now}"
        )
    doubt = "" if reads.sees_fetches(after.client) else " Its fetches of this partition are not in the capture."
    if steps.same and not doubt:
        return f"{head}. {start} committed an older offset of its own after a newer one and did not seek."
    if steps.same:
        return f"{head}. {start} committed an older offset of its own after a newer one.{doubt}"
    return f"{head}. {start} committed a stale offset over that of {committer_text(before)}.{doubt}"


def _still_back(stored: int, highest: int) -> str:
    if stored >= highest:
        return " The last commit in the capture is the highest again; a rebalance in between would reprocess messages."
    return f" The committed offset is still {stored}; a restart would reprocess {count(highest - stored, 'message')}."


def _next_step(steps: _Steps, worst: _Step, together: int) -> str:
    cause = steps.cause
    if cause == "truncated":
        return (
            "Look which broker became leader, and whether it was in sync (unclean.leader.election.enable, "
            "min.insync.replicas, producers with acks=1). What is gone can only come from its producers."
        )
    if cause == "reset lost" or (steps.resets and all(reset.is_lost for reset in steps.resets)):
        return (
            "To set offsets, stop every process of the group first, also those that commit without membership; then "
            "reset again and look at --describe before they start."
        )
    if cause == "transaction":
        return "Nothing to do if the transaction was aborted: what it wrote was taken back with it."
    if cause == "sent again":
        return "Look at why the coordinator moved; a member that took the partition over meanwhile read this again."
    if cause == "overtaken":
        return (
            f"Find the process behind {committer_text(worst.before)} and stop it committing this partition. Look for "
            "offsets that it takes from elsewhere (the end of the log, another store), or for a partition that it "
            "kept after it was revoked. What a restart skipped is still in the log: reset the group to read it."
        )
    if cause != "stale":
        return (
            "Look whether handling these messages twice did harm (payments, counters, mails). If no replay was meant, "
            f"look {_WHERE[cause]}."
        )
    if steps.come_over_another_connection():
        return (
            f"Each of them came over another connection than the commit before it: look on the host of "
            f"{committer_text(worst.after)} for a second process that uses the same member id, such as one that was "
            "forked, or restored from an image, after the client had joined; or for two threads with a connection each."
        )
    if steps.same:
        hint = f" In {together} cases the second commit was sent before the response to the first." if together else ""
        return (
            "Look for commits that are built concurrently and sent out of order in this client (several threads or "
            "goroutines that commit one session; for example IBM/sarama before v1.43.3, issue #2940, fixed by #2947)."
            f"{hint} Update the client library, or let one thread commit."
        )
    return (
        f"Find the process behind {committer_text(worst.after)} and stop it committing this partition: its offset is "
        "old. Look for offsets that it keeps after the partition was revoked."
    )


# What readers of the group were told or met in between.
_TOLD_BY_READERS: tuple[Cause, ...] = ("truncated", "moved")
_WHERE: dict[Cause, str] = {
    "moved": "for who or what removed the offset (offsets.retention.minutes must exceed the longest stop of the group)",
    "seek": "for a seek in the application, or for positions that it keeps elsewhere",
    "admin reset": "for who ran the tool (kafka-consumer-groups --reset-offsets, alterConsumerGroupOffsets)",
}

RULE = Rule(
    code="KAF103",
    question="went back",
    name="offset-regression",
    severity="critical",
    confidence="high",
    reads={COMMITS: COMMIT_COLUMNS, **READ_TABLES, RUNS: RUN_COLUMNS},
    partition_by=KEYS,
    detect=detect,
    rows={COMMITS: f"error_code IN {(0, *MOVING)}", RUNS: MOVED_SQL},
    # Of commits at one time the highest goes first: the broker may have taken them in any order.
    suspects=f"""
        SELECT cluster_id, topic, partition FROM (
            SELECT cluster_id, topic, partition, committed_offset, lag(committed_offset) OVER (
                PARTITION BY cluster_id, group_id, topic, partition
                ORDER BY coalesce(ts_response, ts), committed_offset DESC) AS before
            FROM r_{COMMITS} WHERE error_code = 0)
        WHERE committed_offset < before""",
)
