"""The Spark data source "wirewitness".

In: options of `spark.read.format("wirewitness")`. Out: rows; the partitions are byte ranges of files. `pyspark` is
imported here, so only what runs on Spark imports this module.

`table` "packets": chunk rows (`analyser/archive/chunks.py`), every connection's in one share.

Nothing is pushed down: in Spark 4.3 a filter that was pushed once stays for other uses of the same DataFrame.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from analyser.archive.packets import DDL, RangeJob, as_batches, range_chunks

FORMAT = "wirewitness"
PACKETS, JOBS = "packets", "jobs"
# Small files are read together by one task.
_TASK_BYTES = 64 << 20


class Ranges(InputPartition):
    """What one task reads."""

    def __init__(self, jobs: tuple[RangeJob, ...]) -> None:
        super().__init__(0)
        self.jobs = jobs


class WirewitnessSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return PacketReader(self.options)


class PacketReader(DataSourceReader):
    """Chunks of the ranges that the file of option `jobs` lists."""

    def __init__(self, options: Any) -> None:
        self._jobs = str(options[JOBS])

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of small files together."""
        jobs: list[RangeJob] = pickle.loads(Path(self._jobs).read_bytes())
        return [Ranges(tuple(group)) for group in _groups(jobs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The chunks of one partition."""
        assert isinstance(partition, Ranges)
        for job in partition.jobs:
            yield from as_batches(range_chunks(job))


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("wirewitness")` known to a session."""
    spark.dataSource.register(WirewitnessSource)


def _groups(jobs: Sequence[RangeJob]) -> Iterator[list[RangeJob]]:
    group: list[RangeJob] = []
    size = 0
    for job in jobs:
        more = job.part.end - job.part.start
        if group and size + more > _TASK_BYTES:
            yield group
            group, size = [], 0
        group.append(job)
        size += more
    if group:
        yield group
