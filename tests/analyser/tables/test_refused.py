"""What DuckDB never gets to read, and what it has to read however odd it looks."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from wirewitness.analyser.tables.queries import QueryError, answer, columns_in, select
from wirewitness.analyser.tables.refused import MOST_NESTED, why_refused

N = MOST_NESTED


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("select " + "(" * N + "1" + ")" * N, id="as deep as may be"),
        pytest.param("select " + "(1) + " * 900 + "1", id="many one after the other"),
        pytest.param("select '" + "(" * 500 + "'", id="in a text"),
        pytest.param("select $$" + "(" * 500 + "$$", id="in a text between dollars"),
        pytest.param('select 1 as "' + "(" * 500 + '"', id="in a name"),
        pytest.param("select 1 /* /* */" + "(" * 500 + "*/", id="in a comment"),
        pytest.param("select 1 --" + "(" * 500, id="in a comment at the end"),
        pytest.param("select " + ",".join([".5"] * 500), id="numbers that begin with a dot"),
        pytest.param("select " + ",".join(["t.a"] * 500) + " from (select 1 as a) as t", id="many paths"),
        pytest.param("select " + "- " * N + "1", id="signs in a row"),
        pytest.param("select " + "-1," * 500 + "1 + -1", id="signs of many numbers"),
        pytest.param("select '" + ".a" * 500 + "'", id="a path in a text"),
    ],
)
def test_what_is_answered(sql: str) -> None:
    assert why_refused(sql) is None
    with duckdb.connect() as connection:
        assert answer(connection, sql).num_rows == 1


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        pytest.param("(" * (N + 1) + "1" + ")" * (N + 1), f"{N + 1} brackets", id="brackets"),
        pytest.param("select * from (" + "(" * 1_000 + "1" + ")" * 1_000 + ")", "1,001 brackets", id="of a condition"),
        pytest.param("select * from t where a in " + "(" * 3_000, "3,000 brackets", id="that nobody closes"),
        pytest.param("select " + "([{'a':" * N, "300 brackets", id="of all kinds"),
        pytest.param(")" * 5_000 + "(" * (N + 1), f"{N + 1} brackets", id="closed before"),
        pytest.param(
            "select 'é', 'é" + "(" * N + "'," + "(" * (N + 1), f"{N + 1} brackets", id="behind wide characters"
        ),
        pytest.param("select " + "- " * (N + 1) + ")", f"{N + 1} signs", id="signs"),
        pytest.param("select " + "-/**/+\n" * N + ")", f"{2 * N} signs", id="signs with comments"),
        pytest.param("select a" + ".a" * N, f"{N + 1} names", id="names"),
        pytest.param("select a" + '/* . */ . "é"' * N, f"{N + 1} names", id="names in quotes, with comments"),
        pytest.param("select '\ud800'", "no text in UTF-8", id="half a character"),
    ],
)
@pytest.mark.parametrize("ask", [select, answer, lambda _, sql: columns_in(sql)], ids=["select", "answer", "bind"])
def test_what_is_refused_before_it_is_parsed(sql: str, said: str, ask: Any) -> None:
    with duckdb.connect() as connection, pytest.raises(QueryError, match=said):
        ask(connection, sql)


def test_a_refusal_is_one_short_sentence() -> None:
    assert len(why_refused("(" * 1_000_000) or "") < 100
