"""Work on Spark's workers, under names that its pages show.

In: a function of units, and the units. Out: what it gives of each, in their order. `HERE` does the same in this
process, for who has no Spark: every unit goes through the same bytes.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from wirewitness.analyser.base.storage.exchange_files import put_sealed, remove_file, sealed
from wirewitness.analyser.base.storage.folders import FolderPath

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Unit = TypeVar("Unit")
Told = TypeVar("Told")

# The local properties of Spark's `setJobGroup`.
_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
_TOLD = pa.schema([("number", pa.int64()), ("told", pa.binary())])
_TOLD_DDL = "number long, told binary"


class Workers(Protocol):
    """Who does the work."""

    @property
    def width(self) -> int:
        """How many units they work on at a time."""
        ...

    def run(self, stage: str, work: Callable[[Unit], Told], units: Sequence[Unit]) -> list[Told]:
        """What `work` gives of each unit. stage: the name under which it is seen. work: a function of a module, or an
        object that can be pickled, as units and what it gives can be; it may be done again for a unit."""
        ...


@contextmanager
def seen_as(spark: SparkSession, stage: str) -> Iterator[None]:
    """Jobs that begin in the block are of that stage, on Spark's pages and in its status API."""
    context = spark.sparkContext
    before = [context.getLocalProperty(name) for name in _GROUP]
    context.setJobGroup(f"wirewitness: {stage}", stage)
    try:
        yield
    finally:
        for name, value in zip(_GROUP, before, strict=True):
            # Spark takes None, which removes the property; its stub does not say so.
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


class _Here:
    """This process."""

    width = 1

    def run(self, stage: str, work: Callable[[Unit], Told], units: Sequence[Unit]) -> list[Told]:
        """See `Workers`."""
        job = pickle.dumps(work)
        found: list[Told] = [pickle.loads(pickle.dumps(pickle.loads(job)(unit))) for unit in units]
        return found


HERE: Workers = _Here()


@dataclass(frozen=True, slots=True)
class OnSpark:
    """A task for each unit. folder: for what tasks are told, which all workers see."""

    spark: SparkSession
    folder: FolderPath

    @property
    def width(self) -> int:
        """Cores that Spark has."""
        return self.spark.sparkContext.defaultParallelism

    def run(self, stage: str, work: Callable[[Unit], Told], units: Sequence[Unit]) -> list[Told]:
        """See `Workers`."""
        if not units:
            return []
        path = self.folder / f"work-{uuid.uuid4().hex}.pickle"
        seal = put_sealed(path, pickle.dumps((work, [*units])))
        count = len(units)
        with seen_as(self.spark, stage):
            rows = self.spark.range(0, count, 1, count).mapInArrow(_Working(seal), _TOLD_DDL).collect()
        remove_file(path)
        return [pickle.loads(row.told) for row in sorted(rows, key=lambda row: row.number)]


@dataclass(frozen=True, slots=True)
class _Working:
    """A task. seal: of the work and its units."""

    seal: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work, units = pickle.loads(sealed(self.seal))
        for batch in batches:
            for number in batch.column(0).to_pylist():
                told: Any = pickle.dumps(work(units[number]))
                yield pa.record_batch([pa.array([number]), pa.array([told], pa.binary())], schema=_TOLD)
