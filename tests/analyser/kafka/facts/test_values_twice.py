"""Values that are in a topic twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.kafka_topics import copies, values
from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.kafka.facts.values_twice import add_values_twice
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

COLUMNS = "client_id, again_client_id, topic, from_topic, values_count, batches_count, records_count"


def made(rows: Rows) -> list[tuple[Any, ...]]:
    con = connection_from_rows(rows)
    con.execute("SET TimeZone = 'UTC'")
    add_values_twice(con)
    shape = con.sql("FROM kafka_values_twice").to_arrow_table().schema
    assert shape.names == [*TABLES["kafka_values_twice"].column_names()]
    assert shape.types == arrow_schema("kafka_values_twice").types
    found = con.sql(f"SELECT {COLUMNS} FROM kafka_values_twice ORDER BY topic").fetchall()
    con.close()
    return found


def test_a_run_that_is_done_again() -> None:
    rows = {"kafka_produce_batches": values(0, 50, 1) + values(0, 50, 10)}
    assert made(rows) == [("copier-1", "copier-1", "copies", None, 50, 100, 1000)]


def test_two_clients_that_read_one_topic() -> None:
    assert made(copies(55)) == [("copier-1", "copier-2", "copies", "orders", 55, 60, 1100)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param({"kafka_produce_batches": values(0, 50, 1) + values(0, 80, 10)}, id="another number of values"),
        pytest.param({"kafka_produce_batches": values(0, 50, 1) + values(0, 50, 3)}, id="both at the same time"),
        pytest.param(copies(55, reads=False), id="one of them reads nothing"),
        pytest.param(copies(40), id="two thirds are the same"),
        pytest.param({"kafka_produce_batches": values(0, 50, 1)}, id="once"),
    ],
)
def test_what_is_not_there_twice(rows: Rows) -> None:
    assert made(rows) == []
