"""The context columns of commits and fetches.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_offset_commits` and `kafka_fetch_partitions` replaced by ones whose context columns are filled in. Rows that the
caller holds are never joined for that: they get other columns (`added.py`).

Everything is a join in DuckDB (`commit_steps.py`), as of the time of the row, for some partitions at a time where there
are many rows: what cannot spill would grow with them. Times are compared as Unix ns. An unknown cluster is a cluster of
its own (''), never a wildcard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from analyser.context.added import numbered, with_columns
from analyser.context.commit_steps import (
    ADDED,
    COMMITS,
    CONTEXT,
    FETCHES,
    FETCHES_SQL,
    GROUPS,
    MAKE_CLIENTS,
    NO_OWNERS,
    OF_PARTITIONS,
    ONCE,
    READS,
    STEPS,
)
from analyser.context.shares import Dealer, MakeShare, dealt, pieces_in, shares_of
from analyser.context.stage import NOTHING, PARTITION, Held
from analyser.context.steps import steps_made
from analyser.context.topics import has_rows, views
from analyser.registry.coded import BATCH_ROWS, coded_table
from analyser.registry.queries import keep, keep_more, name_list, null_columns

# The steps for so many rows of commits and fetches take some 100 MiB.
STEP_ROWS = 1 << 18
# So many rows get their columns at a time: to join to all of them at once takes more memory than DuckDB can spill.
ROWS_AT_A_TIME = 1 << 18


def enrich(con: duckdb.DuckDBPyConnection, held: Held = NOTHING, dealer: Dealer | None = None, memory: int = 1) -> Held:
    """Replace the views of commits and fetches by enriched ones; other tables may be missing. Call it once.

    held: those of both whose rows are known. They are given back with their new columns, all else as it is, and the
    caller makes their views. dealer: of work on them to several processes. memory: so many times what `analyse` has,
    for rows that nobody holds: each share of them reads all fetches.
    """
    there = _all_set_aside(con)
    made: dict[str, pa.Table | Path] = {}
    if not has_rows(con, f"in_{COMMITS}"):
        con.execute(f"CREATE TEMP VIEW context_base AS FROM in_{COMMITS}")
        con.execute(MAKE_CLIENTS)
        commits = "FROM context_base"
    elif COMMITS in held:
        with numbered(con, "context_commits", held[COMMITS]), _added(con, STEP_ROWS, held, dealer) as added:
            queries = [_in_order(added, some) for some in _some_at_a_time(con, "context_commits")]
            made[COMMITS] = with_columns(con, held[COMMITS], queries)
    else:
        commits = _of_commits(con, memory * STEP_ROWS)
    if COMMITS in there and COMMITS not in made:
        con.execute(f"CREATE TEMP VIEW {COMMITS} AS {commits}")
    if FETCHES in held:
        with numbered(con, "context_fetches", held[FETCHES]):
            queries = [GROUPS.format(some=some) for some in _some_at_a_time(con, "context_fetches")]
            made[FETCHES] = with_columns(con, held[FETCHES], queries)
    elif FETCHES in there:
        con.execute(f"CREATE TEMP VIEW {FETCHES} AS {FETCHES_SQL}")
    for table in made:  # else it would name what nobody holds any more
        con.execute(f"DROP VIEW in_{table}")
    return made


@contextmanager
def _added(
    con: duckdb.DuckDBPyConnection, step_rows: int, held: Held = NOTHING, dealer: Dealer | None = None
) -> Iterator[str]:
    """A SELECT of what rows of `context_commits` get, with their `row`, until the block ends.

    `context_clients` stays: fetches are told by it, too.
    """
    shares = shares_of(_rows(con), step_rows, dealer)
    numbers = dealt(dealer, "enrich.commits_of_share", READS, held, shares)
    with _made_once(con):
        if shares == 1:
            with steps_made(con, STEPS, ADDED):
                yield ADDED
            return
        names = [_of_share(con, share, shares, made) for share, made in numbers]
        yield " UNION ALL ".join(f"FROM {name}" for name in names)
        con.execute("".join(f"DROP TABLE {name};" for name in names))


@contextmanager
def commits_of_share(con: duckdb.DuckDBPyConnection, held: Held) -> Iterator[MakeShare]:
    """What makes the rows of `ADDED` for another process; see `shares.py`."""

    def made(share: int, shares: int) -> Iterator[pa.Table]:
        _look_at(con, _partitions(share, shares))
        with steps_made(con, STEPS, ADDED):
            yield coded_table(con.sql(ADDED).to_arrow_reader(BATCH_ROWS))

    _all_set_aside(con)
    with numbered(con, "context_commits", held[COMMITS]), _made_once(con):
        yield made


@contextmanager
def _made_once(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """What the steps of all partitions read, until the block ends; `context_clients` stays."""
    _look_at(con)
    con.execute(MAKE_CLIENTS)
    once = ONCE if has_rows(con, "in_kafka_assignments") else {**ONCE, "context_owned": NO_OWNERS}
    with steps_made(con, once, " ".join(once)):
        yield
    con.execute("".join(f"DROP VIEW {name};" for name in OF_PARTITIONS))


def _of_share(con: duckdb.DuckDBPyConnection, share: int, shares: int, made: Path | None) -> str:
    """The name of a table with what rows of one share of the partitions get. made: by another process."""
    if made is not None:
        return _kept(con, made)
    _look_at(con, _partitions(share, shares))
    with steps_made(con, STEPS, ADDED):
        return keep(con, "commits_context", ADDED)


def _kept(con: duckdb.DuckDBPyConnection, made: Path) -> str:
    con.register("context_made", pa.concat_tables(pieces_in(made)))
    name = keep(con, "commits_context", "FROM context_made")
    con.unregister("context_made")
    return name


def _partitions(share: int, shares: int) -> str:
    return f" WHERE {PARTITION} % {shares} = {share}"


def _look_at(con: duckdb.DuckDBPyConnection, where: str = "") -> None:
    """Let the steps see these rows."""
    for name, whole in OF_PARTITIONS.items():
        con.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS FROM {whole}{where}")


def _rows(con: duckdb.DuckDBPyConnection) -> int:
    """How many the steps look at."""
    query = f"SELECT (SELECT count(*) FROM context_commits) + (SELECT count(*) FROM in_{FETCHES})"
    rows: int = con.execute(query).fetchall()[0][0]
    return rows


def _some_at_a_time(con: duckdb.DuckDBPyConnection, rows: str) -> list[str]:
    """Conditions for the rows of a view, together all of them."""
    (count,) = con.execute(f"SELECT count(*) FROM {rows}").fetchall()[0]
    starts = range(0, max(count, 1), ROWS_AT_A_TIME)
    return [f"row >= {start} AND row < {start + ROWS_AT_A_TIME}" for start in starts]


def _in_order(added: str, some: str) -> str:
    """What rows of `context_commits` get, a row for each in their order. added: of `_added`. some: a condition."""
    return f"""
        SELECT {name_list(CONTEXT)} FROM (SELECT row FROM context_commits WHERE {some}) AS base
        LEFT JOIN (FROM ({added}) WHERE {some}) AS added USING (row) ORDER BY row"""


def _of_commits(con: duckdb.DuckDBPyConnection, step_rows: int) -> str:
    """A SELECT of the commits with their context.

    Whole rows stand in a table that spills as it is: to compress them takes longer than all steps.
    """
    rows = "commits_as_decoded"
    con.execute(f"CREATE TEMP TABLE {rows} AS FROM in_{COMMITS}")
    con.execute(f"CREATE TEMP VIEW context_commits AS SELECT rowid AS row, * FROM {rows}")
    with _added(con, step_rows) as columns:
        first, *others = _some_at_a_time(con, "context_commits")
        added = keep(con, "commits_context", _in_order(columns, first))
        for some in others:
            keep_more(con, added, _in_order(columns, some))
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
