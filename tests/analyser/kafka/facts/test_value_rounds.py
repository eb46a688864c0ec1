"""Values that come back to the topic where they were."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.kafka_producers import from_another_topic, retried, round_trip
from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.kafka.facts.value_rounds import add_rounds

COLUMNS = "client_id, from_topic, topic, values_count, rounds_most, other_records_read, from_records_read"


def made(rows: Rows) -> list[tuple[Any, ...]]:
    con = connection_from_rows(rows)
    add_rounds(con)
    found = con.sql(f"SELECT {COLUMNS} FROM kafka_value_rounds ORDER BY topic").fetchall()
    con.close()
    return found


def test_a_ring_of_one_topic_and_of_two() -> None:
    assert made(round_trip("orders")) == [("copier-0", "orders", "orders", 1, 29, 0, 29)]
    assert made(round_trip("a", "b")) == [
        ("copier-0", "b", "a", 1, 29, 0, 29),
        ("copier-1", "a", "b", 1, 30, 0, 30),
    ]


def test_what_is_read_from_other_topics_is_counted() -> None:
    assert made(from_another_topic()) == [("copier-0", "counts", "counts", 1, 29, 30, 29)]


def test_what_is_read_there_in_all_is_counted() -> None:
    assert made(retried(60)) == [
        ("copier-0", "orders.retry", "orders", 1, 29, 0, 29),
        ("copier-1", "orders", "orders.retry", 1, 30, 0, 90),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(round_trip("a", "b", "c", reads=False), id="copied on from where it is written anew"),
        pytest.param(round_trip("a", rounds=20), id="nineteen rounds"),
        pytest.param({"kafka_produce_batches": round_trip("a")["kafka_produce_batches"]}, id="nobody reads"),
    ],
)
def test_what_goes_nowhere_round(rows: Rows) -> None:
    assert made(rows) == []
