"""Time of steps over cores and bytes, from their tasks: what all of them take, dealt to cores, or the longest one.

In: measured steps, which follow each other. Out: lines through them over the bytes, none below zero. A step takes
`max(longest, work / cores)` seconds: what its longest task takes limits it however many cores there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np


class Line(NamedTuple):
    """`fixed + per_mb * MB` (millions of bytes) seconds."""

    fixed: float
    per_mb: float

    def seconds(self, mb: float) -> float:
        """Of so many bytes."""
        return self.fixed + self.per_mb * mb

    def faster(self, times: float) -> Line:
        """On cores that are so many times faster."""
        return Line(self.fixed / times, self.per_mb / times)


class StepModel(NamedTuple):
    """work: seconds of all tasks together; longest: of the longest of them."""

    work: Line
    longest: Line

    def seconds(self, cores: float, mb: float) -> float:
        """What the step takes."""
        return max(self.longest.seconds(mb), self.work.seconds(mb) / cores)

    def faster(self, times: float) -> StepModel:
        """On cores that are so many times faster."""
        return StepModel(self.work.faster(times), self.longest.faster(times))


def line_through(points: Sequence[tuple[float, float]]) -> Line:
    """The line over MB through seconds that deviates least, by parts of each; ValueError without points."""
    if not points:
        raise ValueError("a line needs points")
    rows = np.array([[1.0, mb] for mb, _ in points])
    took = np.array([max(seconds, 1e-3) for _, seconds in points])
    rows /= took[:, None]
    # A figure below zero says nothing: the best of all choices of figures without such ones.
    best: tuple[float, np.ndarray] | None = None
    for chosen in (choice for number in (1, 2) for choice in combinations(range(2), number)):
        found = np.linalg.lstsq(rows[:, chosen], np.ones(len(points)), rcond=None)[0]
        if (found < 0).any():
            continue
        figures = np.zeros(2)
        figures[list(chosen)] = found
        off = float(np.sum((rows @ figures - 1) ** 2))
        if best is None or off < best[0] - 1e-12:
            best = off, figures
    assert best is not None  # one figure alone is never below zero
    return Line(*map(float, best[1]))
