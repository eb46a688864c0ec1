"""Whether a response was due, and whether it came too late, from given rows and flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wirewitness.analyser.analysis.responses import answer_due, late
from wirewitness.dissectors.registry import PROTOCOLS

S = 1_000_000_000
FLOW: dict[str, Any] = {
    "protocol": "kafka", "ts_closed": 8 * S, "observed_until": 8 * S, "closed_by": "client", "reset_by": None,
    "gap_bytes": 0, "bytes_to_server": 900, "bytes_to_client": 900, "acked_by_client": 900, "acked_by_server": 900,
    "handshake": "complete",
}  # fmt: skip
ROW: dict[str, Any] = {
    "status": "unanswered", "operation": "Produce", "awaitable": None, "direction": 0, "ts": 2 * S,
    "request_offset": 100, "request_bytes": 200, "ts_response": None, "response_offset": None, "response_bytes": None,
}  # fmt: skip
TYPES = {"awaitable": pa.bool_(), "status": pa.string(), "operation": pa.string()}
OPEN = {"ts_closed": None, "closed_by": None, "observed_until": 60 * S}
RESPONSE = {"status": "ok", "ts_response": 9 * S, "response_offset": 800, "response_bytes": 100}


def asked(kind: str, row: dict[str, Any], flow: dict[str, Any]) -> bool | None:
    """The column of this one row."""
    raw = {name: pa.array([value], TYPES.get(name, pa.int64())) for name, value in (ROW | row).items()}
    whole = FLOW | flow

    def of_flow(name: str, rows: np.ndarray[Any, Any]) -> pa.Array:
        text = pa.string() if name in ("protocol", "closed_by", "reset_by", "handshake") else pa.int64()
        return pa.array([whole[name]] * len(rows), text)

    made = answer_due(raw, of_flow, PROTOCOLS.values()) if kind == "due" else late(raw, of_flow)
    found: bool | None = made[0].as_py()
    return found


@pytest.mark.parametrize(
    ("row", "flow", "expected"),
    [
        pytest.param(RESPONSE, {}, True, id="it came"),
        pytest.param({"status": "one_way"}, {}, False, id="none is wanted"),
        pytest.param({"status": "orphan"}, {}, None, id="no request"),
        pytest.param({}, {}, True, id="the client gave up on a produce"),
        pytest.param({"operation": "Fetch", "awaitable": True}, {}, False, id="the client left in a long poll"),
        pytest.param({"operation": "Metadata", "ts": 7 * S}, {}, False, id="the client left with a question open"),
        pytest.param({"operation": "Metadata"}, {"closed_by": "server"}, True, id="the server left"),
        pytest.param({"request_bytes": 450_000}, {}, False, id="not sent whole"),
        pytest.param({"request_bytes": 450_000}, OPEN, None, id="not sent whole yet"),
        pytest.param({}, {"gap_bytes": 9}, None, id="bytes are missing"),
        pytest.param({}, {"acked_by_client": 950}, None, id="the client ACKed more than was captured"),
        pytest.param({}, {"bytes_to_client": 0, "acked_by_client": None, "acked_by_server": None, "handshake": None},
                     None, id="one direction"),
        pytest.param({}, {"bytes_to_client": 0, "acked_by_client": None, "handshake": None}, True,
                     id="the server only ACKs"),
        pytest.param({"ts": 40 * S}, OPEN, None, id="it may still come"),
        pytest.param({"ts": 20 * S}, OPEN, True, id="open for 40 s"),
        pytest.param({"ts": 20 * S, "awaitable": True}, OPEN, None, id="a long poll is open"),
        pytest.param({"operation": "PUBLISH"}, {"protocol": "mqtt"}, None, id="a handshake that may go on"),
        pytest.param({"operation": "PINGREQ", "ts": 54 * S}, {"protocol": "mqtt"} | OPEN, True,
                     id="a ping takes no time"),
        pytest.param({"operation": "PINGREQ", "ts": 56 * S}, {"protocol": "mqtt"} | OPEN, None, id="a ping just sent"),
        pytest.param({"operation": "PUBLISH", "ts": 54 * S}, {"protocol": "mqtt"} | OPEN, None, id="a publish may"),
        pytest.param({"operation": "PINGREQ", "ts": 4 * S}, {"protocol": "mqtt"}, False, id="it left a ping open"),
        pytest.param({"operation": "find"}, {"protocol": "mongo"}, True, id="a client of MongoDB gave up"),
        pytest.param({"operation": "hello", "ts": 7 * S}, {"protocol": "mongo"}, False, id="it left a hello open"),
    ],
)  # fmt: skip
def test_answer_due(row: dict[str, Any], flow: dict[str, Any], expected: bool | None) -> None:
    assert asked("due", row, flow) is expected


@pytest.mark.parametrize(
    ("row", "flow", "expected"),
    [
        pytest.param({}, {}, None, id="no response"),
        pytest.param(RESPONSE | {"ts_response": 7 * S}, {}, False, id="in time"),
        pytest.param(RESPONSE, {"acked_by_client": 800}, True, id="nobody ACKed it"),
        pytest.param(RESPONSE, {"reset_by": "client"}, True, id="a closed socket resets"),
        pytest.param(RESPONSE, {}, False, id="a half-closed client still reads"),
        pytest.param(RESPONSE, {"closed_by": "server", "acked_by_client": 800}, False, id="the server closed"),
        pytest.param(RESPONSE, OPEN, False, id="open"),
    ],
)
def test_late(row: dict[str, Any], flow: dict[str, Any], expected: bool | None) -> None:
    assert asked("late", row, flow) is expected
