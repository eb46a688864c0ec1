"""Commits as the broker's request log tells them, and what is everyday in a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab import commits, everyday
from tests.lab.broker_log import Endpoint, LogRecord
from tests.lab.processes import LabError


def log_record(api_key: int, name: str, request: dict[str, Any], response: dict[str, Any] | None) -> LogRecord:
    server, client = Endpoint("10.0.0.2", 9092), Endpoint("10.0.0.11", 40000)
    return LogRecord(0, api_key, name, 8, 1, "billing-a", request, response, server, client, 1.0)


def commit_record(offset: int, error_code: int = 0, partition: int = 4, topic_id: str | None = None) -> LogRecord:
    topic = {"name": "orders"} if topic_id is None else {"topicId": topic_id}
    asked = {"partitionIndex": partition, "committedOffset": offset}
    answered = {"partitionIndex": partition, "errorCode": error_code}
    member = {"groupId": "billing", "memberId": "billing-a-1", "generationIdOrMemberEpoch": 3}
    request = {**member, "topics": [{**topic, "partitions": [asked]}]}
    return log_record(8, "OFFSET_COMMIT", request, {"topics": [{**topic, "partitions": [answered]}]})


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([commit_record(5), commit_record(9)], [], id="forward"),
        pytest.param([commit_record(5), commit_record(5)], [], id="unchanged"),
        pytest.param([commit_record(9), commit_record(5)], [(9, 5)], id="back"),
        pytest.param([commit_record(9), commit_record(5, error_code=22)], [], id="back but refused"),
        pytest.param([commit_record(9), commit_record(5, partition=6)], [], id="another partition"),
        pytest.param(
            [commit_record(9), commit_record(5), commit_record(10), commit_record(5)], [(9, 5), (10, 5)], id="twice"
        ),
    ],
)
def test_regressions(records: list[LogRecord], expected: list[tuple[int, int]]) -> None:
    pairs = commits.regressions(commits.read_commits(records))
    assert [(before.offset, after.offset) for before, after in pairs] == expected


def test_topic_ids_get_the_names_that_metadata_told() -> None:
    metadata = log_record(3, "METADATA", {}, {"topics": [{"name": "orders", "topicId": "abc"}]})
    [row] = commits.read_commits([metadata, commit_record(5, topic_id="abc")])
    assert (row.topic, row.partition, row.offset) == ("orders", 4, 5)


def test_committers_are_told_once_with_their_generations() -> None:
    rows = commits.read_commits([commit_record(5), commit_record(6)])
    assert commits.committers(rows) == [
        {"client_id": "billing-a", "address": "10.0.0.11", "member_id": "billing-a-1", "generations": [3]}
    ]


@pytest.mark.parametrize(
    ("answers", "strange"),
    [
        pytest.param([("JOIN_GROUP", 79)] * 2, False, id="member id required"),
        pytest.param([("HEARTBEAT", 27)] * 3, False, id="rebalance under way"),
        pytest.param([("FIND_COORDINATOR", 15)], False, id="no coordinator yet"),
        pytest.param([("FIND_COORDINATOR", 15)] * 2, True, id="no coordinator, twice"),
        pytest.param([("OFFSET_COMMIT", 22)], True, id="an old generation"),
    ],
)
def test_everyday_errors(answers: list[tuple[str, int]], strange: bool) -> None:
    records = [log_record(0, api, {}, {"nested": [{"errorCode": code}]}) for api, code in answers]
    if strange:
        with pytest.raises(LabError):
            everyday.check_everyday(records)
    else:
        [(api, code)] = set(answers)
        assert everyday.check_everyday(records) == [{"api": api, "error_code": code, "count": len(answers)}]
