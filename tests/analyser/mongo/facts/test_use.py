"""What applications do and what comes of it: commands, and the rows of the tables that are made of them."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.build_mongo import awaited, command, failed, opened
from tests.analyser.engine.rules.scenarios.mongo_use import held, inserts, many, rises, same, updates, written_back
from tests.support.rows import connection_from_rows
from wirewitness.analyser.engine.facts.stage import MONGO_USE
from wirewitness.analyser.mongo.facts.stage import add_mongo_facts
from wirewitness.analyser.mongo.facts.use import add_mongo_use
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

_UPSERT = '{"updates":[{"q":{"_id":"?number"},"u":{"$set":{"x":"?number"}},"upsert":true}]}'


def made(rows: list[Row]) -> duckdb.DuckDBPyConnection:
    con = connection_from_rows({"mongo_commands": rows})
    add_mongo_facts(con)
    add_mongo_use(con)
    return con


@pytest.mark.parametrize("table", MONGO_USE.makes)
@pytest.mark.parametrize("rows", [[], held(1, 2) + rises(40, 1, 9) + written_back(2)], ids=("nothing", "some"))
def test_tables_have_their_columns(table: str, rows: list[Row]) -> None:
    con = made(rows)
    schema = con.sql(f"FROM {table}").to_arrow_table().schema
    assert schema.names == [*TABLES[table].column_names()]
    if rows:
        con.execute("SET TimeZone = 'UTC'")
        assert con.sql(f"FROM {table}").to_arrow_table().schema.types == arrow_schema(table).types
        assert con.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0] > 0
    con.close()


SHOWN = ("commands", "succeeded", "errors", "without_effect", "unmatched", "same", "untried", "sessions", "connections")
COMMANDS = [
    pytest.param(many(3), (3, 3, 0, 0, 0, 1, 0, 0, 1), id="finds"),
    pytest.param(same(4), (4, 4, 0, 0, 0, 4, 0, 0, 1), id="the same four times"),
    pytest.param([failed(1, 13), command(2)], (2, 1, 1, 0, 0, 1, 0, 0, 1), id="one is refused"),
    pytest.param([command(1, documents_returned=0, cursor_exhausted=True)], (1, 1, 0, 1, 0, 1, 0, 0, 1), id="empty"),
    pytest.param([opened(1, documents_returned=0)], (1, 1, 0, 0, 0, 1, 0, 0, 1), id="a first batch without documents"),
    pytest.param(updates(2), (2, 2, 0, 2, 2, 1, 0, 0, 1), id="updates that match nothing"),
    pytest.param(updates(2, n=1), (2, 2, 0, 2, 0, 1, 0, 0, 1), id="updates that change nothing"),
    pytest.param(updates(2, n=1, n_modified=1), (2, 2, 0, 0, 0, 1, 0, 0, 1), id="updates that change something"),
    pytest.param(updates(2, n=1, shape=_UPSERT), (2, 2, 0, 0, 0, 1, 0, 0, 1), id="upserts that find their document"),
    pytest.param(updates(2, n=1, upserted=1), (2, 2, 0, 0, 0, 1, 0, 0, 1), id="upserts that insert it"),
    pytest.param(inserts(2, documents_sent=5, n=2, write_errors=1), (2, 2, 0, 0, 0, 0, 4, 0, 1), id="two not tried"),
    pytest.param(
        [command(1, lsid="a"), command(2, lsid="b", flow="b")], (2, 2, 0, 0, 0, 2, 0, 2, 2), id="two sessions",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), COMMANDS)
def test_what_came_of_commands(rows: list[Row], expected: tuple[Any, ...]) -> None:
    con = made([*rows, awaited(1), command(1, "find", tailable=True, shape_id="t")])
    assert con.sql(f"SELECT {', '.join(SHOWN)} FROM mongo_client_commands").fetchall() == [expected]
    con.close()


TRENDS = [
    pytest.param(rises(40, 2, 40), {("latency", "time")}, id="latency"),
    pytest.param(rises(40, 900, 9_000, "response_bytes"), {("reply", "time")}, id="replies"),
    pytest.param(
        [row | {"skip": 5 * n} for n, row in enumerate(rises(40, 2, 40))], {("latency", "time"), ("latency", "skip")},
        id="latency with skip",
    ),
    pytest.param(rises(31, 2, 40), set(), id="too few"),
    pytest.param(rises(40, 9, 9), set(), id="even"),
    pytest.param(rises(40, 40, 2), set(), id="it falls"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), TRENDS)
def test_what_rises(rows: list[Row], expected: set[tuple[str, str]]) -> None:
    con = made(rows)
    assert {*con.sql("SELECT measure, along FROM mongo_trends").fetchall()} == expected
    con.close()


def test_documents_that_were_inserted_while_it_rose_are_counted() -> None:
    con = made([*rises(40, 2, 40), *inserts(30, 0.1, flow="b"), *inserts(9, flow="c", collection="other")])
    assert con.sql("SELECT DISTINCT inserted FROM mongo_trends").fetchall() == [(30,)]
    con.close()


def conflicts(*rows: Row) -> list[tuple[Any, ...]]:
    con = made([*rows])
    found = con.sql(
        "SELECT app_name, kind, same, holder_app_name, holder_lsid, holder_outcome FROM mongo_conflicts"
    ).fetchall()
    con.close()
    return found


def test_the_holder_of_a_document_is_named() -> None:
    assert conflicts(*held(1, 1)) == [("stock", "refused", "document", "billing", "s1", "committed")]
    assert conflicts(*held(1, 1, document_ids=[8])) == []
    assert conflicts(*held(1, 1, document_ids=None)) == [
        ("stock", "refused", "collection", "billing", "s1", "committed")
    ]


def test_a_write_that_goes_on_when_the_transaction_ends_has_waited_for_it() -> None:
    late = {"document_ids": [7], "n": 1, "flow": "b", "app_name": "stock"}
    assert conflicts(*held(1, 0), command(1.5, "update", 520, **late))[0][:3] == ("stock", "waited", "document")
    assert conflicts(*held(1, 0), command(1.5, "update", 200, **late)) == []
    assert conflicts(*held(1, 0), command(3, "update", 520, **late)) == []


def test_what_was_written_between_a_read_and_its_write_is_lost() -> None:
    con = made(written_back(2))
    found = con.sql("SELECT app_name, lost_app_name, document_id FROM mongo_overwritten").fetchall()
    assert found == [("stock", "billing", 7)] * 2
    con.close()
