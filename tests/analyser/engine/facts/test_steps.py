"""Steps of SQL: each table is there as long as something reads it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from wirewitness.analyser.engine.facts.limits import MOST_PRODUCT_ROWS, noting
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables, steps_made
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.mqtt.facts.clients_stage import MADE
from wirewitness.analyser.tables.queries import null_columns

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


@pytest.mark.parametrize(
    ("rows", "is_product", "kept", "told"),
    [
        pytest.param(MOST_PRODUCT_ROWS, True, MOST_PRODUCT_ROWS, [], id="a product below the limit"),
        pytest.param(MOST_PRODUCT_ROWS + 1, True, MOST_PRODUCT_ROWS, ["mongo_conflicts"], id="one beyond it"),
        pytest.param(MOST_PRODUCT_ROWS + 1, False, MOST_PRODUCT_ROWS + 1, [], id="no product"),
    ],
)
def test_a_product_has_its_first_rows(
    con: duckdb.DuckDBPyConnection, rows: int, is_product: bool, kept: int, told: list[str]
) -> None:
    query = f"SELECT {null_columns('mongo_conflicts')} FROM many"
    noted: list[str] = []
    with noting(noted):
        made = Made("true", {"many": f"FROM range({rows})"}, query, is_product=is_product)
        make_wanted_tables(con, {"mongo_conflicts": made}, ())
    assert con.execute("SELECT count(*) FROM mongo_conflicts").fetchall() == [(kept,)]
    assert noted == told


@pytest.mark.parametrize(("rows", "behind"), [(0, "FROM nowhere"), (3, "FROM few")])
def test_behind_a_step_without_rows_nothing_is_planned(con: duckdb.DuckDBPyConnection, rows: int, behind: str) -> None:
    query = f"SELECT {null_columns('mongo_conflicts')} FROM behind, shared"
    steps = {"shared": "SELECT 1 AS one", "few": f"FROM range({rows})", "behind": behind}
    others = f"SELECT {null_columns('mongo_overwritten')} FROM shared"
    made = {
        "mongo_conflicts": Made("true", steps, query, of="few"),
        "mongo_overwritten": Made("true", {"shared": steps["shared"]}, others),
    }
    make_wanted_tables(con, made, ())
    assert con.execute("SELECT count(*) FROM mongo_conflicts").fetchall() == [(rows,)]
    assert con.execute("SELECT count(*) FROM mongo_overwritten").fetchall() == [(1,)]
    assert views(con) & steps.keys() == set()


def test_a_table_comes_of_steps_of_its_own() -> None:
    made = [one for one in MADE.values() if one.of]
    assert made
    assert [one.of for one in made if not {*one.of.split()} <= one.steps.keys()] == []
