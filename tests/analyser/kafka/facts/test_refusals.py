"""What brokers refused for good: rows of responses, and what they tell."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import Row, at, exchange
from tests.support.rows import connection_from_rows
from wirewitness.analyser.kafka.facts.refusals import add_refusals
from wirewitness.analyser.tables.tables import TABLES, arrow_schema
from wirewitness.dissectors.kafka.error_classes import NEVER, error_class
from wirewitness.dissectors.kafka.error_codes import ERROR_NAMES

SHOWN = ("operation", "resource_type", "resource", "error_code", "refusals", "epoch_ns(ts_succeeded)")
CLIENT = {"cluster_id": "c1", "client_id": "shop", "client_address": "10.1.0.7"}


def asked(seconds: float, operation: str, code: int = 0, **more: Any) -> Row:
    status = "error" if code else "ok"
    return exchange("k0", seconds, operation, **{
        **CLIENT, "protocol": "kafka", "status": status, "error_code": code, **more,
    })  # fmt: skip


def told(seconds: float, code: int = 0, **more: Any) -> Row:
    """A row of what the exchange of that time responded."""
    sent = asked(seconds, "?", code)
    names = ("exchange_id", "flow_id", "ts", *CLIENT)
    return {**{name: sent[name] for name in names}, "error_code": code, **more}


CASES = [
    pytest.param(
        {"exchanges": [asked(1, "ConsumerGroupHeartbeat", 69), asked(2, "Heartbeat", 69)]},
        [("ConsumerGroupHeartbeat", None, None, 69, 1, None)], id="the group has another protocol",
    ),
    pytest.param(
        {"exchanges": [asked(1, "ConsumerGroupHeartbeat"), asked(2, "ConsumerGroupHeartbeat", 69)]}, [],
        id="a group that ended",
    ),
    pytest.param(
        {"exchanges": [asked(1, "FindCoordinator", 30), asked(2, "FindCoordinator", 30)]},
        [("FindCoordinator", None, None, 30, 2, None)], id="no resource in the response",
    ),
    pytest.param(
        {"exchanges": [asked(1, "FindCoordinator", 30), asked(2, "FindCoordinator")]},
        [("FindCoordinator", None, None, 30, 1, at(2))], id="it was given later",
    ),
    pytest.param(
        {"exchanges": [asked(1, "FindCoordinator", 30), asked(2, "FindCoordinator", client_id="other")]},
        [("FindCoordinator", None, None, 30, 1, None)], id="success of another client",
    ),
    pytest.param(
        {
            "exchanges": [asked(0, "Metadata"), asked(1, "Metadata", 29), asked(2, "Metadata")],
            "kafka_partitions": [
                told(0, topic="a"), told(1, 29, topic="b"), told(2, topic="a"),
            ],
        },
        [("Metadata", "topic", "b", 29, 1, None)], id="another topic may be seen",
    ),
    pytest.param(
        {
            "exchanges": [asked(1, "Fetch", 29), asked(2, "Fetch")],
            "kafka_fetch_partitions": [told(1, 29, topic=None, topic_id="t1"), told(2, topic=None, topic_id="t1")],
        },
        [("Fetch", "topic", "t1", 29, 1, at(2))], id="a topic known by its id",
    ),
    pytest.param(
        {
            "exchanges": [asked(1, "InitProducerId", 50)],
            "kafka_transactions": [told(1, 50, transactional_id="pay", event="init_producer_id")],
        },
        [("InitProducerId", "transactional id", "pay", 50, 1, None)], id="a timeout that is too long",
    ),
    pytest.param({"exchanges": [asked(1, "Fetch", 6), asked(1.5, "JoinGroup", 79)]}, [], id="errors that heal"),
    pytest.param({"exchanges": [asked(1, "CreateTopics", 44)]}, [], id="admin requests"),
    pytest.param({"exchanges": [asked(1, "Heartbeat")]}, [], id="nothing refused"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), CASES)
def test_refusals(rows: dict[str, list[Row]], expected: list[tuple[Any, ...]]) -> None:
    con = connection_from_rows(rows)
    add_refusals(con)
    con.execute("SET TimeZone = 'UTC'")
    shape = con.sql("FROM kafka_refusals").to_arrow_table().schema
    assert shape.names == [*TABLES["kafka_refusals"].column_names()]
    assert shape.types == arrow_schema("kafka_refusals").types
    assert con.sql(f"SELECT {', '.join(SHOWN)} FROM kafka_refusals ORDER BY ts").fetchall() == expected
    con.close()


def test_every_error_that_stays_says_why_and_what_to_do() -> None:
    for code in NEVER:
        assert code in ERROR_NAMES
        assert error_class(code).meaning
        assert error_class(code).next_step


@pytest.mark.parametrize(
    ("code", "api", "heals"),
    [(29, "Fetch", "never"), (7, "Produce", "retry"), (79, None, "itself"), (0x7FFF, None, "retry")],
)
def test_classes(code: int, api: str | None, heals: str) -> None:
    assert error_class(code, api).heals == heals
