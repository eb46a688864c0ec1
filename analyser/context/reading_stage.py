"""The context of reading: `kafka_reading_runs`, a row for each time that a client of a group began to read a partition.

In: a connection with views of the Kafka tables, fetches with their group (`enrich.py`). Out: the view of that table.
Steps are done by DuckDB within its memory limit, for some partitions at a time where there are many rows; what comes
out is put together PIECE_ROWS at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from analyser.context.kept_pieces import kept_pieces
from analyser.context.reading_causes import CAUSES, COMMITTERS, UNSEEN
from analyser.context.reading_runs import RUNS
from analyser.context.shares import Dealer, MakeShare, dealt, pieces_in, shares_of
from analyser.context.stage import NOTHING, OF_PARTITIONS, PARTITION, READING, Held
from analyser.context.steps import steps_made
from analyser.context.topics import views
from analyser.registry.coded import BATCH_ROWS, coded_columns
from analyser.registry.queries import keep, keep_more, name_list, null_columns
from analyser.registry.tables import TABLES

TABLE = "kafka_reading_runs"
# They are put together so many at a time, of which one copy is in DuckDB's columns and one in those that are coded.
PIECE_ROWS = 1 << 15
# So many at a time where the whole table is kept, compressed.
VIEW_ROWS = 1 << 17
# The steps for so many rows of fetches take some 100 MiB.
STEP_ROWS = 1 << 17
_UNSEEN = pa.schema([("address", pa.string()), ("at_ns", pa.int64())])
_ALL_UNSEEN, _ALL_COMMITTERS = "reading_all_unseen", "reading_all_committers"


def _time(column: str, name: str) -> str:
    return f"make_timestamp_ns({column})::TIMESTAMPTZ_NS AS {name}"


# What a run is, with its number `row`.
_RUNS = f"""
    SELECT row, {_time("begun.at_ns", "ts")}, {_time("begun.last_ns", "ts_last")},
           nullif(readers.cluster, '') AS cluster_id, nullif(readers.group_id, '') AS group_id,
           nullif(readers.topic, '') AS topic, readers.partition, nullif(readers.client_id, '') AS client_id,
           nullif(readers.address, '') AS client_address, begun.first_offset, begun.next_offset, begun.fetches,
           begun.records AS records_count, begun.log_start_offset, begun.log_end_offset,
           CASE WHEN begun.before_ns IS NULL THEN 'first' WHEN begun.other_id THEN 'topic id'
                WHEN begun.first_offset IS DISTINCT FROM begun.position_before THEN 'offset' ELSE 'connection' END
               AS began_by,
           {_time("begun.before_ns", "ts_before")}, begun.fetched_before AS fetch_offset_before,
           begun.position_before AS next_offset_before, begun.group_position AS group_offset_before,
           ends.log_end AS last_log_end_offset, ends.earlier_end AS earlier_log_end_offset,
           {_time("ends.at_ns", "ts_last_log_end")}, ends.transactional
    FROM reading_begun AS begun
    JOIN reading_readers AS readers USING (reader, part)
    LEFT JOIN reading_ends AS ends USING (cluster, topic, partition)"""
# What is known besides, each of some runs.
_BESIDE = (
    "SELECT row, exchange_id, topic_id, flow_id, file, request_packet FROM reading_places",
    "SELECT row, member_id FROM reading_members",
    f"""
    SELECT row, {_time("came.at_ns", "ts_stored")}, stored_offset, client_id AS stored_client_id,
           address AS stored_client_address, member_id AS stored_member_id, exchange_id AS stored_exchange_id
    FROM reading_from AS came JOIN reading_known AS stored ON came.known = stored.rowid""",
    f"""
    SELECT row, {_time("at_ns", "ts_change")}, change, change_offset, nullif(client_id, '') AS change_client_id,
           nullif(address, '') AS change_client_address, exchange_id AS change_exchange_id
    FROM reading_moved""",
    f"SELECT row, {_time('at_ns', 'ts_answered')}, answered_offset FROM reading_asks",
    f"SELECT row, {_time('at_ns', 'ts_out_of_range')}, fetch_offset AS out_of_range_offset FROM reading_refused",
    f"SELECT row, {_time('at_ns', 'ts_listed')}, listed AS listed_timestamp FROM reading_listed",
    f"SELECT row, {_time('at_ns', 'client_gap_ts')}, {_time('last_ns', 'ts_last_gap')} FROM reading_gaps",
)
# Did any connection begin after the first fetch, and without its handshake? Of those of logs any may be in doubt.
_MAY_BE_UNSEEN = """
    SELECT EXISTS (FROM read_flows WHERE NOT handshake_seen AND (identified_by = 'request log' OR ts_first > (
        SELECT min(ts) FROM whole_kafka_fetch_partitions WHERE group_id IS NOT NULL)))"""
_ROWS = f"FROM ({_RUNS} {{some}})" + "".join(f" LEFT JOIN (FROM ({query}) {{some}}) USING (row)" for query in _BESIDE)


def add_reading_runs(con: duckdb.DuckDBPyConnection, held: Held = NOTHING, dealer: Dealer | None = None) -> Held:
    """Replace the view of the table, which is empty before; other tables may be missing. Call it once.

    held: where it has the table, its rows are given back, in memory or where they are many in the file that it names,
    and the view is left to the caller. dealer: of work on them to several processes.
    """
    _set_aside(con)
    if TABLE in held:
        rows = kept_pieces(_pieces(con, dealer), held[TABLE])
        return NOTHING if rows is None else {TABLE: rows}
    _make_view(con, {**RUNS, **CAUSES})
    return NOTHING


class OfAllShares(NamedTuple):
    """What shares of the partitions tell each other. unseen: where connections began unseen; committers: members that
    committed, as `reading_committers` has them."""

    unseen: pa.Table
    committers: pa.Table

    @classmethod
    def of(cls, told: Sequence[OfAllShares]) -> OfAllShares:
        """What all of them told."""
        return cls(*map(pa.concat_tables, zip(*told, strict=True)))


def told_by_share(con: duckdb.DuckDBPyConnection) -> OfAllShares:
    """What a share of the partitions tells all others, for `add_share`. Views have the rows of that share."""
    _set_aside(con)
    rows = [*_unseen(con)] if con.execute(_MAY_BE_UNSEEN).fetchall()[0][0] else []
    committers = "SELECT * REPLACE (min(at_ns) AS at_ns) FROM reading_committers WHERE member_id <> '' GROUP BY ALL"
    return OfAllShares(rows[0] if rows else _UNSEEN.empty_table(), con.sql(committers).to_arrow_table())


def _unseen_of(con: duckdb.DuckDBPyConnection, share: int, shares: int) -> Iterator[pa.Table]:
    _see_share(con, share, shares)
    yield from _unseen(con)


def _unseen(con: duckdb.DuckDBPyConnection) -> Iterator[pa.Table]:
    with steps_made(con, {**RUNS, **UNSEEN}, "reading_unseen", only_if="reading_readers") as there_are_readers:
        if there_are_readers:
            yield con.sql("FROM reading_unseen").to_arrow_table()


def add_share(con: duckdb.DuckDBPyConnection, told: OfAllShares) -> None:
    """As `add_reading_runs`, where views have the rows of one share of the partitions alone."""
    _set_aside(con)
    con.register(_ALL_UNSEEN, told.unseen)
    con.register(_ALL_COMMITTERS, told.committers)
    con.execute(f"CREATE OR REPLACE TEMP VIEW reading_committers AS FROM {_ALL_COMMITTERS}")
    _make_view(con, {**RUNS, **CAUSES, "reading_unseen": f"SELECT DISTINCT * FROM {_ALL_UNSEEN}"})


def _set_aside(con: duckdb.DuckDBPyConnection) -> None:
    """Views of all tables that steps read; empty ones of those that are missing."""
    there = views(con)
    for table in (*READING.reads, *READING.uses, "flows"):
        source = f"FROM {table}" if table in there else f"SELECT {null_columns(table)} LIMIT 0"
        con.execute(f"CREATE OR REPLACE TEMP VIEW whole_{table} AS {source}")
        con.execute(f"CREATE OR REPLACE TEMP VIEW read_{table} AS FROM whole_{table}")
    con.execute(f"CREATE OR REPLACE TEMP VIEW reading_committers AS {COMMITTERS}")


def _make_view(con: duckdb.DuckDBPyConnection, steps: Mapping[str, str]) -> None:
    """The view of the table, of what the views of the others have; it stays as it is where nobody reads."""
    columns = name_list(TABLES[TABLE].column_names())
    with steps_made(con, steps, _ROWS, only_if="reading_readers") as there_are_readers:
        if not there_are_readers:
            return
        first, *others = [_ROWS.format(some=some) for some in _some_at_a_time(con, VIEW_ROWS).values()]
        name = keep(con, TABLE, first)
        for more in others:
            keep_more(con, name, more)
    con.execute(f"DROP VIEW IF EXISTS {TABLE}")
    con.execute(f"CREATE TEMP VIEW {TABLE} AS SELECT {columns} FROM {name}")


def _pieces(con: duckdb.DuckDBPyConnection, dealer: Dealer | None) -> Iterator[pa.Table]:
    """All rows, in pieces of PIECE_ROWS at most."""
    (fetches,) = con.execute("SELECT count(group_id) FROM whole_kafka_fetch_partitions").fetchall()[0]
    shares = shares_of(fetches, STEP_ROWS, dealer)
    if shares == 1:
        yield from _made(con, {**RUNS, **CAUSES})
        return
    # Of connections, which carry all partitions, so it is the one step that looks at others.
    unseen = _UNSEEN.empty_table()
    if con.execute(_MAY_BE_UNSEEN).fetchall()[0][0]:
        unseen = pa.concat_tables([unseen, *_of_shares(con, dealer, "unseen_of_shares", {}, shares)])
    unseen = unseen.group_by(unseen.schema.names).aggregate([])
    con.register(_ALL_UNSEEN, unseen)
    yield from _of_shares(con, dealer, "runs_of_shares", {_ALL_UNSEEN: unseen}, shares)
    con.unregister(_ALL_UNSEEN)


def _of_shares(
    con: duckdb.DuckDBPyConnection, dealer: Dealer | None, work: str, held: Held, shares: int
) -> Iterator[pa.Table]:
    """What all shares give, in pieces."""
    make = _unseen_of if work == "unseen_of_shares" else _runs_of
    tables = (*READING.reads, *READING.uses, "flows", *held)
    for share, made in dealt(dealer, f"reading_stage.{work}", tables, held, shares):
        yield from make(con, share, shares) if made is None else pieces_in(made)


@contextmanager
def unseen_of_shares(con: duckdb.DuckDBPyConnection, _: Held) -> Iterator[MakeShare]:
    """What tells for another process where connections began unseen; see `shares.py`."""
    _set_aside(con)
    yield partial(_unseen_of, con)


@contextmanager
def runs_of_shares(con: duckdb.DuckDBPyConnection, _: Held) -> Iterator[MakeShare]:
    """What makes runs for another process, on a connection that has the view of all that is unseen; see `shares.py`."""
    _set_aside(con)
    yield partial(_runs_of, con)


def _runs_of(con: duckdb.DuckDBPyConnection, share: int, shares: int) -> Iterator[pa.Table]:
    _see_share(con, share, shares)
    yield from _made(con, {**RUNS, **CAUSES, "reading_unseen": f"SELECT DISTINCT * FROM {_ALL_UNSEEN}"})


def _see_share(con: duckdb.DuckDBPyConnection, share: int, shares: int) -> None:
    """Let the views have the rows of one share of the partitions."""
    for table in OF_PARTITIONS:
        rows = f"FROM whole_{table} WHERE {PARTITION} % {shares} = {share}"
        con.execute(f"CREATE OR REPLACE TEMP VIEW read_{table} AS {rows}")


def _made(con: duckdb.DuckDBPyConnection, steps: Mapping[str, str]) -> Iterator[pa.Table]:
    """The rows of what the views have."""
    with steps_made(con, steps, _ROWS, only_if="reading_readers") as there_are_readers:
        if there_are_readers:
            for start, some in _some_at_a_time(con, PIECE_ROWS).items():
                pa.default_memory_pool().release_unused()  # what the steps, or the rows before, left behind
                yield _in_memory(con, start, some)


def _some_at_a_time(con: duckdb.DuckDBPyConnection, many: int) -> dict[int, str]:
    """Conditions for so many runs each, by the number of the first; together all. To join all at once takes several
    times the memory of what comes out."""
    query = "SELECT row FROM (SELECT row, row_number() OVER (ORDER BY row) AS place FROM reading_begun)"
    found = con.execute(f"{query} WHERE (place - 1) % {many} = 0 ORDER BY row").fetchall()
    starts = [row for (row,) in found] or [0]
    return {
        start: f"WHERE row >= {start}" + ("" if end is None else f" AND row < {end}")
        for start, end in zip(starts, [*starts[1:], None], strict=True)
    }


def _in_memory(con: duckdb.DuckDBPyConnection, start: int, some: str) -> pa.Table:
    """Some rows, what is known besides put beside the runs by their numbers. start: of the first; some: which."""
    columns = _columns(con, f"FROM ({_RUNS}) {some}")
    rows = columns["row"].to_numpy() - start
    for query in _BESIDE:
        beside = _columns(con, f"FROM ({query}) {some}")
        places = np.full(rows.max(initial=0) + 1, -1)
        places[beside["row"].to_numpy() - start] = np.arange(len(beside["row"]))
        found = places[rows]
        taken = pa.array(found, mask=found < 0)
        columns.update({name: column.take(taken) for name, column in beside.items() if name != "row"})
    return pa.table({name: columns[name] for name in TABLES[TABLE].column_names()})


def _columns(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, pa.Array]:
    reader = con.sql(query).to_arrow_reader(BATCH_ROWS)
    return coded_columns(reader, reader.schema)
