"""Tables of captures and datasets for Spark: what one read asks for, and its tasks.

In: the options of `source.py`. Out: partitions, and the rows of each as Arrow batches with the columns of the registry.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.analysis.capture_tables import CaptureTables
from wirewitness.analyser.analysis.needed import needed_tables, tables_to_decode
from wirewitness.analyser.archive.dataset.dataset import Dataset, Part
from wirewitness.analyser.archive.dataset.place import is_dataset
from wirewitness.analyser.archive.dataset.reading import DatasetTables, chosen_parts, parts_by_hours
from wirewitness.analyser.archive.ingest.plan import named
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import CaptureError, Source, in_time_order, open_captures
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.shard import Shard, ShardFilter
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.tables.tables import ALL_TABLES
from wirewitness.dissectors.registry import PROTOCOLS, dissectors

PACKETS = "packets"
SHARDS = 8
_BATCH_BYTES = 4 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one read. paths: what patterns stand for. ports: empty for all."""

    table: str
    paths: tuple[str, ...]
    options: ReadOptions
    ports: tuple[int, ...]
    shards: int

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
            shards = max(int(options.get("shares", SHARDS)), 1)
        except ValueError as error:
            raise CaptureError(f"ports and shares are numbers: {error}.") from error
        return cls(table, tuple(named(paths_in(path))), read, ports, shards)

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


class Rows(InputPartition):
    """What one task gives of a table. parts: of a dataset; shard: of the connections of captures. None: all."""

    def __init__(self, parts: tuple[Part, ...] | None = None, shard: Shard | None = None) -> None:
        super().__init__(0)
        self.parts, self.shard = parts, shard


class TableReader(DataSourceReader):
    """Rows of a registered table."""

    def __init__(self, asked: SourceOptions, schema: pa.Schema) -> None:
        self._asked, self._schema = asked, schema

    def partitions(self) -> Sequence[InputPartition]:
        """Hours of a dataset, shards of the connections, or one for all."""
        asked = self._asked
        dataset = _dataset(asked)
        if dataset is not None:
            parts = chosen_parts(asked.table, dataset.parts(asked.table), asked.options)
            return [Rows(parts=tuple(group)) for group in parts_by_hours(parts)] or [Rows(parts=())]
        if asked.table not in local_tables() or any(source.other_kind for source in sources_of(asked)):
            return [Rows()]
        return [Rows(shard=Shard(number, asked.shards)) for number in range(asked.shards)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""
        assert isinstance(partition, Rows)
        with _analysis(self._asked, partition) as analysis:
            for batch in analysis.batches(self._asked.table, where=self._asked.where()):
                rows = max(1, batch.num_rows * _BATCH_BYTES // max(batch.nbytes, 1))
                for start in range(0, batch.num_rows, rows):
                    yield batch.slice(start, rows).cast(self._schema, safe=False)


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
    sources, dealing = sources_of(asked), partial(ShardFilter, rows.shard or Shard())
    decoded = Pipeline(known, tables_to_decode(wanted, sources), asked.options, dealing=dealing).run(sources)
    if rows.shard is not None and rows.shard.number:
        for stats in decoded.captures:  # the first shard has the remarks on captures
            stats.remarks.clear()
    with Analysis(CaptureTables(decoded, wanted, known.values(), asked.options.topic_ids), asked.options) as analysis:
        yield analysis


def _dataset(asked: SourceOptions) -> Dataset | None:
    return Dataset.open(asked.paths[0]) if len(asked.paths) == 1 and is_dataset(asked.paths[0]) else None


def sources_of(asked: SourceOptions) -> list[Source]:
    return in_time_order(source for path in asked.paths for source in open_captures([path]))


def paths_in(path: str) -> list[str]:
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
