"""The context of a whole dataset: what rows know from other rows, over months.

In: a change that has all base rows (from whatever connection and run), and who works. Out: the same change in which
commits, fetches and publishes have their context columns, and with the tables that are made of others. It is done by
the stages of `analyser/engine/facts`, as for captures, in tasks, by keys where there are many rows; DuckDB
keeps to its memory limit and spills. Of Kafka's offsets, only hours are read that can come out otherwise than in the
last run (`kafka_context.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import duckdb
import pyarrow as pa

from wirewitness.analyser.analysis.client_names import NEEDED, named_findings
from wirewitness.analyser.archive.aggregate import kafka_context
from wirewitness.analyser.archive.aggregate.derived import (
    Digest,
    Hour,
    change_connection,
    replace_changed_hours,
    rows_of,
    view_of,
)
from wirewitness.analyser.archive.aggregate.hour_summaries import stamp_again
from wirewitness.analyser.archive.aggregate.partitioning import Deal, Dealt, deal_rows, rows_of_shard
from wirewitness.analyser.archive.aggregate.shard_files import Left, leave, put_into_hours, shards_for
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import HERE, Workers
from wirewitness.analyser.engine.facts.stage import KEYED, OFFSETS, READING, TITLES, Keyed
from wirewitness.analyser.engine.facts.stages import STAGES, Stage
from wirewitness.analyser.kafka.facts.fetch_stage import OfAllShards, add_shard, told_by_shard
from wirewitness.analyser.tables.queries import quoted

# Stages of the context in shards: rows that belong together by a key are looked at by one task.
#
# In: a change, a stage, who works. Out: the hours of its tables that came out otherwise, written. A stage with few
# rows is one task. One with many is dealt by a hash of its keys (`partitioning.py`): each task sees its shard of the
# rows, with other tables whole, and leaves what it makes of them in files; other tasks put these into hours, and write
# the hours that are others. A key with most of the rows makes one task do most of the work, within the same memory:
# DuckDB spills.


def run_stage(change: Change, workers: Workers, name: str, stage: Stage) -> dict[str, set[Hour]]:
    """Make the tables of a stage; table -> hours that were written. name: as it is seen in Spark."""
    ways = KEYED.get(stage.makes, [])
    rows = sum(part.rows for way in ways for table in way.keys for part in change.parts(table))
    shards = shards_for(rows // len(ways)) if ways else 1
    if shards <= 1:
        (written,) = each_of(change, workers, name, _whole, [stage])
        return written
    kept = {*stage.makes} - {*stage.new}
    lefts: list[Left] = []
    for way in ways:
        deals = [
            Deal(way.makes[0], table, change.parts(table), key, shards, way.everywhere.get(table, ""), table in kept)
            for table, key in way.keys.items()
        ]
        dealt = deal_rows(change, workers, name, deals)
        told = _told_first(change, workers, name, stage, dealt, shards)
        made = each_of(change, workers, name, partial(_shard, stage, way, dealt, told), range(shards))
        for table in way.makes:
            of_shards = {str(number): one[table] for number, one in enumerate(made)}
            lefts.append(Left(table, of_shards, table in stage.new))
    hours = put_into_hours(change, workers, name, lefts)
    return {left.table: of_table for left, of_table in zip(lefts, hours, strict=True)}


def _told_first(
    change: Change, workers: Workers, name: str, stage: Stage, dealt: Sequence[Dealt], shards: int
) -> OfAllShards | None:
    if stage.makes != READING.makes:
        return None
    work = partial(_tell, stage, dealt)
    return OfAllShards.of(each_of(change, workers, f"{name}, what all partitions tell", work, range(shards)))


def _whole(snapshot: Snapshot, stage: Stage) -> dict[str, set[Hour]]:
    """The stage in one task."""
    with change_connection(snapshot) as con:
        _make_views(con, snapshot, stage)
        stage.run(con)
        return {table: replace_changed_hours(con, snapshot, table, f"FROM {quoted(table)}") for table in stage.makes}


def _tell(stage: Stage, dealt: Sequence[Dealt], snapshot: Snapshot, number: int) -> OfAllShards:
    with change_connection(snapshot) as con:
        _make_views(con, snapshot, stage, dealt, number)
        return told_by_shard(con)


def _shard(
    stage: Stage, way: Keyed, dealt: Sequence[Dealt], told: OfAllShards | None, snapshot: Snapshot, number: int
) -> dict[str, dict[Hour, Digest]]:
    """Make the rows of one shard, in files; table -> what `leave` tells."""
    made: dict[str, dict[Hour, Digest]] = {}
    shards = dealt[0].deal.shards
    with change_connection(snapshot) as con:
        _make_views(con, snapshot, stage, dealt, number, {*stage.makes} - {*way.makes})
        if told is None:
            stage.run(con)
        else:
            add_shard(con, told)
        for table in way.makes:
            own = "true" if way.own is None else f"hash({way.own}) % {shards} = {number}"
            made[table] = leave(con, snapshot, table, f"FROM {quoted(table)} WHERE {own}", str(number))
    return made


def _make_views(
    con: duckdb.DuckDBPyConnection,
    snapshot: Snapshot,
    stage: Stage,
    dealt: Sequence[Dealt] = (),
    shard: int = 0,
    without: Collection[str] = (),
) -> None:
    """The views that a stage reads, without some tables. dealt: tables of which only rows of that shard are seen."""
    of_shard = {one.deal.table: rows_of_shard(snapshot, one, shard) for one in dealt}
    for table in dict.fromkeys((*stage.reads, *stage.uses, "flows", *stage.makes)):
        if table in without:
            continue
        if table in stage.new:
            rows = f"FROM ({rows_of(snapshot, table)}) LIMIT 0"
        else:
            rows = of_shard.get(table) or rows_of(snapshot, table, hidden=table in stage.makes)
        con.execute(f"CREATE TEMP VIEW {quoted(table)} AS {rows}")


# Findings of a dataset name owners of clients.
#
# In: what a task sees of a change, findings. Out: the findings with owners in sentences and numbers.

# As it is seen in Spark.
STAGE = "findings: owners of clients"


def named(snapshot: Snapshot, findings: pa.Table) -> pa.Table:
    """The findings table with owners."""
    own = [table for table in NEEDED if snapshot.parts(table)]
    if "flows" not in own or not findings.num_rows:
        return findings
    with change_connection(snapshot) as con:
        for table in own:
            view_of(con, snapshot, table)
        return named_findings(con, findings, own)


# As stages are seen in Spark, by the tables that they make.
NAMES = {makes: f"context: {title}" for makes, title in TITLES.items()}


def run_context(change: Change, workers: Workers = HERE) -> dict[str, set[Hour]]:
    """Run all stages; table -> hours that were written anew. Once for each change, when all base rows are added.

    Context columns that rows have from an earlier run count for nothing: they are made anew where they can differ.
    """
    written: dict[str, set[Hour]] = {}
    for stage in STAGES:
        if any(change.parts(table) for table in (*stage.makes, *stage.reads)):
            if stage.makes == OFFSETS.makes:
                written |= kafka_context.make_hours(change, workers, kafka_context.hours_to_make(change, workers))
                stamp_again(change)  # no summary reads the context columns
            else:
                written |= run_stage(change, workers, NAMES[stage.makes], stage)
    return written
