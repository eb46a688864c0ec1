"""Speed and memory beside tshark, over captures that replay lab bytes.

    python -m tests.bench.run            about 8 minutes on a quiet machine, 2 GB of disk
    python -m tests.bench.run --quick    a smoke run; its figures say little

For each profile: runs of both programs in turn over the same capture from a warm cache, output to a file each; then
one run each at 1, 2, 4 and 8 times a base size for the peak memory. Both must see every message that the generator
wrote, or there are no figures. Standard output gets Markdown; bench-out/result.json everything. Exit status 1 when the
counts differ; a missed aim is shown, not hidden, and does not change the exit status.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.measure import Run, measure, warm
from tests.bench.programs import (
    Found,
    count_tshark,
    count_wirewitness,
    tshark_command,
    tshark_fields,
    tshark_version,
    wirewitness_command,
)
from tests.bench.report import Memory, Timing, markdown
from tests.support.replay import Replayed, replay

OUT = Path(__file__).resolve().parents[2] / "bench-out"
MEMORY_TIMES = (1, 2, 4, 8)


class CountsDiffer(Exception):
    """A program saw another number of messages than the capture holds."""


class Profile(NamedTuple):
    """A kind of capture: sizes in packets or in bytes, the other is 0."""

    name: str
    timing: tuple[int, int]
    memory_base: tuple[int, int]


FULL = (
    Profile("small", (1_000_000, 0), (250_000, 0)),
    Profile("bulk", (0, 500_000_000), (0, 125_000_000)),
)
QUICK = (
    Profile("small", (40_000, 0), (10_000, 0)),
    Profile("bulk", (0, 20_000_000), (0, 5_000_000)),
)


class Bench:
    """Runs programs over captures below one folder; nothing stays there but small outputs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._capture = folder / "capture.pcap"
        self._fields, self.unknown_fields = tshark_fields()
        folder.mkdir(exist_ok=True)

    def timing(self, profile: Profile, runs: int) -> Timing:
        """Both programs in turn, RUNS times."""
        size = self._make(profile.name, *profile.timing)
        measured: tuple[list[Run], list[Run]] = ([], [])
        for number in range(runs):
            for into, run in zip(measured, self._both(size), strict=True):
                into.append(run)
            _say(f"{profile.name} run {number + 1}: tshark {measured[0][-1]}, wirewitness {measured[1][-1]}")
        return Timing(profile.name, size, *measured)

    def memory(self, profile: Profile, times: int) -> Memory:
        """One run each over TIMES the base size."""
        packets, size_bytes = profile.memory_base
        size = self._make(profile.name, packets * times, size_bytes * times)
        tshark, wirewitness = self._both(size)
        _say(f"{profile.name} {times}x: tshark {tshark}, wirewitness {wirewitness}")
        return Memory(profile.name, times, size, tshark, wirewitness)

    def clean(self) -> None:
        """Remove the capture and the outputs."""
        for name in ("capture.pcap", "tshark.tsv", "exchanges.parquet"):
            (self._folder / name).unlink(missing_ok=True)

    def _make(self, profile: str, packets: int, size_bytes: int) -> Replayed:
        size = replay(self._capture, profile, packets, size_bytes)
        warm(self._capture)
        return size

    def _both(self, size: Replayed) -> tuple[Run, Run]:
        text, table, errors = (self._folder / name for name in ("tshark.tsv", "exchanges.parquet", "errors.txt"))
        table.unlink(missing_ok=True)
        tshark = measure(tshark_command(self._capture, self._fields), text, errors)
        wirewitness = measure(wirewitness_command(self._capture, table), self._folder / "standard_output.txt", errors)
        _check("tshark", size, count_tshark(text, self._fields))
        _check("wirewitness", size, count_wirewitness(table))
        return tshark, wirewitness


def _check(program: str, size: Replayed, found: Found) -> None:
    if found != (size.exchanges, size.exchanges):
        raise CountsDiffer(f"{program} saw {found}, the capture holds {size.exchanges} exchanges")


def _machine() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo")
    models = [line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "tshark": tshark_version(),
    }


def _plain(value: Any) -> Any:
    """Named tuples as JSON objects, all the way down."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="speed and memory beside tshark")
    parser.add_argument("--quick", action="store_true", help="small captures, two runs")
    parser.add_argument("--runs", type=int, help="runs of each program for the times (5; 2 with --quick)")
    parser.add_argument("--profile", choices=[profile.name for profile in FULL], help="only this profile")
    parser.add_argument("--no-memory", action="store_true", help="leave the memory table out")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for captures and results")
    args = parser.parse_args()
    profiles = [p for p in (QUICK if args.quick else FULL) if args.profile in (None, p.name)]
    machine = _machine()
    bench = Bench(args.out)
    try:
        timings = [bench.timing(profile, args.runs or (2 if args.quick else 5)) for profile in profiles]
        times = () if args.no_memory else MEMORY_TIMES[::2] if args.quick else MEMORY_TIMES
        memories = [bench.memory(profile, number) for profile in profiles for number in times]
    except CountsDiffer as error:
        _say(str(error))
        return 1
    finally:
        bench.clean()
    print(f"{machine['cpu']}, {machine['cores']} cores, load before {machine['load_before']:.2f}, "
          f"Python {machine['python']}, {machine['tshark']}\n")  # fmt: skip
    if bench.unknown_fields:
        print(f"Fields that this tshark does not know: {', '.join(bench.unknown_fields)}\n")
    print(markdown(timings, memories, judged=not args.quick))
    result = {"machine": machine, "unknown_fields": bench.unknown_fields, "timings": timings, "memory": memories}
    (args.out / "result.json").write_text(json.dumps(_plain(result), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
