"""Which requests ask the broker to wait."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.dissectors.kafka.test_decoder import COMMIT_OK, COMMIT_V2, HEARTBEAT_OK, HEARTBEAT_V0, Wire
from wirewitness.dissectors.kafka.long_polls import WAITS
from wirewitness.dissectors.kafka.schema.primitives import METADATA_TOPIC, METADATA_TOPIC_ID

FETCH, JOIN_GROUP, SYNC_GROUP, SHARE_FETCH = 1, 11, 14, 78
ORDERS = [{"topic": "orders", "partitions": []}]
LOG = [{"topic": METADATA_TOPIC, "partitions": []}]
LOG_BY_ID = [{"topic_id": METADATA_TOPIC_ID, "partitions": []}]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        pytest.param(FETCH, {"max_wait_ms": 500, "min_bytes": 1, "topics": ORDERS}, True, id="a consumer's Fetch"),
        pytest.param(FETCH, {"max_wait_ms": 500, "min_bytes": 1, "topics": []}, True, id="of a fetch session"),
        pytest.param(FETCH, {"max_wait_ms": 0, "min_bytes": 1, "topics": ORDERS}, False, id="no time to wait"),
        pytest.param(FETCH, {"max_wait_ms": 500, "min_bytes": 0, "topics": ORDERS}, False, id="nothing to wait for"),
        pytest.param(FETCH, {"max_wait_ms": 500, "min_bytes": 0, "topics": []}, False, id="nothing, and no topic"),
        pytest.param(FETCH, {"max_wait_ms": 500, "min_bytes": 0, "topics": LOG}, True, id="of the metadata log"),
        pytest.param(FETCH, {"max_wait_ms": 500, "min_bytes": 0, "topics": LOG_BY_ID}, True, id="the log by its id"),
        pytest.param(FETCH, {"max_wait_ms": 0, "min_bytes": 0, "topics": LOG_BY_ID}, False, id="the log, no time"),
        pytest.param(FETCH, None, None, id="a Fetch that is not decoded"),
        pytest.param(SHARE_FETCH, {"max_wait_ms": 500, "min_bytes": 1, "topics": []}, True, id="ShareFetch"),
        pytest.param(SHARE_FETCH, {"max_wait_ms": 0, "min_bytes": 1, "topics": []}, False, id="the last ShareFetch"),
        pytest.param(JOIN_GROUP, {"group_id": "g"}, True, id="JoinGroup"),
        pytest.param(JOIN_GROUP, None, True, id="a JoinGroup that is not decoded"),
        pytest.param(SYNC_GROUP, {"assignments": []}, True, id="a follower's SyncGroup"),
        pytest.param(SYNC_GROUP, {"assignments": [{"member_id": "m"}]}, False, id="the leader's SyncGroup"),
        pytest.param(SYNC_GROUP, None, None, id="a SyncGroup that is not decoded"),
    ],
)
def test_by_what_the_request_says(key: int, value: dict[str, Any] | None, expected: bool | None) -> None:
    assert WAITS[key](value) is expected


# Fetch v4: replica -1, so long, at least so many bytes, at most 1 MiB, read uncommitted, no topics
def fetch_v4(max_wait_ms: int, min_bytes: int) -> bytes:
    return struct.pack(">iiiibi", -1, max_wait_ms, min_bytes, 1 << 20, 0, 0)


def test_exchanges_tell() -> None:
    wire = Wire().request(FETCH, 4, 1, fetch_v4(500, 1)).response(1, bytes(8))
    wire.request(FETCH, 4, 2, fetch_v4(0, 1)).response(2, bytes(8))
    wire.request(12, 0, 3, HEARTBEAT_V0).response(3, HEARTBEAT_OK)
    wire.request(8, 2, 4, COMMIT_V2).response(4, COMMIT_OK)
    wire.request(FETCH, 4, 5, fetch_v4(500, 1)).finish()
    assert wire.rows("exchanges", "operation", "status", "awaitable") == [
        ("Fetch", "ok", True),
        ("Fetch", "ok", False),
        ("Heartbeat", "ok", False),
        ("OffsetCommit", "ok", False),
        ("Fetch", "unanswered", True),
    ]


def test_nobody_knows_of_what_was_not_seen() -> None:
    """A response without its request, and a Fetch that cannot be decoded."""
    wire = Wire().response(9, bytes(8)).request(FETCH, 4, 2, b"\xff").response(2, bytes(8)).finish()
    assert {row[-1] for row in wire.rows("exchanges", "status", "awaitable")} == {None}
