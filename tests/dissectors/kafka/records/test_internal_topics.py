"""Records of Kafka's own topics: bytes that the coordinators' own serialisers wrote (Apache Kafka 4.3.0).

Long, since CASES is one table.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import kafka_encode
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.records.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_STATE,
    TOPICS,
    TRANSACTION_STATE,
    InternalRecord,
    control_record,
    internal_record,
)
from wirewitness.dissectors.kafka.schema import definitions as schema

ID = bytes([*bytes(7), 1, *bytes(7), 2])

# Topic (None: a control record), key, value, and what it says. A key is the number of the type, then its fields; a
# value the number of the version, then its fields, those of flexible versions with compact lengths and tagged fields.
CASES = [
    pytest.param(
        CONSUMER_OFFSETS,
        "0001000762696c6c696e6700066f726465727300000007",
        "000000000000000004d200016d0000018bcfe56800",
        InternalRecord(
            "OffsetCommit",
            {"group": "billing", "topic": "orders", "partition": 7},
            0,
            {"offset": 1234, "metadata": "m", "commit_timestamp": 1700000000000},
        ),
        id="OffsetCommit v0",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0001000762696c6c696e6700066f726465727300000007",
        "000100000000000004d200016d0000018bcfe568000000018bcfe56be8",
        InternalRecord(
            "OffsetCommit",
            {"group": "billing", "topic": "orders", "partition": 7},
            1,
            {"offset": 1234, "metadata": "m", "commit_timestamp": 1700000000000, "expire_timestamp": 1700000001000},
        ),
        id="OffsetCommit v1",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0001000762696c6c696e6700066f726465727300000007",
        "000200000000000004d200016d0000018bcfe56800",
        InternalRecord(
            "OffsetCommit",
            {"group": "billing", "topic": "orders", "partition": 7},
            2,
            {"offset": 1234, "metadata": "m", "commit_timestamp": 1700000000000},
        ),
        id="OffsetCommit v2",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0001000762696c6c696e6700066f726465727300000007",
        "000300000000000004d20000000500016d0000018bcfe56800",
        InternalRecord(
            "OffsetCommit",
            {"group": "billing", "topic": "orders", "partition": 7},
            3,
            {"offset": 1234, "leader_epoch": 5, "metadata": "m", "commit_timestamp": 1700000000000},
        ),
        id="OffsetCommit v3",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0001000762696c6c696e6700066f726465727300000007",
        "000400000000000004d200000005026d0000018bcfe5680001001000000000000000010000000000000002",
        InternalRecord(
            "OffsetCommit",
            {"group": "billing", "topic": "orders", "partition": 7},
            4,
            {"offset": 1234, "leader_epoch": 5, "metadata": "m", "commit_timestamp": 1700000000000, "topic_id": ID},
        ),
        id="OffsetCommit v4",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0000000762696c6c696e6700066f726465727300000007",
        "0000000000000000000900000000000000000001",
        InternalRecord(
            "OffsetCommit",
            {"group": "billing", "topic": "orders", "partition": 7},
            0,
            {"offset": 9, "metadata": "", "commit_timestamp": 1},
        ),
        id="OffsetCommit legacy key",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0001000762696c6c696e6700066f726465727300000007",
        None,
        InternalRecord("OffsetCommit", {"group": "billing", "topic": "orders", "partition": 7}, None, None),
        id="OffsetCommit tombstone",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0002000762696c6c696e67",
        (
            "00000008636f6e73756d657200000003000572616e67650003632d31000000010003632d3100016300092f31302e302e"
            "302e310000afc800000002000100000000"
        ),
        InternalRecord(
            "GroupMetadata",
            {"group": "billing"},
            0,
            {
                "protocol_type": "consumer",
                "generation": 3,
                "protocol": "range",
                "leader": "c-1",
                "members": [
                    {
                        "member_id": "c-1",
                        "client_id": "c",
                        "client_host": "/10.0.0.1",
                        "session_timeout": 45000,
                        "subscription": b"\x00\x01",
                        "assignment": b"",
                    }
                ],
            },
        ),
        id="GroupMetadata v0",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0002000762696c6c696e67",
        (
            "00010008636f6e73756d657200000003000572616e67650003632d31000000010003632d3100016300092f31302e302e"
            "302e31000493e00000afc800000002000100000000"
        ),
        InternalRecord(
            "GroupMetadata",
            {"group": "billing"},
            1,
            {
                "protocol_type": "consumer",
                "generation": 3,
                "protocol": "range",
                "leader": "c-1",
                "members": [
                    {
                        "member_id": "c-1",
                        "client_id": "c",
                        "client_host": "/10.0.0.1",
                        "rebalance_timeout": 300000,
                        "session_timeout": 45000,
                        "subscription": b"\x00\x01",
                        "assignment": b"",
                    }
                ],
            },
        ),
        id="GroupMetadata v1",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0002000762696c6c696e67",
        (
            "00020008636f6e73756d657200000003000572616e67650003632d310000000000000007000000010003632d31000163"
            "00092f31302e302e302e31000493e00000afc800000002000100000000"
        ),
        InternalRecord(
            "GroupMetadata",
            {"group": "billing"},
            2,
            {
                "protocol_type": "consumer",
                "generation": 3,
                "protocol": "range",
                "leader": "c-1",
                "current_state_timestamp": 7,
                "members": [
                    {
                        "member_id": "c-1",
                        "client_id": "c",
                        "client_host": "/10.0.0.1",
                        "rebalance_timeout": 300000,
                        "session_timeout": 45000,
                        "subscription": b"\x00\x01",
                        "assignment": b"",
                    }
                ],
            },
        ),
        id="GroupMetadata v2",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0002000762696c6c696e67",
        (
            "00030008636f6e73756d657200000003000572616e67650003632d310000000000000007000000010003632d31000169"
            "00016300092f31302e302e302e31000493e00000afc800000002000100000000"
        ),
        InternalRecord(
            "GroupMetadata",
            {"group": "billing"},
            3,
            {
                "protocol_type": "consumer",
                "generation": 3,
                "protocol": "range",
                "leader": "c-1",
                "current_state_timestamp": 7,
                "members": [
                    {
                        "member_id": "c-1",
                        "group_instance_id": "i",
                        "client_id": "c",
                        "client_host": "/10.0.0.1",
                        "rebalance_timeout": 300000,
                        "session_timeout": 45000,
                        "subscription": b"\x00\x01",
                        "assignment": b"",
                    }
                ],
            },
        ),
        id="GroupMetadata v3",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0002000762696c6c696e67",
        (
            "000409636f6e73756d6572000000030672616e676504632d3100000000000000070204632d31026902630a2f31302e30"
            "2e302e31000493e00000afc8030001010000"
        ),
        InternalRecord(
            "GroupMetadata",
            {"group": "billing"},
            4,
            {
                "protocol_type": "consumer",
                "generation": 3,
                "protocol": "range",
                "leader": "c-1",
                "current_state_timestamp": 7,
                "members": [
                    {
                        "member_id": "c-1",
                        "group_instance_id": "i",
                        "client_id": "c",
                        "client_host": "/10.0.0.1",
                        "rebalance_timeout": 300000,
                        "session_timeout": 45000,
                        "subscription": b"\x00\x01",
                        "assignment": b"",
                    }
                ],
            },
        ),
        id="GroupMetadata v4",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0003000167",
        "0000000000040100080000000000000063",
        InternalRecord("ConsumerGroupMetadata", {"group_id": "g"}, 0, {"epoch": 4, "metadata_hash": 99}),
        id="ConsumerGroupMetadata",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "000500016700016d",
        "00000002720263032f68030261026200000003e808756e69666f726d0100100100001770020672616e676502010000",
        InternalRecord(
            "ConsumerGroupMemberMetadata",
            {"group_id": "g", "member_id": "m"},
            0,
            {
                "instance_id": None,
                "rack_id": "r",
                "client_id": "c",
                "client_host": "/h",
                "subscribed_topic_names": ["a", "b"],
                "subscribed_topic_regex": None,
                "rebalance_timeout_ms": 1000,
                "server_assignor": "uniform",
                "classic_member_metadata": {
                    "session_timeout_ms": 6000,
                    "supported_protocols": [{"name": "range", "metadata": b"\x01"}],
                },
            },
        ),
        id="ConsumerGroupMemberMetadata",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "0006000167",
        "00000000000400",
        InternalRecord(
            "ConsumerGroupTargetAssignmentMetadata",
            {"group_id": "g"},
            0,
            {"assignment_epoch": 4, "assignment_timestamp": None},
        ),
        id="ConsumerGroupTargetAssignmentMetadata",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "000700016700016d",
        "000002000000000000000100000000000000020300000000000000050000",
        InternalRecord(
            "ConsumerGroupTargetAssignmentMember",
            {"group_id": "g", "member_id": "m"},
            0,
            {"topic_partitions": [{"topic_id": ID, "partitions": [0, 5]}]},
        ),
        id="ConsumerGroupTargetAssignmentMember",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "000800016700016d",
        "000000000004000000030002000000000000000100000000000000020200000000000100",
        InternalRecord(
            "ConsumerGroupCurrentMemberAssignment",
            {"group_id": "g", "member_id": "m"},
            0,
            {
                "member_epoch": 4,
                "previous_member_epoch": 3,
                "state": 0,
                "assigned_partitions": [{"topic_id": ID, "partitions": [0], "assignment_epochs": None}],
                "partitions_pending_revocation": [],
            },
        ),
        id="ConsumerGroupCurrentMemberAssignment",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "00100001670003612e2a",
        "00000202610000000000000002000000000000000300",
        InternalRecord(
            "ConsumerGroupRegularExpression",
            {"group_id": "g", "regular_expression": "a.*"},
            0,
            {"topics": ["a"], "version": 2, "timestamp": 3},
        ),
        id="ConsumerGroupRegularExpression",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "000b000167",
        "000000000001000000000000000500",
        InternalRecord("ShareGroupMetadata", {"group_id": "g"}, 0, {"epoch": 1, "metadata_hash": 5}),
        id="ShareGroupMetadata",
    ),
    pytest.param(
        CONSUMER_OFFSETS,
        "001300016700016d",
        "000001010263032f68000000010000000202700102689c40000100",
        InternalRecord(
            "StreamsGroupMemberMetadata",
            {"group_id": "g", "member_id": "m"},
            0,
            {
                "instance_id": "",
                "rack_id": "",
                "client_id": "c",
                "client_host": "/h",
                "rebalance_timeout_ms": 1,
                "topology_epoch": 2,
                "process_id": "p",
                "user_endpoint": {"host": "h", "port": 40000},
                "client_tags": [],
            },
        ),
        id="StreamsGroupMemberMetadata",
    ),
    pytest.param(
        TRANSACTION_STATE,
        "0000000174",
        "0000000000000000000700030000ea6001ffffffff000000000000000b000000000000000a",
        InternalRecord(
            "TransactionLog",
            {"transactional_id": "t"},
            0,
            {
                "producer_id": 7,
                "producer_epoch": 3,
                "transaction_timeout_ms": 60000,
                "transaction_status": 1,
                "transaction_partitions": None,
                "transaction_last_update_timestamp_ms": 11,
                "transaction_start_timestamp_ms": 10,
            },
        ),
        id="TransactionLog v0",
    ),
    pytest.param(
        TRANSACTION_STATE,
        "0000000174",
        (
            "0001000000000000000700030000ea600102076f726465727303000000000000000200000000000000000b0000000000"
            "00000a0400080000000000000006010800000000000000080202000203020004"
        ),
        InternalRecord(
            "TransactionLog",
            {"transactional_id": "t"},
            1,
            {
                "producer_id": 7,
                "producer_epoch": 3,
                "transaction_timeout_ms": 60000,
                "transaction_status": 1,
                "transaction_partitions": [{"topic": "orders", "partition_ids": [0, 2]}],
                "transaction_last_update_timestamp_ms": 11,
                "transaction_start_timestamp_ms": 10,
                "previous_producer_id": 6,
                "next_producer_id": 8,
                "client_transaction_version": 2,
                "next_producer_epoch": 4,
            },
        ),
        id="TransactionLog v1",
    ),
    pytest.param(
        SHARE_STATE,
        "00000001670000000000000001000000000000000200000003",
        (
            "000000000001000000020000000300000000000000040000000000000005000000000000000602000000000000000400"
            "000000000000090100020000"
        ),
        InternalRecord(
            "ShareSnapshot",
            {"group_id": "g", "topic_id": ID, "partition": 3},
            0,
            {
                "snapshot_epoch": 1,
                "state_epoch": 2,
                "leader_epoch": 3,
                "start_offset": 4,
                "create_timestamp": 5,
                "write_timestamp": 6,
                "state_batches": [{"first_offset": 4, "last_offset": 9, "delivery_state": 1, "delivery_count": 2}],
                "delivery_complete_count": None,
            },
        ),
        id="ShareSnapshot",
    ),
    pytest.param(
        None,
        "00000001",
        "000000000009",
        InternalRecord("EndTxnMarkerCommit", {}, 0, {"coordinator_epoch": 9}),
        id="EndTxnMarkerCommit",
    ),
    pytest.param(
        None,
        "00000000",
        "000000000009",
        InternalRecord("EndTxnMarkerAbort", {}, 0, {"coordinator_epoch": 9}),
        id="EndTxnMarkerAbort",
    ),
    pytest.param(
        None,
        "00000002",
        "0000000000010200000001000100",
        InternalRecord(
            "LeaderChange", {}, 0, {"version": 0, "leader_id": 1, "voters": [{"voter_id": 1}], "granting_voters": []}
        ),
        id="LeaderChange",
    ),
    pytest.param(
        None,
        "00000005",
        "0000000100",
        InternalRecord("KRaftVersion", {}, 0, {"version": 0, "kraft_version": 1}),
        id="KRaftVersion",
    ),
    pytest.param(
        None,
        "00000003",
        "0000000000000000004d00",
        InternalRecord("SnapshotHeader", {}, 0, {"version": 0, "last_contained_log_timestamp": 77}),
        id="SnapshotHeader",
    ),
    pytest.param(
        None, "00000004", "000000", InternalRecord("SnapshotFooter", {}, 0, {"version": 0}), id="SnapshotFooter"
    ),
    pytest.param(
        None,
        "00000006",
        "0000020000000200000000000000010000000000000002020243026823850000000001000000",
        InternalRecord(
            "KRaftVoters",
            {},
            0,
            {
                "version": 0,
                "voters": [
                    {
                        "voter_id": 2,
                        "voter_directory_id": ID,
                        "endpoints": [{"name": "C", "host": "h", "port": 9093}],
                        "kraft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
                    }
                ],
            },
        ),
        id="KRaftVoters",
    ),
]


def _read(topic: str | None, key: str, value: str | None) -> InternalRecord:
    raw = None if value is None else bytes.fromhex(value)
    return control_record(bytes.fromhex(key), raw) if topic is None else internal_record(topic, bytes.fromhex(key), raw)


@pytest.mark.parametrize(("topic", "key", "value", "expected"), CASES)
def test_records(topic: str | None, key: str, value: str | None, expected: InternalRecord) -> None:
    raw = None if value is None else bytes.fromhex(value)
    found = (
        control_record(bytes.fromhex(key), raw) if topic is None else internal_record(topic, bytes.fromhex(key), raw)
    )
    assert found == expected


@pytest.mark.parametrize(("topic", "key", "value", "expected"), CASES)
def test_a_cut_record_is_an_error_and_nothing_else(
    topic: str | None, key: str, value: str | None, expected: InternalRecord
) -> None:
    for size in range(len(value or "") // 2):
        with pytest.raises(DecodeError):
            _read(topic, key, (value or "")[: 2 * size])


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        pytest.param(CONSUMER_OFFSETS, "", "", id="empty"),
        pytest.param(CONSUMER_OFFSETS, "0063 0001 67", "0000", id="type 99"),
        pytest.param(CONSUMER_OFFSETS, "ffff", "0000", id="type -1"),
        pytest.param(CONSUMER_OFFSETS, "0003 0001 67", "0009 00000004 00", id="version 9"),
        pytest.param(CONSUMER_OFFSETS, "0003 0009 67", "0000 00000004 00", id="key ends too soon"),
        pytest.param(TRANSACTION_STATE, "0000 ffff", "", id="null id"),
        pytest.param(None, "0000", "0000", id="half a control key"),
        pytest.param(None, "0000 0063", "0000", id="control type 99"),
    ],
)
def test_broken_records(topic: str | None, key: str, value: str) -> None:
    with pytest.raises(DecodeError):
        _read(topic, key, value)


@given(st.sampled_from([*TOPICS, None]), st.binary(max_size=60), st.binary(max_size=120))
def test_any_bytes(topic: str | None, key: bytes, value: bytes) -> None:
    with suppress(DecodeError):
        _read(topic, key.hex(), value.hex())


RECORDS = [(topic, number) for topic, folder in TOPICS.items() for number in schema.records(folder)]


@pytest.mark.parametrize(("topic", "number"), RECORDS)
def test_random_records_of_every_type_and_version(topic: str, number: int) -> None:
    record = schema.records(TOPICS[topic])[number]
    for version in range(record.versions.first, (record.versions.last or 0) + 1):
        for seed in range(20):
            random = Random(seed)
            key, named = kafka_encode.record_part(record, None, random)
            value, said = kafka_encode.record_part(record, version, random)
            found = internal_record(topic, number.to_bytes(2, "big") + key, version.to_bytes(2, "big") + value)
            assert found == InternalRecord(record.name, named, version, said)
