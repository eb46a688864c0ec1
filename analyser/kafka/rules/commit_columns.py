"""Offset commits column by column, for rules that look at partitions with many of them.

In: one partition's frame of `kafka_offset_commits`. Out: `CommitColumns` in broker order, numbers as arrays and texts
as codes. A column is put in order when somebody asks for it, and of most rules that is one in three; the `Commit` of a
row, of half a KiB, is made for what a finding shows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.engine.rules.columns import UNKNOWN, Booleans, Integers, Texts
from wirewitness.analyser.engine.rules.findings import Evidence, first_and_last
from wirewitness.analyser.engine.rules.frame import Frame, numbered, pairs, places_of
from wirewitness.analyser.kafka.rules.commits import MAX_OFFSETS, Commit, Identity, numbers_of_committer, request_order
from wirewitness.analyser.kafka.rules.positions import Stretches

# The highest commit between two others, by one committer or by all others: for many pairs of commits at once.
#
# In: who committed which offset, in broker order. Out: rows, -1 where there is no commit between. Of equal offsets
# the later one counts; of other committers that are equally high the one that committed last.

# So many other committers are looked at, the latest ones first: a member gets a new id with every restart.
MOST_OTHERS = 64


class Highest:
    """Commits of one partition. committers: a number from 0 on for each."""

    def __init__(self, committers: Integers, offsets: Integers) -> None:
        self._committers, self._offsets = committers, offsets
        self._ranks = np.unique(offsets, return_inverse=True)[1].astype(np.int64)
        # Numbers that are as high as the offsets are, and tell the row.
        self._heights = self._ranks * len(offsets) + np.arange(len(offsets))
        self._rows = places_of(committers)

    def by_themselves(self, who: Integers, since: Integers, until: Integers) -> Integers:
        """The highest commit of each of these committers behind one row and before another."""
        found = np.full(len(who), -1)
        for committer in np.unique(who).tolist():
            places = np.flatnonzero(who == committer)
            found[places] = self._of(committer, since[places], until[places])
        return found

    def by_others(self, who: Integers, since: Integers, until: Integers, most: int = MOST_OTHERS) -> Integers:
        """The highest commit of anybody else. until: rising. most: see MOST_OTHERS."""
        if len(self._rows) > most + 1:
            return self._of_the_latest(who, since, until, most)
        best, found = np.full(len(who), -1), np.full(len(who), -1)
        for committer, own in enumerate(self._rows):
            places = np.flatnonzero(who != committer)
            rows = self._of(committer, since[places], until[places])
            last = own[np.searchsorted(own, until[places]) - 1]
            height = np.where(rows >= 0, self._ranks[rows] * len(self._offsets) + last, -1)
            higher = height > best[places]
            best[places[higher]], found[places[higher]] = height[higher], rows[higher]
        return found

    def _of(self, committer: int, since: Integers, until: Integers) -> Integers:
        own = self._rows[committer]
        starts = np.searchsorted(own, since, side="right")
        ends = np.maximum(np.searchsorted(own, until), starts)
        lowest = Stretches(-self._heights[own], starts, ends).lowest()
        return np.where(lowest == UNKNOWN, -1, -lowest % len(self._offsets))

    def _of_the_latest(self, who: Integers, since: Integers, until: Integers, most: int) -> Integers:
        """`by_others` where they are many: a pass over all commits with a falling stack of candidates for each."""
        committers, offsets = self._committers.tolist(), self._offsets.tolist()
        stacks: dict[int, list[int]] = {}
        found, added = [], 0
        for own, after, before in zip(who.tolist(), since.tolist(), until.tolist(), strict=True):
            for row in range(added, before):
                stack = stacks[committers[row]] = stacks.pop(committers[row], [])
                while stack and offsets[stack[-1]] <= offsets[row]:
                    stack.pop()
                stack.append(row)
            added, best = before, -1
            for other in islice((one for one in reversed(stacks) if one != own), most):
                stack = stacks[other]
                place = bisect_right(stack, after)
                if place < len(stack) and (best < 0 or offsets[stack[place]] > offsets[best]):
                    best = stack[place]
            found.append(best)
        return np.array(found, np.int64)


_AT_ONCE = 4096
_T = TypeVar("_T")


class _Made(dict[str, _T]):
    """What is made by a name when it is asked for, once."""

    def __init__(self, make: Callable[[str], _T]) -> None:
        self._make = make

    def __missing__(self, name: str) -> _T:
        made = self[name] = self._make(name)
        return made


class _Whole:
    """The columns of a frame by the names of `Commit`, in the order of the frame. named: texts as Python values by
    their codes; the last one is None, which the code of null finds."""

    def __init__(self, frame: Frame) -> None:
        texts = _Made[Texts](lambda name: frame[name].texts())
        self.is_text = {name: pa.types.is_string(frame.schema.field(name).type) for name in Commit._fields}
        self.numbers = _Made[Integers](lambda name: frame[name].numbers())
        self.texts = texts
        self.named = _Made[list[str | None]](lambda name: [*texts[name].names.to_pylist(), None])


class CommitColumns:
    """Commits in broker order; numbers and texts by the names of `Commit`.

    whole: the columns that they are rows of, shared by all that is taken. rows: their numbers there.
    """

    def __init__(self, whole: _Whole, rows: Integers) -> None:
        self._whole, self._rows = whole, rows
        self.numbers: Mapping[str, Integers] = _Made(lambda name: whole.numbers[name][rows])
        self.texts: Mapping[str, Texts] = _Made(lambda name: _some(whole.texts[name], rows))

    def __len__(self) -> int:
        """How many."""
        return len(self._rows)

    def __getitem__(self, row: int) -> Commit:
        """One commit; it counts from the end below 0."""
        return Commit(*(self._value(name, row) for name in Commit._fields))

    def commits(self, rows: Integers) -> Iterator[Commit]:
        """The commits of these rows, some at a time."""
        for start in range(0, len(rows), _AT_ONCE):
            chosen = rows[start : start + _AT_ONCE]
            yield from map(Commit._make, zip(*(self._values(name, chosen) for name in Commit._fields), strict=True))

    @property
    def offset(self) -> Integers:
        """The committed offsets."""
        return self.numbers["committed_offset"]

    @property
    def ts(self) -> Integers:
        """When they were sent, Unix ns."""
        return self.numbers["ts"]

    @property
    def done_ns(self) -> Integers:
        """When the broker had answered; the time of the request while unanswered."""
        return _done_ns(self.ts, self.numbers["ts_response"])

    def take(self, rows: npt.NDArray[Any]) -> CommitColumns:
        """These rows: their numbers or a mask."""
        return CommitColumns(self._whole, self._rows[rows])

    def accepted(self) -> CommitColumns:
        """Those of which the broker stored the position."""
        stored = self.is_accepted()
        return self if stored.all() else self.take(stored)

    def is_accepted(self) -> Booleans:
        """Of which of them the broker stored the position."""
        found: Booleans = (self.numbers["error_code"] == 0) & (self.offset >= 0)
        return found

    def groups(self) -> list[CommitColumns]:
        """The commits of each group, groups in order of their first commit."""
        codes = numbered(self.texts["group_id"].codes)
        found = int(codes.max(initial=-1)) + 1
        return [self] if found == 1 else [self.take(codes == code) for code in range(found)]

    def committers(self) -> Integers:
        """A number for each committer (`Commit.identity`), in order of their first commits."""
        members = self.texts["member_id"]
        others = np.iinfo(np.int32).max + self.clients()
        return numbered(np.where(members.is_told(), members.codes, others))

    def racing(self, first: Integers, second: Integers) -> npt.NDArray[np.bool_]:
        """Which pairs of rows are on different flows, each sent before the other was answered, as far as is known.

        Either may have been stored last.
        """
        flows, answered = self.texts["flow_id"].codes, self.numbers["ts_response"]
        unanswered = (answered[first] == UNKNOWN) | (answered[second] == UNKNOWN)
        crossed = (self.ts[first] < answered[second]) & (self.ts[second] < answered[first])
        found: npt.NDArray[np.bool_] = (flows[first] != flows[second]) & (unanswered | crossed)
        return found

    def identity(self, row: int) -> Identity:
        """`Commit.identity` of one commit."""
        member = self._value("member_id", row)
        return (member,) if member else self.client(row)

    def client(self, row: int) -> Identity:
        """`Commit.client` of one commit."""
        return self._value("client_address", row), self._value("client_id", row)

    def by_client(self, rows: Integers) -> Iterator[tuple[Identity, Integers]]:
        """Each client of these rows, and the places among them that are its own."""
        codes = self.clients()[rows]
        for places in places_of(numbered(codes)):
            yield self.client(int(rows[places[0]])), places

    def evidence(self, rows: Integers) -> list[Evidence]:
        """The requests of these rows, without repeats, in the order of the rows; the middle of many is left out."""
        exchanges = self.texts["exchange_id"].codes[rows]
        requests = np.where(exchanges < 0, -1 - self.numbers["request_packet"][rows], exchanges)
        some = rows[first_and_last(requests)]
        return [*map(Evidence, *(self._values(name, some) for name in ("file", "request_packet", "exchange_id")))]

    def numbers_of(self, rows: Integers) -> dict[str, Any]:
        """One committer's part of a finding's `numbers`; at least one row."""
        offsets = self.offset[rows]
        if len(rows) > MAX_OFFSETS:
            offsets = np.concatenate([offsets[: MAX_OFFSETS // 2], offsets[-(MAX_OFFSETS // 2) :]])
        flows = self.texts["flow_id"]
        return numbers_of_committer(
            last=self[int(rows[-1])],
            first_packet=self._value("request_packet", int(rows[0])),
            offsets=offsets.tolist(),
            flows={flows.name(code) for code in np.unique(flows.codes[rows]).tolist()},
            commits=len(rows),
        )

    def clients(self) -> Integers:
        """A number for the client (`Commit.client`) of each commit."""
        return pairs(self.texts["client_address"].codes, self.texts["client_id"].codes)

    def _value(self, name: str, row: int) -> Any:
        whole, row = self._whole, self._rows[row]
        if whole.is_text[name]:
            return whole.named[name][whole.texts[name].codes[row]]
        number = int(whole.numbers[name][row])
        return None if number == UNKNOWN else number

    def _values(self, name: str, rows: Integers) -> list[Any]:
        whole, rows = self._whole, self._rows[rows]
        if whole.is_text[name]:
            return [*map(whole.named[name].__getitem__, whole.texts[name].codes[rows].tolist())]
        return [None if number == UNKNOWN else number for number in whole.numbers[name][rows].tolist()]


def _some(texts: Texts, rows: Integers) -> Texts:
    return Texts(texts.codes[rows], texts.names)


def commit_columns(frame: Frame) -> CommitColumns:
    """The frame's rows in broker order."""
    whole = _Whole(frame)
    return CommitColumns(whole, _in_broker_order(whole))


def _in_broker_order(commits: _Whole) -> Integers:
    """The rows, sorted by `broker_order`; what tells requests of one packet apart is asked for where some differ."""
    packets = commits.numbers["request_packet"]
    sent, answered = commits.numbers["ts"], commits.numbers["ts_response"]
    keys = (np.where(packets == UNKNOWN, 0, packets), sent, _done_ns(sent, answered))
    order = np.lexsort(keys)
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for key in keys:
        same &= np.diff(key[order]) == 0
    if not same.any():
        return order
    offset, exchanges = commits.numbers["committed_offset"], commits.texts["exchange_id"]
    if (same & (np.diff(exchanges.codes[order]) != 0)).any():
        return np.lexsort((offset, _request_ranks(exchanges), *keys))
    return np.lexsort((offset, *keys))


def _done_ns(sent: Integers, answered: Integers) -> Integers:
    return np.where(answered == UNKNOWN, sent, answered)


def _request_ranks(exchanges: Texts) -> Integers:
    """Of each row the rank of its exchange by `request_order`."""
    keys = [request_order(name) for name in (*exchanges.names.to_pylist(), None)]
    ranks = np.empty(len(keys), np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return ranks[exchanges.codes]
