"""The context columns of commits and fetches.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_offset_commits` and `kafka_fetch_partitions` replaced by ones whose context columns are filled in. Rows that the
caller holds are never joined for that: they get other columns (`added_columns.py`).

What a commit gets is found in arrays, as of the time of the row, for some partitions at a time
where there are many rows. Times are compared as Unix ns. An unknown cluster is a cluster of its own (''), never a
wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.added_columns import in_order, numbered, with_columns
from wirewitness.analyser.engine.facts.as_of import Integers, Timeline, taken
from wirewitness.analyser.engine.facts.columns import UNKNOWN, columns_of, integers, number_column, time_column
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.engine.facts.shards import Dealer, MakeShard, dealt, pieces_in, shards_of
from wirewitness.analyser.engine.facts.stage import NOTHING, PARTITION, Held
from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.commit_owners import Owners
from wirewitness.analyser.kafka.facts.commit_rows import Commits
from wirewitness.analyser.kafka.facts.commit_views import (
    COMMITS,
    FETCHES,
    FETCHES_SQL,
    GROUPS,
    MAKE_CLIENTS,
    OF_PARTITIONS,
    ONCE,
    READS,
)
from wirewitness.analyser.tables.coded import TooManyBytes
from wirewitness.analyser.tables.queries import keep, null_columns

# What a commit gets from other rows, each as of its time. In: the views of `commit_views.py`. Out: columns.
#
# All is done in arrays of numbers, some 150 bytes for each commit and each fetch of their partitions while it lasts.

CONTEXT = ("owner_member_id", "ownership_confidence", "log_end_offset", "client_gap_ts")
_CONFIDENCES = ("high", "low")
_LOG_ENDS = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition, incarnation,
           epoch_ns(ts) AS at_ns, log_end_offset AS log_end
    FROM some_kafka_log_ends"""


def commits_context(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """The columns CONTEXT for rows of `context_base`, with their `row`: a row for each that may get anything.

    Raises TooManyBytes.
    """
    commits = Commits(con)
    ends = _log_ends(con, commits)
    gaps_ns = _gaps(con, commits)
    owners = Owners(con, commits, gaps_ns)
    confidence = pa.array(np.where(owners.told, 0, 1).astype(np.int32), mask=owners.members < 0)
    return pa.table(
        {
            "row": pa.array(commits.rows),
            "owner_member_id": _texts(owners.members, owners.texts),
            "ownership_confidence": pa.DictionaryArray.from_arrays(confidence, pa.array(_CONFIDENCES)),
            "log_end_offset": number_column(ends),
            "client_gap_ts": time_column(gaps_ns),
        }
    )


def _log_ends(con: duckdb.DuckDBPyConnection, commits: Commits) -> Integers:
    """The log end that was known at each commit; UNKNOWN where none was."""
    steps = known_rows(con, _LOG_ENDS, {"log": commits.log}, ("at_ns", "log_end"))
    line = Timeline(integers(steps["log"]), integers(steps["at_ns"]))
    return taken(integers(steps["log_end"]), line.latest(commits.logs, commits.at_ns), UNKNOWN)


def _gaps(con: duckdb.DuckDBPyConnection, commits: Commits) -> Integers:
    """When the last bytes of the client before each commit were missed; UNKNOWN where none were."""
    if commits.address is None:
        return np.full(len(commits.rows), UNKNOWN)
    gaps = columns_of(con, "FROM context_gaps")
    address = Key(gaps, ("address",))
    at_ns = integers(gaps["at_ns"])
    found = Timeline(address.numbers, at_ns).latest(address.of({"address": commits.address}), commits.at_ns)
    return taken(at_ns, found, UNKNOWN)


def _texts(numbers: Integers, texts: pa.Array) -> pa.DictionaryArray:
    """These texts as codes, without those of which there is none; null for numbers below 0."""
    used = np.zeros(len(texts) + 1, np.bool_)
    used[numbers] = True
    used[-1] = False
    codes = np.cumsum(used, dtype=np.int32)[numbers] - 1
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=numbers < 0), pc.take(texts, pa.array(np.flatnonzero(used)))
    )


# Arrays for so many rows of commits and fetches take some 150 MiB.
STEP_ROWS = 1 << 20
# A shard whose texts take too much memory is made in so many parts, and these in parts, but not in more than so many.
PARTS, MOST_PARTS = 8, 1 << 12


def enrich(con: duckdb.DuckDBPyConnection, held: Held = NOTHING, dealer: Dealer | None = None) -> Held:
    """Replace the views of commits and fetches by enriched ones; other tables may be missing. Call it once.

    held: those of both whose rows are known. They are given back with their new columns, all else as it is, and the
    caller makes their views. dealer: of work on them to several processes. Raises TooManyBytes where the texts of one
    partition take too much memory.
    """
    there = _all_set_aside(con)
    made: dict[str, pa.Table | Path] = {}
    if not has_rows(con, f"in_{COMMITS}"):
        con.execute(f"CREATE TEMP VIEW context_base AS FROM in_{COMMITS}")
        con.execute(MAKE_CLIENTS)
        commits = "FROM context_base"
    elif COMMITS in held:
        with numbered(con, "context_commits", held[COMMITS]):
            made[COMMITS] = with_columns(held[COMMITS], _added(con, held, dealer).to_reader())
    else:
        commits = _of_commits(con)
    if COMMITS in there and COMMITS not in made:
        con.execute(f"CREATE TEMP VIEW {COMMITS} AS {commits}")
    if FETCHES in held:
        with numbered(con, "context_fetches", held[FETCHES]):
            groups = in_order([pa.table(columns_of(con, GROUPS))], _count(con, "context_fetches"))
        made[FETCHES] = with_columns(held[FETCHES], groups.to_reader())
    elif FETCHES in there:
        con.execute(f"CREATE TEMP VIEW {FETCHES} AS {FETCHES_SQL}")
    for table in made:  # else it would name what nobody holds any more
        con.execute(f"DROP VIEW in_{table}")
    return made


def _added(con: duckdb.DuckDBPyConnection, held: Held = NOTHING, dealer: Dealer | None = None) -> pa.Table:
    """What rows of `context_commits` get, a row for each in their order.

    `context_clients` stays: fetches are told by it, too.
    """
    commits = _count(con, "context_commits")
    shards = shards_of(commits + _count(con, f"in_{FETCHES}"), STEP_ROWS, dealer)
    numbers = dealt(dealer, "kafka.facts.enrich.commits_of_shard", READS, held, shards)
    with _made_once(con):
        pieces = [
            piece
            for shard, made in numbers
            for piece in (_of_shard(con, shard, shards) if made is None else pieces_in(made))
        ]
    return in_order(pieces, commits)


@contextmanager
def commits_of_shard(con: duckdb.DuckDBPyConnection, held: Held) -> Iterator[MakeShard]:
    """What makes the rows of `commits_context` for another process; see `shards.py`."""

    def made(shard: int, shards: int) -> Iterator[pa.Table]:
        yield from _of_shard(con, shard, shards)

    _all_set_aside(con)
    with numbered(con, "context_commits", held[COMMITS]), _made_once(con):
        yield made


@contextmanager
def _made_once(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """What all shards read, until the block ends; `context_clients` stays."""
    _look_at(con)
    con.execute(MAKE_CLIENTS)
    with steps_made(con, ONCE, " ".join(ONCE)):
        yield
    con.execute("".join(f"DROP VIEW {name};" for name in OF_PARTITIONS))


def _of_shard(con: duckdb.DuckDBPyConnection, shard: int, shards: int) -> Iterator[pa.Table]:
    """What rows of one shard of the partitions get, in pieces. Raises TooManyBytes."""
    _look_at(con, f" WHERE {PARTITION} % {shards} = {shard}" if shards > 1 else "")
    try:
        made = commits_context(con)
    except TooManyBytes:
        if shards >= MOST_PARTS:
            raise
        for part in range(PARTS):
            yield from _of_shard(con, shard + part * shards, shards * PARTS)
        return
    yield made


def _look_at(con: duckdb.DuckDBPyConnection, where: str = "") -> None:
    """Look at these rows only."""
    for name, whole in OF_PARTITIONS.items():
        con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS FROM {whole}{where}")


def _count(con: duckdb.DuckDBPyConnection, rows: str) -> int:
    """How many rows a view has."""
    count: int = con.execute(f"SELECT count(*) FROM {rows}").fetchall()[0][0]
    return count


def _of_commits(con: duckdb.DuckDBPyConnection) -> str:
    """A SELECT of the commits with their context.

    Whole rows stand in a table that spills as it is: to compress them takes longer than all else.
    """
    rows = "commits_as_decoded"
    con.execute(f"CREATE TEMP TABLE {rows} AS FROM in_{COMMITS}")
    con.execute(f"CREATE TEMP VIEW context_commits AS SELECT rowid AS row, * FROM {rows}")
    con.register("context_added", _added(con))
    added = keep(con, "commits_context", "FROM context_added")
    con.unregister("context_added")
    con.execute("DROP VIEW context_commits")
    columns = ", ".join(f"added.{name} AS {name}" for name in CONTEXT)
    return f"SELECT base.* REPLACE ({columns}) FROM {rows} AS base POSITIONAL JOIN {added} AS added"


def _all_set_aside(con: duckdb.DuckDBPyConnection) -> set[str]:
    """Make `in_<table>` of all that is read; names of the views that were there."""
    there = views(con)
    for table in READS:
        _set_aside(con, table, table in there)
    return there


def _set_aside(con: duckdb.DuckDBPyConnection, table: str, there: bool) -> None:
    """Make `in_<table>`: the view itself under another name where it is replaced, an empty one where it is missing."""
    if there and table in (COMMITS, FETCHES):
        con.execute(f"ALTER VIEW {table} RENAME TO in_{table}")
    elif there:
        con.execute(f"CREATE TEMP VIEW in_{table} AS FROM {table}")
    else:
        con.execute(f"CREATE TEMP VIEW in_{table} AS SELECT {null_columns(table)} LIMIT 0")
