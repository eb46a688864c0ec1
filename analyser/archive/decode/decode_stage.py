"""The decode stage: all chunks of a shard to raw rows in files, in one task.

In: chunks sorted by shard, file, range and number, and what the previous run left of the shard's flows. Out: a folder
for each shard with raw rows, flows, and the state for the next run; only its name goes back through Spark. Rows that
came before the end are settled: further packets add to them. Those that ending all flows brings are of this run only.
"""

from __future__ import annotations

import pickle
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import feather

from wirewitness.analyser.analysis.build import Lookups, duplicate_flows, finish_batch
from wirewitness.analyser.archive.dataset.place import ANEW, DatasetError
from wirewitness.analyser.archive.dataset.stage_files import value_of
from wirewitness.analyser.archive.dataset.state_files import going_on_from, kept_table, put_kept
from wirewitness.analyser.archive.decode.chunks import Chunk
from wirewitness.analyser.archive.decode.fetching import ObjectLost, with_stretches
from wirewitness.analyser.archive.decode.packets import NOTE, RangeResult, from_batch
from wirewitness.analyser.archive.decode.read_again import Again, read_again
from wirewitness.analyser.archive.decode.shard_decoder import ShardDecoder
from wirewitness.analyser.archive.decode.state_data import SCHEMA, StateError, from_table, to_table
from wirewitness.analyser.archive.ingest.brought import head_stats
from wirewitness.analyser.archive.ingest.ranges import RangeStats
from wirewitness.analyser.base.collector import collector_paused
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.exchange_files import is_there, new_folder, seal_of
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import CaptureError, CaptureStats, Source
from wirewitness.analyser.capture.sources import explain
from wirewitness.analyser.decoding.rows.rows_file import HandedOver, batches_of
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.engine.facts.naming_tables import NAMED_BY
from wirewitness.analyser.tables.coded import plain
from wirewitness.dissectors.registry import dissectors

SETTLED_ROWS, OPEN_ROWS = "settled", "open"
STATE_FILE, RESULT_FILE, FLOWS_FILE = "state.arrow", "result.pickle", "flows.arrow"
# Connections whose keys are not there, and what these would be found by (LOCKED).
LOCKED_FILE = "locked.arrow"
# Whether a flow was over before its shard's packets were, so that no later packet adds to it.
ENDED = "_ended"
RESULTS = pa.schema([("shard", pa.int32()), ("folder", pa.string()), ("result", pa.string())])
RESULTS_DDL = "shard int, folder string, result string"


class BrokerShard(NamedTuple):
    """The shard that reads request logs and log segments, whole and one after the other. files: by number. goes_on: a
    run before left a state of it."""

    shard: int
    files: Mapping[int, Source]
    goes_on: bool


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """What every task of the stage is told.

    work: folder for what the tasks write. paths: where the file of each number is. previous: the state of the previous
    run, None for none. secrets: captures that bring some along, for whoever decodes to read. brokers: None for
    packets only. again: the files are in already, and only what keys open now is read; None for new files.
    """

    work: FolderPath
    paths: Mapping[int, FilePath]
    tables: tuple[str, ...]
    options: ReadOptions
    previous: FolderPath | None
    secrets: tuple[Source, ...] = ()
    brokers: BrokerShard | None = None
    again: Again | None = None

    def state_of(self, shard: int) -> FolderPath | None:
        """Where the run before left its state of this shard."""
        begins = self.brokers is not None and shard == self.brokers.shard and not self.brokers.goes_on
        return None if self.previous is None or begins else self.previous / shard_name(shard)

    def broker_file(self, shard: int, file: int) -> Source | None:
        """The file, where this shard reads it itself."""
        return self.brokers.files.get(file) if self.brokers is not None and shard == self.brokers.shard else None


@dataclass(frozen=True, slots=True)
class ShardFolder:
    """What a task leaves for one shard. goes_on: from a state of the run before. settled, open: raw rows by table,
    whose files lie in SETTLED_ROWS and OPEN_ROWS. ranges: in that of shard 0, and those of brokers' files in that of
    their shard. faults: see `Sink`. lost: file whose bytes a store does not give any more, and why; nothing else counts
    then. again: the connections that were read again, by their first packets, and of `settled` only their rows count;
    None where new files were read."""

    shard: int
    goes_on: bool
    settled: Mapping[str, HandedOver]
    open: Mapping[str, HandedOver]
    ranges: list[RangeResult] = field(default_factory=list)
    faults: Mapping[str, int] = field(default_factory=dict)
    lost: tuple[int, str] | None = None
    again: list[int] | None = None


class Left(NamedTuple):
    """Where a task left a shard, and the seal of its `ShardFolder`."""

    place: FolderPath
    result: str


def decode_shards(job: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode all shards among the rows; one row for each (RESULTS). job: seal of a `DecodeJob`."""
    told: DecodeJob = value_of(job)
    chunks = chain.from_iterable(map(from_batch, batches))
    for shard, own in groupby(chunks, lambda chunk: chunk.shard):
        with going_on_from(told.previous):
            left = _decoded(told, shard, own)
        columns = [pa.array([shard], pa.int32()), pa.array([str(left.place)]), pa.array([left.result])]
        yield pa.RecordBatch.from_arrays(columns, schema=RESULTS)


def _decoded(job: DecodeJob, shard: int, chunks: Iterable[Chunk]) -> Left:
    """The folder of a shard; of one whose bytes are lost it says no more than that. A task that is done again uses
    another one."""
    place = job.work / f"share-{shard}-{uuid.uuid4().hex[:8]}"
    with new_folder(place) as folder:
        try:
            decode_shard(job, shard, chunks, folder)
        except ObjectLost as lost:
            left = ShardFolder(shard, False, {}, {}, lost=(lost.file, str(lost)))
            (folder / RESULT_FILE).write_bytes(pickle.dumps(left))
        result = (folder / RESULT_FILE).read_bytes()
    return Left(place, seal_of(place / RESULT_FILE, result))


def result_of(left: Left) -> ShardFolder:
    """What the task of a shard left. OSError."""
    result: ShardFolder = value_of(left.result)
    return result


def decode_shard(job: DecodeJob, shard: int, chunks: Iterable[Chunk], folder: Path) -> None:
    """Decode one shard; all that comes of it goes to the folder. ObjectLost."""
    settled_in, open_in = folder / SETTLED_ROWS, folder / OPEN_ROWS
    for path in (settled_in, open_in):
        path.mkdir(parents=True)
    ranges: list[RangeResult] = []
    again, faults = None, Counter[str]()
    with collector_paused():
        pipeline = _pipeline(job, settled_in if job.again is None else open_in)
        decoder = ShardDecoder(pipeline, job.paths.__getitem__)
        previous = job.state_of(shard)
        if previous is not None:
            _resume(previous / STATE_FILE, pipeline, decoder)
        if job.again is not None:
            fresh = _pipeline(job, settled_in)
            again, ranges = read_again(job.again, shard, chunks, job.paths, pipeline, fresh)
            settled = fresh.decoded().store.hand_over()
            faults.update(fresh.decoded().faults)
        else:
            for chunk, stretch in with_stretches(chunks, job.paths):
                if chunk.number == NOTE and chunk.payload is not None:
                    ranges.append(pickle.loads(chunk.payload))
                decoder.take(chunk, stretch)
                if (own := job.broker_file(shard, chunk.file)) is not None:
                    ranges.append(_broker_file(pipeline, own, chunk.file))
            decoder.settle_clock()
            settled = pipeline.decoded().store.hand_over()
        place = decoder.place()
        state = pipeline.suspended(lambda flows: to_table((place, flows)))
        put_kept(folder / STATE_FILE, state)
        del state
        ended = pa.array(pipeline.decoded().flows.first_packets, pa.int64())
        pipeline.change_store(RawStore(open_in, compression="zstd"))
        pipeline.end()
    decoded = pipeline.decoded()
    faults.update(decoded.faults)
    still_open = decoded.store.hand_over()
    put_kept(folder / LOCKED_FILE, decoded.flows.locked())
    flows = decoded.flows_table()
    flows = flows.append_column(ENDED, pc.is_in(flows.column(FLOW), ended))
    feather.write_feather(flows, str(folder / FLOWS_FILE), compression="zstd")
    for name in NAMED_BY:
        raw = decoded.store.tables.get(name)
        kept = None if previous is None or raw is None else _told_before(previous / told_file(name), name, raw.schema)
        _write_told(name, flows, kept, (settled.get(name), still_open.get(name)), folder, again)
    left = ShardFolder(shard, previous is not None, settled, still_open, ranges, dict(faults), again=again)
    (folder / RESULT_FILE).write_bytes(pickle.dumps(left))


def _pipeline(job: DecodeJob, store: Path) -> Pipeline:
    """A new one, with all keys, whose rows go to that folder."""
    own = RawStore(store, compression="zstd")
    pipeline = Pipeline(dissectors(job.options.enable), job.tables, job.options, store=own)
    for source in job.secrets:
        pipeline.take_keys(_head(job, source))
    return pipeline


def _head(job: DecodeJob, source: Source) -> CaptureStats:
    """What a capture brings along. ObjectLost."""
    try:
        return head_stats(source)
    except CaptureError as error:
        raise ObjectLost(next(n for n, path in job.paths.items() if path == source.path), str(error)) from error


def shard_name(shard: int) -> str:
    """The folder of a shard in a state."""
    return f"share-{shard}"


def told_file(table: str) -> str:
    """What the settled rows of a table tell, in the folder of a shard."""
    return f"told-{table}.arrow"


def _broker_file(pipeline: Pipeline, source: Source, number: int) -> RangeResult:
    """Make the rows of a request log or log segment."""
    stats, error = CaptureStats(source.name), ""
    try:
        pipeline.read_broker_file(source, stats, number)
    except CaptureError as failure:
        error = str(failure)
    if isinstance(source.path, ObjectPath) and any(remark.code == "read_failed" for remark in stats.remarks):
        try:  # damage, or is it the store?
            source.path.read(0, 1)
        except OSError as failure:
            error = explain(source.name, failure)
    return RangeResult(number, 0, RangeStats(stats, end=stats.captured_bytes), error)


def _resume(path: FolderPath, pipeline: Pipeline, decoder: ShardDecoder) -> None:
    try:
        place, suspended = from_table(kept_table(path, SCHEMA))
    except (StateError, TypeError, ValueError) as error:
        raise DatasetError(f"{path} is no state of a dataset ({error}): {ANEW}.") from error
    decoder.resume(place)
    pipeline.resume(suspended)


def _told_before(path: FolderPath, table: str, raw: pa.Schema) -> pa.Table | None:
    """What the rows of the runs before tell; None where they had none."""
    names = _telling(table, raw)
    return kept_table(path, pa.schema([raw.field(name) for name in names])) if is_there(path) else None


def _telling(table: str, raw: pa.Schema) -> list[str]:
    """The columns of raw rows that tell something, and FLOW."""
    return [name for name in (*NAMED_BY[table], FLOW) if name in raw.names]


def _write_told(
    table: str,
    flows: pa.Table,
    told: pa.Table | None,
    rows: tuple[HandedOver | None, HandedOver | None],
    folder: Path,
    again: list[int] | None,
) -> None:
    """What the rows of all runs tell, without connections that were seen before; and beside it, for the next run, what
    the settled ones do. told: of the runs before. rows: settled, still open. again: see `ShardFolder`."""
    settled, still_open = rows
    told = _different(table, told, settled, again)
    if told is not None:
        put_kept(folder / told_file(table), told)
    told = _different(table, told, still_open)
    if told is None:
        return
    known = Lookups(flows, pa.nulls(flows.num_rows, pa.string()), {}, [], {})
    known_once = told.filter(pc.invert(pc.is_in(told.column(FLOW), duplicate_flows(flows)))).combine_chunks()
    found = [finish_batch(table, batch, known, NAMED_BY[table]) for batch in known_once.to_batches()]
    if found:
        different = pa.Table.from_batches(found).group_by(list(NAMED_BY[table])).aggregate([])
        pq.write_table(different, folder / f"{table}.parquet")


def rows_of_flows(batches: Iterable[pa.RecordBatch], only: list[int] | None) -> Iterator[pa.RecordBatch]:
    """The rows of these connections; None for all rows."""
    flows = None if only is None else pa.array(only, pa.int64())
    for batch in batches:
        yield batch if flows is None else batch.filter(pc.is_in(batch.column(FLOW), flows))


def _different(
    table: str, told: pa.Table | None, rows: HandedOver | None, only: list[int] | None = None
) -> pa.Table | None:
    """The different raw rows of what was told before and these, in the columns that tell something. only: of these
    connections; None for all."""
    if rows is None:
        return told
    names = _telling(table, rows.schema)
    schema = pa.schema([rows.schema.field(name) for name in names])
    for batch in rows_of_flows(batches_of(rows), only):
        more = pa.Table.from_batches([plain(batch, schema)])
        told = (more if told is None else pa.concat_tables([told, more])).group_by(names).aggregate([])
    return told
