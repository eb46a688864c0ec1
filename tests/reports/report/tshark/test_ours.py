"""Our side of the comparison with tshark: one row for each message."""

from __future__ import annotations

from typing import NamedTuple

import duckdb

from tests.support.rows import connection_from_rows
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.reports.report.tshark.match import messages

FLOW = {"flow_id": "a", "client_address": "10.0.0.1", "client_port": 40000, "server_address": "10.0.0.9",
        "server_port": 1883, "protocol": "mqtt"}  # fmt: skip


class Tables(NamedTuple):
    connection: duckdb.DuckDBPyConnection
    options: ReadOptions


def message(number: int, operation: str, to_server: bool) -> dict[str, object]:
    ends = ("10.0.0.1", 40000, "10.0.0.9", 1883) if to_server else ("10.0.0.9", 1883, "10.0.0.1", 40000)
    sides = dict(zip(("src_address", "src_port", "dst_address", "dst_port"), ends, strict=True))
    return {"message_id": f"m{number}", "flow_id": "a", "file": "a.pcap", "protocol": "mqtt", "packet_last": number,
            "operation": operation, "role": "request" if to_server else "response", "version": "5.0",
            "length_bytes": 10, "ts": number, "complete": True, "stream_offset": number, **sides}  # fmt: skip


def exchange(number: int, operation: str) -> dict[str, object]:
    return {"exchange_id": f"m{number}", "flow_id": "a", "protocol": "mqtt", "operation": operation, "error_code": 0,
            "request_message_id": f"m{number}", "response_message_id": "m4", "request_packet": number}  # fmt: skip


def test_a_connack_that_answers_connect_and_auth_is_one_message() -> None:
    told = [(1, "CONNECT", True), (2, "AUTH", False), (3, "AUTH", True), (4, "CONNACK", False)]
    con = connection_from_rows({
        "flows": [FLOW],
        "messages": [message(*one) for one in told],
        "exchanges": [exchange(1, "CONNECT"), exchange(3, "AUTH")],
    })  # fmt: skip
    found = [one.operation for one in messages(Tables(con, ReadOptions()), "a.pcap")]
    assert found == ["CONNECT", "AUTH", "AUTH", "CONNACK"]
