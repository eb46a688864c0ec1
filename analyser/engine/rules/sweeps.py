"""What rules ask of many times, answered in the order of time, never row against row.

In: spans with whose they are, rows by time, numbers by whose they are. Out: who else was there, or which row alone, in
one search; the largest number of all but one; how much of what is spread over spans falls between two times; of
numbers so far the median, and by how much they exceed another; the most rows within a window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heappush, heappushpop, nlargest
from math import inf
from typing import Generic, TypeVar

Row = TypeVar("Row")
Span = tuple[int, int, Hashable]
_NOBODY = object()


class Spans:
    """Spans of time: when each begins, when it ends, whose it is. Times are Unix ns."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._starts: list[int] = []
        # Of those that began by then the latest end, whose that is, and the latest end of anybody else.
        self._latest: list[tuple[int, Hashable, int | None]] = []
        latest, owner, of_others = None, None, None
        for start, end, whose in sorted(spans, key=lambda span: span[0]):
            if latest is None or (end > latest and whose == owner):
                latest, owner = end, whose
            elif end > latest:
                latest, owner, of_others = end, whose, latest
            elif whose != owner and (of_others is None or end > of_others):
                of_others = end
            self._starts.append(start)
            self._latest.append((latest, owner, of_others))

    def meets(self, after_ns: int, before_ns: int, besides: Hashable = _NOBODY) -> bool:
        """Does a span, of anybody but one, begin before `before_ns` and end after `after_ns`? With one moment for
        both: does it lie inside a span?"""
        place = bisect_left(self._starts, before_ns) - 1
        if place < 0:
            return False
        latest, owner, of_others = self._latest[place]
        end = of_others if owner == besides else latest
        return end is not None and end > after_ns


class Lasting(Generic[Row]):
    """Rows that each last from one time to another, or without an end. Times are Unix ns."""

    def __init__(self, rows: Iterable[tuple[int, int | None, Row]]) -> None:
        self._rows = [
            (start, inf if until is None else until, row) for start, until, row in sorted(rows, key=lambda one: one[0])
        ]
        self._starts = [start for start, _, _ in self._rows]
        self._ends = sorted(max(start, until) for start, until, _ in self._rows)
        # Of those that began by then the place of the one that lasts longest.
        self._longest: list[int] = []
        for place, (_, until, _) in enumerate(self._rows):
            longest = self._longest[-1] if self._longest else place
            self._longest.append(place if until > self._rows[longest][1] else longest)

    def only(self, first_ns: int, last_ns: int) -> Row | None:
        """The one row that was there from `first_ns` to `last_ns`, at some time; None where none or several were."""
        begun = bisect_right(self._starts, last_ns)
        is_one = begun - bisect_left(self._ends, first_ns) == 1
        return self._rows[self._longest[begun - 1]][2] if is_one else None

    def newest(self, at_ns: int) -> Row | None:
        """Of those that began by then, and end later, the one that began last; None without one."""
        place = bisect_right(self._starts, at_ns) - 1
        while place >= 0 and self._rows[self._longest[place]][1] > at_ns:
            _, until, row = self._rows[place]
            if until > at_ns:
                return row
            place -= 1
        return None


class Besides:
    """Numbers by whose they are: the largest of all but one."""

    def __init__(self, numbers: Iterable[tuple[Hashable, float]]) -> None:
        most: dict[Hashable, float] = {}
        for whose, number in numbers:
            most[whose] = max(most.get(whose, number), number)
        self._two = nlargest(2, most.items(), key=lambda one: one[1])

    def most(self, whose: Hashable) -> float | None:
        """The largest of anybody else; None without one."""
        return next((number for owner, number in self._two if owner != whose), None)


class Spread:
    """Numbers, each spread evenly over a span of time: how much of them all falls between two times. Times are Unix ns;
    a span without length has no part in it."""

    # So finely that a number is exact to the last place of a float; whole numbers add up alike in each order.
    _FINE = 128

    def __init__(self, spans: Iterable[tuple[int, int, int]]) -> None:
        # At each time: what is added at once, and by how much the pace changes.
        changes: dict[int, list[int]] = {}
        for start, end, number in spans:
            if end <= start:
                continue
            pace, rest = divmod(number << self._FINE, end - start)
            changes.setdefault(start, [0, 0])[1] += pace
            last = changes.setdefault(end, [0, 0])
            last[0] += rest
            last[1] -= pace
        self._times = sorted(changes)
        self._paces: list[int] = []
        self._sums: list[int] = []
        total = pace = before = 0
        for at in self._times:
            added, changed = changes[at]
            total += pace * (at - before) + added
            pace, before = pace + changed, at
            self._paces.append(pace)
            self._sums.append(total)

    def between(self, first_ns: int, last_ns: int) -> float:
        """How much falls between these times."""
        return float((self._until(last_ns) - self._until(first_ns)) / (1 << self._FINE))

    def _until(self, at_ns: int) -> int:
        place = bisect_right(self._times, at_ns) - 1
        return self._sums[place] + self._paces[place] * (at_ns - self._times[place]) if place >= 0 else 0


class Median:
    """The median of numbers that come one by one. count: how many came."""

    def __init__(self) -> None:
        self.count = 0
        # The lower half, as negative numbers, has one more where they are odd.
        self._lower: list[int] = []
        self._upper: list[int] = []

    def add(self, number: int) -> None:
        """One more."""
        self.count += 1
        if self.count % 2:
            heappush(self._lower, -heappushpop(self._upper, number))
        else:
            heappush(self._upper, -heappushpop(self._lower, -number))

    def value(self) -> float:
        """As `statistics.median` has it; not asked of none."""
        return -self._lower[0] if self.count % 2 else (self._upper[0] - self._lower[0]) / 2


class Excess:
    """By how much numbers that come one by one exceed another, all together. numbers: all that will come."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._steps = sorted({*numbers})
        # Counts and sums of the largest numbers, in ranges that double: a binary indexed tree.
        self._counts = [0] * (len(self._steps) + 1)
        self._sums = [0] * (len(self._steps) + 1)

    def add(self, number: int) -> None:
        """One more."""
        place = len(self._steps) - bisect_left(self._steps, number)
        while place <= len(self._steps):
            self._counts[place] += 1
            self._sums[place] += number
            place += place & -place

    def over(self, limit: int) -> int:
        """The sum of what those so far have beyond the limit."""
        place = len(self._steps) - bisect_right(self._steps, limit)
        found = 0
        while place:
            found += self._sums[place] - limit * self._counts[place]
            place -= place & -place
        return found


def most_within(rows: Sequence[Row], length_ns: float, at: Callable[[Row], int]) -> Sequence[Row]:
    """The longest run of rows within a time, the first of several. rows: in the order of time; at: a row's, Unix ns."""
    times = [*map(at, rows)]
    best, first = (0, 0), 0
    for last, time in enumerate(times):
        while time - times[first] > length_ns:
            first += 1
        if last + 1 - first > best[1] - best[0]:
            best = (first, last + 1)
    return rows[best[0] : best[1]]
