"""Running the finish stage: raw rows of all shares to the parts of a change.

In: the folders that the decode stage left. Out: parts added to the change, and old ones removed where rows of earlier
runs were made anew.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from analyser.archive.change import Change
from analyser.archive.decode_run import result_of
from analyser.archive.decode_stage import raw_of_runs, share_name
from analyser.archive.finish_stage import DONE_DDL, FinishJob, Made, finish_units
from analyser.archive.kept_state import PartsOf, parts_before
from analyser.context.stages import STAGE_OF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FinishRun(NamedTuple):
    """What the stage needs. folders: of each share. enable: optional dissectors. work: for scratch files."""

    spark: SparkSession
    change: Change
    folders: Mapping[int, Path]
    enable: tuple[str, ...]
    work: Path


def finish_tables(run: FinishRun) -> PartsOf:
    """Make the parts of all tables, those that the context stages still work on too; which settled rows each has."""
    change = run.change
    parts_of = parts_before(change)
    change.remove(*(part for part in change.parts() if part.provisional))
    job_path = run.work / "finish.pickle"
    job = FinishJob(change.staging, change.run, run.folders, change.previous_state, change.state, run.enable)
    job_path.write_bytes(pickle.dumps(job))
    units = _units(run)
    stale: set[str] = set()
    for share, made in _make(run.spark, job_path, units, whole=False):
        stale |= {one.table for one in made if one.stale}
        for one in made:
            if one.of is not None and one.table not in STAGE_OF:
                key = (share, one.of, one.table)
                change.remove(*parts_of.get(key, ()))
                parts_of[key] = one.parts
            change.add(*one.parts)
    if stale:
        change.remove(*(part for table in stale for part in change.parts(table)))
        units = Counter({unit: rows for unit, rows in units.items() if unit[1] in stale})
        for _, made in _make(run.spark, job_path, units, whole=True):
            change.add(*(part for one in made for part in one.parts))
    return parts_of


def _make(
    spark: SparkSession, job_path: Path, units: Mapping[tuple[int, str], int], *, whole: bool
) -> Iterator[tuple[int, list[Made]]]:
    tasks = max(1, min(len(units), 4 * spark.sparkContext.defaultParallelism))
    rows = spark.createDataFrame(
        [(*unit, whole) for unit in _dealt(units, tasks)], "task int, share int, name string, whole boolean"
    )
    done = rows.repartitionById(tasks, rows.task).mapInArrow(partial(finish_units, str(job_path)), DONE_DDL)
    for row in sorted(done.collect(), key=lambda row: (row.share, row.name)):
        yield row.share, pickle.loads(row.parts)


def _units(run: FinishRun) -> Counter[tuple[int, str]]:
    """Share and table -> about how many rows there are to make."""
    units: Counter[tuple[int, str]] = Counter()
    for share, folder in run.folders.items():
        units[share, "flows"] = 1
        result = result_of(folder)
        raws = [result.settled, result.open]
        if run.change.previous_state is not None:
            raws += [raw for _, raw in raw_of_runs(run.change.previous_state / share_name(share))]
        for tables in raws:
            for table, raw in tables.items():
                units[share, table] += 1 + raw.rows.rows
    return units


def _dealt(units: Mapping[tuple[int, str], int], tasks: int) -> list[tuple[int, int, str]]:
    """Task, share and table: the largest first, each to the task that has least to do; shares stay together there."""
    loads = [0] * tasks
    dealt = []
    for (share, table), rows in sorted(units.items(), key=lambda item: (-item[1], item[0])):
        task = loads.index(min(loads))
        loads[task] += rows
        dealt.append((task, share, table))
    return sorted(dealt)
