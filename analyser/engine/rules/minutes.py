"""In which minute most began, and how many begin in a usual one.

In: times and rows. Out: the rows of the fullest minute and the median. Minutes are counted, not made: a clock may jump
by centuries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.engine.rules.frame_rows import Row

_MINUTE_NS = 60 * NS_PER_S


class Minutes(NamedTuple):
    """fullest: rows of the minute with most, but for the first one. usual: the median of all. number: how many."""

    fullest: list[Row]
    usual: float
    number: int


def by_minute(rows: Sequence[Row], start_ns: int, end_ns: int) -> Minutes:
    """Rows by the minutes from start to end; what lies outside counts to the first or last."""
    last = max(0, end_ns - start_ns) // _MINUTE_NS
    held: dict[int, list[Row]] = {}
    for row in rows:
        held.setdefault(min(max(0, row["ts"] - start_ns) // _MINUTE_NS, last), []).append(row)
    later = [held[minute] for minute in sorted(held) if minute]
    return Minutes(max(later, key=len, default=[]), _median(sorted(map(len, held.values())), last + 1), last + 1)


def _median(counts: Sequence[int], minutes: int) -> float:
    """The median of these and of noughts for the other minutes."""
    empty = minutes - len(counts)
    low, high = (minutes - 1) // 2, minutes // 2
    return sum(counts[place - empty] if place >= empty else 0 for place in (low, high)) / 2
