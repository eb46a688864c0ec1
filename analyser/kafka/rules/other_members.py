"""What members at other addresses did at about the same time, asked of each member without looking at all pairs.

In: members, each with a time and a value. Out: the largest value in a stretch of time among those who are elsewhere, as
`is_elsewhere` has it. Whoever made the capture decides how many members there are, and how many of them are at one
address: an answer takes as many steps as the logarithm of their number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from math import ceil, inf
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S
from wirewitness.analyser.engine.rules.frame_rows import Row

NONE = float("-inf")
# Members beat every few seconds: what cuts off several is told by each of them within so long.
_AT_ONCE_NS = 4 * NS_PER_S
# A silence of which only the begin is known may have lasted.
_ALWAYS = inf


class Elsewhere:
    """times: of all that will be put in."""

    def __init__(self, times: Iterable[int]) -> None:
        self._times = sorted(times)
        self._used: dict[int, int] = {}
        size = len(self._times)
        self._known, self._unknown, self._all = _Largest(size), _Largest(size), _Largest(size)

    def put(self, time: int, value: float, member: Row) -> None:
        """A member's value at a time."""
        place = bisect_left(self._times, time) + self._used.get(time, 0)
        self._used[time] = self._used.get(time, 0) + 1
        if member["client_address"] is None:
            self._unknown.put(place, value, member["member_id"])
        else:
            self._known.put(place, value, member["client_address"])
        self._all.put(place, value, member["member_id"])

    def most(self, member: Row, first: float, last: float) -> float:
        """The largest value from one time to another, both included, of members elsewhere; NONE where there is none."""
        begin, end = bisect_left(self._times, first), bisect_right(self._times, last)
        if member["client_address"] is None:
            return self._all.most(begin, end, member["member_id"])
        unknown = self._unknown.most(begin, end, member["member_id"])
        return max(unknown, self._known.most(begin, end, member["client_address"]))


class _Largest:
    """A tree over places; each node has the largest value below it, whose it is, and the largest of all others."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._first, self._second = [NONE] * (2 * size), [NONE] * (2 * size)
        self._whose: list[Hashable] = [None] * (2 * size)

    def put(self, place: int, value: float, whose: Hashable) -> None:
        at = place + self._size
        while at:
            if whose == self._whose[at] or self._first[at] == NONE:
                self._whose[at] = whose
                self._first[at] = max(value, self._first[at])
            elif value > self._first[at]:
                self._first[at], self._second[at], self._whose[at] = value, self._first[at], whose
            else:
                self._second[at] = max(value, self._second[at])
            at >>= 1

    def most(self, begin: int, end: int, but: Hashable) -> float:
        found, begin, end = NONE, begin + self._size, end + self._size
        while begin < end:
            if begin & 1:
                found, begin = max(found, self._of_others(begin, but)), begin + 1
            if end & 1:
                end -= 1
                found = max(found, self._of_others(end, but))
            begin, end = begin >> 1, end >> 1
        return found

    def _of_others(self, at: int, but: Hashable) -> float:
        return self._second[at] if self._whose[at] == but else self._first[at]


class Death(NamedTuple):
    """A member that went silent, and when the others had its partitions."""

    member: Row
    since_ns: int
    until_ns: int

    @property
    def stood_ns(self) -> int:
        """How long nobody had them."""
        return self.until_ns - self.since_ns


def shared_deaths(deaths: Sequence[Death], members: Sequence[Row]) -> Callable[[Death], bool]:
    """Whether somebody at another address went silent for about the same time, or may have, as far as is known: not one
    client, but what is between them. Silences begin within _AT_ONCE_NS and have three quarters of the death in common.
    """
    until, stood = (Elsewhere(death.since_ns for death in deaths) for _ in range(2))
    for death in deaths:
        until.put(death.since_ns, death.until_ns, death.member)
        stood.put(death.since_ns, death.stood_ns, death.member)
    unsure = [member for member in members if _is_unsure(member)]
    begun = [member for member in unsure if member["ts_silent"] is not None]
    gone = [member for member in unsure if member["ts_silent"] is None and member["ts_ended"] is not None]
    perhaps, ended = Elsewhere(one["ts_silent"] for one in begun), Elsewhere(one["ts_ended"] for one in gone)
    for one in begun:
        lasts = one["max_heartbeat_gap_ms"]
        perhaps.put(one["ts_silent"], _ALWAYS if lasts is None else lasts * NS_PER_MS, one)
    for one in gone:
        ended.put(one["ts_ended"], 1, one)

    def is_shared(death: Death) -> bool:
        who, since, common = death.member, death.since_ns, death.stood_ns * 3 / 4
        first, last = since - _AT_ONCE_NS, since + _AT_ONCE_NS
        latest = min(last, death.until_ns - ceil(common))  # what begins later has less in common
        return (
            until.most(who, first, since) - since >= common
            or stood.most(who, since + 1, latest) >= common
            or perhaps.most(who, first, latest) >= common
            or perhaps.most(who, first, last) == _ALWAYS
            or ended.most(who, death.until_ns - _AT_ONCE_NS, death.until_ns + _AT_ONCE_NS) > NONE
        )

    return is_shared


def _is_unsure(member: Row) -> bool:
    """It may have gone silent, and not all of that is known."""
    known = (member[name] for name in ("ended", "ts_silent", "max_heartbeat_gap_ms", "ts_ended"))
    return member["ended"] in (None, "expired", "removed") and None in known
