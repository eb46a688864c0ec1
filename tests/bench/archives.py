"""Archives beside the offline command: the same rotated captures, throughput, memory of each kind of process, shuffle.

In: the bytes wanted. Out: an `Archived` for each way of running, once every message is in the tables. Both programs
make every table that findings need, and findings; the archive writes them to Parquet as well.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.bench.measure import warm
from tests.bench.process_tree import TreeRun, measure_tree
from tests.bench.programs import WIREWITNESS
from tests.bench.spark_events import Tasks, shuffled_bytes, steps_of, task_lines, tasks_of
from tests.support.replay import Replayed
from tests.support.replay_rotated import replay_rotated, replay_rotated_ordinary
from wirewitness.analyser.archive.dataset.dataset import Dataset

FILES = 5
MASTERS = ("local[1]", "local[2]")
OFFLINE_PROCESSES = 2
MOST_MIB, MOST_SHUFFLED = 1536, 0.05
# What one process does of all processor time is what more machines do not make shorter.
MOST_OF_DRIVER = 0.03
_BEGIN = re.compile(r"^\[\s*([\d.]+) s\]", re.MULTILINE)


class MessagesMissing(Exception):
    """A program found another number of messages than the captures hold."""


class Archived(NamedTuple):
    """One program over the captures. startup_s: until the first capture is looked at. The rest: Spark's."""

    program: str
    size: Replayed
    run: TreeRun
    startup_s: float
    shuffle_bytes: int | None
    tasks: Mapping[str, Tasks] = MappingProxyType({})

    @property
    def mb_per_s(self) -> float:
        """Captured bytes by time, start-up apart."""
        return self.size.size_bytes / 1e6 / max(self.run.wall_s - self.startup_s, 1e-3)


def measure_archives(folder: Path, size_bytes: int, replayed: str) -> list[Archived]:
    """Offline with two processes, then archives on one and on two cores. Nothing stays in the folder.

    replayed: `ordinary` for that traffic; else an incident, with one connection that has half of all bytes.
    """
    captures = folder / "rotated"
    try:
        made = (replay_rotated_ordinary if replayed == "ordinary" else replay_rotated)(captures, size_bytes, FILES)
        _say(f"archive: {made}")
        for path in sorted(captures.iterdir()):
            warm(path)
        found = [_offline(folder, captures, made)]
        found += [_archive(folder, captures, made, master) for master in MASTERS]
        return found
    finally:
        for name in ("rotated", "dataset", "events"):
            shutil.rmtree(folder / name, ignore_errors=True)


def _offline(folder: Path, captures: Path, made: Replayed) -> Archived:
    report = folder / "report.json"
    command = [*WIREWITNESS, "analyse", str(captures), "--processes", str(OFFLINE_PROCESSES), "--format", "json",
               "--output", str(report)]  # fmt: skip
    run = _run(command, folder)
    operations = json.loads(report.read_text())["operations"]
    _check("wirewitness analyse", sum(one["exchanges"] for one in operations), made)
    report.unlink()
    return Archived(f"analyse --processes {OFFLINE_PROCESSES}", made, run, 0.0, None)


def _archive(folder: Path, captures: Path, made: Replayed, master: str) -> Archived:
    dataset, events = folder / "dataset", folder / "events"
    for path in (dataset, events):
        shutil.rmtree(path, ignore_errors=True)
    events.mkdir()
    command = [*WIREWITNESS, "archive", str(captures), "--output", str(dataset), "--master", master,
               "--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir=file:{events}",
               "--conf", "spark.eventLog.rolling.enabled=false", "--conf", "spark.eventLog.compress=false"]  # fmt: skip
    run = _run(command, folder)
    begun = _BEGIN.search((folder / "errors.txt").read_text())
    _check(f"wirewitness archive on {master}", Dataset.open(dataset).manifest.rows("exchanges"), made)
    startup_s = float(begun[1]) if begun else 0.0
    logs = [*events.iterdir()]
    return Archived(f"archive on {master}", made, run, startup_s, shuffled_bytes(logs), tasks_of(steps_of(logs)))


def archive_lines(found: Sequence[Archived]) -> list[str]:
    """A table of the runs."""
    lines = [
        "| archive | packets | MB | flows | s | start-up s | MB/s | CPU s | driver MiB | Java MiB | worker MiB "
        "| shuffled MB | shuffled % |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in found:
        peaks = {kind: f"{seen.own_mib:.0f} ({seen.resident_mib:.0f})" for kind, seen in one.run.peaks.items()}
        shuffled = ("", "")
        if one.shuffle_bytes is not None:
            shuffled = f"{one.shuffle_bytes / 1e6:.1f}", f"{one.shuffle_bytes / one.size.size_bytes:.2%}"
        cells = (
            one.program, f"{one.size.packets:,}", f"{one.size.size_bytes / 1e6:,.0f}", f"{one.size.flows:,}",
            f"{one.run.wall_s:.1f}", f"{one.startup_s:.1f}", f"{one.mb_per_s:.1f}", f"{one.run.cpu_s:.1f}",
            peaks.get("driver", ""), peaks.get("java", ""), peaks.get("worker", ""), *shuffled,
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("\nMiB: the process's own memory at most, in brackets with mapped files; of workers the largest.")
    if found[-1].tasks:
        lines += [
            "",
            f"Tasks of {found[-1].program}:",
            "",
            *task_lines(found[-1].tasks, found[-1].size.size_bytes / 1e6),
        ]
    return lines


def archive_verdicts(found: Sequence[Archived]) -> list[str]:
    """Whether local[2] is as fast as the offline command; memory, shuffle and the driver's part beside their bounds."""
    offline, *archives = found
    lines = []
    if archives:
        two = archives[-1]
        ratio = two.mb_per_s / offline.mb_per_s
        lines.append(f"- {two.program}: {ratio:.2f} x {offline.program}, start-up apart, aim 1 x: {_met(ratio >= 1)}")
        lines.append(f"- archive: {two.mb_per_s / archives[0].mb_per_s:.2f} x from one core to two")
    for one in archives:
        most = max(seen.own_mib for seen in one.run.peaks.values())
        share = (one.shuffle_bytes or 0) / one.size.size_bytes
        lines.append(
            f"- {one.program}: largest process {most:.0f} MiB, aim {MOST_MIB}: {_met(most <= MOST_MIB)}; "
            f"shuffled {share:.2%}, aim {MOST_SHUFFLED:.0%}: {_met(share <= MOST_SHUFFLED)}"
        )
        driver_s = one.run.peaks["driver"].cpu_s
        of_all = driver_s / one.run.cpu_s
        lines.append(
            f"- {one.program}: driver: {driver_s:.1f} s of processor time, {of_all:.1%} of all, "
            f"bound {MOST_OF_DRIVER:.0%}: {_met(of_all <= MOST_OF_DRIVER)}"
        )
    return lines


def _met(reached: bool) -> str:
    return "met" if reached else "MISSED"


def _run(command: Sequence[str], folder: Path) -> TreeRun:
    run = measure_tree(command, folder / "standard_output.txt", folder / "errors.txt")
    _say(f"{' '.join(command[3:5])}: {run}")
    return run


def _check(name: str, exchanges: int, made: Replayed) -> None:
    if exchanges != made.exchanges:
        raise MessagesMissing(f"{name} found {exchanges} exchanges, the captures hold {made.exchanges}")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
