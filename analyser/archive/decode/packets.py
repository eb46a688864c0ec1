"""The packets stage: one range of a file to chunks for every shard.

In: where a range lies. Out: chunk rows in the order in which a shard has to see them, all of them as Arrow batches of
at most some MiB. The first row of a range and shard is a note on the range: every shard has to know how many packets it
has and how far the capture's clock came, although most packets go elsewhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from wirewitness.analyser.archive.decode.chunks import Chunk, Cutter
from wirewitness.analyser.archive.ingest.ranges import Range, RangeStats, read_range
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import CaptureError, CaptureLimits, CaptureStats, Source

SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("file", pa.int32()),
        ("range", pa.int32()),
        ("number", pa.int32()),
        ("head", pa.binary()),
        ("payload", pa.binary()),
        ("start", pa.int64()),
        ("span", pa.int32()),
    ]
)
DDL = "shard int, file int, range int, number int, head binary, payload binary, start long, span int"
NOTE = -1
_BATCH_BYTES, _BATCH_ROWS = 3 << 20, 64
# Small files are read together by one task.
_TASK_BYTES = 64 << 20
# Other processes make the rows, so nobody counts those of a compressed capture: its bytes are bounded the closer.
_LIMITS = CaptureLimits(usual_packing_ratio=64, packing_slack_of_all_bytes=1 << 18)


@dataclass(frozen=True, slots=True)
class RangeJob:
    """A range to read. file: its place among all files of the dataset. inline: payloads go along. with_broker_share: a
    shard more, which reads the files of brokers itself, is told of the range, too."""

    file: int
    source: Source
    part: Range
    shards: int
    inline: bool = False
    with_broker_shard: bool = False


class RangeNote(NamedTuple):
    """What every shard is told of a range. clock_ns: None without TCP segments."""

    packets: int
    clock_ns: int | None


class RangeResult(NamedTuple):
    """What the run is told of a range. error: why nothing could be read, "" when it could."""

    file: int
    range: int
    told: RangeStats
    error: str = ""


def for_tasks(jobs: Iterable[RangeJob]) -> list[list[RangeJob]]:
    """What each task reads, in their order."""
    found: list[list[RangeJob]] = []
    size = 0
    for job in jobs:
        more = job.part.end - job.part.start
        if not found or size + more > _TASK_BYTES:
            found.append([])
            size = 0
        found[-1].append(job)
        size += more
    return found


def read_tasks(tasks: Sequence[Sequence[RangeJob]], numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The chunks of those tasks whose numbers are given."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from chunks_of(tasks[number])


def chunks_of(jobs: Iterable[RangeJob]) -> Iterator[pa.RecordBatch]:
    """The chunks of ranges as Arrow."""
    for job in jobs:
        yield from as_batches(range_chunks(job))


def range_chunks(job: RangeJob, limits: CaptureLimits | None = None) -> Iterator[Chunk]:
    """The chunks of a range, then its note for every shard; the note of shard 0 has the result as its payload. Of a
    broker's file there is the note alone: who reads it has the result."""
    told, result = RangeStats(CaptureStats(job.source.name)), None
    if job.source.kind == "packets":
        error = ""
        try:
            yield from _packets(job, told, limits or _LIMITS)
        except CaptureError as failure:
            error = str(failure)
        result = pickle.dumps(RangeResult(job.file, job.part.number, told, error))
    note = pickle.dumps(tuple(RangeNote(told.stats.packets, told.clock_ns)))
    for shard in range(job.shards + job.with_broker_shard):
        yield Chunk(shard, job.file, job.part.number, NOTE, note, None if shard else result)


def _packets(job: RangeJob, told: RangeStats, limits: CaptureLimits) -> Iterator[Chunk]:
    cutter = Cutter(job.file, job.part.number, job.shards, in_store=isinstance(job.source.path, ObjectPath))
    for batch, endpoints, first_offset in read_range(job.source, job.part, told, limits):
        yield from cutter.add(batch, endpoints, None if job.inline else first_offset)
    yield from cutter.rest()


def as_batches(chunks: Iterator[Chunk]) -> Iterator[pa.RecordBatch]:
    """Chunks as Arrow."""
    held: list[Chunk] = []
    size = 0
    for chunk in chunks:
        more = len(chunk.head) + len(chunk.payload or b"")
        if held and (size + more > _BATCH_BYTES or len(held) >= _BATCH_ROWS):
            yield _batch(held)
            held, size = [], 0
        held.append(chunk)
        size += more
    if held:
        yield _batch(held)


def from_batch(batch: pa.RecordBatch) -> Iterator[Chunk]:
    """Chunks out of Arrow."""
    for row in zip(*(batch.column(name).to_pylist() for name in SCHEMA.names), strict=True):
        yield Chunk(*row)


def _batch(chunks: Sequence[Chunk]) -> pa.RecordBatch:
    columns = zip(*chunks, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
