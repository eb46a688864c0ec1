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
        forwarded=False,
    )


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        pytest.param(log_line(), True, id="a client's own request"),
        pytest.param(log_line(connection="127.0.0.1:9093-127.0.0.1:5-0-0"), False, id="the loopback listener"),
        pytest.param(log_line(connection="10.0.0.2:9092-10.0.0.2:5-0-0"), False, id="the broker to itself"),
        pytest.param("1795171918282 something else\n", False, id="another kind of line"),
    ],
)
def test_only_what_crossed_the_wire_is_kept(line: str, kept: bool) -> None:
    assert len(list(broker_log.read_request_log([line], on_wire=True))) == kept


def test_what_an_envelope_held_is_marked() -> None:
    forwarded = list(broker_log.read_request_log([log_line(), log_line(forwarded=True)], on_wire=True))
    assert [record.forwarded for record in forwarded] == [False, True]


def test_logs_of_several_brokers_are_in_order_of_time(tmp_path: Path) -> None:
    line = log_line()
    (tmp_path / "a").write_text(line.replace("1795171918282", "3"))
    (tmp_path / "b").write_text(line.replace("1795171918282", "2") + line.replace("1795171918282", "4"))
    records = broker_log.load_all([tmp_path / "a", tmp_path / "b"])
    assert [record.logged_ms for record in records] == [2, 3, 4]


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
