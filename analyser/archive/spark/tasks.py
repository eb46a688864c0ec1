"""Dealing work to the tasks of a Spark job.

In: units of work and how much each is. Out: a task for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Unit = TypeVar("Unit", bound=tuple[Any, ...])


def tasks_for(spark: SparkSession, units: int) -> int:
    """Into how many tasks so many units are dealt."""
    return max(1, min(units, 4 * spark.sparkContext.defaultParallelism))


def dealt(units: Mapping[Unit, int], tasks: int) -> list[tuple[int, Unit]]:
    """Task and unit: the largest first, each to the task that has least to do; neighbours stay together there."""
    loads = [0] * tasks
    found = []
    for unit, size in sorted(units.items(), key=lambda item: (-item[1], item[0])):
        task = loads.index(min(loads))
        loads[task] += size
        found.append((task, unit))
    return sorted(found)
