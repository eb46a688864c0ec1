"""Rows dealt by a key, once, so that each task reads its own shard of them and not all.

In: a change, who works, tables with their keys. Out: files in which the rows of one shard lie together, and SELECTs of
a shard. Reading all rows in each of the tasks, whose number grows with the rows, would take a time that grows with
their square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wirewitness.analyser.archive.aggregate.derived import ARRIVAL, PROVISIONAL, change_connection, keep_rows, rows_of
from wirewitness.analyser.archive.aggregate.shard_files import Stretch, shard_file, stretches
from wirewitness.analyser.archive.aggregate.tasks import each_of
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.snapshot import Snapshot
from wirewitness.analyser.archive.spark.workers import Workers
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.tables.queries import literal, name_list
from wirewitness.analyser.tables.tables import arrow_schema

# A task deals about so many rows: to sort more wide ones takes more memory than it has.
DEALT_ROWS = 500_000
# A shard is read in whole row groups.
_GROUP_ROWS = (2_048, 122_880)


class Deal(NamedTuple):
    """What is dealt. name: of its files, another one for each deal. parts: which have the rows.

    key: columns, as SQL; rows with the same values are in one of so many `shares`. everywhere: rows that all shards
    see, as SQL. hidden: with what a row of a dataset has beside its columns. only: columns that are wanted, none for
    all. where: rows that are wanted, as SQL.
    """

    name: str
    table: str
    parts: Sequence[Part]
    key: str
    shards: int
    everywhere: str = ""
    hidden: bool = False
    only: Sequence[str] = ()
    where: str = "true"

    def columns(self) -> str:
        """Those of its rows."""
        names = self.only or arrow_schema(self.table).names
        return name_list([*names, *((*ARRIVAL, PROVISIONAL) if self.hidden else ())])


class Dealt(NamedTuple):
    """A deal, without its parts, and how many files it has."""

    deal: Deal
    files: int


class _Unit(NamedTuple):
    """What one task deals. number: of its file."""

    deal: Deal
    some: Stretch
    number: int


def deal_rows(change: Change, workers: Workers, stage: str, deals: Sequence[Deal]) -> list[Dealt]:
    """Deal all rows. stage: of which this is the beginning, as it is seen in Spark."""
    units: list[_Unit] = []
    dealt: list[Dealt] = []
    for deal in deals:
        found = [*stretches(deal.parts, DEALT_ROWS)]
        alone = deal._replace(parts=())
        units += [_Unit(alone, some, number) for number, some in enumerate(found)]
        dealt.append(Dealt(alone, len(found)))
    each_of(change, workers, f"{stage}, dealt", _deal, units)
    return dealt


def rows_of_shard(snapshot: Snapshot, dealt: Dealt, number: int) -> str:
    """The rows of a shard, as a SELECT."""
    deal = dealt.deal
    if not dealt.files:
        return f"SELECT {deal.columns()} FROM ({rows_of(snapshot, deal.table, (), hidden=True)})"
    files = literal([str(_file(snapshot, deal, file).resolve()) for file in range(dealt.files)])
    also = " OR shard IS NULL" if deal.everywhere else ""
    return (
        f"SELECT {deal.columns()} FROM read_parquet({files}, hive_partitioning = false) "
        f"WHERE shard = {number}::UINTEGER{also}"
    )


def _deal(snapshot: Snapshot, unit: _Unit) -> None:
    deal = unit.deal
    shard = f"(hash({deal.key}) % {deal.shards})::UINTEGER"
    if deal.everywhere:
        shard = f"CASE WHEN {deal.everywhere} THEN NULL ELSE {shard} END"
    least, most = _GROUP_ROWS
    with change_connection(snapshot) as con:
        keep_rows(
            con,
            f"SELECT {deal.columns()}, {shard} AS shard FROM ({unit.some.rows(snapshot, deal.table)}) "
            f"WHERE {deal.where} ORDER BY shard",
            _file(snapshot, deal, unit.number),
            min(max(DEALT_ROWS // deal.shards, least), most),
        )


def _file(snapshot: Snapshot, deal: Deal, number: int) -> FolderPath:
    return shard_file(snapshot, f"dealt-{deal.name}-{deal.table}-{number}")
