"""What Spark's log of events says of its jobs and tasks.

In: files of events, one JSON object a line. Out: jobs with the stage of the archive that their description names and
the time that they took, the tasks of each such stage, and what all tasks shuffled.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_DESCRIPTION = "spark.job.description"


@dataclass
class Job:
    """A job. Times in seconds since the epoch."""

    name: str
    begun_s: float
    ended_s: float = 0.0


def jobs_of(logs: Iterable[Path]) -> list[Job]:
    """Jobs in the order in which they began, those without an end left out."""
    jobs: dict[int, Job] = {}
    for path in logs:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                _taken(json.loads(line), jobs)
    return sorted((job for job in jobs.values() if job.ended_s), key=lambda job: job.begun_s)


def _taken(event: dict[str, Any], jobs: dict[int, Job]) -> None:
    kind = event["Event"].removeprefix("SparkListener")
    if kind == "JobStart":
        name = (event.get("Properties") or {}).get(_DESCRIPTION, "")
        jobs[event["Job ID"]] = Job(name, event["Submission Time"] / 1e3)
    elif kind == "JobEnd":
        jobs[event["Job ID"]].ended_s = event["Completion Time"] / 1e3


def together_s(jobs: Sequence[Job]) -> float:
    """How long at least one of the jobs ran."""
    total_s, until_s = 0.0, 0.0
    for job in sorted(jobs, key=lambda job: job.begun_s):
        total_s += max(job.ended_s - max(job.begun_s, until_s), 0.0)
        until_s = max(until_s, job.ended_s)
    return total_s


class Tasks(NamedTuple):
    """All tasks of a stage of the archive: how many, the seconds that they ran, and those of the longest one."""

    number: int
    seconds: float
    longest_s: float


# A step of a stage of the archive, by the description of its job and its number among those with that description:
# tasks that run beside each other, none of which begins before the step before has ended.
Step = tuple[str, int]


def steps_of(logs: Iterable[Path]) -> dict[Step, Tasks]:
    """Tasks that succeeded, by their step, in the order in which steps began."""
    of_stage: dict[int, Step] = {}
    counted: Counter[str] = Counter()
    found: dict[Step, list[float]] = {}
    for path in logs:
        with path.open(encoding="utf-8") as lines:
            for event in map(json.loads, lines):
                if event["Event"] == "SparkListenerJobStart":
                    description = (event.get("Properties") or {}).get(_DESCRIPTION, "")
                    for stage in sorted(event.get("Stage IDs", ())):
                        of_stage[stage] = description, counted[description]
                        counted[description] += 1
                elif event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
                    ran_s = (event.get("Task Metrics") or {}).get("Executor Run Time", 0) / 1e3
                    found.setdefault(of_stage.get(event["Stage ID"], ("", 0)), []).append(ran_s)
    return {step: Tasks(len(ran), sum(ran), max(ran)) for step, ran in found.items()}


def tasks_of(steps: Mapping[Step, Tasks]) -> dict[str, Tasks]:
    """Tasks by the stage of the archive, the first word of their job's description.

    Their seconds are what has to be done on some core; no number of cores makes a stage shorter than its longest task.
    """
    found: dict[str, Tasks] = {}
    for (description, _), one in steps.items():
        name = description.partition(":")[0]
        before = found.get(name, Tasks(0, 0.0, 0.0))
        longest_s = max(before.longest_s, one.longest_s)
        found[name] = Tasks(before.number + one.number, before.seconds + one.seconds, longest_s)
    return found


def task_lines(tasks: Mapping[str, Tasks], mb: float) -> list[str]:
    """A table of them: what each stage has to do for a GB on one core, and what no more cores make shorter."""
    return [
        "| stage | tasks | s of all | s per GB of one core | longest task s |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {name} | {one.number:,} | {one.seconds:.1f} | {one.seconds / mb * 1e3:.1f} | {one.longest_s:.1f} |"
            for name, one in tasks.items()
        ),
    ]


def shuffled_bytes(logs: Iterable[Path]) -> int:
    """Bytes that all tasks wrote for other tasks."""
    total = 0
    for path in logs:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    metrics = json.loads(line).get("Task Metrics") or {}
                    total += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return total
