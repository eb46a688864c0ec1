"""Running the decode stage: planned captures to a folder for each shard.

In: which files a run takes in. Out: the folders that the tasks of `analyser/archive/decode/decode_stage.py` leave, and
what the reading of each file told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from wirewitness.analyser.archive.dataset.manifest import InputFile
from wirewitness.analyser.archive.dataset.stage_files import put_value
from wirewitness.analyser.archive.decode.decode_stage import (
    RESULTS_DDL,
    BrokerShard,
    DecodeJob,
    Left,
    ShardFolder,
    decode_shards,
    result_of,
)
from wirewitness.analyser.archive.decode.fetching import ObjectLost
from wirewitness.analyser.archive.decode.packets import DDL, RangeJob, for_tasks, read_tasks
from wirewitness.analyser.archive.decode.range_run import ranges_of
from wirewitness.analyser.archive.decode.read_again import Again
from wirewitness.analyser.archive.ingest.brought import head_stats
from wirewitness.analyser.archive.ingest.options import ArchiveOptions
from wirewitness.analyser.archive.ingest.plan import Plan, tag_of
from wirewitness.analyser.archive.ingest.ranges import Range, RangeStats, is_exact, merged
from wirewitness.analyser.archive.spark.tasks import tasks_for
from wirewitness.analyser.archive.spark.workers import OnSpark, seen_as
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.storage.exchange_files import remove_below
from wirewitness.analyser.base.storage.folders import FolderPath, folder_at
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import CaptureError, CaptureLimits, CaptureStats, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# As it is seen in Spark.
STAGE = "decoding"
_LIMITS = CaptureLimits()


class DecodeRun(NamedTuple):
    """What the stage needs. name: of the run. work: a folder for scratch files. tables: those with raw rows. previous:
    the state. again: the files of the plan are in already, and this is read of them; None for new files."""

    spark: SparkSession
    name: str
    plan: Plan
    options: ArchiveOptions
    tables: tuple[str, ...]
    work: FolderPath
    previous: FolderPath | None
    progress: Callable[[str], None]
    again: Again | None = None


class Decoded(NamedTuple):
    """folders: of each shard, the one more that reads the files of brokers among them. told: by the ranges of each
    file. errors: why a file could not be read to its end. faults: see `Sink`."""

    folders: dict[int, Left]
    told: dict[int, list[RangeStats]]
    errors: dict[int, str]
    faults: Counter[str]


def decode_files(run: DecodeRun) -> Decoded:
    """Decode the files; those whose ranges cannot be read on their own are read as one. What a store does not give to
    its end leaves the plan, which may have no files then; all do where files are read again."""
    files = len(run.plan.files)
    run.progress(f"looking through {files} capture{'' if files == 1 else 's'}")
    workers, most_tasks = OnSpark(run.spark, run.work), tasks_for(run.spark, files)
    ranges = ranges_of(run.plan.files, run.options.range_bytes, workers, most_tasks)
    while run.plan.files:
        run.progress("decoding")
        try:
            folders = _decode(run, ranges)
        except ObjectLost as lost_before:
            _leave_out(run, {lost_before.file: str(lost_before)})
            continue
        results = [result_of(folder) for folder in folders.values()]
        names = {file.number: file.source.name for file in run.plan.files}
        if lost := _lost(run.plan, results):
            _leave_out(run, lost)
        else:
            decoded = _told(folders, results)
            odd = [number for number, parts in decoded.told.items() if not is_exact(parts, _LIMITS)]
            if not odd:
                return decoded
            for name in map(names.__getitem__, odd):
                ranges[name] = [Range(0, 0, ranges[name][-1].end)]
        for folder in folders.values():
            remove_below(folder.place)
    return Decoded({}, {}, {}, Counter())


def files_read(plan: Plan, decoded: Decoded, run: str) -> tuple[list[InputFile], list[CaptureStats]]:
    """What the manifest says of the files, and the statistics of those that gave anything."""
    files, captures = [], []
    for file in plan.files:
        told, error, kind = decoded.told[file.number], decoded.errors.get(file.number), file.source.kind
        stats = merged(told, _LIMITS) if kind == "packets" else told[0].stats
        if error is None or stats.packets:
            captures.append(stats)
        times = stats.ts_first_ns, stats.ts_last_ns
        known = file.source.name, file.key, file.size
        later = tag_of(file.path), file.source.begins
        files.append(InputFile(*known, stats.packets, *times, "read", error, run, kind, *later))
    return files, captures


def flows_again(decoded: Decoded) -> int:
    """How many connections were read again."""
    return sum(len(result_of(left).again or ()) for left in decoded.folders.values())


def _leave_out(run: DecodeRun, lost: Mapping[int, str]) -> None:
    """Of a connection that is read again all files are needed: a later run tries again."""
    if run.again is None:
        run.plan.leave_out(lost, run.name)
    else:
        run.plan.files.clear()


def _lost(plan: Plan, results: Iterable[ShardFolder]) -> dict[int, str]:
    """File -> why its store did not give all of it."""
    sources = {file.number: file.source for file in plan.files}
    found = dict(one.lost for one in results if one.lost is not None)
    for result in (one for folder in results for one in folder.ranges):
        if result.told.is_lost:
            found[result.file] = f"{sources[result.file].name}: {result.told.failure}."
        elif result.error and isinstance(sources[result.file].path, ObjectPath):
            found[result.file] = result.error
    return found


def _told(folders: dict[int, Left], results: Iterable[ShardFolder]) -> Decoded:
    decoded = Decoded(folders, {}, {}, Counter())
    for folder in results:
        decoded.faults.update(folder.faults)
    for result in sorted(one for folder in results for one in folder.ranges):
        decoded.told.setdefault(result.file, []).append(result.told)
        if result.error:
            decoded.errors[result.file] = result.error
    return decoded


def _decode(run: DecodeRun, ranges: Mapping[str, list[Range]]) -> dict[int, Left]:
    from pyspark.sql.functions import col

    options, with_broker_shard = run.options, bool(run.plan.broker_files()) or run.plan.had_broker_files
    tasks = for_tasks(
        RangeJob(file.number, file.source, part, options.shards, options.inline, with_broker_shard)
        for file in run.plan.files
        for part in ranges[file.source.name]
    )
    paths = {file.number: file.path for file in run.plan.files}
    secrets = _with_secrets(run.plan)
    brokers = BrokerShard(options.shards, run.plan.broker_files(), goes_on=run.plan.had_broker_files)
    places = run.work, paths, run.tables, _sendable(options.read), run.previous
    job = DecodeJob(*places, secrets, brokers, run.again)
    seal = put_value(run.work / "decode.pickle", job)
    numbers = run.spark.range(0, len(tasks), 1, len(tasks))
    packets = numbers.mapInArrow(partial(read_tasks, tasks), DDL)
    shards: DataFrame = packets.repartitionById(options.shards + with_broker_shard, col("shard"))
    rows = shards.sortWithinPartitions("shard", "file", "range", "number")
    with seen_as(run.spark, STAGE):
        done = rows.mapInArrow(partial(decode_shards, seal), RESULTS_DDL).collect()
    return {row.shard: Left(folder_at(row.folder), row.result) for row in sorted(done)}


def _with_secrets(plan: Plan) -> tuple[Source, ...]:
    """The captures that bring some along. ObjectLost."""
    found: list[Source] = []
    for file in plan.files:
        if file.source.kind == "packets":
            try:
                found += [file.source] if head_stats(file.source).secrets else []
            except CaptureError as error:
                raise ObjectLost(file.number, str(error)) from error
    return tuple(found)


def _sendable(options: ReadOptions) -> ReadOptions:
    """Without read-only views, which cannot be pickled."""
    return replace(options, decode_as=dict(options.decode_as), topic_ids=dict(options.topic_ids))
