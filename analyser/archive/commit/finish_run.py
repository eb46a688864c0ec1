"""Running the finish stage: raw rows of all shards to the parts of a change.

In: the folders that the decode stage left. Out: parts added to the change, and old ones replaced that have rows of
which something is known otherwise now.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from wirewitness.analyser.analysis.build import duplicate_flows
from wirewitness.analyser.archive.commit.amend import (
    AMENDED_DDL,
    Amended,
    AmendJob,
    Unit,
    amend_parts,
    facts_of,
    has_topics,
)
from wirewitness.analyser.archive.commit.common import read_common
from wirewitness.analyser.archive.commit.finish_stage import (
    CHANGED_FILE,
    DONE_DDL,
    FLOWS,
    NO_CHANGES,
    FinishJob,
    differ,
    finish_units,
)
from wirewitness.analyser.archive.commit.joining import Joins, find_joins
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.stage_files import put_table, put_value, table_at
from wirewitness.analyser.archive.decode.decode_stage import FLOWS_FILE, Left, result_of
from wirewitness.analyser.archive.spark.tasks import dealt, tasks_for
from wirewitness.analyser.archive.spark.workers import seen_as
from wirewitness.analyser.base.storage.exchange_files import those_there
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.rows.fields import row_fields
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.engine.facts.stages import STAGES
from wirewitness.dissectors.registry import dissectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As they are seen in Spark.
STAGE, AMENDING = "writing tables", "amending rows of earlier runs"


class FinishRun(NamedTuple):
    """What the stage needs. folders: of each shard. enable: optional dissectors. work: for scratch files."""

    spark: SparkSession
    change: Change
    folders: Mapping[int, Left]
    enable: tuple[str, ...]
    work: FolderPath


def finish_tables(run: FinishRun) -> str | None:
    """Make the parts of all tables, those that the context stages still work on too; the remark on what request logs
    and captures both tell, None where there is nothing."""
    change = run.change
    change.remove(*(part for part in change.parts() if part.provisional))
    made = _made(run)
    joins = find_joins(change, made, [*run.folders], read_common(change.state).logs, run.work)
    if change.previous_state is not None or joins is not None:
        made = _amended(run, made, joins)
    change.add(*made)
    return None if joins is None else joins.remark


def _made(run: FinishRun) -> list[Part]:
    """The parts of the rows of this run."""
    change = run.change
    job = FinishJob(change.staging, change.run, run.folders, change.previous_state, change.state, run.enable)
    seal = put_value(run.work / "finish.pickle", job)
    units = _units(run)
    tasks = tasks_for(run.spark, len(units))
    rows = run.spark.createDataFrame(
        [(task, *unit) for task, unit in dealt(units, tasks)], "task int, shard int, name string"
    )
    done = rows.repartitionById(tasks, rows.task).mapInArrow(partial(finish_units, seal), DONE_DDL)
    with seen_as(run.spark, STAGE):
        return [part for row in done.collect() for part in pickle.loads(row.parts)]


def _amended(run: FinishRun, made: list[Part], joins: Joins | None) -> list[Part]:
    """Parts of earlier runs that have rows to amend are replaced; those of this one as they are to count."""
    change = run.change
    told = those_there(left.place / CHANGED_FILE for left in run.folders.values())
    flows, topics = pa.concat_tables([NO_CHANGES, *map(table_at, told)]), _renamed(change)
    names = {*_tables(run.enable)}
    by_joins = set() if joins is None else names
    gone = _read_again(run)
    affected = (names if len(gone) else by_joins) | {
        table for table in names if (topics and has_topics(table)) or any(differ(flows, facts_of(table)).to_pylist())
    }
    units = {Unit(part): part.bytes for part in change.every_part() if part.table in affected}
    units |= {Unit(part, made=True): part.bytes for part in made if part.table in by_joins}
    if not units:
        return made
    changed_path = run.work / CHANGED_FILE
    put_table(changed_path, flows.sort_by(FLOW))
    again = _again(run, joins)
    told_twice = None if joins is None else put_value(run.work / "joins.pickle", joins)
    job = AmendJob(change.root, change.staging, change.run, changed_path, topics, again, told_twice, gone)
    seal = put_value(run.work / "amend.pickle", job)
    tasks = tasks_for(run.spark, len(units))
    rows = run.spark.createDataFrame(
        [(task, pickle.dumps(tuple(unit))) for task, unit in dealt(units, tasks)], "task int, part binary"
    )
    done = rows.repartitionById(tasks, rows.task).mapInArrow(partial(amend_parts, seal), AMENDED_DDL)
    counting = dict.fromkeys(made)
    with seen_as(run.spark, AMENDING):
        answers = done.collect()
    for row in answers:
        amended: Amended = pickle.loads(row.made)
        if amended.old in counting:
            del counting[amended.old]
            change.leave_out(amended.old)
            counting |= dict.fromkeys(amended.new)
            continue
        change.remove(amended.old)
        change.add(*amended.new)
    return [*counting]


def _read_again(run: FinishRun) -> pa.Array:
    """FLOW of the connections that were read again, sorted."""
    found = [flow for left in run.folders.values() for flow in result_of(left).again or ()]
    return pa.array(sorted(found), pa.int64())


def _again(run: FinishRun, joins: Joins | None) -> pa.Array:
    """FLOW of all connections that are told elsewhere: seen at a second point, or by a request log, too."""
    found = [duplicate_flows(table_at(left.place / FLOWS_FILE)) for left in run.folders.values()]
    found += [] if joins is None else joins.copies.column(FLOW).chunks
    return pa.chunked_array(found, pa.int64()).combine_chunks()


def _renamed(change: Change) -> dict[str, tuple[str | None, str | None]]:
    """Ids of topics whose name is another one now: the name before and now."""
    if change.previous_state is None:
        return {}
    before, now = read_common(change.previous_state), read_common(change.state)
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
    for shard, left in run.folders.items():
        units[shard, FLOWS] = 1
        result = result_of(left)
        for tables in (result.settled, result.open):
            for table, rows in tables.items():
                units[shard, table] += 1 + rows.rows
    return units
