"""Blobs of group members as JSON; those of Connect and Streams are bytes that their own classes wrote (4.3.0)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dissectors.kafka.test_decoder import Wire
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.blobs.member_blobs import (
    StreamsAssignment,
    streams_assignment,
    streams_subscription,
    told_assignment,
    told_subscription,
)
from wirewitness.dissectors.kafka.blobs.reader import TopicPartitions

URL = "http://w1:8083/"
PLAN: dict[str, Any] = {"error": 0, "leader_url": URL, "config_offset": 7}


def _said(line: str | None) -> Any:
    return None if line is None else json.loads(line)


WORKER_STATES = [
    pytest.param(
        "0000000f687474703a2f2f77313a383038332f0000000000000007",
        {"version": 0, "url": URL, "config_offset": 7, "runs": {}},
        id="version 0",
    ),
    pytest.param(
        (
            "0001000f687474703a2f2f77313a383038332f000000000000000700000051000100000003772d31000f687474703a2f"
            "2f77313a383038332f000000000000000700000001000473696e6b00000003ffffffff00000000000000020000000100"
            "0373726300000001000000010000012c"
        ),
        {"version": 1, "url": URL, "config_offset": 7, "runs": {"sink": ["connector", 0, 2]}},
        id="version 1",
    ),
    pytest.param(
        "0002000f687474703a2f2f77313a383038332f0000000000000007ffffffff",
        {"version": 2, "url": URL, "config_offset": 7, "runs": {}},
        id="version 2, new",
    ),
]


@pytest.mark.parametrize(("blob", "expected"), WORKER_STATES)
def test_connect_workers_that_join(blob: str, expected: dict[str, Any]) -> None:
    assert _said(told_subscription("connect", "sessioned", bytes.fromhex(blob))) == expected


@pytest.mark.parametrize(
    ("blob", "expected"),
    [
        pytest.param(
            (
                "000000000003772d31000f687474703a2f2f77313a383038332f000000000000000700000001000473696e6b00000002"
                "ffffffff00000000"
            ),
            {"version": 0, **PLAN, "runs": {"sink": ["connector", 0]}, "revoked": {}, "delay_ms": 0},
            id="version 0",
        ),
        pytest.param(
            (
                "000100000003772d31000f687474703a2f2f77313a383038332f000000000000000700000001000473696e6b00000003"
                "ffffffff000000000000000200000001000373726300000001000000010000012c"
            ),
            {"version": 1, **PLAN, "runs": {"sink": ["connector", 0, 2]}, "revoked": {"src": [1]}, "delay_ms": 300},
            id="version 1",
        ),
        pytest.param(
            (
                "000200000003772d31000f687474703a2f2f77313a383038332f000000000000000700000001000473696e6b00000003"
                "ffffffff000000000000000200000001000373726300000001000000010000012c"
            ),
            {"version": 2, **PLAN, "runs": {"sink": ["connector", 0, 2]}, "revoked": {"src": [1]}, "delay_ms": 300},
            id="version 2",
        ),
    ],
)
def test_connect_workers_that_are_given_work(blob: str, expected: dict[str, Any]) -> None:
    assert _said(told_assignment("connect", "sessioned", bytes.fromhex(blob))) == expected


def _with_user_data(user_data: str) -> bytes:
    """A consumer's subscription, version 0, to topic t."""
    raw = bytes.fromhex(user_data)
    return bytes.fromhex("0000 00000001 0001 74") + len(raw).to_bytes(4, "big") + raw


# Process 1-2 at h:80 with task 0_1 (running) and 0_2 (50 behind its changelog's start), as the versions can say it.
@pytest.mark.parametrize(
    ("user_data", "expected"),
    [
        pytest.param(
            "0000000100000000000000010000000000000002000000010000000000000001000000010000000000000002",
            {
                "version": 1,
                "process_id": "00000000000000010000000000000002",
                "active_tasks": ["0_1"],
                "standby_tasks": ["0_2"],
            },
            id="version 1",
        ),
        pytest.param(
            (
                "000000020000000000000001000000000000000200000001000000000000000100000001000000000000000200000004"
                "683a3830"
            ),
            {
                "version": 2,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "active_tasks": ["0_1"],
                "standby_tasks": ["0_2"],
            },
            id="version 2",
        ),
        pytest.param(
            (
                "000000030000000b00000000000000010000000000000002000000010000000000000001000000010000000000000002"
                "00000004683a3830"
            ),
            {
                "version": 3,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "active_tasks": ["0_1"],
                "standby_tasks": ["0_2"],
            },
            id="version 3",
        ),
        pytest.param(
            (
                "000000060000000b00000000000000010000000000000002000000010000000000000001000000010000000000000002"
                "00000004683a3830"
            ),
            {
                "version": 6,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "active_tasks": ["0_1"],
                "standby_tasks": ["0_2"],
            },
            id="version 6",
        ),
        pytest.param(
            (
                "000000070000000b0000000000000001000000000000000200000004683a383000000001000000000000000200000001"
                "fffffffffffffffe000000020000000000000032"
            ),
            {
                "version": 7,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "tasks": {"0_1": -2, "0_2": 50},
            },
            id="version 7",
        ),
        pytest.param(
            (
                "000000080000000b0000000000000001000000000000000200000004683a383000000001000000000000000200000001"
                "fffffffffffffffe00000002000000000000003203"
            ),
            {
                "version": 8,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "tasks": {"0_1": -2, "0_2": 50},
            },
            id="version 8",
        ),
        pytest.param(
            (
                "000000090000000b0000000000000001000000000000000200000004683a383000000001000000000000000200000001"
                "fffffffffffffffe0000000200000000000000320300000000"
            ),
            {
                "version": 9,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "tasks": {"0_1": -2, "0_2": 50},
                "error_code": 0,
            },
            id="version 9",
        ),
        pytest.param(
            (
                "0000000a0000000b0000000000000001000000000000000200000004683a3830000000020000000000000001ffffffff"
                "fffffffeffff00000000000000020000000000000032ffff0300000000"
            ),
            {
                "version": 10,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "tasks": {"0_1": -2, "0_2": 50},
                "error_code": 0,
            },
            id="version 10",
        ),
        pytest.param(
            (
                "0000000b0000000b0000000000000001000000000000000200000004683a3830000000020000000000000001ffffffff"
                "fffffffeffff00000000000000020000000000000032ffff030000000000000001000000047a6f6e650000000161"
            ),
            {
                "version": 11,
                "process_id": "00000000000000010000000000000002",
                "end_point": "h:80",
                "tasks": {"0_1": -2, "0_2": 50},
                "error_code": 0,
                "client_tags": {"zone": "a"},
            },
            id="version 11",
        ),
    ],
)
def test_streams_instances_that_join(user_data: str, expected: dict[str, Any]) -> None:
    said = _said(told_subscription("consumer", "stream", _with_user_data(user_data)))
    assert said == {"version": 0, "topics": ["t"], "user_data": expected}
    for size in range(len(user_data) // 2):
        with pytest.raises(DecodeError):
            streams_subscription(bytes.fromhex(user_data)[:size])


# Active tasks 0_1 and 0_2, standby task 1_0 of t-0; what is behind says which host has which partition.
@pytest.mark.parametrize(
    "user_data",
    [
        pytest.param(
            "0000000100000002000000000000000100000000000000020000000100000001000000000000000100017400000000",
            id="version 1",
        ),
        pytest.param(
            (
                "000000020000000200000000000000010000000000000002000000010000000100000000000000010001740000000000"
                "000001000168000000500000000100017400000001"
            ),
            id="version 2",
        ),
        pytest.param(
            (
                "000000030000000b00000002000000000000000100000000000000020000000100000001000000000000000100017400"
                "00000000000001000168000000500000000100017400000001"
            ),
            id="version 3",
        ),
        pytest.param(
            (
                "000000040000000b00000002000000000000000100000000000000020000000100000001000000000000000100017400"
                "0000000000000100016800000050000000010001740000000100000000"
            ),
            id="version 4",
        ),
        pytest.param(
            (
                "000000050000000b00000002000000000000000100000000000000020000000100000001000000000000000100017400"
                "0000000000000100000000000174000000010001680000005000000001000000000000000100000000"
            ),
            id="version 5",
        ),
        pytest.param(
            (
                "000000060000000b00000002000000000000000100000000000000020000000100000001000000000000000100017400"
                "000000000000010000000000017400000001000168000000500000000100000000000000010000000100016800000050"
                "00000001000000000000000000000000"
            ),
            id="version 6",
        ),
        pytest.param(
            (
                "000000070000000b00000002000000000000000100000000000000020000000100000001000000000000000100017400"
                "000000000000010000000000017400000001000168000000500000000100000000000000010000000100016800000050"
                "000000010000000000000000000000000000000000000063"
            ),
            id="version 7",
        ),
        pytest.param(
            (
                "000000080000000b00000002000000000000000100000000000000020000000100000001000000000000000100017400"
                "000000000000010000000000017400000001000168000000500000000100000000000000010000000100016800000050"
                "000000010000000000000000000000000000000000000063"
            ),
            id="version 8",
        ),
        pytest.param(
            (
                "000000090000000b00000002000000000000000100000000000000020000000100000001000000000000000100017400"
                "000000000000010000000000017400000001000168000000500000000100000000000000010000000100016800000050"
                "000000010000000000000000000000000000000000000063"
            ),
            id="version 9",
        ),
        pytest.param(
            (
                "0000000a0000000b00000002000000000000000100000000000000000000000200000000000000010000000100000000"
                "000000000000000100017400000000000000010000000000017400000001000168000000500000000100000000000000"
                "010000000100016800000050000000010000000000000000000000000000000000000063"
            ),
            id="version 10",
        ),
        pytest.param(
            (
                "0000000b0000000b00000002000000000000000100000000000000000000000200000000000000010000000100000000"
                "000000000000000100017400000000000000010000000000017400000001000168000000500000000100000000000000"
                "010000000100016800000050000000010000000000000000000000000000000000000063"
            ),
            id="version 11",
        ),
    ],
)
def test_streams_instances_that_are_given_tasks(user_data: str) -> None:
    found = streams_assignment(bytes.fromhex(user_data))
    assert found == StreamsAssignment(found.version, ("0_1", "0_2"), (("1_0", (TopicPartitions("t", (0,)),)),))
    blob = bytes.fromhex("0000 00000000") + (len(user_data) // 2).to_bytes(4, "big") + bytes.fromhex(user_data)
    assert _said(told_assignment("consumer", "stream", blob)) == {
        "version": found.version,
        "active_tasks": ["0_1", "0_2"],
        "standby_tasks": {"1_0": {"t": [0]}},
    }


SR = b'{"version":1,"host":"sr-1","port":8081,"master_eligibility":true,"scheme":"http"}'


@pytest.mark.parametrize(
    ("kind", "name", "blob", "expected"),
    [
        pytest.param("sr", "v0", SR, json.loads(SR), id="Schema Registry"),
        pytest.param("sr", "v0", b"[" * 10_000, None, id="JSON too deep"),
        pytest.param("sr", "v0", b"[1]", None, id="no JSON object"),
        pytest.param("sr", "v0", b'{"a":NaN}', None, id="not a number"),
        pytest.param("sr", "v0", b'{"a":"\\ud800"}', {"a": "\ud800"}, id="half a character"),
        pytest.param("sr", "v0", b'{"a":"' + b"x" * 70_000 + b'"}', None, id="very long"),
        pytest.param(
            "consumer",
            "sticky",
            bytes.fromhex("0000 00000001 0001 74 00000017 00000001 0001 74 00000002 00000000 00000003 00000005"),
            {"version": 0, "topics": ["t"], "user_data": {"owned": {"t": [0, 3]}, "generation_id": 5}},
            id="sticky",
        ),
        pytest.param(
            "consumer",
            "mine",
            bytes.fromhex("0000 00000001 0001 74 00000001 ff"),
            {"version": 0, "topics": ["t"]},
            id="an assignor that is not known",
        ),
        pytest.param("consumer", "range", b"", None, id="nothing"),
        pytest.param("consumer", "range", b"\0", None, id="broken"),
        pytest.param("mine", "range", bytes(20), None, id="a type that is not known"),
        pytest.param(None, None, bytes(20), None, id="no type"),
    ],
)
def test_subscriptions(kind: str | None, name: str | None, blob: bytes, expected: Any) -> None:
    assert _said(told_subscription(kind, name, blob)) == expected


NAMES = st.sampled_from(["range", "sticky", "cooperative-sticky", "stream", "sessioned", None])


@given(st.sampled_from(["consumer", "connect", "sr", None]), NAMES, st.binary(max_size=120))
def test_any_bytes(kind: str | None, name: str | None, blob: bytes) -> None:
    told_subscription(kind, name, blob)
    told_assignment(kind, name, blob)
    for read in (streams_assignment, streams_subscription):
        with suppress(DecodeError):
            read(blob)


def test_a_worker_joins_and_is_given_work() -> None:
    state, given = (
        bytes.fromhex(WORKER_STATES[0].values[0]),
        bytes.fromhex("0000 0000 0003 772d31 0001 75 0000000000000007 00000000"),
    )
    # JoinGroup v0: group g, session timeout, member, type connect, one protocol "default"
    asked = bytes.fromhex("0001 67 00002710 0000 0007 636f6e6e656374 00000001 0007 64656661756c74")
    wire = Wire().request(11, 0, 1, asked + len(state).to_bytes(4, "big") + state)
    # error 0, generation 1, protocol, leader m, member m, no members
    wire.response(1, bytes.fromhex("0000 00000001 0007 64656661756c74 0001 6d 0001 6d 00000000"))
    # SyncGroup v5: group g, generation 1, member m, no instance, type connect, protocol default, no plans
    wire.request(14, 5, 2, bytes.fromhex("00 02 67 00000001 02 6d 00 08 636f6e6e656374 08 64656661756c74 01 00"))
    # throttle, error, type, protocol, assignment
    answer = (
        bytes.fromhex("00 00000000 0000 08 636f6e6e656374 08 64656661756c74") + bytes([len(given) + 1]) + given + b"\0"
    )
    wire.response(2, answer)
    rows = wire.rows("kafka_group_events", "event", "protocol_type", "protocol_metadata")
    assert [(row[0], row[1]) for row in rows] == [("join", "connect"), ("sync", "connect")]
    assert _said(rows[0][2]) == {"version": 0, "url": URL, "config_offset": 7, "runs": {}}
    assert _said(rows[1][2])["runs"] == {}
    assert wire.rows("kafka_assignments", "topic") == []
    assert wire.remarks() == []
