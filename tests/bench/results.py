"""What the benchmark measured.

In: figures of `compare.py` and its neighbours. Out: named tuples that `report.py` and `verdicts.py` make text of.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.bench.archives import Archived
from tests.bench.decode import Cost
from tests.bench.live import LiveRate
from tests.bench.measure import Run
from tests.support.replay import Replayed


class Two(NamedTuple):
    """Runs of two processes over the same. starts_s: what one and two take for nearly nothing.

    wanted: how many times faster than one process they should be, the start not counted: for the table and `analyse`.
    """

    starts_s: tuple[float, float]
    ours: Sequence[Run]
    reports: Sequence[Run]
    wanted: tuple[float, float] = (0, 0)

    def ratio(self, one: Sequence[Run], two: Sequence[Run]) -> float:
        """Median of the wall time of one process by that of two, without their starts."""
        return (median_wall(one) - self.starts_s[0]) / (median_wall(two) - self.starts_s[1])


class Timing(NamedTuple):
    """Runs in turn over one capture: what was counted in it, the program compared with, its runs and ours.

    The processor time of several processes is their sum, the memory that of the largest.
    wanted: how many times less processor time than the baseline ours should take, 0 where nobody asks. reports: runs of
    `analyse` over the same, where it ran; analysed: the same of `analyse`.
    two: the same by two processes, where it ran.
    """

    profile: str
    size: Replayed
    counted: str
    baseline: str
    theirs: list[Run]
    ours: list[Run]
    wanted: float
    note: str = ""
    reports: Sequence[Run] = ()
    analysed: float = 0
    two: Two | None = None

    @property
    def analyse_ratio(self) -> float:
        """Median of the baseline's processor time by that of `analyse`."""
        return median_cpu(self.theirs) / median_cpu(self.reports)

    @property
    def ratio(self) -> float:
        """Median of the baseline's wall time by the median of ours."""
        return median_wall(self.theirs) / median_wall(self.ours)

    @property
    def cpu_ratio(self) -> float:
        """The same for processor time, which a busy machine changes less."""
        return median_cpu(self.theirs) / median_cpu(self.ours)


class Memory(NamedTuple):
    """One run each over a capture of `times` the smallest size; `analyse` where it ran."""

    profile: str
    times: int
    size: Replayed
    tshark: Run
    wirewitness: Run
    analyse: Run | None = None


class Start(NamedTuple):
    """Runs of a command that has next to nothing to do, and the processor seconds that it may take."""

    what: str
    runs: Sequence[Run]
    most_s: float

    @property
    def cpu_s(self) -> float:
        """The median."""
        return median_cpu(self.runs)


class Irregular(NamedTuple):
    """Runs in turn over a capture of what is tried in lock-step in vain: so, and with everything one by one."""

    what: str
    size: Replayed
    together: Sequence[Run]
    alone: Sequence[Run]

    @property
    def ratio(self) -> float:
        """How many times as much processor time trying takes, by the least of each: others only add to a run."""
        return min(run.cpu_s for run in self.together) / min(run.cpu_s for run in self.alone)


@dataclass
class Results:
    """All that was measured; skipped: a sentence for each part that was not, with the reason."""

    timings: list[Timing] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    archives: list[list[Archived]] = field(default_factory=list)
    lives: list[LiveRate] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    irregulars: list[Irregular] = field(default_factory=list)
    most_cost_ratio: float = 3.0
    skipped: list[str] = field(default_factory=list)


def median_wall(runs: Sequence[Run]) -> float:
    return statistics.median(run.wall_s for run in runs)


def median_cpu(runs: Sequence[Run]) -> float:
    return statistics.median(run.cpu_s for run in runs)
