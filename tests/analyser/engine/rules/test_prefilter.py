"""Partitions that a rule suspects: a table for its other statements, however many they are."""

from __future__ import annotations

import duckdb
import pytest

from tests.analyser.engine.rules.scenarios.build import commit
from tests.support.rows import connection_from_rows
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.partition_sql import ALL_BUCKETS, suspected_from, suspects_sql
from wirewitness.analyser.engine.rules.prefilter import NOBODY, suspected
from wirewitness.analyser.engine.rules.running import run

BY_SUSPECTS = [one for one in RULES.values() if one.suspects is not None]
TOPICS = ["a", "b", None]


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    rows = [commit(n, n, topic=topic, member_id=f"m-{n % 2}") for n in range(6) for topic in TOPICS]
    return connection_from_rows({"kafka_offset_commits": rows})


@pytest.mark.parametrize("most", [1, 3, 100])
def test_their_keys_are_in_a_table_until_it_is_left(con: duckdb.DuckDBPyConnection, most: int) -> None:
    rule = RULES["KAF101"]
    expected = sorted(con.execute(suspects_sql(rule)).fetchall(), key=str)
    with suspected(con, rule, ALL_BUCKETS, most) as name:
        found = con.execute(f"FROM {name}")
        assert [column[0] for column in found.description or ()] == list(rule.partition_by)
        assert sorted(found.fetchall(), key=str) == expected
    assert len(expected) == len(TOPICS)
    with pytest.raises(duckdb.CatalogException):
        con.execute(f"FROM {name}")


def test_nobody_and_everybody(con: duckdb.DuckDBPyConnection) -> None:
    with suspected(con, RULES["KAF105"], ALL_BUCKETS) as name:
        assert name == NOBODY
    with suspected(con, RULES["CAP101"], ALL_BUCKETS) as name:
        assert name is None


def test_without_rows_in_the_tables_that_tell_of_them_there_are_none() -> None:
    """So such rules need not be asked."""
    empty = connection_from_rows({})
    for rule in BY_SUSPECTS:
        assert suspected_from(rule), rule.code
        assert empty.execute(suspects_sql(rule)).fetchall() == [], rule.code


@pytest.mark.parametrize("known", [{}, {"kafka_offset_commits": 18}, {"kafka_offset_commits": 0}])
def test_tables_that_are_known_to_be_empty_are_not_asked(con: duckdb.DuckDBPyConnection, known: dict[str, int]) -> None:
    found = run(con, [RULES["KAF101"]], rows=known)
    assert len(found) == (0 if known.get("kafka_offset_commits") == 0 else len(TOPICS))
