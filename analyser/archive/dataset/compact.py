"""Compaction: many small parts become few, so that months of short runs leave no more files than one long one.

In: a change with all its parts. Out: the same rows in the same order, in fewer parts. Parts of one table, protocol and
hour are put together from the newest backwards while the older ones are not much larger than the newer ones together,
so a row is written a few times only, however many runs follow. Of hours that are past, two parts are too many already.
"""

from __future__ import annotations

import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part, Place
from wirewitness.analyser.archive.dataset.parts import time_column, write_parts
from wirewitness.analyser.archive.dataset.stage_files import put_value, value_of
from wirewitness.analyser.archive.dataset.stored_types import part_schema, stored_rows
from wirewitness.analyser.archive.spark.tasks import dealt, tasks_for
from wirewitness.analyser.archive.spark.workers import seen_as
from wirewitness.analyser.base.storage.exchange_files import scratch_in
from wirewitness.analyser.base.storage.files import let_reach
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.tables.queries import name_list, open_connection, select
from wirewitness.analyser.tables.tables import ALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A folder of a recent hour may have so many parts that could be one.
MOST_PARTS = 8
LARGE_BYTES = 256 << 20
# Wide rows that are sorted at once within DuckDB's memory; ten million are too many.
LARGE_ROWS = 2_000_000
MERGED_DDL = "number int, parts binary"
# As it is seen in Spark.
STAGE = "putting small files together"
# An older part is taken along while it is no larger than so often the newer ones.
_GROWTH = 2
_RECENT_HOURS = 2
_BATCH_ROWS = 1 << 15
_RUN = re.compile(r"part-(\d{6,12})\b")


class Merge(NamedTuple):
    """Parts that become one, oldest rows first."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class MergeJob:
    """What every task is told. locations: of the parts by path. work: for scratch files."""

    staging: FolderPath
    run: str
    merges: Sequence[Merge]
    locations: dict[str, FolderPath]
    work: FolderPath


def plan_merges(parts: Iterable[Part], *, whole: bool = False) -> list[Merge]:
    """Which parts are to be put together. whole: everything that lies in one folder, whatever it costs."""
    folders: defaultdict[tuple[str, Place], list[Part]] = defaultdict(list)
    for part in parts:
        if not part.provisional:
            folders[part.path.rpartition("/")[0], Place.of(part)].append(part)
    latest = max((place.hour for _, place in folders if place.hour is not None), default=0)
    merges = []
    for (_, place), found in sorted(folders.items(), key=lambda item: item[0][0]):
        is_past = place.hour is not None and place.hour <= latest - _RECENT_HOURS
        by_age = sorted(found, key=lambda part: part.path)
        chosen = _small(by_age) if whole else _suffix(by_age)
        if len(chosen) >= (2 if whole or is_past else MOST_PARTS):
            merges.append(Merge(tuple(chosen)))
    return merges


def _suffix(by_age: list[Part]) -> list[Part]:
    """The newest parts, as far back as it is cheap.

    Small ones behind a large one do not end it, since shards of one run differ: what counts is the oldest one taken.
    """
    chosen = size = rows = 0
    for number, part in enumerate(reversed(by_age), 1):
        rows += part.rows
        if size + part.bytes > LARGE_BYTES or rows > LARGE_ROWS:
            break
        if size == 0 or part.bytes <= _GROWTH * size:
            chosen = number
        size += part.bytes
    return by_age[len(by_age) - chosen :]


def _small(by_age: list[Part]) -> list[Part]:
    """The newest parts that are together not too large for one."""
    chosen: list[Part] = []
    size = rows = 0
    for part in reversed(by_age):
        size, rows = size + part.bytes, rows + part.rows
        if size > LARGE_BYTES or rows > LARGE_ROWS:
            break
        chosen.append(part)
    return chosen[::-1]


def compact(spark: SparkSession, change: Change, *, whole: bool = False) -> int:
    """Put small parts together; how many there are less. whole: as `plan_merges`."""
    merges = plan_merges((*change.parts(), *change.hidden_parts()), whole=whole)
    if not merges:
        return 0
    locations = {part.path: change.location(part).resolve() for merge in merges for part in merge.parts}
    job_path = change.work / "merge.pickle"
    seal = put_value(job_path, MergeJob(change.staging, change.run, merges, locations, change.work))
    sizes = Counter({(number,): sum(part.bytes for part in merge.parts) for number, merge in enumerate(merges)})
    tasks = tasks_for(spark, len(merges))
    rows = spark.createDataFrame([(task, *unit) for task, unit in dealt(sizes, tasks)], "task int, number int")
    done = rows.repartitionById(tasks, rows.task).mapInArrow(partial(merge_numbers, seal), MERGED_DDL)
    fewer = 0
    with seen_as(spark, STAGE):
        told = done.collect()
    for row in told:
        old, new = merges[row.number].parts, pickle.loads(row.parts)
        change.remove(*old)
        change.add(*new)
        fewer += len(old) - len(new)
    return fewer


def merge_numbers(seal: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do the merges that the rows number; one row for each."""
    job: MergeJob = value_of(seal)
    for batch in batches:
        for number in batch.column("number").to_pylist():
            made = pickle.dumps(merge_parts(job, job.merges[number]))
            yield pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int32()), pa.array([made], pa.binary())], ["number", "parts"]
            )


def merge_parts(job: MergeJob, merge: Merge) -> list[Part]:
    """Write the rows of the parts in the order of time, those that readers cannot tell apart otherwise in that of their
    age; in memory is what DuckDB may have."""
    table, hidden = merge.parts[0].table, merge.parts[0].is_hidden()
    paths = [str(job.locations[part.path]) for part in merge.parts]
    folders = {path.rpartition("/")[0] for path in paths}
    with scratch_in(job.work) as scratch, closing(open_connection(scratch, folders)) as con:
        let_reach(con, paths)
        # Staged and old parts lie in different folders: only their names tell their age.
        query = (
            f"SELECT {name_list(part_schema(table).names)} FROM {stored_rows(table, paths)} "
            f"ORDER BY {_order(table)}{FLOW} NULLS FIRST, parse_filename(filename), file_row_number"
        )
        rows = select(con, query).to_arrow_reader(_BATCH_ROWS)
        return write_parts(table, rows, job.staging, merged_name(merge, job.run), hidden=hidden)


def merged_name(merge: Merge, run: str) -> str:
    """The name of the part of all: behind those of older runs, before all that newer ones and open flows bring."""
    found = _RUN.search(merge.parts[-1].path)
    assert found is not None, merge.parts[-1].path
    return f"{found[1]}-0000-0merged{run}"


def _order(table: str) -> str:
    """The columns that sort the rows before their age: time alone, else what readers sort by."""
    names = ALL_TABLES[table].order
    if names[:1] == (time_column(table),):
        names = names[:1]
    return "".join(f"{name_list([name])} NULLS FIRST, " for name in names)
