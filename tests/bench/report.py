"""Tables of the measurements in Markdown.

In: the results as `run.py` collects them. Out: text.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from tests.bench.archives import Archived, archive_lines, archive_verdicts
from tests.bench.decode import Cost
from tests.bench.live import LiveRate
from tests.bench.measure import Run
from tests.support.replay import Replayed

MOST_MIB = 400
# Twice the capture, the same memory: what remains is the allocator's and the kernel's.
FLAT_MIB = 32


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
        return (_median_wall(one) - self.starts_s[0]) / (_median_wall(two) - self.starts_s[1])


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
        return _median_cpu(self.theirs) / _median_cpu(self.reports)

    @property
    def ratio(self) -> float:
        """Median of the baseline's wall time by the median of ours."""
        return _median_wall(self.theirs) / _median_wall(self.ours)

    @property
    def cpu_ratio(self) -> float:
        """The same for processor time, which a busy machine changes less."""
        return _median_cpu(self.theirs) / _median_cpu(self.ours)


class Memory(NamedTuple):
    """One run each over a capture of `times` the smallest size."""

    profile: str
    times: int
    size: Replayed
    tshark: Run
    wirewitness: Run


@dataclass
class Results:
    """All that was measured; skipped: a sentence for each part that was not, with the reason."""

    timings: list[Timing] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    archives: list[Archived] = field(default_factory=list)
    lives: list[LiveRate] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    most_cost_ratio: float = 3.0
    skipped: list[str] = field(default_factory=list)


def markdown(results: Results, *, judged: bool) -> str:
    """All tables and, if JUDGED, whether the aims are met: small captures say nothing about them."""
    parts = [
        _timing_lines(results.timings) if results.timings else [],
        [f"- {timing.note}" for timing in results.timings if timing.note],
        _memory_lines(results.memories) if results.memories else [],
        _cost_lines(results.costs) if results.costs else [],
        archive_lines(results.archives) if results.archives else [],
        _live_lines(results.lives, results.delays_s) if results.lives else [],
        _verdicts(results) if judged else ["Small captures: no aim is judged."],
        [f"- skipped: {reason}" for reason in results.skipped],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _timing_lines(timings: Sequence[Timing]) -> list[str]:
    lines = [
        "| profile | packets | MB | counted | runs | beside | its s (min to max) | wirewitness s (min to max) "
        "| wall ratio | its CPU s | wirewitness CPU s | CPU ratio | its MiB | wirewitness MiB "
        "| wirewitness packets/s | MB/s | analyse CPU s | CPU ratio | analyse MiB "
        "| two processes s | CPU s | one / two | analyse by two s | CPU s | one / two |",
        "|---|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for timing in timings:
        size, wall_s = timing.size, _median_wall(timing.ours)
        report = ("", "", "")
        if timing.reports:
            report = f"{_median_cpu(timing.reports):.2f}", f"{timing.analyse_ratio:.2f}", _peak(timing.reports)
        two = ("",) * 6
        if timing.two is not None:
            two = (
                *_of_two(timing.two, timing.ours, timing.two.ours),
                *_of_two(timing.two, timing.reports, timing.two.reports),
            )
        cells = (
            timing.profile, f"{size.packets:,}", _megabytes(size), timing.counted, str(len(timing.ours)),
            timing.baseline, _spread(timing.theirs), _spread(timing.ours), f"{timing.ratio:.2f}",
            f"{_median_cpu(timing.theirs):.2f}", f"{_median_cpu(timing.ours):.2f}", f"{timing.cpu_ratio:.2f}",
            _peak(timing.theirs), _peak(timing.ours),
            f"{size.packets / wall_s:,.0f}", f"{size.size_bytes / 1e6 / wall_s:,.1f}", *report, *two,
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _of_two(two: Two, one: Sequence[Run], runs: Sequence[Run]) -> tuple[str, str, str]:
    if not runs:
        return "", "", ""
    return _spread(runs), f"{_median_cpu(runs):.2f}", f"{two.ratio(one, runs):.2f}"


def _memory_lines(memories: Sequence[Memory]) -> list[str]:
    lines = [
        "| profile | size | packets | MB | flows | exchanges | tshark peak MiB | wirewitness peak MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for memory in memories:
        size = memory.size
        lines.append(
            f"| {memory.profile} | {memory.times}x | {size.packets:,} | {_megabytes(size)} | {size.flows:,} "
            f"| {size.exchanges:,} | {memory.tshark.peak_mib:.0f} | {memory.wirewitness.peak_mib:.0f} |"
        )
    return lines


def _live_lines(lives: Sequence[LiveRate], delays_s: Sequence[float]) -> list[str]:
    lines = [
        "| live | packets/s wanted | sent | packets | seen | late s | CPU s | keeps up |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for one in lives:
        cells = (
            one.program, f"{one.wanted:,}", f"{one.reached:,.0f}", f"{one.sent:,}", f"{one.seen:,}",
            f"{one.late_s:.1f}", f"{one.cpu_s:.1f}", "yes" if one.kept_up else "no",
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    if delays_s:
        worst, middle = max(delays_s), statistics.median(delays_s)
        lines += ["", f"From a finding's packet to its line: median {middle:.1f} s, at most {worst:.1f} s."]
    return lines


def _cost_lines(costs: Sequence[Cost]) -> list[str]:
    lines = [
        "| API | version | direction | bytes | wirewitness ns | kio ns | ratio |",
        "|---|--:|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {cost.api} | {cost.version} | {cost.direction} | {cost.size_bytes:,} | {cost.ours_ns:,.0f} "
        f"| {cost.kio_ns:,.0f} | {cost.ratio:.2f} |"
        for cost in costs
    ]
    return lines


def _verdicts(results: Results) -> list[str]:
    lines = []
    for timing in results.timings:
        if timing.wanted:
            lines.append(_verdict(timing.profile, timing.cpu_ratio, timing.baseline, timing.wanted))
        if timing.analysed and timing.reports:
            what = f"{timing.profile}, analyse"
            lines.append(_verdict(what, timing.analyse_ratio, timing.baseline, timing.analysed))
        for what, runs in (("", timing.ours), (", analyse", timing.reports)):
            if runs:
                most = max(run.peak_mib for run in runs)
                lines.append(
                    f"- {timing.profile}{what}: peak {most:.0f} MiB, aim {MOST_MIB} MiB: {_met(most <= MOST_MIB)}"
                )
        lines += _verdicts_of_two(timing) if timing.two is not None else []
    for profile, found in groupby(results.memories, key=lambda memory: memory.profile):
        runs = list(found)
        peaks = [memory.wirewitness.peak_mib for memory in runs]
        growth = peaks[-1] - peaks[-2]
        flat = "flat" if growth <= FLAT_MIB else "NOT FLAT"
        lines.append(
            f"- {profile}: peak {max(peaks):.0f} MiB, aim {MOST_MIB} MiB: {_met(max(peaks) <= MOST_MIB)}; "
            f"from {runs[-2].times}x to {runs[-1].times}x {growth:+.0f} MiB: {flat} (at most {FLAT_MIB})"
        )
    for api, group in groupby(results.costs, key=lambda cost: cost.api):
        costs = list(group)
        middle, worst = statistics.median(cost.ratio for cost in costs), max(costs, key=lambda cost: cost.ratio)
        lines.append(
            f"- decode {api}: median {middle:.2f} x kio's time, worst {worst.ratio:.2f} x (v{worst.version} "
            f"{worst.direction}), aim {results.most_cost_ratio:g} x: {_met(worst.ratio <= results.most_cost_ratio)}"
        )
    return lines + (archive_verdicts(results.archives) if results.archives else [])


def _verdict(what: str, ratio: float, baseline: str, wanted: float) -> str:
    return f"- {what}: {ratio:.2f} x {baseline} by processor time, aim {wanted:g} x: {_met(ratio >= wanted)}"


def _verdicts_of_two(timing: Timing) -> list[str]:
    two = timing.two
    assert two is not None
    lines = []
    whats = ("two processes", timing.ours, two.ours), ("analyse by two processes", timing.reports, two.reports)
    for (what, one, runs), wanted in zip(whats, two.wanted, strict=True):
        if wanted and runs:
            ratio = two.ratio(one, runs)
            lines.append(
                f"- {timing.profile}, {what}: {ratio:.2f} x one, start not counted, aim {wanted:g} x: "
                f"{_met(ratio >= wanted)}"
            )
    return lines


def _met(reached: bool) -> str:
    return "met" if reached else "MISSED"


def _median_wall(runs: Sequence[Run]) -> float:
    return statistics.median(run.wall_s for run in runs)


def _median_cpu(runs: Sequence[Run]) -> float:
    return statistics.median(run.cpu_s for run in runs)


def _spread(runs: Sequence[Run]) -> str:
    times = [run.wall_s for run in runs]
    return f"{_median_wall(runs):.2f} ({min(times):.2f} to {max(times):.2f})"


def _peak(runs: Sequence[Run]) -> str:
    return f"{max(run.peak_mib for run in runs):.0f}"


def _megabytes(size: Replayed) -> str:
    return f"{size.size_bytes / 1e6:,.0f}"
