"""What members at other addresses did at about the same time, asked of each member without looking at all pairs.

In: members, each with a time and a value. Out: the largest value in a stretch of time among those who are elsewhere, as
`is_elsewhere` has it. Whoever made the capture decides how many members there are, and how many of them are at one
address: an answer takes as many steps as the logarithm of their number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable

from wirewitness.analyser.engine.rules.frame_rows import Row

NONE = float("-inf")


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
