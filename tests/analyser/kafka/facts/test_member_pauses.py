"""Pauses of members: rows of commits, heartbeats and fetches, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, commit
from tests.analyser.engine.rules.scenarios.build_offsets import paused
from tests.support.rows import connection_from_rows
from wirewitness.analyser.kafka.facts.member_pauses import add_pauses
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

SHOWN = ("member_id", "topic", "partition", "committed_offset", "partitions", "heartbeats", "records_in_hand")


def with_partition(rows: dict[str, list[Row]], ends: int) -> dict[str, list[Row]]:
    """Partition 1 beside it, in the same requests; its offset moves until a second."""
    other = [row | {"partition": 1, "committed_offset": min(row["committed_offset"], ends)} for row in _commits(rows)]
    return rows | {"kafka_offset_commits": [*_commits(rows), *other]}


def _commits(rows: dict[str, list[Row]]) -> list[Row]:
    return rows["kafka_offset_commits"]


CASES = [
    pytest.param(paused(15, 33), [("m1", "payments", 0, 150, 1, 18, 10)], id="one partition"),
    pytest.param(
        with_partition(paused(15, 33), 100), [("m1", "payments", 0, 150, 2, 18, 10)], id="one of two goes on",
    ),
    pytest.param(
        with_partition(paused(15, 33), 10_000), [("m1", None, None, None, 2, 18, 10)], id="both go on at once",
    ),
    pytest.param(
        {**paused(15, 33), "kafka_offset_commits": [commit(n, n * 10) for n in (1, 2, 3, 33)]}, [],
        id="too few commits to say what is usual",
    ),
    pytest.param(paused(15, 33, given=False), [], id="nothing in hand"),
    pytest.param(
        {name: rows for name, rows in paused(15, 33).items() if name != "kafka_fetch_partitions"}, [],
        id="its fetches are not in the capture",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), CASES)
def test_member_pauses(rows: dict[str, list[Row]], expected: list[tuple[Any, ...]]) -> None:
    con = connection_from_rows(rows)
    add_pauses(con)
    con.execute("SET TimeZone = 'UTC'")
    shape = con.sql("FROM kafka_member_pauses").to_arrow_table().schema
    assert shape.names == [*TABLES["kafka_member_pauses"].column_names()]
    assert shape.types == arrow_schema("kafka_member_pauses").types
    assert con.sql(f"SELECT {', '.join(SHOWN)} FROM kafka_member_pauses").fetchall() == expected
    con.close()
