"""Records of Kafka's own topics as JSON."""

from __future__ import annotations

import json

from wirewitness.dissectors.kafka.records.internal_topics import InternalRecord, told_record

SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 ffffffff")


def test_blobs_of_members_are_told_and_other_bytes_are_hex() -> None:
    member = {"member_id": "m", "subscription": SUBSCRIPTION, "assignment": b"\xff", "other": b"\1\2"}
    value = {"protocol_type": "consumer", "protocol": "range", "members": [member]}
    said = json.loads(told_record(InternalRecord("GroupMetadata", {"group": "g"}, 3, value)))
    assert said["value"]["members"] == [
        {"member_id": "m", "subscription": {"version": 0, "topics": ["t"]}, "assignment": "ff", "other": "0102"}
    ]


def test_ids_are_written_as_kafka_prints_them() -> None:
    said = json.loads(told_record(InternalRecord("X", {"topic_id": bytes(range(16))}, 0, {})))
    assert said["key"] == {"topic_id": "AAECAwQFBgcICQoLDA0ODw"}


def test_a_tombstone_has_neither_version_nor_value() -> None:
    said = json.loads(told_record(InternalRecord("OffsetCommit", {"group": "g"}, None, None)))
    assert said == {"type": "OffsetCommit", "version": None, "key": {"group": "g"}, "value": None}
