"""How long requests take to come, from given rows of messages, flows and what held them up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rows import connection_from_rows
from wirewitness.analyser.network.facts.request_arrivals import add_arrivals

MS = 1_000_000
PLACE = {"protocol": "mongo", "client_address": "10.0.0.1", "server_address": "10.0.0.9", "server_port": 27017}
FLOW = {
    **PLACE, "flow_id": "f", "handshake_seen": True, "handshake_ms": 2.0, "file": "a", "first_packet": 1, "ts_first": 0
}  # fmt: skip
SENT = {
    "message_id": "m", "flow_id": "f", "protocol": "mongo", "operation": "insert", "client_id": "app", "file": "a",
    "direction": "client_to_server", "complete": True, "length_bytes": 60_000, "packet_first": 20, "packet_last": 60,
    "ts": 900 * MS,
}  # fmt: skip


def beside(packet: int, ms: int, **more: Any) -> dict[str, Any]:
    """A message of one packet."""
    row = {
        "message_id": f"x{packet}", "flow_id": "g", "protocol": "mongo", "file": "a", "packet_first": packet,
        "packet_last": packet, "ts": ms * MS, "direction": "server_to_client", "complete": True, "length_bytes": 90,
    }  # fmt: skip
    return row | more


def found(columns: str, messages: list[dict[str, Any]], **more: Any) -> list[Any]:
    rows = {"messages": messages, "flows": [FLOW], **more}
    con = connection_from_rows(rows, own=True)
    add_arrivals(con)
    told = con.sql(f"SELECT {columns} FROM request_arrivals").fetchall()
    con.close()
    return told


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([beside(18, 100), beside(25, 150), beside(40, 500)], (750.0, 800.0), id="between two others"),
        pytest.param([beside(20, 120)], (780.0, 780.0), id="another one ends in its first packet"),
        pytest.param([beside(70, 950)], (0.0, 900.0), id="none came before its end: the connection began before"),
        pytest.param([beside(18, 100, file="b"), beside(25, 150, file="b")], (0.0, 900.0), id="in another file"),
    ],
)
def test_the_first_packet_lies_between_those_beside_it(messages: Any, expected: tuple[float, float]) -> None:
    assert found("median_least_ms, median_most_ms", [SENT, *messages]) == [expected]


def test_each_client_and_operation_has_a_row_and_small_ones_none() -> None:
    rows = [SENT | {"message_id": f"m{n}", "ts": (900 + n) * MS} for n in range(3)]
    other = SENT | {"message_id": "o", "operation": "update", "length_bytes": 9000}
    small = SENT | {"message_id": "s", "operation": "find", "length_bytes": 200}
    told = found("operation, requests, median_bytes, message_id, last_message_id", [*rows, other, small])
    assert sorted(told) == [("insert", 3, 60_000.0, "m0", "m2"), ("update", 1, 9000.0, "o", "o")]


def test_a_connection_whose_begin_was_not_seen_has_none() -> None:
    assert found("requests", [SENT], flows=[FLOW | {"handshake_seen": False}]) == []


def test_the_distance_is_that_of_the_first_response_and_what_follows_it() -> None:
    begins = [
        beside(2, 10, flow_id="f", direction="client_to_server"), beside(3, 20, flow_id="f"),
        beside(4, 27, flow_id="f", direction="client_to_server"),
    ]  # fmt: skip
    assert found("round_trip_ms", [*begins, SENT]) == [(9.0,)]
    assert found("round_trip_ms", [*begins[1:], SENT]) == [(None,)]


def test_what_held_them_up_is_counted() -> None:
    wait = {"flow_id": "f", "ts": 300 * MS, "ts_last": 400 * MS, "direction": "client_to_server", "kind": "full_window"}
    mark = {"flow_id": "f", "ts": 300 * MS, "code": "retransmission", "direction": "client_to_server"}
    closed = {"flow_id": "f", "ts": 300 * MS, "code": "zero_window", "direction": "server_to_client"}
    columns, messages = "held_by_window, sent_again", [SENT, beside(18, 100)]
    assert found(columns, messages, tcp_waits=[wait], expert_infos=[mark]) == [(1, 1)]
    assert found(columns, messages, expert_infos=[closed]) == [(1, 0)]
    early = {"ts": 50 * MS, "ts_last": 60 * MS}
    assert found(columns, messages, tcp_waits=[wait | early], expert_infos=[mark | {"ts": 50 * MS}]) == [(0, 0)]


def test_the_response_is_timed_from_the_last_packet() -> None:
    asked = {"exchange_id": "m", "request_message_id": "m", "latency_ms": 1.5, "flow_id": "f", "ts": 900 * MS}
    assert found("median_latency_ms", [SENT], exchanges=[asked]) == [(1.5,)]
