"""Whether the aims are met.

In: the results as `run.py` collects them. Out: lines of Markdown, one for each aim.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from tests.bench.archives import archive_verdicts
from tests.bench.decode import Cost
from tests.bench.live import LATE_S, LiveRate
from tests.bench.measure import Run
from tests.bench.results import Irregular, Memory, Results, Start, Timing, Two

MOST_MIB = 400
# The largest peak of a series beside its smallest: what remains is the allocator's and the kernel's.
FLAT = 1.25
IN_VAIN = 1.1
LIVE_PACKETS_PER_S, LIVE_DELAY_S = 100_000, 2.0
# A sender that wakes up late reaches a little less than was wanted.
REACHED = 0.99


def verdicts(results: Results) -> list[str]:
    """A line for each aim of what was measured."""
    memories = groupby(results.memories, key=lambda memory: memory.profile)
    costs = groupby(results.costs, key=lambda cost: cost.api)
    return [
        *map(_of_start, results.starts),
        *chain.from_iterable(map(_of_timing, results.timings)),
        *chain.from_iterable(_of_memory(profile, list(found)) for profile, found in memories),
        *map(_of_irregular, results.irregulars),
        *(_of_costs(api, list(found), results.most_cost_ratio) for api, found in costs),
        *_of_live(results.lives, results.delays_s),
        *(line for found in results.archives for line in archive_verdicts(found)),
    ]


def _of_start(start: Start) -> str:
    return (
        f"- start, {start.what}: {start.cpu_s:.2f} s of processor time, aim {start.most_s:g} s: "
        f"{_met(start.cpu_s <= start.most_s)}"
    )


def _of_timing(timing: Timing) -> Iterator[str]:
    if timing.wanted:
        yield _ratio(timing.profile, timing.cpu_ratio, timing.baseline, timing.wanted)
    if timing.analysed and timing.reports:
        yield _ratio(f"{timing.profile}, analyse", timing.analyse_ratio, timing.baseline, timing.analysed)
    two = timing.two or Two((0, 0), (), ())
    for what, runs in (
        (timing.profile, timing.ours),
        (f"{timing.profile}, analyse", timing.reports),
        (f"{timing.profile}, the larger of two processes", two.ours),
        (f"{timing.profile}, analyse, the larger of two processes", two.reports),
    ):
        if runs:
            yield f"- {what}: {_peak(runs)}"
    for what, one, runs, wanted in (
        ("two processes", timing.ours, two.ours, two.wanted[0]),
        ("analyse by two processes", timing.reports, two.reports, two.wanted[1]),
    ):
        if wanted and runs:
            ratio = two.ratio(one, runs)
            yield (
                f"- {timing.profile}, {what}: {ratio:.2f} x one, start not counted, aim {wanted:g} x: "
                f"{_met(ratio >= wanted)}"
            )


def _of_memory(profile: str, memories: Sequence[Memory]) -> Iterator[str]:
    yield _growth(profile, memories, [memory.wirewitness for memory in memories])
    reports = [memory.analyse for memory in memories if memory.analyse is not None]
    if reports:
        yield _growth(f"{profile}, analyse", memories, reports)


def _growth(what: str, memories: Sequence[Memory], runs: Sequence[Run]) -> str:
    """The peaks of one program from the smallest to the largest size."""
    peaks = [run.peak_mib for run in runs]
    growth = max(peaks) / min(peaks)
    return (
        f"- {what}: {_peak(runs)}; from {memories[0].times}x to {memories[-1].times}x the largest is {growth:.2f} x "
        f"the smallest: {'flat' if growth <= FLAT else 'NOT FLAT'} (at most {FLAT:g} x)"
    )


def _of_irregular(irregular: Irregular) -> str:
    return (
        f"- irregular, {irregular.what}: in lock-step {irregular.ratio:.2f} x one by one by processor time, "
        f"at most {IN_VAIN:g} x: {_met(irregular.ratio <= IN_VAIN)}"
    )


def _of_costs(api: str, costs: Sequence[Cost], most: float) -> str:
    middle, worst = statistics.median(cost.ratio for cost in costs), max(costs, key=lambda cost: cost.ratio)
    return (
        f"- decode {api}: median {middle:.2f} x kio's time, worst {worst.ratio:.2f} x (v{worst.version} "
        f"{worst.direction}), aim {most:g} x: {_met(worst.ratio <= most)}"
    )


def _of_live(lives: Sequence[LiveRate], delays_s: Sequence[float]) -> Iterator[str]:
    if lives:
        kept = [one.reached for one in lives if one.program == "wirewitness" and one.kept_up]
        most = max(kept, default=0)
        yield (
            f"- live: {most:,.0f} packets/s without loss, at most {LATE_S:g} s late, aim {LIVE_PACKETS_PER_S:,}: "
            f"{_met(most >= REACHED * LIVE_PACKETS_PER_S)}"
        )
    if lives or delays_s:
        worst = max(delays_s, default=0)
        told = f"findings at most {worst:.1f} s after their packet" if delays_s else "no finding came in time"
        yield f"- live: {told}, aim {LIVE_DELAY_S:g} s: {_met(bool(delays_s) and worst <= LIVE_DELAY_S)}"


def _ratio(what: str, ratio: float, baseline: str, wanted: float) -> str:
    return f"- {what}: {ratio:.2f} x {baseline} by processor time, aim {wanted:g} x: {_met(ratio >= wanted)}"


def _peak(runs: Sequence[Run]) -> str:
    most = max(run.peak_mib for run in runs)
    return f"peak {most:.0f} MiB, aim {MOST_MIB} MiB: {_met(most <= MOST_MIB)}"


def _met(reached: bool) -> str:
    return "met" if reached else "MISSED"
