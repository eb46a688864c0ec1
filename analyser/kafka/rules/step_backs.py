"""Steps back of a group's stored offset, and why: a commit below the accepted one before it.

In: commits of one group and partition with what stands beside them (`stored.py`), begins of reading. Out: a `Step` for
each, with its cause. What each cause means is said in the page of KAF103.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.kafka.rules.commits import Identity
from wirewitness.analyser.kafka.rules.fetch_ranges import FetchRange
from wirewitness.analyser.kafka.rules.offset_resets import OWN_CHOICE, Jump, is_made_anew, jump_of
from wirewitness.analyser.kafka.rules.stored import Stored

Cause = Literal[
    "truncated", "moved", "seek", "admin reset", "reset lost", "transaction", "sent again", "overtaken", "stale"
]
# What readers of the group were told or met in between.
TOLD_BY_READERS: tuple[Cause, ...] = ("truncated", "moved")
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
MOVING = (14, 15, 16)
_AGAIN_S = 30


class Step(NamedTuple):
    """One step back: the commit before, the lower one, the one behind it (None: there is none), and why.

    jump: where a reader was moved to, of the causes "truncated" and "moved". again: records that were delivered again,
    as far as something tells.
    """

    before: Stored
    after: Stored
    following: Stored | None
    cause: Cause
    jump: Jump | None = None
    again: int | None = None

    @property
    def delta(self) -> int:
        return self.before.committed_offset - self.after.committed_offset

    @property
    def same(self) -> bool:
        """A committer went back behind a commit of its own."""
        return self.before.identity == self.after.identity

    @property
    def over(self) -> Stored | None:
        """The commit of somebody else that replaced a tool's offset, before anybody had begun there."""
        later = self.following
        is_over = later is not None and later.identity != self.after.identity and not self.again
        is_lost = self.cause == "admin reset" and is_over
        return later if is_lost and later and later.committed_offset > self.after.committed_offset else None

    @property
    def together(self) -> bool:
        """The lower commit was on its way before the other was answered: no client can seek that fast."""
        return self.after.ts_sent < self.before.ts

    @property
    def certain(self) -> bool:
        """It is no seek: its Fetch would be there, it came too early, or its member does not own the partition. Of an
        overtaken one: assignments tell who owns the partition."""
        before, after = self.before, self.after
        is_assigned = after.ownership_confidence == "high"
        if self.cause == "overtaken":
            return is_assigned and before.ownership_confidence == "high"
        is_whole = after.client_gap_ts is None or after.client_gap_ts < before.ts_sent
        is_foreign = is_assigned and after.owner_member_id != after.member_id
        return is_foreign or self.together or (is_whole and bool(after.fetches_seen))


def steps_of(group: Sequence[Stored], begun: Sequence[FetchRange]) -> Iterator[Step]:
    """The steps back of a group. begun: begins of reading by time."""
    tools, pairs = _tools(group), _known_pairs(group)
    starts: dict[str | None, list[int]] = {}
    for run in begun:
        if run.first_offset is not None:
            starts.setdefault(run.change_exchange_id, []).append(run.first_offset)
    for row, after in enumerate(group):
        if not row or not after.below_commit:
            continue
        before = group[row - 1]
        moved = _moved(before, after, begun)
        if moved is not None and is_made_anew(moved):
            continue
        jump = None if moved is None else jump_of(moved)
        cause = (
            _cause(before, after, tools, pairs)
            if jump is None
            else "truncated"
            if jump.cause == "truncated"
            else "moved"
        )
        again = jump.again if jump is not None and cause == "moved" else None
        if cause == "admin reset":
            again = max(before.committed_offset - min(starts.get(after.exchange_id, [before.committed_offset])), 0)
        elif cause == "seek" and after.read_from is not None:
            again = before.committed_offset - after.read_from
        yield Step(before, after, group[row + 1] if row + 1 < len(group) else None, cause, jump, again)


def _moved(before: Stored, after: Stored, begun: Sequence[FetchRange]) -> FetchRange | None:
    """The last begin of reading between two commits that went elsewhere for another reason than its own choice."""
    first = bisect_right(begun, before.ts_sent, key=lambda run: run.ts)
    last = bisect_right(begun, after.ts_sent, key=lambda run: run.ts)
    for run in reversed(begun[first:last]):
        jump = jump_of(run)
        if jump is None or (jump.again and jump.cause not in OWN_CHOICE):
            return run
    return None


def _cause(before: Stored, after: Stored, tools: Mapping[Identity, bool], pairs: set[tuple[Identity, ...]]) -> Cause:
    """What commits and reads tell."""
    went_on = after.own_number != 1 and (after.own_before is None or after.own_before <= after.committed_offset)
    if _is_overtaken(before, after, pairs):
        return "overtaken"
    if _is_of_tool(after, tools):
        return "admin reset"
    if _is_of_tool(before, tools) and before.identity != after.identity and went_on:
        return "reset lost"
    if after.read_from is not None:
        return "seek"
    if before.kind == "transaction":
        return "transaction"
    return "sent again" if sent_again(after, before.committed_offset) else "stale"


def _tools(group: Sequence[Stored]) -> dict[Identity, bool]:
    """Which committers may be tools: they commit once, or read nothing while others do.

    Where nobody is seen reading, a client without fetches may read elsewhere.
    """
    firsts: dict[Identity, Stored] = {}
    for commit in group:
        firsts.setdefault(commit.identity, commit)
    is_read = any(first.fetches_seen is not False for first in firsts.values())
    return {who: one.own_commits in (1, None) or (is_read and not one.fetches_seen) for who, one in firsts.items()}


def _is_of_tool(commit: Stored, tools: Mapping[Identity, bool]) -> bool:
    return not commit.member_id and commit.kind == "commit" and tools[commit.identity]


def _goes_on_beside(before: Stored, after: Stored) -> bool:
    """Two members, of which the second went on by itself."""
    is_other = bool(before.member_id and after.member_id) and before.member_id != after.member_id
    return is_other and (after.own_before is None or after.own_before <= after.committed_offset)


def _known_pairs(group: Sequence[Stored]) -> set[tuple[Identity, ...]]:
    """Members of which the second owned the partition when it went behind the first."""
    return {
        (before.identity, after.identity)
        for before, after in pairwise(group)
        if after.below_commit and _goes_on_beside(before, after)
        and after.owner_member_id == after.member_id == before.owner_member_id
    }  # fmt: skip


def _is_overtaken(before: Stored, after: Stored, pairs: set[tuple[Identity, ...]]) -> bool:
    """The owner went on by itself, behind a commit of a member that did not own the partition. Where a capture begins
    owners are not known yet: the same two members are in the same case as later."""
    owners = (before.owner_member_id, after.owner_member_id)
    is_own = all(owner in (None, after.member_id) for owner in owners)
    return _goes_on_beside(before, after) and is_own and (before.identity, after.identity) in pairs


def sent_again(commit: Stored, newer: int) -> bool:
    """A coordinator that was moving had refused the same commit shortly before, the client's library sent it again, and
    the client made it good at once: it committed the newer offset, or a higher one, within seconds.

    Clients answer such errors by sending the same commit again (Kafka's protocol guide, "Error Codes": retriable).
    Libraries that have several commits under way store them in any order then.
    """
    failed, soon = commit.ts_failed, commit.own_highest_soon
    was_moving = commit.failed_error_code in MOVING
    is_lately = failed is not None and 0 <= commit.ts_sent - failed <= _AGAIN_S * NS_PER_S
    return was_moving and is_lately and (soon is None or soon >= newer)
