"""Our tables, row by row, against rows made from the broker's request log alone.

Names of topic ids and the positions of fetch sessions are worked out here from the log, in another way than the product
does it from the wire. Connections with an answer that is not wholly in the capture are left out on both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import analyser
from dissectors.kafka.api_keys import API_KEYS
from tests.conftest import SAMPLES
from tests.lab import broker_log
from tests.oracle.test_broker_log import LOGS, compare, recording_of

Row = tuple[Any, ...]


class Log(NamedTuple):
    """What the broker logged of the connections compared, and the names of topic ids."""

    entries: list[broker_log.LogRecord]
    names: dict[str, str]
    left_out: set[tuple[str, int]]

    def of(self, *api_keys: int) -> Iterator[tuple[broker_log.LogRecord, Row]]:
        """Answered entries of these APIs, each with the columns that tell who asked."""
        for entry in self.entries:
            if entry.api_key in api_keys and entry.response is not None:
                yield entry, (entry.client.host, entry.client.port, entry.client_id)

    def topic(self, struct: dict[str, Any]) -> str:
        """The name of a topic struct, whether it carries the name or the id."""
        name = struct.get("name") or struct.get("topic")
        return name if name is not None else self.names[struct["topicId"]]


@cache
def log_of(name: str) -> Log:
    entries = broker_log.load(SAMPLES / "broker_logs" / f"{name}.jsonl.gz")
    answers = [entry.response for entry in entries if entry.api_key in (3, 19) and entry.response is not None]
    names = {topic["topicId"]: topic["name"] for answer in answers for topic in answer["topics"] if "topicId" in topic}
    agreement = compare(entries, recording_of(name).exchanges)
    left_out = {one.client for one in (*agreement.unanswered, *agreement.unread_answers)}
    return Log([entry for entry in entries if tuple(entry.client) not in left_out], names, left_out)


@cache
def our_rows(name: str, table: str) -> list[dict[str, Any]]:
    """Rows of a table with the client's port, which not every table has."""
    with analyser.read(SAMPLES / f"{name}.pcapng", tables=["flows", table]) as analysis:
        ports = {flow["flow_id"]: flow["client_port"] for flow in analysis.arrow("flows").to_pylist()}
        rows: list[dict[str, Any]] = analysis.arrow(table).to_pylist()
    for row in rows:
        row["client_port"] = ports[row["flow_id"]]
    left_out = log_of(name).left_out
    return [row for row in rows if (row["client_address"], row["client_port"]) not in left_out]


# ----------------------------------------------------------------------------------------------------------------------
# Rows from the log: one function for each table, with the columns that it compares.

WHO = ("client_address", "client_port", "client_id")


def commits(log: Log) -> Iterator[Row]:
    for entry, who in log.of(8, 28):
        asked, answer = entry.request, entry.response or {}
        codes = {
            (log.topic(topic), partition["partitionIndex"]): partition["errorCode"]
            for topic in answer["topics"]
            for partition in topic["partitions"]
        }
        generation = asked.get("generationIdOrMemberEpoch", asked.get("generationId"))
        member = (asked["groupId"], asked["memberId"], asked["groupInstanceId"], generation)
        producer = (asked.get("producerId"), asked.get("producerEpoch"))
        for topic in asked["topics"]:
            for part in topic["partitions"]:
                where = (log.topic(topic), part["partitionIndex"])
                stored = (part["committedOffset"], part["committedLeaderEpoch"], part["committedMetadata"])
                yield (API_KEYS[entry.api_key].name, *who, *member, *where, *stored, *producer, codes[where])


def offset_fetches(log: Log) -> Iterator[Row]:
    for entry, who in log.of(9):
        asked, answer = entry.request, entry.response or {}
        groups = answer.get("groups") or [{**answer, "groupId": asked["groupId"]}]
        for group in groups:
            for topic in group["topics"]:
                for part in topic["partitions"]:
                    stored = (part["committedOffset"], part["committedLeaderEpoch"], part["metadata"])
                    where = (log.topic(topic), part["partitionIndex"])
                    yield (*who, group["groupId"], *where, *stored, part["errorCode"] or group["errorCode"])


def list_offsets(log: Log) -> Iterator[Row]:
    for entry, who in log.of(2):
        asked = {
            (topic["name"], part["partitionIndex"]): part["timestamp"]
            for topic in entry.request["topics"]
            for part in topic["partitions"]
        }
        for topic in (entry.response or {})["topics"]:
            for part in topic["partitions"]:
                where = (topic["name"], part["partitionIndex"])
                yield (*who, *where, asked[where], part["offset"], part["errorCode"])


def produced(log: Log) -> Iterator[Row]:
    for entry, who in log.of(0):
        sizes = {
            (log.topic(topic), part["index"]): part["recordsSizeInBytes"]
            for topic in entry.request["topicData"]
            for part in topic["partitionData"]
        }
        for topic in (entry.response or {})["responses"]:
            for part in topic["partitionResponses"]:
                where = (log.topic(topic), part["index"])
                yield (*who, *where, part["baseOffset"], sizes[where], entry.request["acks"], part["errorCode"])


def fetched(log: Log) -> Iterator[Row]:
    """Partitions that an answer names, with the position asked for: in this request, or earlier in the session."""
    sessions: dict[tuple[Any, ...], dict[Any, int]] = {}
    for entry, who in log.of(1):
        asked, answer = entry.request, entry.response or {}
        at: dict[Any, int] = {}
        if asked["sessionEpoch"] > 0:
            at = sessions[entry.client, asked["sessionId"]]
        for topic in asked["forgottenTopicsData"]:
            for partition in topic["partitions"]:
                at.pop((log.topic(topic), partition), None)
        for topic in asked["topics"]:
            for part in topic["partitions"]:
                at[log.topic(topic), part["partition"]] = part["fetchOffset"]
        sessions[entry.client, answer["sessionId"]] = at
        for topic in answer["responses"]:
            for part in topic["partitions"]:
                where = (log.topic(topic), part["partitionIndex"])
                marks = (part["highWatermark"], part["lastStableOffset"], part["logStartOffset"])
                yield (*who, *where, at[where], *marks, part["recordsSizeInBytes"], part["errorCode"])


class Case(NamedTuple):
    """A table, the columns compared, and the rows that the log makes of them."""

    table: str
    columns: tuple[str, ...]
    from_log: Callable[[Log], Iterator[Row]]


_MEMBER = ("group_id", "member_id", "group_instance_id", "generation")
_STORED = ("committed_offset", "leader_epoch", "metadata")
_WHERE = ("topic", "partition")
_MARKS = ("high_watermark", "last_stable_offset", "log_start_offset")
CASES = (
    Case(
        "kafka_offset_commits",
        ("api", *WHO, *_MEMBER, *_WHERE, *_STORED, "producer_id", "producer_epoch", "error_code"),
        commits,
    ),
    Case("kafka_offset_fetches", (*WHO, "group_id", *_WHERE, *_STORED, "error_code"), offset_fetches),
    Case("kafka_list_offsets", (*WHO, *_WHERE, "timestamp", "offset", "error_code"), list_offsets),
    Case("kafka_produce_batches", (*WHO, *_WHERE, "base_offset", "batch_bytes", "acks", "error_code"), produced),
    Case("kafka_fetch_partitions", (*WHO, *_WHERE, "fetch_offset", *_MARKS, "records_bytes", "error_code"), fetched),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.table)
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_rows_equal_the_broker_log(path: Path, case: Case) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    rows = our_rows(name, case.table)
    if case.table == "kafka_fetch_partitions":
        rows = [row for row in rows if row["high_watermark"] is not None]  # the others were asked for, not answered
    ours = Counter(tuple(row[column] for column in case.columns) for row in rows)
    logged = Counter(case.from_log(log_of(name)))
    assert not logged - ours
    assert not ours - logged
    print(f"{case.table}: {ours.total()} rows of {len(case.columns)} columns")
    assert ours.total() >= 10


def test_little_is_left_out() -> None:
    for path in LOGS:
        log = log_of(path.name.removesuffix(".jsonl.gz"))
        assert len(log.left_out) <= len({entry.client for entry in log.entries}) // 5
