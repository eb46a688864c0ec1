"""What share groups acquired and acknowledged, record by record, against the broker's request log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.oracle.test_broker_log_tables import Log, Row, log_of, our_rows

SAMPLE = "kafka_share_streams"
WHO = ("client_address", "client_port", "client_id", "group_id", "member_id", "topic", "partition")
TYPES = ("gap", "accept", "release", "reject", "renew")
SHARE_FETCH, SHARE_ACKNOWLEDGE = 78, 79
WRITE_STATE, DESCRIBE_OFFSETS, ALTER_OFFSETS = 85, 90, 91


def test_acquired_records() -> None:
    ours = Counter(each(our_rows(SAMPLE, "kafka_share_fetches"), "delivery_count", "lock_timeout_ms"))
    assert ours == Counter(acquired(log_of(SAMPLE)))
    assert ours.total() > 500


def test_acknowledged_records() -> None:
    ours = Counter(each(our_rows(SAMPLE, "kafka_share_acknowledges"), "acknowledge_type", "error_code", "api"))
    assert ours == Counter(acknowledged(log_of(SAMPLE)))
    assert {row[-3] for row in ours} == {"accept", "release", "reject"}


def test_where_share_partitions_start() -> None:
    columns = ("group_id", "topic", "partition", "start_offset", "leader_epoch", "state_epoch")
    rows = our_rows(SAMPLE, "kafka_share_offsets")
    told = ("delivery_complete_count", "batches_count", "lag", "error_code", "api")
    ours = Counter(tuple(row[name] for name in (*columns, *told)) for row in rows)
    theirs = Counter(starts(log_of(SAMPLE)))
    assert {row[-1] for row in theirs} == {
        "WriteShareGroupState", "DescribeShareGroupOffsets", "AlterShareGroupOffsets"
    }  # fmt: skip
    assert {row: n for row, n in ours.items() if row[-1] in {their[-1] for their in theirs}} == theirs
    assert theirs.total() > 100


def each(rows: list[dict[str, Any]], *columns: str) -> Iterator[Row]:
    """A row for each offset of a range."""
    for row in rows:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            yield (*(row[name] for name in WHO), offset, *(row[name] for name in columns))


def acquired(log: Log) -> Iterator[Row]:
    for entry, who in log.of(SHARE_FETCH):
        asked, answer = entry.request, entry.response or {}
        for topic in answer["responses"]:
            for part in topic["partitions"]:
                where = (asked["groupId"], asked["memberId"], log.topic(topic), part["partitionIndex"])
                for batch in part["acquiredRecords"]:
                    for offset in range(batch["firstOffset"], batch["lastOffset"] + 1):
                        yield (*who, *where, offset, batch["deliveryCount"], answer["acquisitionLockTimeoutMs"])


def acknowledged(log: Log) -> Iterator[Row]:
    for entry, who in log.of(SHARE_FETCH, SHARE_ACKNOWLEDGE):
        asked, answer = entry.request, entry.response or {}
        fetch = entry.api_key == SHARE_FETCH
        codes = {
            (topic["topicId"], part["partitionIndex"]): part["acknowledgeErrorCode" if fetch else "errorCode"]
            for topic in answer["responses"]
            for part in topic["partitions"]
        }
        for topic in asked["topics"]:
            for part in topic["partitions"]:
                code = codes.get((topic["topicId"], part["partitionIndex"]))
                where = (asked["groupId"], asked["memberId"], log.topic(topic), part["partitionIndex"])
                for batch in part["acknowledgementBatches"]:
                    size = batch["lastOffset"] - batch["firstOffset"] + 1
                    types = batch["acknowledgeTypes"] if len(batch["acknowledgeTypes"]) == size else []
                    types = types or batch["acknowledgeTypes"] * size
                    for at, kind in enumerate(types):
                        told = (TYPES[kind], code, "ShareFetch" if fetch else "ShareAcknowledge")
                        yield (*who, *where, batch["firstOffset"] + at, *told)


def starts(log: Log) -> Iterator[Row]:
    for entry, _ in log.of(WRITE_STATE):
        for topic in entry.request["topics"]:
            for part in topic["partitions"]:
                (code,) = (
                    one["errorCode"]
                    for answered in (entry.response or {})["results"]
                    for one in answered["partitions"]
                    if (answered["topicId"], one["partition"]) == (topic["topicId"], part["partition"])
                )
                where = (entry.request["groupId"], log.topic(topic), part["partition"])
                epochs = (part["leaderEpoch"], part["stateEpoch"], part.get("deliveryCompleteCount"))
                yield (*where, part["startOffset"], *epochs, len(part["stateBatches"]), None, code,
                       "WriteShareGroupState")  # fmt: skip
    for entry, _ in log.of(DESCRIBE_OFFSETS):
        for group in (entry.response or {})["groups"]:
            for topic in group["topics"]:
                for part in topic["partitions"]:
                    where = (group["groupId"], topic["topicName"], part["partitionIndex"])
                    yield (*where, part["startOffset"], part["leaderEpoch"], None, None, None, part.get("lag"),
                           part["errorCode"], "DescribeShareGroupOffsets")  # fmt: skip
    for entry, _ in log.of(ALTER_OFFSETS):
        for topic in entry.request["topics"]:
            for part in topic["partitions"]:
                where = (entry.request["groupId"], topic["topicName"], part["partitionIndex"])
                yield (*where, part["startOffset"], *[None] * 5, 0, "AlterShareGroupOffsets")
