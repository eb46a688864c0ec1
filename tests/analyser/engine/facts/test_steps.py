"""Steps of SQL: each table is there as long as something reads it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import views

STEPS = {
    "numbers": "FROM range(4) AS made(number)",
    "even": "SELECT number FROM numbers WHERE number % 2 = 0",
    "unread": "SELECT 1 AS one",
    "sums": "SELECT sum(number) AS total FROM even",
}


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        yield connection


def _tables(con: duckdb.DuckDBPyConnection) -> set[str]:
    return views(con) & STEPS.keys()


def test_what_nothing_reads_any_more_is_gone(con: duckdb.DuckDBPyConnection) -> None:
    with steps_made(con, STEPS, "SELECT total FROM sums"):
        assert _tables(con) == {"sums"}
        assert con.sql("SELECT total FROM sums").fetchall() == [(2,)]
    assert _tables(con) == set()


def test_what_the_query_reads_stays(con: duckdb.DuckDBPyConnection) -> None:
    with steps_made(con, STEPS, "FROM sums, numbers"):
        assert _tables(con) == {"sums", "numbers"}


def test_nothing_stays_where_a_step_fails(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error), steps_made(con, {**STEPS, "broken": "FROM nowhere"}, "FROM broken, numbers"):
        pass
    assert _tables(con) == set()
