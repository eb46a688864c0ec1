"""What rules ask of many times, answered in the order of time, never row against row.

In: spans with whose they are, or rows by time. Out: who else was there, in one search; the most rows within a window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

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
