"""The context columns of commits and fetches.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_offset_commits` and `kafka_fetch_partitions` replaced by ones whose context columns are filled in. Rows that the
caller holds are never joined for that: they get other columns (`added.py`).

What a commit gets is found in arrays (`commit_context.py`), as of the time of the row, for some partitions at a time
where there are many rows. Times are compared as Unix ns. An unknown cluster is a cluster of its own (''), never a
wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.facts.added_columns import in_order, numbered, with_columns
from wirewitness.analyser.engine.facts.columns import columns_of
from wirewitness.analyser.engine.facts.shards import Dealer, MakeShare, dealt, pieces_in, shares_of
from wirewitness.analyser.engine.facts.stage import NOTHING, PARTITION, Held
from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.commit_context import CONTEXT, commits_context
from wirewitness.analyser.kafka.facts.commit_views import (
    COMMITS,
    FETCHES,
    FETCHES_SQL,
    GROUPS,
    MAKE_CLIENTS,
    NO_OWNERS,
    OF_PARTITIONS,
    ONCE,
    READS,
)
from wirewitness.analyser.tables.coded import TooManyBytes
from wirewitness.analyser.tables.queries import keep, null_columns

# Arrays for so many rows of commits and fetches take some 150 MiB.
STEP_ROWS = 1 << 20
# A share whose texts take too much memory is made in so many parts, and these in parts, but not in more than so many.
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
    shares = shares_of(commits + _count(con, f"in_{FETCHES}"), STEP_ROWS, dealer)
    numbers = dealt(dealer, "kafka.facts.enrich.commits_of_share", READS, held, shares)
    with _made_once(con):
        pieces = [
            piece
            for share, made in numbers
            for piece in (_of_share(con, share, shares) if made is None else pieces_in(made))
        ]
    return in_order(pieces, commits)


@contextmanager
def commits_of_share(con: duckdb.DuckDBPyConnection, held: Held) -> Iterator[MakeShare]:
    """What makes the rows of `commits_context` for another process; see `shares.py`."""

    def made(share: int, shares: int) -> Iterator[pa.Table]:
        yield from _of_share(con, share, shares)

    _all_set_aside(con)
    with numbered(con, "context_commits", held[COMMITS]), _made_once(con):
        yield made


@contextmanager
def _made_once(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """What all shares read, until the block ends; `context_clients` stays."""
    _look_at(con)
    con.execute(MAKE_CLIENTS)
    once = ONCE if has_rows(con, "in_kafka_assignments") else {**ONCE, "context_owned": NO_OWNERS}
    with steps_made(con, once, " ".join(once)):
        yield
    con.execute("".join(f"DROP VIEW {name};" for name in OF_PARTITIONS))


def _of_share(con: duckdb.DuckDBPyConnection, share: int, shares: int) -> Iterator[pa.Table]:
    """What rows of one share of the partitions get, in pieces. Raises TooManyBytes."""
    _look_at(con, f" WHERE {PARTITION} % {shares} = {share}" if shares > 1 else "")
    try:
        made = commits_context(con)
    except TooManyBytes:
        if shares >= MOST_PARTS:
            raise
        for part in range(PARTS):
            yield from _of_share(con, share + part * shares, shares * PARTS)
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
