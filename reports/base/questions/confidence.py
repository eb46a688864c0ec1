"""How far apart two measured numbers are at least, chance left out. In: what was counted; out: ranges and factors.

A number that was measured may have come out otherwise: each side gets the range in which it lies almost surely, and
what counts is the factor between the ranges. Where these meet, the sides are alike. So one factor says how large a
difference is and how sure: few events have wide ranges, and what is hardly larger has a factor near 1.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

# Standard deviations to each side. Two ranges that do not meet differ by about 3.5 of the difference: among many
# hundreds of comparisons of things that are alike, less than one.
SIGMAS = 2.5


class Range(NamedTuple):
    """Where a number lies almost surely; its unit is that of the number. high: inf where nothing bounds it."""

    low: float
    high: float

    def over(self, whole: float) -> Range:
        """The range of a share or a rate."""
        return Range(self.low / whole, self.high / whole)


def count_range(events: int) -> Range:
    """The range of a count of events that happen by themselves; none at all may well have been five."""
    half = SIGMAS / 2
    return Range(max(sqrt(events) - half, 0.0) ** 2 if events else 0.0, (sqrt(events + 1) + half) ** 2)


def least_factor(a: Range, b: Range, blur: float = 0.0) -> float:
    """How many times one side has what the other has, at least; 1 where the ranges meet.

    blur: what differs by this much is next to nothing; in the unit of the ranges.
    """
    return max(1.0, _times(a.low, b.high, blur), _times(b.low, a.high, blur))


def _times(low: float, high: float, blur: float) -> float:
    if high == inf or low <= high:
        return 1.0
    return (low + blur) / (high + blur) if high + blur > 0 else inf
