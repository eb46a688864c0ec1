"""What a request log lacks, as the numbers of its requests tell.

In: the numbers of each line, in the order of the log. Out: how many requests before a line are missing, and, of
connections that nothing numbers, the moments at which they may lack some, too, because others do: whoever loses lines
of a log does not look whose they are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from wirewitness.dissectors.core.log_reader import Moment, Numbered

# Between lines that are missing on one connection and those that may be on another.
_AROUND_NS = 60_000_000_000
_MOST_STRETCHES = 10_000
_SECOND_NS = 1_000_000_000
_MOST_MOMENTS = 512


class Missing(NamedTuple):
    """So many requests before one are not in the log; sure: else it may be that they never were."""

    requests: int
    sure: bool


@dataclass(slots=True)
class _Counter:
    """The last number, when its request was answered, how many there were since, and how many were one above."""

    number: int
    ts_ns: int
    steps: int = 0
    ones: int = 0


class LogLosses:
    """most: so many counters are remembered at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counters: OrderedDict[str, _Counter] = OrderedDict()
        # Stretches of time in which lines are missing for sure.
        self._stretches: list[tuple[int, int]] = []

    def missing(self, told: Numbered, moment: Moment) -> Missing | None:
        """What is missing before this request; a number that is not above the last one begins anew."""
        known = self._counters.get(told.counter)
        if known is None or told.number <= known.number:
            self._remember(told.counter, _Counter(told.number, moment.ts_response_ns))
            return None
        left_out = told.number - known.number - 1
        known.steps, known.ones = known.steps + 1, known.ones + (left_out == 0)
        before_ns, known.number, known.ts_ns = known.ts_ns, told.number, moment.ts_response_ns
        self._counters.move_to_end(told.counter)
        if not left_out:
            return None
        sure = told.sure and left_out not in told.unlogged
        if sure:
            self._add(before_ns, max(before_ns, moment.ts_ns))
        counts_by_one = told.sure or 2 * known.ones >= known.steps
        return Missing(left_out, sure) if counts_by_one else None

    def among(self, moments: Moments) -> Iterator[tuple[int, int]]:
        """Those moments of a connection, with their lines, up to which others lack lines since the one before."""
        stretches = self._merged()
        ends = [end for _, end in stretches]
        before_ns: int | None = None
        for ts_ns, line in zip(moments.times, moments.lines, strict=True):
            at = bisect_left(ends, ts_ns if before_ns is None else before_ns)
            if at < len(stretches) and stretches[at][0] <= ts_ns:
                yield ts_ns, line
            before_ns = ts_ns

    def _remember(self, counter: str, value: _Counter) -> None:
        self._counters[counter] = value
        self._counters.move_to_end(counter)
        if len(self._counters) > self._most:
            self._counters.popitem(last=False)

    def _add(self, first_ns: int, last_ns: int) -> None:
        first_ns, last_ns = first_ns - _AROUND_NS, last_ns + _AROUND_NS
        if self._stretches:
            first, last = self._stretches[-1]
            if (first_ns <= last and first <= last_ns) or len(self._stretches) >= _MOST_STRETCHES:
                self._stretches[-1] = min(first, first_ns), max(last, last_ns)
                return
        self._stretches.append((first_ns, last_ns))

    def _merged(self) -> list[tuple[int, int]]:
        """In the order of time, none into the next one."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self._stretches):
            if merged and first <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        return merged


class Moments:
    """When a connection had lines, at most `_MOST_MOMENTS` of them, not more than one in a second."""

    def __init__(self) -> None:
        self.times, self.lines = array("q"), array("q")
        self._apart_ns = _SECOND_NS

    def add(self, moment: Moment) -> None:
        """One more line, later than those before."""
        if self.times and moment.ts_ns - self.times[-1] < self._apart_ns:
            return
        if len(self.times) >= _MOST_MOMENTS:
            del self.times[1::2], self.lines[1::2]
            self._apart_ns *= 2
        self.times.append(moment.ts_ns)
        self.lines.append(moment.line)
