"""Time over cores and bytes: `fixed + per_mb * MB + (work + work_per_mb * MB) / cores`.

In: measured runs. Out: the four figures that come closest, none below zero, and how far off they are. What does not
become less with cores limits first: on many cores that is what the driver does by itself, and the longest task.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np


class Measured(NamedTuple):
    """One run of so many cores over so many MB (millions of bytes)."""

    cores: int
    mb: float
    seconds: float


class TimeModel(NamedTuple):
    """Seconds. work, work_per_mb: of one core. worst: the largest deviation of a run, as a part of its time."""

    fixed: float
    per_mb: float
    work: float
    work_per_mb: float
    worst: float

    def seconds(self, cores: float, mb: float) -> float:
        """What a run takes."""
        return self.fixed + self.per_mb * mb + (self.work + self.work_per_mb * mb) / cores

    def faster(self, times: float) -> TimeModel:
        """The same with cores that are so many times faster; what the driver does stays."""
        return self._replace(work=self.work / times, work_per_mb=self.work_per_mb / times)


def fitted(runs: Sequence[Measured]) -> TimeModel:
    """The model that deviates least, each run counted by parts of its own time. ValueError without runs."""
    if not runs:
        raise ValueError("a model needs measured runs")
    rows = np.array([[1.0, run.mb, 1 / run.cores, run.mb / run.cores] for run in runs])
    took = np.array([run.seconds for run in runs])
    rows /= took[:, None]
    # A figure that comes out below zero says nothing: the best of all choices of figures without such ones.
    best: tuple[float, np.ndarray] | None = None
    for number in range(1, rows.shape[1] + 1):
        for chosen in combinations(range(rows.shape[1]), number):
            found = np.linalg.lstsq(rows[:, chosen], np.ones(len(runs)), rcond=None)[0]
            if (found < 0).any():
                continue
            figures = np.zeros(rows.shape[1])
            figures[list(chosen)] = found
            off = float(np.sum((rows @ figures - 1) ** 2))
            if best is None or off < best[0] - 1e-12:
                best = off, figures
    assert best is not None  # one figure alone is never below zero
    worst = float(np.max(np.abs(rows @ best[1] - 1)))
    return TimeModel(*map(float, best[1]), worst)
