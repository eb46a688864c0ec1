"""The context of reading: `kafka_fetch_ranges`, a row for each time that a client of a group began to read a partition.

In: a connection with views of the Kafka tables, fetches with their group (`enrich.py`). Out: the view of that table.
Fetches and commits are narrow arrays, of some partitions at a time where there are many; what comes out is put together
PIECE_ROWS at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.facts.chunk_files import given_or_shown, show_pieces
from wirewitness.analyser.engine.facts.gaps import BEGAN_UNSEEN
from wirewitness.analyser.engine.facts.shards import Dealer, MakeShard, dealt, pieces_in, shards_of
from wirewitness.analyser.engine.facts.stage import NOTHING, OF_PARTITIONS, PARTITION, READING, Held
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.kafka.facts.fetch_members import COMMITTERS, members_known
from wirewitness.analyser.kafka.facts.fetch_ranges import TABLE, run_pieces, unseen_of
from wirewitness.analyser.kafka.facts.fetch_start_rows import UNSEEN_SCHEMA
from wirewitness.analyser.tables.queries import null_columns

# They are put together so many at a time.
PIECE_ROWS = 1 << 15
# So many at a time where the whole table is kept, compressed.
VIEW_ROWS = 1 << 17
# The arrays of so many fetches, and of as many commits, take some 100 MiB.
STEP_ROWS = 1 << 18
_ALL_UNSEEN, _ALL_COMMITTERS = "reading_all_unseen", "reading_all_committers"
_ROWS_READ = """
    SELECT (SELECT count(group_id) FROM whole_kafka_fetch_partitions),
           (SELECT count(*) FROM whole_kafka_offset_commits)"""
# Did any connection begin after the first fetch, and unseen? Of those of logs any may be in doubt.
_MAY_BE_UNSEEN = f"""
    SELECT EXISTS (FROM read_flows WHERE identified_by = 'request log') OR EXISTS (
        FROM read_gaps WHERE {BEGAN_UNSEEN} AND ts > (
            SELECT min(ts) FROM whole_kafka_fetch_partitions WHERE group_id IS NOT NULL))"""


def add_fetch_ranges(con: duckdb.DuckDBPyConnection, held: Held = NOTHING, dealer: Dealer | None = None) -> Held:
    """Replace the view of the table, which is empty before; other tables may be missing. Call it once.

    held: where it has the table, its rows are given back, in memory or where they are many in the file that it names,
    and the view is left to the caller. dealer: of work on them to several processes.
    """
    _set_aside(con)
    pieces = _pieces(con, PIECE_ROWS, dealer) if TABLE in held else _pieces(con, VIEW_ROWS)
    return given_or_shown(con, TABLE, pieces, held)


class OfAllShards(NamedTuple):
    """What shards of the partitions tell each other. unseen: where connections began unseen; committers: members that
    committed, as COMMITTERS has them."""

    unseen: pa.Table
    committers: pa.Table

    @classmethod
    def of(cls, told: Sequence[OfAllShards]) -> OfAllShards:
        """What all of them told."""
        return cls(*map(pa.concat_tables, zip(*told, strict=True)))


def told_by_shard(con: duckdb.DuckDBPyConnection) -> OfAllShards:
    """What a shard of the partitions tells all others, for `add_share`. Views have the rows of that shard."""
    _set_aside(con)
    return OfAllShards(_all_unseen(con, _shards(con, None), None), con.sql(COMMITTERS).to_arrow_table())


def add_shard(con: duckdb.DuckDBPyConnection, told: OfAllShards) -> None:
    """As `add_fetch_ranges`, where views have the rows of one shard of the partitions alone."""
    _set_aside(con)
    con.register(_ALL_COMMITTERS, told.committers)
    show_pieces(con, TABLE, _pieces(con, VIEW_ROWS, unseen=told.unseen, committers=f"FROM {_ALL_COMMITTERS}"))
    con.unregister(_ALL_COMMITTERS)


def _set_aside(con: duckdb.DuckDBPyConnection) -> None:
    """Views of all tables that are read; empty ones of those that are missing."""
    there = views(con)
    for table in (*READING.reads, *READING.uses, "flows"):
        source = f"FROM {table}" if table in there else f"SELECT {null_columns(table)} LIMIT 0"
        con.execute(f"CREATE OR REPLACE TEMP VIEW whole_{table} AS {source}")
        con.execute(f"CREATE OR REPLACE TEMP VIEW read_{table} AS FROM whole_{table}")


def _pieces(
    con: duckdb.DuckDBPyConnection,
    most: int,
    dealer: Dealer | None = None,
    *,
    unseen: pa.Table | None = None,
    committers: str = COMMITTERS,
) -> Iterator[pa.Table]:
    """All rows, so many at a time. unseen, committers: of all partitions, where the views have some of them."""
    shards = _shards(con, dealer)
    if not shards:
        return
    with members_known(con, committers):
        if shards == 1:
            yield from run_pieces(con, unseen, most)
            return
        # Of connections, which carry all partitions, so it is the one thing that looks at others.
        unseen = _all_unseen(con, shards, dealer) if unseen is None else unseen
        con.register(_ALL_UNSEEN, unseen)
        yield from _of_shards(con, dealer, "runs_of_shards", {_ALL_UNSEEN: unseen}, shards)
        con.unregister(_ALL_UNSEEN)


def _shards(con: duckdb.DuckDBPyConnection, dealer: Dealer | None) -> int:
    """How many shards to make of the partitions; none where nobody reads."""
    fetches, commits = con.execute(_ROWS_READ).fetchall()[0]
    return shards_of(max(fetches, commits), STEP_ROWS, dealer) if fetches else 0


def _all_unseen(con: duckdb.DuckDBPyConnection, shards: int, dealer: Dealer | None) -> pa.Table:
    """Where connections began unseen, by all partitions that the views have."""
    found = [UNSEEN_SCHEMA.empty_table()]
    if shards and con.execute(_MAY_BE_UNSEEN).fetchall()[0][0]:
        found += _of_shards(con, dealer, "unseen_of_shards", {}, shards)
    return pa.concat_tables(found).group_by(UNSEEN_SCHEMA.names).aggregate([])


def _of_shards(
    con: duckdb.DuckDBPyConnection, dealer: Dealer | None, work: str, held: Held, shards: int
) -> Iterator[pa.Table]:
    """What all shards give, in pieces."""
    make = _unseen_of if work == "unseen_of_shards" else _runs_of
    tables = (*READING.reads, *READING.uses, "flows", *held)
    for shard, made in dealt(dealer, f"kafka.facts.fetch_stage.{work}", tables, held, shards):
        yield from make(con, shard, shards) if made is None else pieces_in(made)


@contextmanager
def unseen_of_shards(con: duckdb.DuckDBPyConnection, _: Held) -> Iterator[MakeShard]:
    """What tells for another process where connections began unseen; see `shards.py`."""
    _set_aside(con)
    yield partial(_unseen_of, con)


@contextmanager
def runs_of_shards(con: duckdb.DuckDBPyConnection, _: Held) -> Iterator[MakeShard]:
    """What makes runs for another process, on a connection that has the view of all that is unseen; see `shards.py`."""
    _set_aside(con)
    with members_known(con, COMMITTERS):
        yield partial(_runs_of, con)


def _unseen_of(con: duckdb.DuckDBPyConnection, shard: int, shards: int) -> Iterator[pa.Table]:
    _see_shard(con, shard, shards)
    yield unseen_of(con)


def _runs_of(con: duckdb.DuckDBPyConnection, shard: int, shards: int) -> Iterator[pa.Table]:
    _see_shard(con, shard, shards)
    yield from run_pieces(con, con.sql(f"FROM {_ALL_UNSEEN}").to_arrow_table(), PIECE_ROWS)


def _see_shard(con: duckdb.DuckDBPyConnection, shard: int, shards: int) -> None:
    """Let the views have the rows of one shard of the partitions: by other bits of their hash than an archive deals
    them by, whose shards are cut once more."""
    for table in OF_PARTITIONS:
        rows = f"FROM whole_{table} WHERE ({PARTITION} >> 32) % {shards} = {shard}"
        con.execute(f"CREATE OR REPLACE TEMP VIEW read_{table} AS {rows}")
