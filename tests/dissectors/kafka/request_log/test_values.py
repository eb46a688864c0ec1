"""Bodies in JSON become what decoders make of bytes, or a DecodeError."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.request_log.values import reader
from wirewitness.dissectors.kafka.schema.definitions import Direction
from wirewitness.dissectors.kafka.schema.primitives import UNSEEN, Value

TOPIC_ID = bytes(range(1, 17))
TOPIC_ID_TEXT = base64.urlsafe_b64encode(TOPIC_ID).decode().rstrip("=")


def read(api_key: int, version: int, direction: Direction, body: Any) -> Value:
    found = reader(api_key, version, direction)
    assert found is not None
    return found(body)


COMMIT = {
    "groupId": "orders",
    "generationIdOrMemberEpoch": 3,
    "memberId": "m",
    "groupInstanceId": None,
    "topics": [
        {
            "topicId": TOPIC_ID_TEXT,
            "partitions": [
                {"partitionIndex": 4, "committedOffset": 49, "committedLeaderEpoch": -1, "committedMetadata": "é"}
            ],
        }
    ],
}


def test_names_uuids_and_nulls() -> None:
    value = read(8, 10, "request", COMMIT)
    assert value == {
        "group_id": "orders",
        "generation_id_or_member_epoch": 3,
        "member_id": "m",
        "group_instance_id": None,
        "topics": [
            {
                "topic_id": TOPIC_ID,
                "partitions": [
                    {
                        "partition_index": 4,
                        "committed_offset": 49,
                        "committed_leader_epoch": -1,
                        "committed_metadata": "é",
                    }
                ],
            }
        ],
    }


def test_the_name_that_older_brokers_have() -> None:
    older = {("generationId" if name.startswith("generation") else name): value for name, value in COMMIT.items()}
    assert read(8, 10, "request", older) == read(8, 10, "request", COMMIT)


def test_the_names_of_transactions_before_brokers_batched_them() -> None:
    older = {"name": "t", "results": [{"partitionIndex": 0, "errorCode": 51}]}
    newer = {"name": "t", "resultsByPartition": [{"partitionIndex": 0, "partitionErrorCode": 51}]}
    values = [
        read(24, 3, "response", {"throttleTimeMs": 0, name: [topic]})
        for name, topic in (("results", older), ("resultsByTopicV3AndBelow", newer))
    ]
    assert values[0] == values[1]
    assert values[0]["results_by_topic_v3_and_below"][0]["results_by_partition"][0]["partition_error_code"] == 51


def test_bytes_are_base64_and_secrets_stay_hidden() -> None:
    asked = {
        "groupId": "g", "sessionTimeoutMs": 1, "rebalanceTimeoutMs": 2, "memberId": "", "groupInstanceId": None,
        "protocolType": "consumer", "protocols": [{"name": "range", "metadata": "AAEC"}], "reason": None,
    }  # fmt: skip
    assert read(11, 9, "request", asked)["protocols"] == [{"name": "range", "metadata": b"\0\1\2"}]
    assert read(36, 2, "request", {"authBytes": "c2VjcmV0"})["auth_bytes"] == b"***"


def test_a_tagged_field_may_be_missing_and_others_may_not() -> None:
    asked = {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}
    assert read(18, 3, "request", asked) == {"client_software_name": "a", "client_software_version": "1"}
    answer = {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0}
    assert read(18, 3, "response", answer)["supported_features"] is None
    with pytest.raises(DecodeError, match="throttle_time_ms is missing"):
        read(18, 3, "response", {"errorCode": 0, "apiKeys": []})


@pytest.mark.parametrize(
    ("logged", "expected"),
    [({"recordsSizeInBytes": 75}, (UNSEEN, 75)), ({"recordsSizeInBytes": None}, None), ({"records": ""}, None)],
    ids=["size", "null", "empty text"],
)
def test_of_records_the_size_is_known(logged: dict[str, Any], expected: object) -> None:
    body = {
        "transactionalId": None, "acks": -1, "timeoutMs": 1,
        "topicData": [{"name": "t", "partitionData": [{"index": 0, **logged}]}],
    }  # fmt: skip
    assert read(0, 9, "request", body)["topic_data"][0]["partition_data"][0]["records"] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("groupId", 7),
        ("groupId", None),
        ("groupId", []),
        ("generationIdOrMemberEpoch", 1 << 31),
        ("generationIdOrMemberEpoch", True),
        ("generationIdOrMemberEpoch", 3.0),
        ("generationIdOrMemberEpoch", "3"),
        ("topics", None),
        ("topics", {}),
        ("topics", [None]),
        ("topics", [{"topicId": "short", "partitions": []}]),
        ("topics", [{"topicId": "é" * 22, "partitions": []}]),
        ("topics", [{"topicId": "=" * 22, "partitions": []}]),
        ("topics", [{"topicId": "A" * 10 + "==" + "A" * 10, "partitions": []}]),
    ],
)
def test_a_wrong_value_is_a_decode_error(name: str, value: object) -> None:
    with pytest.raises(DecodeError):
        read(8, 10, "request", {**COMMIT, name: value})


def test_half_a_surrogate_pair_can_be_written() -> None:
    value = read(8, 10, "request", {**COMMIT, "memberId": "\ud800x"})
    assert value["member_id"] == "\\ud800x"


def test_there_is_none_for_what_no_schema_covers() -> None:
    assert reader(8, 99, "request") is None
    assert reader(9999, 0, "request") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*COMMIT, "name"]), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.sampled_from([(0, 9), (1, 16), (3, 12), (8, 10), (9, 9), (11, 9), (18, 3), (68, 1)]), st.booleans())
def test_any_json_gives_a_value_or_a_decode_error(body: Any, api: tuple[int, int], asked: bool) -> None:
    with suppress(DecodeError):
        assert isinstance(read(*api, "request" if asked else "response", body), dict)
