"""Running the finish stage: raw rows of all shares to the parts of a change.

In: the folders that the decode stage left. Out: parts added to the change, and old ones replaced that have rows of
which something is known otherwise now.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import feather

from analyser.archive.dataset.change import Change
from analyser.archive.dataset.part import Part
from analyser.archive.decode.decode_run import result_of
from analyser.archive.finish.amend import AMENDED_DDL, Amended, AmendJob, amend_parts, facts_of, has_topics
from analyser.archive.finish.common import Common, read_common
from analyser.archive.finish.finish_stage import CHANGED_FILE, DONE_DDL, FLOWS, FinishJob, differ, finish_units
from analyser.archive.spark.tasks import dealt, tasks_for
from analyser.context.stages import STAGES
from analyser.rows.fields import row_fields
from analyser.rows.timeorder import FLOW
from dissectors.registry import dissectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FinishRun(NamedTuple):
    """What the stage needs. folders: of each share. enable: optional dissectors. work: for scratch files."""

    spark: SparkSession
    change: Change
    folders: Mapping[int, Path]
    enable: tuple[str, ...]
    work: Path


def finish_tables(run: FinishRun) -> None:
    """Make the parts of all tables, those that the context stages still work on too."""
    change = run.change
    change.remove(*(part for part in change.parts() if part.provisional))
    made = _made(run)
    if change.previous_state is not None:
        _amend(run, change.previous_state)
    change.add(*made)


def _made(run: FinishRun) -> list[Part]:
    """The parts of the rows of this run."""
    change, job_path = run.change, run.work / "finish.pickle"
    job = FinishJob(change.staging, change.run, run.folders, change.previous_state, change.state, run.enable)
    job_path.write_bytes(pickle.dumps(job))
    units = _units(run)
    tasks = tasks_for(run.spark, len(units))
    rows = run.spark.createDataFrame(
        [(task, *unit) for task, unit in dealt(units, tasks)], "task int, share int, name string"
    )
    done = rows.repartitionById(tasks, rows.task).mapInArrow(partial(finish_units, str(job_path)), DONE_DDL)
    return [part for row in done.collect() for part in pickle.loads(row.parts)]


def _amend(run: FinishRun, previous: Path) -> None:
    """Parts of earlier runs that have rows to amend are replaced."""
    change = run.change
    told = [path for folder in run.folders.values() if (path := folder / CHANGED_FILE).exists()]
    changed = pa.concat_tables(feather.read_table(str(path)) for path in told)
    before, now = (read_common(state) for state in (previous, change.state))
    topics = _renamed(before, now)
    affected = {
        table
        for table in _tables(run.enable)
        if (topics and has_topics(table)) or any(differ(changed, facts_of(table)).to_pylist())
    }
    parts = [part for part in (*change.parts(), *change.hidden_parts()) if part.table in affected]
    if not parts:
        return
    changed_path, job_path = run.work / CHANGED_FILE, run.work / "amend.pickle"
    feather.write_feather(changed.sort_by(FLOW), str(changed_path))
    job_path.write_bytes(pickle.dumps(AmendJob(change.root, change.staging, change.run, changed_path, topics)))
    tasks = tasks_for(run.spark, len(parts))
    sizes = Counter({part: part.bytes for part in parts})
    rows = run.spark.createDataFrame(
        [(task, pickle.dumps(part)) for task, part in dealt(sizes, tasks)], "task int, part binary"
    )
    done = rows.repartitionById(tasks, rows.task).mapInArrow(partial(amend_parts, str(job_path)), AMENDED_DDL)
    for row in done.collect():
        amended: Amended = pickle.loads(row.made)
        change.remove(amended.old)
        change.add(*amended.new)


def _renamed(before: Common, now: Common) -> dict[str, tuple[str | None, str | None]]:
    """Ids of topics whose name is another one now: the name before and now."""
    ids = {*before.topics, *now.topics}
    names = {one: (before.topics.get(one), now.topics.get(one)) for one in sorted(ids)}
    return {one: (old, new) for one, (old, new) in names.items() if old != new}


def _tables(enable: tuple[str, ...]) -> Iterable[str]:
    """Tables whose rows come from flows, not from rows of other tables."""
    made_of_others = {table for stage in STAGES for table in stage.new}
    return (table for table in (FLOWS, *row_fields(dissectors(enable))) if table not in made_of_others)


def _units(run: FinishRun) -> Counter[tuple[int, str]]:
    """Share and table -> about how many rows there are to make."""
    units: Counter[tuple[int, str]] = Counter()
    for share, folder in run.folders.items():
        units[share, FLOWS] = 1
        result = result_of(folder)
        for tables in (result.settled, result.open):
            for table, rows in tables.items():
                units[share, table] += 1 + rows.rows
    return units
