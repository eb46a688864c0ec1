"""Tasks over a change: what one looks at, and what it tells and makes, wherever it runs.

In: a change, who works, a function of what a task sees and of its unit. Out: what the function gives of each unit; the
parts that it made are the change's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.snapshot import Made, Snapshot
from wirewitness.analyser.archive.dataset.state_files import going_on_from
from wirewitness.analyser.archive.spark.workers import Workers

Unit = TypeVar("Unit")
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class _Task(Generic[Unit, Told]):
    """Work on one unit after the other, each from the same snapshot of the change."""

    work: Callable[[Snapshot, Unit], Told]
    snapshot: Snapshot

    def __call__(self, unit: Unit) -> tuple[Told, Made]:
        snapshot = replace(self.snapshot, made=Made([], []))
        with going_on_from(None if snapshot.previous_state is None else snapshot.root):
            return self.work(snapshot, unit), snapshot.made


def each_of(
    change: Change, workers: Workers, stage: str, work: Callable[[Snapshot, Unit], Told], units: Sequence[Unit]
) -> list[Told]:
    """What the work gives of each unit, once the change has what it made. stage: as it is seen in Spark.

    Units make parts in different places, or under different names.
    """
    found: list[Told] = []
    for told, made in workers.run(stage, _Task(work, change.snapshot()), units):
        change.take(made)
        found.append(told)
    return found
