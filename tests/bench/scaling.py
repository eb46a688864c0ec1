"""Archives on clusters of several sizes, and what that says of larger ones.

    python -m tests.bench.scaling                       1, 2, 4 and 8 workers, two sizes; half an hour (root)
    python -m tests.bench.scaling --mb 25 --mb 75 --part 0.25
    python -m tests.bench.scaling --local --cores 1 --cores 2 --mb 650 --mb 1300

Each worker of a standalone cluster has one core, of which it may take a part (`processor_share.py`), so that two
processors stand for eight slow machines; the driver is not slowed down. Each run reads all of the same captures into a
new dataset. Standard output gets Markdown: time of each run and of each stage, the model made of their tasks
(`time_model.py`), how far it is off for these runs, and what it says of 100 TB on 500 whole cores. Exit status 1 where
messages are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from tests.bench.measure import warm
from tests.bench.processor_share import processor_share, why_not
from tests.bench.programs import WIREWITNESS
from tests.bench.spark_events import Step, Tasks, jobs_of, steps_of, task_lines, tasks_of, together_s
from tests.bench.time_model import StepModel, line_through
from tests.lab.processes import Process
from tests.lab.spark_cluster import Start, spark_cluster
from tests.support.replay_rotated import replay_rotated
from wirewitness.analyser.archive.dataset.dataset import Dataset

OUT = Path(__file__).resolve().parents[2] / "bench-out"
CORES, MB, PART = (1, 2, 4, 8), (40.0, 120.0), 0.2
FILES, RUN_S = 2, 3600
FAR_CORES, FAR_MB = 500, 100e6
# What is no stage: Spark's start and that of the first Python worker; what the driver does between jobs.
START, DRIVER = "start", "driver alone"


class Ran(NamedTuple):
    """A run: seconds of each stage, in their order, with START and DRIVER; the tasks of each step."""

    cores: int
    mb: float
    stages_s: dict[str, float]
    steps: Mapping[Step, Tasks] = MappingProxyType({})

    @property
    def seconds(self) -> float:
        """The whole run."""
        return sum(self.stages_s.values())


class MessagesMissing(Exception):
    """A dataset has another number of exchanges than the captures hold."""


def measured(folder: Path, cores: int, captures: Path, exchanges: int, part: float | None) -> Ran:
    """One archive on so many workers; part: None for cores of this machine. Raises MessagesMissing, LabError."""
    work, dataset, events = folder / "cluster", folder / "dataset", folder / "events"
    for path in (work, dataset, events):
        shutil.rmtree(path, ignore_errors=True)
    work.mkdir()
    events.mkdir()
    with contextlib.ExitStack() as there:
        master = f"local[{cores}]"
        if part is not None:
            shares = [there.enter_context(processor_share(f"wirewitness-{n}", part)) for n in range(cores)]
            master = there.enter_context(spark_cluster(work, [Start(before=words) for words in shares])).url
        command = [*WIREWITNESS, "archive", str(captures), "--output", str(dataset), "--master", master,
                   "--executor-memory", "600m", "--conf", "spark.eventLog.enabled=true",
                   "--conf", f"spark.eventLog.dir=file:{events}", "--conf", "spark.eventLog.rolling.enabled=false",
                   "--conf", "spark.eventLog.compress=false"]  # fmt: skip
        begun_s = time.time()
        Process("archive", command, folder).finish(RUN_S)
        ended_s = time.time()
    if Dataset.open(dataset).manifest.rows("exchanges") != exchanges:
        raise MessagesMissing(f"{cores} workers: the dataset has not the {exchanges} exchanges of the captures")
    logs = [*events.iterdir()]
    jobs = jobs_of(logs)
    stages_s = {START: jobs[0].begun_s - begun_s}
    for name in dict.fromkeys(job.name.partition(":")[0] for job in jobs):
        stages_s[name] = together_s([job for job in jobs if job.name.partition(":")[0] == name])
    stages_s[DRIVER] = ended_s - jobs[0].begun_s - together_s(jobs)
    mb = sum(path.stat().st_size for path in captures.iterdir()) / 1e6
    ran = Ran(cores, mb, stages_s, steps_of(logs))
    print(f"{cores} workers, {mb:.0f} MB: {ran.seconds:.1f} s", file=sys.stderr, flush=True)
    return ran


def lines_of(runs: Sequence[Ran], part: float) -> list[str]:
    """The tables and what follows from them, as Markdown."""
    names = list(dict.fromkeys(name for run in runs for name in run.stages_s))
    lines = [
        *([f"Each worker takes {part:g} of a processor at most."] if part < 1 else []),
        "Seconds:",
        "",
        "| stage | " + " | ".join(f"{run.cores} x, {run.mb:.0f} MB" for run in runs) + " |",
        "|---|" + "--:|" * len(runs),
        *(_row(name, [run.stages_s.get(name, 0) for run in runs]) for name in names),
        _row("all", [run.seconds for run in runs]),
    ]
    if len({run.mb for run in runs}) < 2:
        return [*lines, "", "One size says nothing of others: no model."]
    models = {step: _step_model(step, runs) for step in dict.fromkeys(step for run in runs for step in run.steps)}
    driver = line_through([(run.mb, run.stages_s[DRIVER]) for run in runs])
    start_s = median(run.stages_s[START] for run in runs)
    told = [start_s + driver.seconds(run.mb) + sum(one.seconds(run.cores, run.mb) for one in models.values())
            for run in runs]  # fmt: skip
    off = [by_model / run.seconds - 1 for by_model, run in zip(told, runs, strict=True)]
    largest = max(runs, key=lambda run: (run.mb, run.cores))
    far = f"{FAR_MB / 1e6:.0f} TB"
    lines += [
        "",
        "From tasks, cores as fast as a whole processor: stages have steps, one after the other, and a step takes the "
        "time of all its tasks divided by the cores, or that of its longest task.",
        "",
        f"| stage | all tasks s | s per GB | {far} on {FAR_CORES} cores, h | longest tasks of {largest.mb:.0f} MB, s |",
        "|---|--:|--:|--:|--:|",
        *(
            _model_row(
                name, [model.faster(1 / part) for step, model in models.items() if _stage_of(step) == name], largest
            )
            for name in dict.fromkeys(map(_stage_of, models))
        ),
        f"| {DRIVER} | {driver.fixed:.2f} | {driver.per_mb * 1e3:.2f} | {driver.seconds(FAR_MB) / 3600:.1f} | |",
        "",
        f"With the cores of these runs, it is off by {min(off):+.0%} to {max(off):+.0%}, half of them by "
        f"{median(map(abs, off)):.0%} at most.",
    ]
    by_cores = {run.cores: run.seconds - run.stages_s[START] for run in runs if run.mb == max(one.mb for one in runs)}
    if {1, 2} <= by_cores.keys():
        lines += ["", f"From one core to two, start not counted: {by_cores[1] / by_cores[2]:.2f} x."]
    if largest.steps:
        words = f"Tasks of {largest.cores} workers, {largest.mb:.0f} MB; more cores than tasks help a stage no more:"
        lines += ["", words, "", *task_lines(tasks_of(largest.steps), largest.mb)]
    return lines


def _row(name: str, seconds: Sequence[float]) -> str:
    return f"| {name} | " + " | ".join(f"{one:.1f}" for one in seconds) + " |"


def _stage_of(step: Step) -> str:
    return step[0].partition(":")[0]


def _step_model(step: Step, runs: Sequence[Ran]) -> StepModel:
    seen = [(run.mb, run.steps[step]) for run in runs if step in run.steps]
    return StepModel(
        line_through([(mb, tasks.seconds) for mb, tasks in seen]),
        line_through([(mb, tasks.longest_s) for mb, tasks in seen]),
    )


def _model_row(name: str, models: Sequence[StepModel], largest: Ran) -> str:
    """Tasks are cut by rows and bytes, so what the longest ones take is told as it is and not for more bytes."""
    fixed, per_mb = sum(model.work.fixed for model in models), sum(model.work.per_mb for model in models)
    far_h = sum(model.work.seconds(FAR_MB) for model in models) / FAR_CORES / 3600
    longest_s = sum(model.longest.seconds(largest.mb) for model in models)
    return f"| {name} | {fixed:.2f} | {per_mb * 1e3:.2f} | {far_h:.1f} | {longest_s:.1f} |"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="archives on 1, 2, 4 and 8 workers")
    parser.add_argument("--mb", type=float, action="append", help="size of captures; repeatable (40, 120)")
    parser.add_argument("--cores", type=int, action="append", help="workers; repeatable (1, 2, 4, 8)")
    parser.add_argument("--local", action="store_true", help="cores of this machine in place of workers")
    parser.add_argument("--part", type=float, default=PART, help=f"of a processor, for each worker ({PART:g})")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for captures and datasets")
    return parser.parse_args()


def main() -> int:
    """See the module's docstring."""
    args = _arguments()
    part = None if args.local else args.part
    if part is not None and (reason := why_not()):
        print(f"scaling: {reason}", file=sys.stderr)
        return 1
    folder: Path = args.out / "scaling"
    runs = []
    try:
        for mb in args.mb or MB:
            captures = folder / "captures"
            made = replay_rotated(captures, round(mb * 1e6), FILES)
            for path in captures.iterdir():
                warm(path)
            runs += [measured(folder, cores, captures, made.exchanges, part) for cores in args.cores or CORES]
            shutil.rmtree(captures)
    except MessagesMissing as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(lines_of(runs, part or 1.0)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
