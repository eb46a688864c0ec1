"""Rows made by name lie in the order of the fields that the tables declare."""

from typing import Any

import pytest

from wirewitness.dissectors.core.model import EXCHANGE_FIELDS, EXPERT_FIELDS, MESSAGE_FIELDS, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.rows import exchange_row, expert_row, message_row, orphan_row

FRAME = Frame(
    order=9,
    direction=SERVER_TO_CLIENT,
    data=b"..abcde..",
    start=2,
    end=7,
    stream_offset=100,
    packet_first=8,
    packet_last=9,
    ts_ns=5_000,
    complete=True,
)


def named(names: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(names, row, strict=True))


def test_a_message_has_the_places_of_its_frame_and_what_is_given() -> None:
    given = {
        "role": "response",
        "operation": "Fetch",
        "version": "4",
        "correlation_id": 7,
        "client_id": "me",
        "error": "cut",
        "summary": "one line",
    }
    places = {
        "direction": SERVER_TO_CLIENT,
        "stream_offset": 100,
        "length_bytes": 5,
        "packet_first": 8,
        "packet_last": 9,
        "ts": 5_000,
        "complete": True,
    }
    assert named(MESSAGE_FIELDS, message_row(FRAME, **given)) == places | given


def test_each_value_of_an_exchange_stands_under_its_name() -> None:
    given: dict[str, Any] = {name: f"the {name}" for name in EXCHANGE_FIELDS}
    assert named(EXCHANGE_FIELDS, exchange_row(**given)) == given


def test_what_is_not_said_of_an_exchange_is_null() -> None:
    row = named(EXCHANGE_FIELDS, exchange_row(ts=1, status="unanswered"))
    assert {name for name, value in row.items() if value is not None} == {"direction", "ts", "status", "awaitable"}
    assert row["awaitable"] is False


def test_an_orphan_answers_the_other_side() -> None:
    row = named(EXCHANGE_FIELDS, orphan_row(FRAME, operation="PING"))
    assert {name: value for name, value in row.items() if value is not None} == {
        "direction": 1 - SERVER_TO_CLIENT,
        "response_offset": 100,
        "response_packet": 9,
        "response_bytes": 5,
        "ts": 5_000,
        "ts_response": 5_000,
        "status": "orphan",
        "operation": "PING",
    }


@pytest.mark.parametrize("span", [None, "3-9"])
def test_a_remark_stands_between_its_place_and_its_span(span: str | None) -> None:
    remark = ("warn", "protocol", "odd", "an odd thing")
    row = expert_row(direction=0, packet=4, ts=5, remark=remark, stream_offset=3, span=span)
    assert named(EXPERT_FIELDS, row) == {
        "direction": 0,
        "stream_offset": 3,
        "packet": 4,
        "ts": 5,
        "severity": "warn",
        "group": "protocol",
        "code": "odd",
        "text": "an odd thing",
        "span": span,
    }
