"""Transactions, versions and cluster facts of one connection, from bytes."""

from __future__ import annotations

import pytest

from tests.dissectors.kafka.test_decoder import HEARTBEAT_OK, HEARTBEAT_V0, Wire

TXN = ("event", "transactional_id", "producer_id", "producer_epoch", "partitions", "committed", "error_code")


@pytest.mark.parametrize(
    ("key", "version", "asked", "answer", "expected"),
    [
        pytest.param(
            22,
            0,
            "0001 74 0000ea60",  # transactional id t, timeout 60 s
            "00000000 0000 0000000000000007 0003",  # throttle, error, producer id 7, epoch 3
            ("init_producer_id", "t", -1, -1, None, None, 0),
            id="InitProducerId",
        ),
        pytest.param(
            24,
            0,
            # t, producer 7 epoch 3, topic a: 0, 2
            "0001 74 0000000000000007 0003 00000001 0001 61 00000002 00000000 00000002",
            "00000000 00000001 0001 61 00000002 00000000 0000 00000002 0033",  # partition 2: 51
            ("add_partitions_to_txn", "t", 7, 3, "a-0,a-2", None, 51),
            id="AddPartitionsToTxn",
        ),
        pytest.param(
            24,
            4,
            # one transaction: t, 7, 3, verify only, topic a: 5
            "00 02 02 74 0000000000000007 0003 01 02 02 61 02 00000005 00 00 00",
            "00 00000000 0000 02 02 74 02 02 61 02 00000005 0000 00 00 00 00",
            ("verify_partitions_in_txn", "t", 7, 3, "a-5", None, 0),
            id="AddPartitionsToTxn of a broker",
        ),
        pytest.param(
            26,
            0,
            "0001 74 0000000000000007 0003 01",
            "00000000 0000",
            ("end_txn", "t", 7, 3, None, True, 0),
            id="EndTxn commits",
        ),
        pytest.param(
            26,
            0,
            "0001 74 0000000000000007 0003 00",
            None,
            ("end_txn", "t", 7, 3, None, False, None),
            id="EndTxn aborts, unanswered",
        ),
        pytest.param(
            27,
            0,
            # one marker: producer 7 epoch 3, abort, topic a: 1, coordinator epoch 0
            "00000001 0000000000000007 0003 00 00000001 0001 61 00000001 00000001 00000000",
            "00000001 0000000000000007 00000001 0001 61 00000001 00000001 0006",
            ("write_txn_markers", None, 7, 3, "a-1", False, 6),
            id="WriteTxnMarkers",
        ),
    ],
)
def test_transactional_events(key: int, version: int, asked: str, answer: str | None, expected: tuple[object]) -> None:
    wire = Wire().request(key, version, 1, bytes.fromhex(asked))
    if answer is not None:
        wire.response(1, bytes.fromhex(answer))
    wire.finish()
    assert wire.rows("kafka_transactions", *TXN) == [expected]
    assert wire.remarks() == []


VERSIONS = ("software_name", "software_version", "api_key", "min_version", "max_version", "used_version_min")
API_VERSIONS_V3 = bytes.fromhex("00 04 6c6962 02 31 00")  # no tags of the header; lib, 1
# error 0; Produce 3-9, Heartbeat 0-4; throttle
OFFERED = bytes.fromhex("0000 03 0000 0003 0009 00 000c 0000 0004 00 00000000 00")


def test_who_leaves_says_why() -> None:
    members = compact("m1") + b"\0" + compact("consumer poll timeout has expired.") + b"\0"
    members += compact("m2") + compact("pod-2") + b"\0" + b"\0"
    wire = Wire().request(13, 5, 1, b"\0" + compact("g") + b"\x03" + members + b"\0")
    told = b"".join(compact(name) + b"\0" + code + b"\0" for name, code in (("m1", b"\0\0"), ("m2", b"\0\x19")))
    wire.response(1, b"\0" + (250).to_bytes(4, "big") + b"\0\0" + b"\x03" + told + b"\0")
    names = ("event", "group_protocol", "member_id", "group_instance_id", "reason", "error_code")
    assert wire.rows("kafka_group_events", *names) == [
        ("leave", "classic", "m1", None, "consumer poll timeout has expired.", 0),
        ("leave", "classic", "m2", "pod-2", None, 25),
    ]
    assert wire.rows("exchanges", "operation", "throttle_time_ms") == [("LeaveGroup", 250)]


def compact(text: str) -> bytes:
    """A string of a flexible version."""
    return bytes([len(text) + 1]) + text.encode()


def test_versions_of_a_connection() -> None:
    wire = Wire().request(18, 3, 1, API_VERSIONS_V3).response(1, OFFERED)
    wire.request(12, 0, 2, HEARTBEAT_V0).response(2, HEARTBEAT_OK).finish()
    assert wire.rows("kafka_api_versions", *VERSIONS) == [
        ("lib", "1", 0, 3, 9, None),
        ("lib", "1", 12, 0, 4, 0),
        ("lib", "1", 18, None, None, 3),
    ]


def test_versions_used_without_an_answer() -> None:
    wire = Wire().request(12, 0, 2, HEARTBEAT_V0).response(2, HEARTBEAT_OK).finish()
    assert wire.rows("kafka_api_versions", *VERSIONS) == [(None, None, 12, None, None, 0)]


def test_a_refused_version_keeps_the_software() -> None:
    refused = bytes.fromhex("0023 00000001 0012 0000 0004")  # error 35, ApiVersions 0-4, in the form of version 0
    wire = Wire().request(18, 5, 1, bytes.fromhex("00 04 6c6962 02 31 00 00000001 00")).response(1, refused)
    offered = bytes.fromhex("0000 00000001 000c 0000 0004")
    wire.request(18, 0, 2, b"").response(2, offered).finish()
    assert wire.rows("kafka_api_versions", *VERSIONS) == [("lib", "1", 12, 0, 4, None), ("lib", "1", 18, None, None, 0)]


@pytest.mark.parametrize(
    ("key", "version", "text"),
    [
        (0, 99, "Produce v99 is newer than v13, the newest known; the broker offers v3-v9"),
        (200, 0, "API key 200 is not known; the broker does not offer it"),
    ],
    ids=["version", "key"],
)
def test_unknown_messages_are_told_against_what_the_broker_offers(key: int, version: int, text: str) -> None:
    wire = Wire().request(18, 3, 1, API_VERSIONS_V3).response(1, OFFERED).request(key, version, 2, b"\0")
    assert [row[7] for row in wire.out.rows("expert_infos") or ()] == [text]


def test_described_cluster() -> None:
    # DescribeCluster v2: error, message, endpoint type, cluster k, controller 1, broker 1 h:9092 rack null, not fenced
    answer = bytes.fromhex("00 00000000 0000 00 01 02 6b 00000001 02 00000001 02 68 00002384 00 00 00 80000000 00")
    wire = Wire().request(60, 2, 1, bytes.fromhex("00 00 01 01 00")).response(1, answer)
    columns = ("wire_cluster_id", "node_id", "host", "port", "source", "is_controller", "is_fenced")
    assert wire.rows("kafka_brokers", *columns) == [("k", 1, "h", 9092, "DescribeCluster", True, False)]
    assert wire.remarks() == []


@pytest.mark.parametrize(
    ("version", "asked", "answer", "expected"),
    [
        pytest.param(
            3,
            # a consumer; topic t, partition 1, believes in epoch 2, has read epoch 0
            "ffffffff 00000001 0001 74 00000001 00000001 00000002 00000000",
            # throttle; topic t: no error, partition 1, epoch 0 ends at 547
            "00000000 00000001 0001 74 00000001 0000 00000001 00000000 0000000000000223",
            (-1, "t", 1, 2, 0, 0, 547, 0),
            id="version 3",
        ),
        pytest.param(
            0,
            "00000001 0001 74 00000001 00000001 00000005",
            "00000001 0001 74 00000001 0006 00000001 ffffffffffffffff",
            (None, "t", 1, None, 5, None, -1, 6),
            id="version 0, not the leader",
        ),
        pytest.param(
            2,
            "00000001 0001 74 00000001 00000001 00000002 00000000",
            None,
            (None, "t", 1, 2, 0, None, None, None),
            id="unanswered",
        ),
    ],
)
def test_ends_of_leader_epochs(version: int, asked: str, answer: str | None, expected: tuple[object]) -> None:
    wire = Wire().request(23, version, 1, bytes.fromhex(asked))
    if answer is not None:
        wire.response(1, bytes.fromhex(answer))
    wire.finish()
    columns = (
        "replica_id",
        "topic",
        "partition",
        "current_leader_epoch",
        "requested_epoch",
        "leader_epoch",
        "end_offset",
    )
    assert wire.rows("kafka_leader_epochs", *columns, "error_code") == [expected]
    assert wire.remarks() == []
