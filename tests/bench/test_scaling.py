"""The model of time finds the figures behind runs; jobs come out of Spark's events; shares of processors hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.processor_share import processor_share, why_not
from tests.bench.scaling import DRIVER, START, Ran, lines_of
from tests.bench.spark_events import Job, Tasks, jobs_of, steps_of, task_lines, tasks_of, together_s
from tests.bench.time_model import Line, StepModel, line_through

RUNS = [(cores, mb) for cores in (1, 2, 4, 8) for mb in (40.0, 120.0)]


def test_the_figures_that_made_the_tasks_are_found() -> None:
    made = Line(3.0, 0.02)
    found = line_through([(mb, made.seconds(mb)) for mb in (40.0, 80.0, 120.0)])
    assert found == pytest.approx(made, abs=1e-6)
    model = StepModel(found, Line(1.0, 0.0))
    assert model.faster(5).seconds(2, 100) == pytest.approx((3 + 2) / 5 / 2)
    assert model.seconds(1_000, 100) == 1.0


def test_no_figure_is_below_zero() -> None:
    # By parts of each: 1/10 and 1/8, or 40/2 and 120/10, are to be 1.
    assert line_through([(40.0, 10.0), (120.0, 8.0)]) == pytest.approx(Line(0.225 / 0.025625, 0.0))
    assert line_through([(40.0, 2.0), (120.0, 10.0)]) == pytest.approx(Line(0.0, 32 / 544))


def test_jobs_have_names_and_times_and_those_that_overlap_count_once(tmp_path: Path) -> None:
    def begun(job: int, name: str, at_ms: int) -> dict[str, object]:
        return {"Event": "SparkListenerJobStart", "Job ID": job, "Submission Time": at_ms,
                "Properties": {"spark.job.description": name}}  # fmt: skip

    events = [
        begun(0, "decoding", 1_000),
        begun(1, "writing tables", 3_000),
        {"Event": "SparkListenerTaskEnd"},
        {"Event": "SparkListenerJobEnd", "Job ID": 1, "Completion Time": 3_500},
        {"Event": "SparkListenerJobEnd", "Job ID": 0, "Completion Time": 5_000},
        begun(2, "findings", 6_000),
    ]
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    decoding, writing = jobs_of([log])
    assert (decoding, writing) == (Job("decoding", 1, 5), Job("writing tables", 3, 3.5))
    assert together_s([decoding, writing]) == 4.0
    assert together_s([decoding, Job("later", 7, 8)]) == 5.0


def test_tasks_are_counted_by_the_stage_of_their_job(tmp_path: Path) -> None:
    def begun(name: str, *stages: int) -> dict[str, object]:
        properties = {"spark.job.description": name}
        return {"Event": "SparkListenerJobStart", "Job ID": 0, "Stage IDs": stages, "Properties": properties}

    def ended(stage: int, ran_ms: int, reason: str = "Success") -> dict[str, object]:
        return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task End Reason": {"Reason": reason},
                "Task Metrics": {"Executor Run Time": ran_ms}}  # fmt: skip

    events = [
        begun("context: owners", 1, 2), ended(1, 2_000), ended(2, 3_000), ended(2, 9_000, "ExceptionFailure"),
        begun("context: cursors", 3), ended(3, 500), begun("findings", 4), ended(4, 1_000),
    ]  # fmt: skip
    log = tmp_path / "log"
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    steps = steps_of([log])
    assert [*steps] == [("context: owners", 0), ("context: owners", 1), ("context: cursors", 0), ("findings", 0)]
    tasks = tasks_of(steps)
    assert tasks == {"context": Tasks(3, 5.5, 3.0), "findings": Tasks(1, 1.0, 1.0)}
    assert task_lines(tasks, 500)[2:] == ["| context | 3 | 5.5 | 11.0 | 3.0 |", "| findings | 1 | 1.0 | 2.0 | 1.0 |"]


def test_what_is_printed_has_every_stage_and_what_follows() -> None:
    """Tasks of 2 s for each MB, of which one takes 0.1 s for each MB; 0.01 s of the driver for each MB."""
    runs = []
    for cores, mb in RUNS:
        decoding_s = max(2.0 * mb / cores, 0.1 * mb)
        tasks = {("decoding", 0): Tasks(20, 2.0 * mb, 0.1 * mb)}
        runs.append(Ran(cores, mb, {START: 5.0, "decoding": decoding_s, DRIVER: 1 + 0.01 * mb}, tasks))
    lines = lines_of(runs, 0.2)
    # 100 TB: 1e8 MB * 2 s * 0.2 / 500 cores; the longest task of 120 MB 0.1 s * 0.2 for each.
    assert "| decoding | 0.00 | 400.00 | 22.2 | 2.4 |" in lines
    assert f"| {DRIVER} | 1.00 | 10.00 | 277.8 | |" in lines
    assert any("off by -0% to +0%" in line or "off by +0% to +0%" in line for line in lines)
    assert "From one core to two, start not counted: 1.98 x." in lines
    assert lines[-1].startswith("| decoding | 20 | 240.0 |")


def test_of_one_size_nothing_is_said_of_others() -> None:
    lines = lines_of([Ran(cores, 40.0, {START: 5.0, DRIVER: 1.0, "decoding": 80 / cores}) for cores in (1, 2)], 0.2)
    assert lines[-1].endswith("no model.")
    assert not any("TB" in line for line in lines)


@pytest.mark.skipif(bool(why_not()), reason=f"no shares of processors: {why_not()}")
def test_what_runs_in_a_share_takes_no_more() -> None:
    script = (
        "import time; begun = time.monotonic()\n"
        "while time.monotonic() - begun < 1: pass\n"
        "print(time.process_time())"
    )  # fmt: skip
    with processor_share("wirewitness-test", 0.2) as words:
        done = subprocess.run([*words, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.02 < float(done.stdout) < 0.4
