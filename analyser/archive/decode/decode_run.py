"""Running the decode stage: planned captures to a folder for each share.

In: which files a run takes in. Out: the folders that the tasks of `analyser/archive/decode/decode_stage.py` leave, and
what the reading of each file told.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analyser.archive.dataset.manifest import InputFile
from analyser.archive.decode.decode_stage import (
    RESULT_FILE,
    RESULTS_DDL,
    BrokerShare,
    DecodeJob,
    ShareFolder,
    decode_shares,
)
from analyser.archive.decode.packets import RangeJob
from analyser.archive.intake.brought import with_secrets
from analyser.archive.intake.options import ArchiveOptions
from analyser.archive.intake.plan import Plan, PlannedFile
from analyser.archive.intake.ranges import Range, RangeStats, find_ranges, is_exact, merged
from analyser.capture import CaptureError, CaptureLimits, CaptureStats
from analyser.options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LIMITS = CaptureLimits()


class DecodeRun(NamedTuple):
    """What the stage needs. work: a folder for scratch files. tables: those with raw rows. previous: the state."""

    spark: SparkSession
    plan: Plan
    options: ArchiveOptions
    tables: tuple[str, ...]
    work: Path
    previous: Path | None
    progress: Callable[[str], None]


class Decoded(NamedTuple):
    """folders: of each share, the one more that reads the files of brokers among them. told: by the ranges of each
    file. errors: why a file could not be read to its end."""

    folders: dict[int, Path]
    told: dict[int, list[RangeStats]]
    errors: dict[int, str]


def decode_files(run: DecodeRun) -> Decoded:
    """Decode the files; those whose ranges cannot be read on their own are read as one."""
    files = len(run.plan.files)
    run.progress(f"looking through {files} capture{'' if files == 1 else 's'}")
    ranges = {file.number: _ranges(file, run.options.range_bytes) for file in run.plan.files}
    while True:
        run.progress("decoding")
        decoded = _told(_decode(run, ranges))
        odd = [number for number, parts in decoded.told.items() if not is_exact(parts, _LIMITS)]
        if not odd:
            return decoded
        for number in odd:
            ranges[number] = [Range(0, 0, ranges[number][-1].end)]
        for folder in decoded.folders.values():
            shutil.rmtree(folder)


def files_read(plan: Plan, decoded: Decoded, run: str) -> tuple[list[InputFile], list[CaptureStats]]:
    """What the manifest says of the files, and the statistics of those that gave anything."""
    files, captures = [], []
    for file in plan.files:
        told, error, kind = decoded.told[file.number], decoded.errors.get(file.number), file.source.kind
        stats = merged(told, _LIMITS) if kind == "packets" else told[0].stats
        if error is None or stats.packets:
            captures.append(stats)
        times = stats.ts_first_ns, stats.ts_last_ns
        files.append(InputFile(file.source.name, file.key, file.size, stats.packets, *times, "read", error, run, kind))
    return files, captures


def result_of(folder: Path) -> ShareFolder:
    """What the task of a share left."""
    result: ShareFolder = pickle.loads((folder / RESULT_FILE).read_bytes())
    return result


def _ranges(file: PlannedFile, range_bytes: int) -> list[Range]:
    if file.source.kind != "packets":
        return [Range(0, 0, file.size)]
    try:
        return find_ranges(file.source, file.size, range_bytes)
    except CaptureError:  # reading it says so
        return [Range(0, 0, file.size)]


def _told(folders: dict[int, Path]) -> Decoded:
    decoded = Decoded(folders, {}, {})
    for result in sorted(one for folder in folders.values() for one in result_of(folder).ranges):
        decoded.told.setdefault(result.file, []).append(result.told)
        if result.error:
            decoded.errors[result.file] = result.error
    return decoded


def _decode(run: DecodeRun, ranges: Mapping[int, list[Range]]) -> dict[int, Path]:
    from pyspark.sql.functions import col

    from analyser.archive.decode.source import FORMAT, JOBS

    options, with_broker_share = run.options, bool(run.plan.broker_files()) or run.plan.had_broker_files
    jobs = [
        RangeJob(file.number, file.source, part, options.shares, options.inline, with_broker_share)
        for file in run.plan.files
        for part in ranges[file.number]
    ]
    jobs_path, job_path = run.work / "ranges.pickle", run.work / "decode.pickle"
    jobs_path.write_bytes(pickle.dumps(jobs))
    paths = {file.number: file.path for file in run.plan.files}
    secrets = with_secrets(file.source for file in run.plan.files if file.source.kind == "packets")
    brokers = BrokerShare(options.shares, run.plan.broker_files(), goes_on=run.plan.had_broker_files)
    job = DecodeJob(run.work, paths, run.tables, _sendable(options.read), run.previous, secrets, brokers)
    job_path.write_bytes(pickle.dumps(job))
    packets = run.spark.read.format(FORMAT).option(JOBS, str(jobs_path)).load()
    shares: DataFrame = packets.repartitionById(options.shares + with_broker_share, col("share"))
    rows = shares.sortWithinPartitions("share", "file", "range", "number")
    done = rows.mapInArrow(partial(decode_shares, str(job_path)), RESULTS_DDL).collect()
    return {row.share: Path(row.folder) for row in sorted(done)}


def _sendable(options: ReadOptions) -> ReadOptions:
    """Without read-only views, which cannot be pickled."""
    return replace(options, decode_as=dict(options.decode_as), topic_ids=dict(options.topic_ids))
