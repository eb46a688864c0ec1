"""One connection, turn by turn: what becomes of requests and responses. `>` is a request, `<` a response."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dissectors.example.talk import EXAMPLE_CASE
from tests.dissectors.properties import Turn, decoded
from tests.support.example_encode import frame, request, response
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT


def sent(data: bytes) -> Turn:
    return Turn(CLIENT_TO_SERVER, data)


def answered(data: bytes) -> Turn:
    return Turn(SERVER_TO_CLIENT, data)


def lost(direction: int, size: int) -> Turn:
    return Turn(direction, None, size)


def columns(turns: list[Turn], table: str, *names: str, **how: Any) -> list[tuple[Any, ...]]:
    places = [CORE_ROWS[table].names.index(name) for name in names]
    return [tuple(row[place] for place in places) for row in decoded(EXAMPLE_CASE, turns, **how)[table]]


def statuses(turns: list[Turn]) -> list[tuple[Any, ...]]:
    """(packet of the request, packet of the response, status) in the order in which they are known."""
    return columns(turns, "exchanges", "request_packet", "response_packet", "status")


def test_a_request_and_its_response() -> None:
    turns = [sent(request(b"ping")), answered(response(b"pong!"))]
    names = ("direction", "stream_offset", "length_bytes", "role", "operation", "version", "complete", "summary")
    assert columns(turns, "messages", *names) == [
        (0, 0, 12, "request", "Call", "1", True, "payload_bytes=4"),
        (1, 0, 13, "response", "Call", "1", True, "payload_bytes=5"),
    ]
    names = ("request_offset", "response_offset", "ts", "ts_response", "operation", "version", "status")
    assert columns(turns, "exchanges", *names) == [(0, 0, 1_000_000, 2_000_000, "Call", "1", "ok")]
    assert columns(turns, "exchanges", "request_bytes", "response_bytes") == [(12, 13)]
    assert columns(turns, "expert_infos", "code") == []


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param(
            [sent(request() + request()), sent(request()), answered(response()), answered(response() + response())],
            [(1, 3, "ok"), (1, 4, "ok"), (2, 4, "ok")],
            id="answers come in order",
        ),
        pytest.param(
            [sent(request()), answered(response()), sent(request())],
            [(1, 2, "ok"), (3, None, "unanswered")],
            id="the last one is not answered",
        ),
        pytest.param(
            [answered(response()), sent(request()), answered(response())],
            [(None, 1, "orphan"), (2, 3, "ok")],
            id="an answer before any request",
        ),
        pytest.param(
            [sent(request()), lost(1, 12), sent(request()), answered(response())],
            [(1, None, "unanswered"), (3, 4, "ok")],
            id="a lost answer does not shift those behind it",
        ),
        pytest.param(
            [sent(request() * 2), answered(response()), lost(1, 12), sent(request()), answered(response())],
            [(1, 2, "ok"), (1, None, "unanswered"), (4, None, "unanswered"), (None, 5, "orphan")],
            id="among several requests nobody knows which answer is lost",
        ),
        pytest.param(
            [sent(request()), answered(response()), lost(0, 12), answered(response()), sent(request()),
             answered(response())],
            [(1, 2, "ok"), (None, 4, "orphan"), (5, 6, "ok")],
            id="a lost request leaves an orphan",
        ),
        pytest.param(
            [sent(request(b"a" * 50)[:20]), lost(0, 38), sent(request()), answered(response()), answered(response())],
            [(1, 4, "ok"), (3, 5, "ok")],
            id="a gap inside a request loses no order",
        ),
        pytest.param(
            [sent(frame(7, b"?")), sent(request()), answered(response())],
            [(2, 3, "ok")],
            id="an unknown frame type is no request",
        ),
        pytest.param(
            [sent(response()), answered(request())], [], id="frames that the other side should send are not paired"
        ),
    ],
)  # fmt: skip
def test_exchanges(turns: list[Turn], expected: list[tuple[Any, ...]]) -> None:
    assert statuses(turns) == expected


@pytest.mark.parametrize(
    ("turns", "codes", "messages"),
    [
        pytest.param(
            [sent(request(version=2)), sent(request(version=2))],
            ["unknown_version"], [("request", "Call", "2", None)] * 2, id="version, remarked once",
        ),
        pytest.param(
            [sent(frame(7, b"?"))], ["unknown_frame_type"], [(None, "Type 7", "1", None)], id="frame type",
        ),
        pytest.param([answered(request())], ["wrong_direction"], [("request", "Call", "1", None)], id="direction"),
        pytest.param(
            [sent(request() + frame(1, b"", length=(16 << 20) + 1) + request(b"on"))],
            ["skipped_bytes", "skipped_bytes"], [("request", "Call", "1", None)] * 2,
            id="payload above 16 MiB: skipped, the rest goes on",
        ),
        pytest.param(
            [sent(request(b"abcdef")[:11])], [],
            [("request", "Call", "1", "cut: the rest of this message is not in the capture")], id="cut payload",
        ),
        pytest.param(
            [sent(request()[:5])], [], [(None, None, None, "cut: the rest of this message is not in the capture")],
            id="cut header",
        ),
    ],
)  # fmt: skip
def test_what_is_odd_is_kept_and_remarked(turns: list[Turn], codes: list[str], messages: list[tuple[Any, ...]]) -> None:
    assert [code for (code,) in columns(turns, "expert_infos", "code")] == codes
    assert columns(turns, "messages", "role", "operation", "version", "error") == messages


def test_waiting_requests_are_bounded() -> None:
    case = EXAMPLE_CASE.__class__(EXAMPLE_CASE.dissector, EXAMPLE_CASE.talk, [], limits=Limits(max_outstanding=10))
    rows = decoded(case, [sent(request()) for _ in range(25)])
    assert [row[6] for row in rows["expert_infos"]] == ["outstanding_requests"] * 15
    assert len(rows["exchanges"]) == 25


def test_answers_to_requests_that_a_limit_gave_up_are_not_taken_for_answers_to_others() -> None:
    turns = [*(sent(request()) for _ in range(3)), *(answered(response()) for _ in range(3))]
    case = EXAMPLE_CASE.__class__(EXAMPLE_CASE.dissector, EXAMPLE_CASE.talk, [], limits=Limits(max_outstanding=2))
    names = [CORE_ROWS["exchanges"].names.index(name) for name in ("request_packet", "response_packet", "status")]
    pairs = [tuple(row[name] for name in names) for row in decoded(case, turns)["exchanges"]]
    assert pairs == [(1, None, None), (None, 4, "orphan"), (2, 5, "ok"), (3, 6, "ok")]


def test_an_embedded_frame_is_not_taken_for_a_message_after_a_loss() -> None:
    inner = request(b"not a message")
    turns = [sent(request()), lost(0, 30), sent(b"rest of a payload " + inner + b" and more"), sent(request())]
    assert columns(turns, "messages", "packet_first") == [(1,), (4,)]
