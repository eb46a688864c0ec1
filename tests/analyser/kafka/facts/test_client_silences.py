"""Clients that stood still, and went on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.kafka_silence import still
from tests.support.rows import Rows, connection_from_rows
from wirewitness.analyser.kafka.facts.client_silences import add_silences
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

COLUMNS = "client_id, silences, round(longest_ms / 1000), round(total_ms / 1000), round(usual_beat_ms)"


def made(rows: Rows) -> list[tuple[Any, ...]]:
    con = connection_from_rows(rows)
    con.execute("SET TimeZone = 'UTC'")
    add_silences(con)
    shape = con.sql("FROM kafka_client_silences").to_arrow_table().schema
    assert shape.names == [*TABLES["kafka_client_silences"].column_names()]
    assert shape.types == arrow_schema("kafka_client_silences").types
    found = con.sql(f"SELECT {COLUMNS} FROM kafka_client_silences").fetchall()
    con.close()
    return found


def test_silences_are_counted_and_added_up() -> None:
    assert made(still(6, 4)) == [("billing-1", 6, 4.0, 25.0, 1000.0)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(still(2, 4), id="two"),
        pytest.param(still(6, 4, others=False), id="everybody"),
        pytest.param(still(6, 4, beats_on=True), id="heartbeats go on"),
        pytest.param(still(6, 4, waits=True), id="it waits for a response"),
        pytest.param({}, id="nothing"),
    ],
)
def test_who_does_not_stand_still(rows: Rows) -> None:
    assert made(rows) == []
