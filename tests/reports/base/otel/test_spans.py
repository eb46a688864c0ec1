"""Spans from the exchanges table alone, as from a stream of batches, and from rows of every kind."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace.status import StatusCode

import wirewitness
from tests.conftest import SAMPLES
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.reports.base.otel.export import endpoint_url
from wirewitness.reports.base.otel.spans import resource, span, spans

ROW: dict[str, Any] = {
    **dict.fromkeys(TABLES["exchanges"].column_names()),
    "exchange_id": "0123456789abcdef-c-0", "flow_id": "0123456789abcdef", "protocol": "kafka", "operation": "Fetch",
    "version": "12", "status": "ok", "error_code": 0, "ts": 1_000, "ts_response": 3_000,
    "direction": "client_to_server",
}  # fmt: skip


def test_batches_of_exchanges_are_enough() -> None:
    """Names then lack topics and collections; ids, times and states are the same."""
    with wirewitness.read(SAMPLES / "mqtt_qos2_stuck.pcapng", tables=["exchanges"]) as analysis:
        made = [one for some in spans(analysis.batches("exchanges"), resource()) for one in some]
        rows = analysis.arrow("exchanges").num_rows
    assert len(made) == rows > 50
    assert {one.name for one in made} >= {"publish", "connect", "subscribe"}
    assert {one.status.status_code for one in made} <= {StatusCode.UNSET, StatusCode.ERROR}


# What a row has besides ROW: name, start, end, error and event of its span
CASES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "answered": ({}, ("Fetch", 1_000, 3_000, None, None)),
    "of one topic": ({"topic": "orders", "topics": 1}, ("Fetch orders", 1_000, 3_000, None, None)),
    "failed": (
        {"status": "error", "error_code": 25, "error_name": "UNKNOWN_MEMBER_ID"},
        ("Fetch", 1_000, 3_000, "UNKNOWN_MEMBER_ID (25)", None),
    ),
    "a first join": (
        {"operation": "JoinGroup", "status": "error", "error_code": 79, "error_name": "MEMBER_ID_REQUIRED"},
        ("JoinGroup", 1_000, 3_000, None, None),
    ),
    "failed without a name": ({"status": "error", "error_code": 999}, ("Fetch", 1_000, 3_000, "error 999", None)),
    "no answer": (
        {"status": "unanswered", "ts_response": None, "observed_until": 9_000, "error_code": None},
        ("Fetch", 1_000, 9_000, None, "wirewitness.unanswered"),
    ),
    "no answer, end not known": (
        {"status": "unanswered", "ts_response": None, "error_code": None},
        ("Fetch", 1_000, 1_000, None, "wirewitness.unanswered"),
    ),
    "no request": ({"status": "orphan"}, ("Fetch", 1_000, 3_000, None, "wirewitness.request_not_captured")),
    "no answer wanted": ({"status": "one_way", "ts_response": None}, ("Fetch", 1_000, 1_000, None, None)),
    "clocks that go back": ({"ts_response": 500}, ("Fetch", 1_000, 1_000, None, None)),
    "a database": (
        {"protocol": "mongo", "operation": "find", "version": "OP_MSG", "database": "shop", "collection": "orders"},
        ("find orders", 1_000, 3_000, None, None),
    ),
    "a command on a database": (
        {"protocol": "mongo", "operation": "ping", "version": "OP_MSG", "database": "admin"},
        ("ping admin", 1_000, 3_000, None, None),
    ),
    "nothing known": ({"operation": None, "version": None}, ("kafka", 1_000, 3_000, None, None)),
    "another protocol": ({"protocol": "example", "operation": "ADD"}, ("ADD", 1_000, 3_000, None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_row_is_a_span(case: str) -> None:
    changes, expected = CASES[case]
    made = span(ROW | changes)
    assert (made.name, made.start_ns, made.end_ns, made.error, made.event) == expected
    assert all(isinstance(value, str | int | bool) for value in made.attributes.values())
    assert ("error.type" in made.attributes) == (made.error is not None)


def test_ids_are_made_of_the_exchange() -> None:
    one, other = span(ROW), span(ROW | {"exchange_id": "0123456789abcdef-c-9"})
    assert (one.trace_id, one.span_id) == span(ROW | {"ts": 2_000, "request_file": "x"})[1:3]
    assert len({one.trace_id, other.trace_id}) == len({one.span_id, other.span_id}) == 2
    assert one.trace_id < 1 << 128
    assert one.span_id < 1 << 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("https://otel.example/", "https://otel.example/v1/traces"),
        ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
        ("http://proxy/collect?x=1", "http://proxy/collect?x=1"),
    ],
)
def test_endpoints(text: str, expected: str) -> None:
    assert endpoint_url(text) == expected
