"""Records that replicas fetch of Kafka's own topics, against what the brokers logged of the requests behind them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import wirewitness
from tests.conftest import SAMPLES
from tests.lab import broker_log
from wirewitness.analyser.base.options import ReadOptions

NAME = "kafka_cluster"
_COMMIT, _END_TXN, _CREATE_TOPICS, _METADATA = 8, 26, 19, 3
_TXN_COMMIT = 28
KINDS = {"__consumer_offsets": {"OffsetCommit", "GroupMetadata"}, "__transaction_state": {"TransactionLog"}}


@cache
def records() -> list[dict[str, Any]]:
    """Rows of kafka_records with the JSON of `decoded` read."""
    options = ReadOptions(payload=True)
    with wirewitness.read(SAMPLES / f"{NAME}.pcapng", tables=["kafka_records"], options=options) as analysis:
        rows: list[dict[str, Any]] = analysis.arrow("kafka_records").to_pylist()
    return [{**row, "decoded": json.loads(row["decoded"]) if row["decoded"] else None} for row in rows]


@cache
def logged() -> list[broker_log.LogRecord]:
    return broker_log.load(SAMPLES / "broker_logs" / f"{NAME}.jsonl.gz")


def accepted_commits() -> set[tuple[Any, ...]]:
    """(group, topic, partition, offset, leader epoch, metadata) of every commit that a coordinator took."""
    answers = [entry.response for entry in logged() if entry.api_key in (_METADATA, _CREATE_TOPICS) and entry.response]
    names = {topic["topicId"]: topic["name"] for answer in answers for topic in answer["topics"] if "topicId" in topic}
    found: set[tuple[Any, ...]] = set()
    for entry in logged():
        if entry.api_key not in (_COMMIT, _TXN_COMMIT) or entry.response is None:
            continue
        for asked, answer in zip(entry.request["topics"], entry.response["topics"], strict=True):
            topic = asked.get("name") or names[asked["topicId"]]
            for part, result in zip(asked["partitions"], answer["partitions"], strict=True):
                if result["errorCode"] == 0:
                    stored = (part["committedOffset"], part["committedLeaderEpoch"], part["committedMetadata"])
                    found.add((entry.request["groupId"], topic, part["partitionIndex"], *stored))
    return found


def test_every_record_of_a_topic_of_kafka_is_decoded() -> None:
    for topic, kinds in KINDS.items():
        found = [row for row in records() if row["topic"] == topic and row["control"] is None]
        assert len(found) > 100
        assert {row["decoded"]["type"] for row in found} == kinds
    assert all(row["decoded"] is None for row in records() if row["topic"] == "orders")


def test_commits_in_the_log_are_those_that_were_accepted() -> None:
    stored = {
        (key["group"], key["topic"], key["partition"], value["offset"], value["leader_epoch"], value["metadata"])
        for row in records()
        if row["decoded"] is not None and row["decoded"]["type"] == "OffsetCommit" and row["decoded"]["value"]
        for key, value in [(row["decoded"]["key"], row["decoded"]["value"])]
    }
    accepted = accepted_commits()
    assert len(stored) > 50
    assert stored <= accepted
    # The last commits may have been replicated behind the end of the capture.
    assert len(accepted - stored) <= len(accepted) // 20


def test_transactions_in_the_log_are_those_that_ended() -> None:
    ended = {
        (entry.request["transactionalId"], entry.request["producerId"], entry.request["producerEpoch"])
        for entry in logged()
        if entry.api_key == _END_TXN and entry.response is not None and entry.response["errorCode"] == 0
    }
    states: dict[tuple[Any, ...], set[int]] = {}
    for row in records():
        if row["decoded"] is not None and row["decoded"]["type"] == "TransactionLog":
            value = row["decoded"]["value"]
            who = (row["decoded"]["key"]["transactional_id"], value["producer_id"], value["producer_epoch"])
            states.setdefault(who, set()).add(value["transaction_status"])
    assert len(ended) > 10
    missing = {one for one in ended if not states.get(one)}
    assert len(missing) <= 1


def test_control_records() -> None:
    kinds = {row["decoded"]["type"] for row in records() if row["control"] is not None}
    assert {"EndTxnMarkerCommit", "LeaderChange", "KRaftVoters"} <= kinds
    for row in records():
        if row["control"] in ("commit", "abort"):
            assert row["decoded"]["type"] == f"EndTxnMarker{row['control'].capitalize()}"


def test_nothing_is_decoded_unless_payload_is_asked_for() -> None:
    with wirewitness.read(SAMPLES / f"{NAME}.pcapng", tables=["kafka_records"]) as analysis:
        assert analysis.arrow("kafka_records").column("decoded").null_count == len(records())
