"""The broker's request log as records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab import broker_log
from tests.lab.broker_log import Endpoint


def log_line(forwarded: bool = False, connection: str = "10.0.0.2:9092-10.0.0.11:40000-1-7", **changes: Any) -> str:
    """Return one line as the broker's logger prints it."""
    entry = {
        "isForwarded": forwarded,
        "requestHeader": {
            "requestApiKey": 12,
            "requestApiVersion": 4,
            "correlationId": 9,
            "clientId": "billing-a",
            "requestApiKeyName": "HEARTBEAT",
        },
        "request": {"groupId": "orders", "generationId": 3},
        "response": {"throttleTimeMs": 0, "errorCode": 27},
        "connection": connection,
        "totalTimeMs": 1.25,
        **changes,
    }
    return f"1795171918282 Completed request:{json.dumps(entry)}\n"


def test_a_line_becomes_a_record() -> None:
    [record] = broker_log.read_request_log([log_line()])
    assert record == broker_log.LogRecord(
        logged_ms=1795171918282,
        api_key=12,
        api_name="HEARTBEAT",
        version=4,
        correlation_id=9,
        client_id="billing-a",
        request={"groupId": "orders", "generationId": 3},
        response={"throttleTimeMs": 0, "errorCode": 27},
        server=Endpoint("10.0.0.2", 9092),
        client=Endpoint("10.0.0.11", 40000),
        latency_ms=1.25,
    )


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        pytest.param(log_line(), True, id="a client's own request"),
        pytest.param(log_line(forwarded=True), False, id="forwarded to the controller"),
        pytest.param(log_line(connection="127.0.0.1:9093-127.0.0.1:5-0-0"), False, id="another listener"),
        pytest.param(log_line(connection="10.0.0.2:9092-10.0.0.2:5-0-0"), False, id="the broker to itself"),
        pytest.param("1795171918282 something else\n", False, id="another kind of line"),
    ],
)
def test_a_port_keeps_what_crossed_the_wire(line: str, kept: bool) -> None:
    assert len(list(broker_log.read_request_log([line], port=9092))) == kept


@pytest.mark.parametrize("response", ["", None], ids=["empty text", "null"])
def test_an_unanswered_request_has_no_response(response: str | None) -> None:
    [record] = broker_log.read_request_log([log_line(response=response)])
    assert record.response is None


def test_saved_records_load_equal_and_save_to_equal_bytes(tmp_path: Path) -> None:
    records = list(broker_log.read_request_log([log_line(), log_line(response=None)]))
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    broker_log.save(records, first)
    assert broker_log.load(first) == records
    broker_log.save(broker_log.load(first), second)
    assert first.read_bytes() == second.read_bytes()
