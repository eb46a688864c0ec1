"""The Spark data source "wirewitness".

    from analyser.archive.decode.source import register
    register(spark)
    spark.read.format("wirewitness").option("table", "exchanges").load("/captures/*.pcap")

In: options. Out: rows with exactly the columns of the registry; times in microseconds, since Spark has no shorter ones.

`path`      a capture, a directory, a pattern, a dataset, or a JSON list of captures
`table`     a registered table, or "packets": packed headers of TCP segments (`analyser/archive/decode/chunks.py`)
`from`, `to`, `protocols`, `ports`
            which rows: times as ISO 8601, names and numbers with commas; `ports` means connections that use one of them
`shares`    into how many the connections are dealt

Partitions are hours of a dataset, byte ranges of captures ("packets"), and shares of the connections for tables whose
rows depend on their connection only; each of those reads all bytes and decodes its own connections. A table that needs
more than that (clusters, topic names, context, findings), and any of request logs and log segments, is made as offline,
in one partition: make a dataset for it.

Nothing is pushed down: in Spark 4.3 a filter that was pushed once stays for other uses of the same DataFrame. `pyspark`
is imported here, so only what runs on Spark imports this module.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from analyser.archive.dataset.dataset import Dataset, Part
from analyser.archive.dataset.place import is_dataset
from analyser.archive.dataset.reading import DatasetTables, chosen_parts, parts_by_hours
from analyser.archive.decode.packets import DDL, RangeJob, as_batches, range_chunks
from analyser.archive.intake.plan import named
from analyser.archive.intake.ranges import RANGE_BYTES, find_ranges
from analyser.capture import CaptureError, Source, in_time_order, open_captures
from analyser.context.stages import STAGE_OF
from analyser.options import ReadOptions
from analyser.reading.pipeline import Pipeline
from analyser.reading.share import Share, ShareFilter
from analyser.registry.tables import ALL_TABLES, arrow_schema
from analyser.rows.fields import row_fields
from analyser.tables.analysis import Analysis
from analyser.tables.capture_tables import CaptureTables
from analyser.tables.needed import needed_tables, tables_to_decode
from dissectors.registry import PROTOCOLS, dissectors

FORMAT = "wirewitness"
PACKETS, JOBS = "packets", "jobs"
SHARES = 8
# Small files are read together by one task.
_TASK_BYTES = 64 << 20
_BATCH_BYTES = 4 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one read. paths: what patterns stand for. ports: empty for all."""

    table: str
    paths: tuple[str, ...]
    options: ReadOptions
    ports: tuple[int, ...]
    shares: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """CaptureError when an option makes no sense."""
        table, path = options.get("table", ""), options.get("path", "")
        if table != PACKETS and table not in ALL_TABLES:
            raise CaptureError(f"no table {table!r}; there are {PACKETS}, {', '.join(ALL_TABLES)}.")
        protocols = _words(options.get("protocols", ""))
        if unknown := [name for name in protocols if name not in PROTOCOLS]:
            raise CaptureError(f"no protocol {unknown[0]!r}; there are {', '.join(PROTOCOLS)}.")
        read = ReadOptions(decode_as={}, protocols=protocols, from_ns=_ns(options, "from"), to_ns=_ns(options, "to"))
        try:
            ports = tuple(int(port) for port in _words(options.get("ports", "")))
            shares = max(int(options.get("shares", SHARES)), 1)
        except ValueError as error:
            raise CaptureError(f"ports and shares are numbers: {error}.") from error
        return cls(table, tuple(named(_given(path))), read, ports, shares)

    def where(self) -> str | None:
        """The rows of the connections that use one of the ports, as SQL."""
        if not self.ports:
            return None
        names = ALL_TABLES[self.table].column_names()
        numbers = ", ".join(map(str, self.ports))
        own = [name for name in ("client_port", "server_port", "src_port", "dst_port") if name in names]
        if "flow_id" in names and self.table != "flows":
            chosen = f"client_port IN ({numbers}) OR server_port IN ({numbers})"
            return f"flow_id IN (SELECT flow_id FROM flows WHERE {chosen})"
        if not own:
            raise CaptureError(f"rows of {self.table} belong to no connection, so `ports` says nothing of them.")
        return " OR ".join(f"{name} IN ({numbers})" for name in own)


class Ranges(InputPartition):
    """Ranges that one task reads."""

    def __init__(self, jobs: tuple[RangeJob, ...]) -> None:
        super().__init__(0)
        self.jobs = jobs


class Rows(InputPartition):
    """What one task gives of a table. parts: of a dataset; share: of the connections of captures. None: all."""

    def __init__(self, parts: tuple[Part, ...] | None = None, share: Share | None = None) -> None:
        super().__init__(0)
        self.parts, self.share = parts, share


class WirewitnessSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> Any:
        """That of the table."""
        if JOBS in self.options:
            return DDL
        table = SourceOptions.of(self.options).table
        return DDL if table == PACKETS else from_arrow_schema(arrow_schema(table))

    def reader(self, schema: Any) -> DataSourceReader:
        if JOBS in self.options:
            return PacketReader(pickle.loads(Path(self.options[JOBS]).read_bytes()))
        asked = SourceOptions.of(self.options)
        return (
            PacketReader(_jobs(asked))
            if asked.table == PACKETS
            else TableReader(asked, to_arrow_schema(schema, timezone="UTC"))
        )


class PacketReader(DataSourceReader):
    """Chunks of ranges."""

    def __init__(self, jobs: Sequence[RangeJob]) -> None:
        self._jobs = jobs

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of small files together."""
        return [Ranges(tuple(group)) for group in _groups(self._jobs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The chunks of one partition."""
        assert isinstance(partition, Ranges)
        for job in partition.jobs:
            yield from as_batches(range_chunks(job))


class TableReader(DataSourceReader):
    """Rows of a registered table."""

    def __init__(self, asked: SourceOptions, schema: pa.Schema) -> None:
        self._asked, self._schema = asked, schema

    def partitions(self) -> Sequence[InputPartition]:
        """Hours of a dataset, shares of the connections, or one for all."""
        asked = self._asked
        dataset = _dataset(asked)
        if dataset is not None:
            parts = chosen_parts(asked.table, dataset.parts(asked.table), asked.options)
            return [Rows(parts=tuple(group)) for group in parts_by_hours(parts)] or [Rows(parts=())]
        if asked.table not in local_tables() or any(source.other_kind for source in _sources(asked)):
            return [Rows()]
        return [Rows(share=Share(number, asked.shares)) for number in range(asked.shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        assert isinstance(partition, Rows)
        with _analysis(self._asked, partition) as analysis:
            for batch in analysis.batches(self._asked.table, where=self._asked.where()):
                rows = max(1, batch.num_rows * _BATCH_BYTES // max(batch.nbytes, 1))
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows).cast(self._schema, safe=False)


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("wirewitness")` known to a session."""
    spark.dataSource.register(WirewitnessSource)


def local_tables() -> frozenset[str]:
    """Tables whose rows depend on their connection only."""
    made = {"flows", *row_fields(dissectors(()))} - STAGE_OF.keys()
    return frozenset(name for name in made if not {"cluster_id", "topic_id"} & {*ALL_TABLES[name].column_names()})


@contextmanager
def _analysis(asked: SourceOptions, rows: Rows) -> Iterator[Analysis]:
    dataset = _dataset(asked)
    if dataset is not None:
        none: dict[str, tuple[Part, ...]] = {name: () for name in ALL_TABLES if name != "flows"}
        chosen = Dataset(dataset.root, dataset.manifest, {**none, asked.table: rows.parts or ()})
        tables = DatasetTables(chosen, None, asked.options)
        with Analysis(tables, asked.options) as analysis:
            if asked.ports:
                tables.ensure("flows")
            yield analysis
        return
    wanted, known = needed_tables([asked.table, *(["flows"] if asked.ports else [])]), dissectors(())
    sources, dealing = _sources(asked), partial(ShareFilter, rows.share or Share())
    decoded = Pipeline(known, tables_to_decode(wanted, sources), asked.options, dealing=dealing).run(sources)
    if rows.share is not None and rows.share.number:
        for stats in decoded.captures:  # the first share has the remarks on captures
            stats.remarks.clear()
    with Analysis(CaptureTables(decoded, wanted, known.values(), asked.options.topic_ids), asked.options) as analysis:
        yield analysis


def _dataset(asked: SourceOptions) -> Dataset | None:
    return Dataset.open(asked.paths[0]) if len(asked.paths) == 1 and is_dataset(asked.paths[0]) else None


def _sources(asked: SourceOptions) -> list[Source]:
    return in_time_order(source for path in asked.paths for source in open_captures([path]))


def _jobs(asked: SourceOptions) -> list[RangeJob]:
    jobs = []
    for number, source in enumerate(_sources(asked)):
        if source.other_kind is not None:
            raise CaptureError(f"{source.name} is {source.other_kind}: it has no packets.")
        size = (source.path or Path(source.name)).stat().st_size
        jobs += [RangeJob(number, source, part, asked.shares) for part in find_ranges(source, size, RANGE_BYTES)]
    return jobs


def _given(path: str) -> list[str]:
    """What `path` lists: the texts of a JSON list, or itself. A pattern, too, may begin with a bracket."""
    if path.startswith("[") and not os.path.lexists(path):
        with suppress(ValueError):
            found = json.loads(path)
            if isinstance(found, list) and all(isinstance(one, str) for one in found):
                return found
    return [path] if path else []


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _ns(options: Mapping[str, str], name: str) -> int | None:
    """Unix time in ns of an option; a time without a zone is UTC."""
    if name not in options:
        return None
    try:
        given = datetime.fromisoformat(options[name])
    except ValueError as error:
        raise CaptureError(f"{name} is no time in ISO 8601: {options[name]!r}.") from error
    return (given.replace(tzinfo=given.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1) * 1000


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
