"""What members of share groups acquire and acknowledge, from bytes (KIP-932)."""

from __future__ import annotations

import struct

import pytest

from tests.dissectors.kafka.test_decoder import Wire
from wirewitness.dissectors.kafka.rows.share_rows import MAX_RUNS

FETCH, ACKNOWLEDGE, WRITE_STATE, DESCRIBE, DELETE = 78, 79, 85, 90, 92
TOPIC = bytes(range(16))
ACKNOWLEDGED = (
    "api",
    "group_id",
    "member_id",
    "partition",
    "first_offset",
    "last_offset",
    "acknowledge_type",
    "error_code",
)
ACQUIRED = (
    "group_id",
    "partition",
    "first_offset",
    "last_offset",
    "records_count",
    "delivery_count",
    "lock_timeout_ms",
)


def text(value: str) -> bytes:
    """A string of a flexible version."""
    return bytes([len(value) + 1]) + value.encode()


def acknowledging(*batches: tuple[int, int, list[int]]) -> bytes:
    """The body of a ShareAcknowledge v1 for partition 3."""
    body = text("g") + text("m") + struct.pack(">i", 5) + b"\2" + TOPIC + b"\2" + struct.pack(">i", 3)
    body += bytes([len(batches) + 1])
    for first, last, types in batches:
        count = len(types) + 1
        size = bytes([count & 0x7F | 0x80, count >> 7]) if count > 0x7F else bytes([count])
        body += struct.pack(">qq", first, last) + size + bytes(types) + b"\0"
    return b"\0" + body + b"\0\0\0"


def acknowledged(code: int, outer: int = 0) -> bytes:
    answer = struct.pack(">ih", 0, outer) + b"\0" + b"\2" + TOPIC + b"\2"
    return b"\0" + answer + struct.pack(">ih", 3, code) + b"\0" + bytes(8) + b"\0\0\0" + b"\1" + b"\0"


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        pytest.param([1], [(7, 12, "accept")], id="one type for all"),
        pytest.param([1, 1, 2, 2, 3, 0], [(7, 8, "accept"), (9, 10, "release"), (11, 11, "reject"), (12, 12, "gap")]),
        pytest.param([4, 4], [(7, 12, "renew")], id="one type, written twice"),
        pytest.param([9], [(7, 12, "9")], id="a type without a name"),
        pytest.param([], [(7, 12, None)], id="no type"),
        pytest.param([1, 2] * MAX_RUNS, [(7, 12, "mixed")], id="more runs than rows"),
    ],
)
def test_runs_of_one_type_are_a_row(types: list[int], expected: list[tuple[int, int, str | None]]) -> None:
    wire = Wire().request(ACKNOWLEDGE, 1, 1, acknowledging((7, 12, types))).response(1, acknowledged(0))
    assert wire.rows("kafka_share_acknowledges", *ACKNOWLEDGED) == [
        ("ShareAcknowledge", "g", "m", 3, first, last, kind, 0) for first, last, kind in expected
    ]


def test_a_refusal_of_the_whole_request_is_that_of_each_range() -> None:
    wire = (
        Wire().request(ACKNOWLEDGE, 1, 1, acknowledging((7, 12, [1]), (20, 20, [2]))).response(1, acknowledged(0, 122))
    )
    assert [row[-1] for row in wire.rows("kafka_share_acknowledges", *ACKNOWLEDGED)] == [122, 122]
    wire = Wire().request(ACKNOWLEDGE, 1, 1, acknowledging((7, 12, [1]))).response(1, acknowledged(121))
    assert [row[-1] for row in wire.rows("kafka_share_acknowledges", *ACKNOWLEDGED)] == [121]
    wire = Wire().request(ACKNOWLEDGE, 1, 1, acknowledging((7, 12, [1]))).finish()
    assert [row[-1] for row in wire.rows("kafka_share_acknowledges", *ACKNOWLEDGED)] == [None]


def test_a_fetch_acquires_and_acknowledges() -> None:
    asked = text("g") + text("m") + struct.pack(">iiiiii", 1, 500, 1, 1 << 20, 100, 100)
    asked += (
        b"\2" + TOPIC + b"\2" + struct.pack(">i", 3) + b"\2" + struct.pack(">qq", 0, 4) + b"\2\1" + b"\0\0\0" + b"\1\0"
    )
    answer = struct.pack(">ih", 0, 0) + b"\0" + struct.pack(">i", 30_000) + b"\2" + TOPIC + b"\3"
    for part, code, acknowledge_code, acquired in ((3, 0, 121, [(5, 9, 1), (2, 2, 4)]), (4, 6, 0, [])):
        answer += (
            struct.pack(">ih", part, code) + b"\0" + struct.pack(">h", acknowledge_code) + b"\0" + bytes(8) + b"\0"
        )
        answer += b"\1" + bytes([len(acquired) + 1])
        answer += b"".join(struct.pack(">qqh", *one) + b"\0" for one in acquired) + b"\0"
    wire = Wire().request(FETCH, 1, 1, b"\0" + asked).response(1, b"\0" + answer + b"\0" + b"\1" + b"\0")
    assert wire.rows("kafka_share_fetches", *ACQUIRED, "error_code") == [
        ("g", 3, 5, 9, 5, 1, 30_000, 0),
        ("g", 3, 2, 2, 1, 4, 30_000, 0),
        ("g", 4, None, None, None, None, 30_000, 6),
    ]
    assert wire.rows("kafka_share_acknowledges", *ACKNOWLEDGED) == [("ShareFetch", "g", "m", 3, 0, 4, "accept", 121)]


STARTS = ("api", "group_id", "topic", "partition", "start_offset", "lag", "batches_count", "error_code")


def write_state() -> bytes:
    """The body of a WriteShareGroupState v0 for partition 3, from offset 40, with a range of two records."""
    body = text("g") + b"\2" + TOPIC + b"\2" + struct.pack(">iiiq", 3, 2, 7, 40)
    return b"\0" + body + b"\2" + struct.pack(">qqbh", 41, 42, 0, 2) + b"\0" + b"\0\0\0"


def test_a_write_of_state_says_where_the_partition_starts_and_an_open_one_has_no_error() -> None:
    answer = b"\0" + b"\2" + TOPIC + b"\2" + struct.pack(">ih", 3, 124) + text("fenced") + b"\0\0\0"
    wire = Wire().request(WRITE_STATE, 0, 1, write_state()).response(1, answer)
    same = ("WriteShareGroupState", "g", None, 3, 40, None, 1)
    assert wire.rows("kafka_share_offsets", *STARTS) == [(*same, 124)]
    assert wire.rows("kafka_share_offsets", "state_epoch", "leader_epoch", "error_message") == [(2, 7, "fenced")]
    wire = Wire().request(WRITE_STATE, 0, 1, write_state()).finish()
    assert wire.rows("kafka_share_offsets", *STARTS) == [(*same, None)]


def test_a_description_without_topics_has_those_that_are_answered_and_a_refused_group_none() -> None:
    asked = b"\0" + b"\3" + text("g") + b"\0\0" + text("h") + b"\0\0" + b"\0"
    part = struct.pack(">iqiqh", 3, 40, 7, 12, 0) + b"\0\0"
    told = text("g") + b"\2" + text("t") + TOPIC + b"\2" + part + b"\0" + struct.pack(">h", 0) + b"\0\0"
    refused = text("h") + b"\1" + struct.pack(">h", 69) + b"\0\0"
    wire = Wire().request(DESCRIBE, 1, 1, asked).response(1, b"\0" + bytes(4) + b"\3" + told + refused + b"\0")
    assert wire.remarks() == []
    assert wire.rows("kafka_share_offsets", *STARTS) == [("DescribeShareGroupOffsets", "g", "t", 3, 40, 12, None, 0)]


@pytest.mark.parametrize(("outer", "inner", "code"), [(0, 0, 0), (0, 3, 3), (69, 0, 69)])
def test_deleted_offsets_are_those_of_whole_topics(outer: int, inner: int, code: int) -> None:
    asked = b"\0" + text("g") + b"\2" + text("t") + b"\0" + b"\0"
    answer = b"\0" + struct.pack(">ih", 0, outer) + b"\0" + b"\2" + text("t") + TOPIC + struct.pack(">h", inner)
    wire = Wire().request(DELETE, 0, 1, asked).response(1, answer + b"\0\0\0")
    assert wire.remarks() == []
    assert wire.rows("kafka_share_offsets", *STARTS) == [
        ("DeleteShareGroupOffsets", "g", "t", None, None, None, None, code)
    ]
