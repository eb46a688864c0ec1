"""Tables of the measurements in Markdown.

In: the results as `run.py` collects them. Out: text.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.bench.archives import archive_lines
from tests.bench.decode import Cost
from tests.bench.live import LiveRate
from tests.bench.measure import Run
from tests.bench.results import Irregular, Memory, Results, Start, Timing, Two, median_cpu, median_wall
from tests.bench.verdicts import verdicts
from tests.support.replay import Replayed


def markdown(results: Results, *, judged: bool) -> str:
    """All tables and, if JUDGED, whether the aims are met: small captures say nothing about them."""
    parts = [
        _start_lines(results.starts) if results.starts else [],
        _timing_lines(results.timings) if results.timings else [],
        _two_lines(results.timings) if any(timing.two for timing in results.timings) else [],
        [f"- {timing.note}" for timing in results.timings if timing.note],
        _memory_lines(results.memories) if results.memories else [],
        _irregular_lines(results.irregulars) if results.irregulars else [],
        _cost_lines(results.costs) if results.costs else [],
        *map(archive_lines, results.archives),
        _live_lines(results.lives, results.delays_s) if results.lives else [],
        verdicts(results) if judged else ["Small captures: no aim is judged."],
        [f"- skipped: {reason}" for reason in results.skipped],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _timing_lines(timings: Sequence[Timing]) -> list[str]:
    lines = [
        "| profile | packets | MB | counted | runs | beside | its s (min to max) | wirewitness s (min to max) "
        "| wall ratio | its CPU s | wirewitness CPU s | CPU ratio | its MiB | wirewitness MiB "
        "| wirewitness packets/s | MB/s | analyse CPU s | CPU ratio | analyse MiB |",
        "|---|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for timing in timings:
        size, wall_s = timing.size, median_wall(timing.ours)
        report = ("", "", "")
        if timing.reports:
            report = f"{median_cpu(timing.reports):.2f}", f"{timing.analyse_ratio:.2f}", _peak(timing.reports)
        cells = (
            timing.profile, f"{size.packets:,}", _megabytes(size), timing.counted, str(len(timing.ours)),
            timing.baseline, _spread(timing.theirs), _spread(timing.ours), f"{timing.ratio:.2f}",
            f"{median_cpu(timing.theirs):.2f}", f"{median_cpu(timing.ours):.2f}", f"{timing.cpu_ratio:.2f}",
            _peak(timing.theirs), _peak(timing.ours),
            f"{size.packets / wall_s:,.0f}", f"{size.size_bytes / 1e6 / wall_s:,.1f}", *report,
        )  # fmt: skip
        lines.append(_row(*cells))
    return lines


def _two_lines(timings: Sequence[Timing]) -> list[str]:
    lines = [
        "| by two processes | s (min to max) | CPU s | MiB of the larger | one / two "
        "| analyse s (min to max) | CPU s | MiB of the larger | one / two |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for timing in timings:
        if timing.two is not None:
            table = _of_two(timing.two, timing.ours, timing.two.ours)
            lines.append(_row(timing.profile, *table, *_of_two(timing.two, timing.reports, timing.two.reports)))
    return lines


def _of_two(two: Two, one: Sequence[Run], runs: Sequence[Run]) -> tuple[str, str, str, str]:
    if not runs:
        return "", "", "", ""
    return _spread(runs), f"{median_cpu(runs):.2f}", _peak(runs), f"{two.ratio(one, runs):.2f}"


def _memory_lines(memories: Sequence[Memory]) -> list[str]:
    lines = [
        "| profile | size | packets | MB | flows | exchanges | tshark peak MiB | wirewitness peak MiB "
        "| analyse peak MiB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for memory in memories:
        size = memory.size
        peaks = [f"{run.peak_mib:.0f}" if run else "" for run in (memory.tshark, memory.wirewitness, memory.analyse)]
        counts = f"{size.packets:,}", _megabytes(size), f"{size.flows:,}", f"{size.exchanges:,}"
        lines.append(_row(memory.profile, f"{memory.times}x", *counts, *peaks))
    return lines


def _start_lines(starts: Sequence[Start]) -> list[str]:
    lines = ["| start | runs | CPU s (min to max) | wall s |", "|---|--:|--:|--:|"]
    for start in starts:
        times = [run.cpu_s for run in start.runs]
        spread = f"{start.cpu_s:.2f} ({min(times):.2f} to {max(times):.2f})"
        lines.append(_row(start.what, str(len(times)), spread, f"{median_wall(start.runs):.2f}"))
    return lines


def _irregular_lines(irregulars: Sequence[Irregular]) -> list[str]:
    lines = [
        "| irregular | packets | MB | runs | in lock-step CPU s | one by one CPU s | ratio of the least |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for one in irregulars:
        sizes = f"{one.size.packets:,}", _megabytes(one.size), str(len(one.together))
        costs = f"{median_cpu(one.together):.2f}", f"{median_cpu(one.alone):.2f}", f"{one.ratio:.2f}"
        lines.append(_row(one.what, *sizes, *costs))
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
        lines.append(_row(*cells))
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


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _spread(runs: Sequence[Run]) -> str:
    times = [run.wall_s for run in runs]
    return f"{median_wall(runs):.2f} ({min(times):.2f} to {max(times):.2f})"


def _peak(runs: Sequence[Run]) -> str:
    return f"{max(run.peak_mib for run in runs):.0f}"


def _megabytes(size: Replayed) -> str:
    return f"{size.size_bytes / 1e6:,.0f}"
