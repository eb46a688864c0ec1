"""What Spark's log of events says of its jobs and tasks.

In: files of events, one JSON object a line. Out: jobs with the stage of the archive that their description names and
the time that they took, and what all tasks shuffled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
