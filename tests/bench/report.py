"""Tables of the measurements in Markdown.

In: the results as `run.py` collects them. Out: text.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from tests.bench.measure import Run
from tests.support.replay import Replayed

WANTED_RATIO = 3.0
MOST_MIB = 512
# Twice the capture, the same memory: what remains is the allocator's and the kernel's.
FLAT_MIB = 32


class Timing(NamedTuple):
    """Runs in turn over one capture."""

    profile: str
    size: Replayed
    tshark: list[Run]
    wirewitness: list[Run]

    @property
    def ratio(self) -> float:
        """Median of tshark's wall time by the median of ours."""
        return _median_wall(self.tshark) / _median_wall(self.wirewitness)

    @property
    def cpu_ratio(self) -> float:
        """The same for processor time, which a busy machine changes less."""
        return _median_cpu(self.tshark) / _median_cpu(self.wirewitness)


class Memory(NamedTuple):
    """One run each over a capture of `times` the smallest size."""

    profile: str
    times: int
    size: Replayed
    tshark: Run
    wirewitness: Run


def markdown(timings: Sequence[Timing], memories: Sequence[Memory], *, judged: bool) -> str:
    """Both tables and, if JUDGED, whether the aims are met: small captures say nothing about them."""
    lines = [*_timing_lines(timings), ""]
    if memories:
        lines += [*_memory_lines(memories), ""]
    return "\n".join(lines + (_verdicts(timings, memories) if judged else ["Small captures: no aim is judged."]))


def _timing_lines(timings: Sequence[Timing]) -> list[str]:
    lines = [
        "| profile | packets | MB | exchanges | runs | tshark s (min to max) | wirewitness s (min to max) "
        "| wall ratio | tshark CPU s | wirewitness CPU s | CPU ratio | wirewitness packets/s | MB/s |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for timing in timings:
        size, wall_s = timing.size, _median_wall(timing.wirewitness)
        cells = (
            timing.profile, f"{size.packets:,}", _megabytes(size), f"{size.exchanges:,}", str(len(timing.tshark)),
            _spread(timing.tshark), _spread(timing.wirewitness), f"{timing.ratio:.2f}",
            f"{_median_cpu(timing.tshark):.2f}", f"{_median_cpu(timing.wirewitness):.2f}", f"{timing.cpu_ratio:.2f}",
            f"{size.packets / wall_s:,.0f}", f"{size.size_bytes / 1e6 / wall_s:,.1f}",
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _memory_lines(memories: Sequence[Memory]) -> list[str]:
    lines = [
        "| profile | size | packets | MB | exchanges | tshark peak MiB | wirewitness peak MiB |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for memory in memories:
        size = memory.size
        lines.append(
            f"| {memory.profile} | {memory.times}x | {size.packets:,} | {_megabytes(size)} | {size.exchanges:,} "
            f"| {memory.tshark.peak_mib:.0f} | {memory.wirewitness.peak_mib:.0f} |"
        )
    return lines


def _verdicts(timings: Sequence[Timing], memories: Sequence[Memory]) -> list[str]:
    lines = []
    for timing in timings:
        met = "met" if timing.ratio >= WANTED_RATIO else "MISSED"
        lines.append(f"- {timing.profile}: {timing.ratio:.2f} x tshark, aim {WANTED_RATIO:g} x: {met}")
    for profile in dict.fromkeys(memory.profile for memory in memories):
        runs = [memory for memory in memories if memory.profile == profile]
        peaks = [memory.wirewitness.peak_mib for memory in runs]
        met = "met" if max(peaks) <= MOST_MIB else "MISSED"
        growth = peaks[-1] - peaks[-2]
        flat = "flat" if growth <= FLAT_MIB else "NOT FLAT"
        lines.append(
            f"- {profile}: peak {max(peaks):.0f} MiB, aim {MOST_MIB} MiB: {met}; from {runs[-2].times}x to "
            f"{runs[-1].times}x {growth:+.0f} MiB: {flat} (at most {FLAT_MIB})"
        )
    return lines


def _median_wall(runs: Sequence[Run]) -> float:
    return statistics.median(run.wall_s for run in runs)


def _median_cpu(runs: Sequence[Run]) -> float:
    return statistics.median(run.cpu_s for run in runs)


def _spread(runs: Sequence[Run]) -> str:
    times = [run.wall_s for run in runs]
    return f"{_median_wall(runs):.2f} ({min(times):.2f} to {max(times):.2f})"


def _megabytes(size: Replayed) -> str:
    return f"{size.size_bytes / 1e6:,.0f}"
