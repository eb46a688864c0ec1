"""What shards of a table make, in files, until other tasks put it into hours.

In: what a task sees of a change, a SELECT. Out: a file for each shard, and the hours of all of them together, written
where they came out otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import duckdb

from wirewitness.analyser.archive.aggregate.derived import (
    ARRIVAL,
    PROVISIONAL,
    Digest,
    Hour,
    among,
    change_connection,
    differing_hours,
    digests,
    hour_of,
    keep_rows,
    parts_together,
    rows_of,
    together,
    together_of,
    write_hours,
)
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part, Place
from wirewitness.analyser.archive.dataset.parts import time_column
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import Workers
from wirewitness.analyser.base.storage.exchange_files import remove_below
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.tables.queries import literal, name_list, quoted
from wirewitness.analyser.tables.tables import arrow_schema

# A shard has about so many rows: what one task looks at.
SHARD_ROWS = 2_000_000
# So many rows of an hour are written by one task, and compared by one.
WRITTEN_ROWS = 1_000_000
_SHARDS = "shares"


class Left(NamedTuple):
    """What all shards left of a table. told: shard -> hour -> what `leave` told.

    is_new: the table had no rows before the stage that made these. only: hours that they are of; None for all.
    """

    table: str
    told: Mapping[str, Mapping[Hour, Digest]]
    is_new: bool
    only: Collection[Hour] | None = None


class Stretch(NamedTuple):
    """Rows that one task takes: all of these parts, or of the one part those from `start` on, before `end`."""

    parts: Sequence[Part]
    start: int | None = None
    end: int | None = None

    def rows(self, snapshot: Snapshot, table: str) -> str:
        """They, with what a row of a dataset has beside its columns, as a SELECT."""
        rows = rows_of(snapshot, table, self.parts, hidden=True)
        if self.start is None:
            return rows
        return f"FROM ({rows}) WHERE file_row_number >= {self.start} AND file_row_number < {self.end}"


class _Write(NamedTuple):
    """Hours of a table that one task writes, of the files of these shards. name: of the parts, where others write parts
    of the same hour."""

    table: str
    shards: Sequence[str]
    hours: Collection[Hour]
    columns: str
    name: str


def shards_for(rows: int) -> int:
    """Into how many shards so many rows are dealt."""
    return -(-rows // SHARD_ROWS)


def stretches(parts: Sequence[Part], most_rows: int) -> Iterator[Stretch]:
    """The rows of parts of a table, cut into stretches of so many at most."""
    for some in parts_together(parts, most_rows):
        held = sum(part.rows for part in some)
        if held <= most_rows:
            yield Stretch(some)
            continue
        for start in range(0, held, most_rows):
            yield Stretch(some, start, start + most_rows)


def leave(con: duckdb.DuckDBPyConnection, snapshot: Snapshot, table: str, rows: str, name: str) -> dict[Hour, Digest]:
    """Write rows of a table for the tasks that put them into hours; what they come down to. name: of this shard."""
    path = _file(snapshot, table, name)
    keep_rows(con, rows, path)
    return digests(con, table, _rows(name_list(arrow_schema(table).names), [path]))


def put_into_hours(change: Change, workers: Workers, stage: str, lefts: Sequence[Left]) -> list[set[Hour]]:
    """Write those hours that came out otherwise; those that were written. lefts: of a table each. stage: that ends so.

    An hour is written by one task, together with others where they are few rows; one with many by several.
    """
    old = {left.table: _parts(change, left) for left in lefts}
    pieces = [(table, some) for table, parts in old.items() for some in parts_together(parts, WRITTEN_ROWS)]
    seen: dict[str, list[dict[Hour, Digest]]] = {left.table: [] for left in lefts}
    if pieces:
        before = each_of(change, workers, f"{stage}, before", _compare, pieces)
        for (table, _), told in zip(pieces, before, strict=True):
            seen[table].append(told)
    written: list[set[Hour]] = []
    writes: list[_Write] = []
    for left in lefts:
        now = together_of(left.told.values())
        hours = differing_hours(together_of(seen[left.table]), now)
        change.remove(*(part for part in old[left.table] if Place.of(part).hour in hours))
        writes += _writes(left, {hour: now[hour][0] for hour in hours if hour in now})
        written.append(hours)
    if writes:
        each_of(change, workers, f"{stage}, into hours", _write, writes)
    remove_files(change)
    return written


def remove_files(change: Change) -> None:
    """What shards left is not needed any more."""
    remove_below(change.work / _SHARDS)


def shard_file(snapshot: Snapshot, name: str) -> FolderPath:
    """Where a file of that name lies until rows are in their hours."""
    return snapshot.work / _SHARDS / f"{name}.parquet"


def _file(snapshot: Snapshot, table: str, name: str) -> FolderPath:
    return shard_file(snapshot, f"{table}-{name}")


def _parts(change: Change, left: Left) -> list[Part]:
    """Those of hours that shards may have made anew."""
    return [part for part in change.parts(left.table) if left.only is None or Place.of(part).hour in left.only]


def _compare(snapshot: Snapshot, unit: tuple[str, list[Part]]) -> dict[Hour, Digest]:
    table, parts = unit
    with change_connection(snapshot) as con:
        return digests(con, table, rows_of(snapshot, table, parts))


def _writes(left: Left, rows: Mapping[Hour, int]) -> Iterator[_Write]:
    """Tasks that write these hours. rows: how many each has."""
    columns = name_list([*arrow_schema(left.table).names, *(() if left.is_new else (*ARRIVAL, PROVISIONAL))])
    few = {hour: [Part(left.table, "", number, 0, False)] for hour, number in rows.items() if number <= WRITTEN_ROWS}
    for hours, _ in together(few):
        shards = [shard for shard, told in left.told.items() if told.keys() & hours]
        yield _Write(left.table, shards, hours, columns, "")
    for hour in rows.keys() - few.keys():
        held: list[str] = []
        number = 0
        for shard, told in left.told.items():
            more = told.get(hour, (0, 0))[0]
            if held and number + more > WRITTEN_ROWS:
                yield _Write(left.table, held, {hour}, columns, f"-{held[0]}")
                held, number = [], 0
            if more:
                held.append(shard)
                number += more
        yield _Write(left.table, held, {hour}, columns, f"-{held[0]}")


def _write(snapshot: Snapshot, unit: _Write) -> None:
    files = [_file(snapshot, unit.table, shard) for shard in unit.shards]
    chosen = among(hour_of(quoted(time_column(unit.table) or "")), unit.hours)
    with change_connection(snapshot) as con:
        write_hours(con, snapshot, unit.table, f"{_rows(unit.columns, files)} WHERE {chosen}", unit.hours, unit.name)


def _rows(columns: str, files: Sequence[FolderPath]) -> str:
    names = literal([str(file.resolve()) for file in files])
    return f"SELECT {columns} FROM read_parquet({names}, hive_partitioning = false)"
