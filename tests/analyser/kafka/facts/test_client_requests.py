"""Requests of clients, counted: rows of exchanges, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, exchange
from tests.analyser.engine.rules.scenarios.kafka_connections import joins, requests
from tests.support.rows import connection_from_rows
from wirewitness.analyser.kafka.facts.client_requests import add_client_requests
from wirewitness.analyser.tables.tables import TABLES, arrow_schema

SHOWN = ("client_id", "operation", "requests", "succeeded", "errors", "connections", "without_effect")
CASES = [
    pytest.param(
        {"exchanges": requests(Fetch=3)}, [("shop", "Fetch", 3, 3, 0, 1, None)], id="one API",
    ),
    pytest.param(
        {"exchanges": [row | {"status": "error"} for row in requests(Fetch=2)] + requests(Metadata=1)},
        [("shop", "Fetch", 2, 0, 2, 1, None), ("shop", "Metadata", 1, 1, 0, 1, None)], id="errors",
    ),
    pytest.param(
        {"exchanges": [row | {"client_id": None, "flow_id": f"f{n}"} for n, row in enumerate(requests(Fetch=2))]},
        [(None, "Fetch", 2, 2, 0, 2, None)], id="without a client id",
    ),
    pytest.param(
        {"exchanges": requests(JoinGroup=4), "kafka_group_events": joins(4)},
        [("shop", "JoinGroup", 4, 4, 0, 1, 3)], id="the first of them had an effect",
    ),
    pytest.param(
        {"exchanges": requests(JoinGroup=4),
         "kafka_group_events": [row | {"generation": n} for n, row in enumerate(joins(4))]},
        [("shop", "JoinGroup", 4, 4, 0, 1, 0)], id="a generation each",
    ),
    pytest.param(
        {"exchanges": requests(JoinGroup=5), "kafka_group_events": joins(5, error_code=79, generation=-1)},
        [("shop", "JoinGroup", 5, 5, 0, 1, 3)], id="two refusals belong to a start",
    ),
    pytest.param({"exchanges": [row | {"protocol": "mqtt"} for row in requests(CONNECT=1)]}, [], id="no Kafka"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), CASES)
def test_client_requests(rows: dict[str, list[Row]], expected: list[tuple[Any, ...]]) -> None:
    con = connection_from_rows(rows)
    add_client_requests(con)
    con.execute("SET TimeZone = 'UTC'")
    shape = con.sql("FROM kafka_client_requests").to_arrow_table().schema
    assert shape.names == [*TABLES["kafka_client_requests"].column_names()]
    assert shape.types == arrow_schema("kafka_client_requests").types
    assert con.sql(f"SELECT {', '.join(SHOWN)} FROM kafka_client_requests ORDER BY operation").fetchall() == expected
    con.close()


def test_gaps_of_produce_are_those_of_one_client() -> None:
    sent = [row for other in ("shop", "other") for row in paced(other, 0, 1, 2, 5)]
    con = connection_from_rows({"exchanges": [*sent, *requests(Fetch=3)]})
    add_client_requests(con)
    rows = con.sql("SELECT client_id, operation, longest_gap_ms FROM kafka_client_requests ORDER BY ALL")
    assert rows.fetchall() == [
        ("other", "Produce", 3000.0), ("shop", "Fetch", None), ("shop", "Produce", 3000.0),
    ]  # fmt: skip
    con.close()


def paced(client: str, *seconds: float) -> list[Row]:
    """Produce requests of a client at these seconds."""
    return [
        exchange(client, second, protocol="kafka", cluster_id="c1", client_address="10.1.0.7", client_id=client)
        for second in seconds
    ]
