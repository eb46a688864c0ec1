"""The MQTT and MongoDB sections: what they count, and that they stay away where nothing is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.analyser.engine.rules.scenarios.build import at
from tests.analyser.engine.rules.scenarios.build_mqtt import connection, publish, to_client
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.report.contents import report
from wirewitness.reports.report.json_document import json_pieces

Rows = dict[str, list[dict[str, Any]]]


def shown(rows: Rows, width: int = 200) -> list[list[str]]:
    return [line.split() for line in render(report(RowsAnalysis(rows)), width).splitlines()]


def told(rows: Rows) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(b"".join(json_pieces(RowsAnalysis(rows))))
    return document


MQTT: Rows = {
    "mqtt_connections": [
        connection("a", publishes_from_client=3, publishes_from_server=0, transport="tcp"),
        connection("b", client_id="board", error_code=5, transport="websocket", address="10.2.0.7"),
        connection("c", 5, 9, closed_by="client", publishes_from_client=0, publishes_from_server=0, transport="tcp"),
    ],
    "mqtt_publishes": [
        publish(1, qos=1, handshake="complete", completed_ms=2.0),
        publish(2, qos=2, handshake="no_pubrec"),
        publish(3, topic="other", payload_bytes=100),
        to_client(4, "b"),
    ],
    "mqtt_deliveries": [
        {
            "message_id": "m",
            "flow_id": "a",
            "ts": at(1),
            "topic": "room/heat",
            "status": status,
            "topic_filter": "room/#",
        }
        | {"subscriber_flow_id": "b", "latency_ms": 4.0 if status == "delivered" else None}
        for status in ("delivered", "missing", "left")
    ],
}


def test_mqtt_clients_topics_handshakes_and_deliveries() -> None:
    lines = shown(MQTT)
    assert ["sensor-1", "10.2.0.1", "3.1.1", "tcp", "2", "1", "60", "3"] in lines
    assert ["board", "10.2.0.7", "3.1.1", "websocket", "1", "1", "60"] in lines
    assert ["other", "1", "100", "0", "1"] in lines
    assert any(line[:2] == ["room/heat", "2"] for line in lines)
    assert ["client_to_server", "1", "complete", "1", "2.000", "2.000"] in lines
    assert ["client_to_server", "2", "no_pubrec", "1"] in lines
    assert ["room/#", "1", "1", "1", "1", "4.000", "4.000", "4.000"] in lines


@pytest.mark.parametrize("width", [80, 100])
def test_four_clients_are_a_table_at_the_width_of_a_terminal(width: int) -> None:
    clients = [
        connection(
            flow_id, client_id=f"press-line-7-gauge-{flow_id}", transport="websocket", user_name="device", error_code=0,
            publishes_from_client=1200, publishes_from_server=88, closed_by="server", address="10.77.0.11",
        )
        for flow_id in "abcd"
    ]  # fmt: skip
    lines = shown({**MQTT, "mqtt_connections": clients}, width)
    assert sum("1,200" in line for line in lines) == 4
    assert sum("10.77.0.11" in line and "1,200" in line for line in lines) == 4


def test_mqtt_in_json() -> None:
    mqtt = told(MQTT)["mqtt"]
    assert set(mqtt) == {"clients", "topics", "handshakes", "deliveries"}
    assert [(topic["topic"], topic["published"], topic["sent_on"]) for topic in mqtt["topics"]] == [
        ("other", 1, 0),
        ("room/heat", 2, 1),
    ]
    assert mqtt["deliveries"][0]["missing"] == 1


def command(seconds: float, **more: Any) -> dict[str, Any]:
    row = {
        "exchange_id": f"fc{round(seconds * 1000)}", "flow_id": "f", "ts": at(seconds), "command": "find",
        "opcode": "OP_MSG", "database": "shop", "collection": "users", "query_shape": '{"filter":{"_id":"?"}}',
        "shape_id": "s1", "status": "ok", "latency_ms": 4.0, "documents_returned": 1, "error_code": 0, "replies": 1,
        "driver": "PyMongo", "driver_version": "4", "app_name": "web", "client_address": "10.3.0.1", "request_id": 1,
        "response_bytes": 100,
    }  # fmt: skip
    return row | more


MONGO: Rows = {
    "mongo_commands": [
        *(command(n) for n in range(10)),
        command(11, latency_ms=104.0),
        command(12, command="insert", query_shape=None, shape_id="s2", status="error", write_error_codes=[11000]),
        command(13, status="error", error_code=50, error_name="MaxTimeMSExpired", latency_ms=None),
        command(14, command="hello", collection=None, shape_id="s3", latency_ms=None, awaitable=True),
    ],
    "mongo_transactions": [
        {"lsid": "l", "txn_number": 1, "exchange_id": "e", "ts": at(1), "ts_last": at(2), "outcome": "committed"}
        | {"commands": 3, "errors": 0, "duration_ms": 12.5, "commit_attempts": 1, "connections": 1}
        | {"last_exchange_id": "e", "flow_id": "f"}
    ],
}


def test_mongo_shapes_errors_and_transactions() -> None:
    lines = shown(MONGO)
    shape = next(line for line in lines if line[:2] == ["shop.users", "find"])
    assert shape[:10] == ["shop.users", "find", "12", "4.000", "104.000", "54.000", "144.000", "13.091", "1", "12"]
    assert ["find", "50", "MaxTimeMSExpired", "1", "1"] in lines
    assert any(line[:2] == ["insert", "11000"] for line in lines)
    assert ["committed", "1", "3", "12.500", "12.500"] in lines
    assert any(line[:3] == ["PyMongo", "4", "web"] for line in lines)


@pytest.mark.parametrize("width", [80, 100])
def test_shapes_of_mongo_are_a_table_at_the_width_of_a_terminal(width: int) -> None:
    commands = [command(n, shape_id=f"s{n}", collection="customers", latency_ms=1000.0 + n) for n in range(5)]
    lines = shown({"mongo_commands": commands}, width)
    assert sum(line[:2] == ["shop.customers", "find"] for line in lines) == 5


def test_mongo_in_json() -> None:
    mongo = told(MONGO)["mongo"]
    assert set(mongo) == {"shapes", "errors", "cursors", "transactions", "drivers"}
    assert {(shape["operation"], shape["count"]) for shape in mongo["shapes"]} == {("find", 12), ("insert", 1)}


def test_sections_stay_away() -> None:
    lines = shown(MQTT)
    assert ["MQTT"] in lines
    assert ["MONGODB"] not in lines
    assert ["MQTT"] not in shown(MONGO)
    assert told({})["mqtt"] == {"clients": [], "topics": [], "handshakes": [], "deliveries": []}
