"""The Spark data source "wirewitness".

    from wirewitness.analyser.archive.decode.source import register
    register(spark)
    spark.read.format("wirewitness").option("table", "exchanges").load("/captures/*.pcap")

In: options. Out: rows with exactly the columns of the registry; times in microseconds, since Spark has no shorter ones.

`path`      a capture, a directory, a pattern, a dataset, or a JSON list of captures
`table`     a registered table, or "packets": packed headers of TCP segments (`analyser/archive/decode/chunks.py`)
`from`, `to`, `protocols`, `ports`
            which rows: times as ISO 8601, names and numbers with commas; `ports` means connections that use one of them
`shares`    into how many the connections are dealt

Partitions are hours of a dataset, byte ranges of captures ("packets"), and shards of the connections for tables whose
rows depend on their connection only; each of those reads all bytes and decodes its own connections. A table that needs
more than that (clusters, topic names, context, findings), and any of request logs and log segments, is made as offline,
in one partition: make a dataset for it.

`spark.readStream` takes captures as they become complete: `stream.py`.

Nothing is pushed down: in Spark 4.3 a filter that was pushed once stays for other uses of the same DataFrame. `pyspark`
is imported here, so only what runs on Spark imports this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from wirewitness.analyser.archive.decode.packets import DDL, RangeJob, chunks_of, for_tasks
from wirewitness.analyser.archive.decode.stream import stream_of
from wirewitness.analyser.archive.decode.table_reader import PACKETS, SourceOptions, TableReader, paths_in, sources_of
from wirewitness.analyser.archive.ingest.ranges import RANGE_BYTES, find_ranges
from wirewitness.analyser.capture import CaptureError
from wirewitness.analyser.tables.tables import arrow_schema

FORMAT = "wirewitness"


class Ranges(InputPartition):
    """Ranges that one task reads."""

    def __init__(self, jobs: Sequence[RangeJob]) -> None:
        super().__init__(0)
        self.jobs = jobs


class WirewitnessSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> Any:
        """That of the table."""
        table = SourceOptions.of(self.options).table
        return DDL if table == PACKETS else from_arrow_schema(arrow_schema(table))

    def reader(self, schema: Any) -> DataSourceReader:
        asked = SourceOptions.of(self.options)
        return (
            PacketReader(_jobs(asked))
            if asked.table == PACKETS
            else TableReader(asked, to_arrow_schema(schema, timezone="UTC"))
        )

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        asked = SourceOptions.of(self.options)
        inputs = paths_in(self.options.get("path", ""))
        return stream_of(asked, to_arrow_schema(schema, timezone="UTC"), inputs, self.options)


class PacketReader(DataSourceReader):
    """Chunks of ranges."""

    def __init__(self, jobs: Sequence[RangeJob]) -> None:
        self._jobs = jobs

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of small files together."""
        return [Ranges(group) for group in for_tasks(self._jobs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The chunks of one partition."""
        assert isinstance(partition, Ranges)
        yield from chunks_of(partition.jobs)


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("wirewitness")` known to a session."""
    spark.dataSource.register(WirewitnessSource)


def _jobs(asked: SourceOptions) -> list[RangeJob]:
    jobs = []
    for number, source in enumerate(sources_of(asked)):
        if source.other_kind is not None:
            raise CaptureError(f"{source.name} is {source.other_kind}: it has no packets.")
        size = (source.path or Path(source.name)).stat().st_size
        jobs += [RangeJob(number, source, part, asked.shards) for part in find_ranges(source, size, RANGE_BYTES)]
    return jobs
