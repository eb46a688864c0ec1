"""Our tables, row by row, against rows made from the broker's request log alone.

Names of topic ids and the positions of fetch sessions are worked out here from the log, in another way than the product
does it from the wire. Connections with an answer that is not wholly in the capture are left out on both sides.
"""

from __future__ import annotations

import base64
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.lab import broker_log
from tests.oracle.test_broker_log import LOGS, compare, recording_of
from tests.support.shares import share, smallest
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS

Row = tuple[Any, ...]
METADATA_TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"  # the one id that is the same everywhere: no answer tells its name


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

    def topic(self, fields: dict[str, Any]) -> str:
        """The name of a topic struct, whether it carries the name or the id."""
        name = fields.get("name") or fields.get("topic")
        return name if name is not None else self.names[fields["topicId"]]


@cache
def log_of(name: str) -> Log:
    entries = broker_log.load(SAMPLES / "broker_logs" / f"{name}.jsonl.gz")
    answers = [entry.response for entry in entries if entry.api_key in (3, 19) and entry.response is not None]
    names = {topic["topicId"]: topic["name"] for answer in answers for topic in answer["topics"] if "topicId" in topic}
    names[METADATA_TOPIC] = "__cluster_metadata"
    agreement = compare(entries, recording_of(name).exchanges)
    left_out = {one.client for one in (*agreement.unanswered, *agreement.unread_answers)}
    # Tables have the request that a client sent, not once more what a broker passed on to the controller.
    kept = [entry for entry in entries if tuple(entry.client) not in left_out and not entry.forwarded]
    return Log(kept, names, left_out)


@cache
def our_rows(name: str, table: str) -> list[dict[str, Any]]:
    """Rows of a table with the client's address and port, which not every table has."""
    with wirewitness.read(SAMPLES / f"{name}.pcapng", tables=["flows", table]) as analysis:
        flows = {flow["flow_id"]: flow for flow in analysis.arrow("flows").to_pylist()}
        rows: list[dict[str, Any]] = analysis.arrow(table).to_pylist()
    for row in rows:
        row |= {column: flows[row["flow_id"]][column] for column in ("client_address", "client_port")}
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
        member = (asked["groupId"], asked.get("memberId"), asked.get("groupInstanceId"), generation)
        producer = (asked.get("producerId"), asked.get("producerEpoch"))
        for topic in asked["topics"]:
            for part in topic["partitions"]:
                where = (log.topic(topic), part["partitionIndex"])
                stored = (part["committedOffset"], part.get("committedLeaderEpoch"), part["committedMetadata"])
                yield (API_KEYS[entry.api_key].name, *who, *member, *where, *stored, *producer, codes[where])


def offset_fetches(log: Log) -> Iterator[Row]:
    for entry, who in log.of(9):
        asked, answer = entry.request, entry.response or {}
        groups = answer.get("groups") or [{**answer, "groupId": asked["groupId"]}]
        for group in groups:
            for topic in group["topics"]:
                for part in topic["partitions"]:
                    stored = (part["committedOffset"], part.get("committedLeaderEpoch"), part["metadata"])
                    where = (log.topic(topic), part["partitionIndex"])
                    code = part["errorCode"] or group.get("errorCode", 0)
                    yield (*who, group["groupId"], *where, *stored, asked.get("requireStable"), code)


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
                first = next(iter(part.get("oldStyleOffsets", ())), None)  # version 0 answers with a list
                isolation = entry.request.get("isolationLevel")
                yield (*who, *where, asked[where], part.get("offset", first), part["errorCode"], isolation)


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
                asked = (entry.request["acks"], entry.request["timeoutMs"], entry.request.get("transactionalId"))
                answered = (part["errorCode"], part.get("errorMessage"))
                yield (*who, *where, part["baseOffset"], sizes[where], *asked, *answered)


def fetched(log: Log) -> Iterator[Row]:
    """Partitions that an answer names, with the position asked for: in this request, or earlier in the session."""
    sessions: dict[tuple[Any, ...], dict[Any, tuple[int, int]]] = {}
    for entry, who in log.of(1):
        asked, answer = entry.request, entry.response or {}
        at: dict[Any, tuple[int, int]] = {}
        if asked.get("sessionEpoch", -1) > 0:
            # A session that a broker forgot when it was restarted is answered with an error and no partitions.
            at = sessions.get((entry.client, asked["sessionId"]), {})
        for topic in asked.get("forgottenTopicsData", ()):
            for partition in topic["partitions"]:
                at.pop((log.topic(topic), partition), None)
        for topic in asked["topics"]:
            for part in topic["partitions"]:
                at[log.topic(topic), part["partition"]] = part["fetchOffset"], part["partitionMaxBytes"]
        wishes = tuple(asked.get(name) for name in ("maxWaitMs", "minBytes", "maxBytes", "isolationLevel"))
        session = (answer.get("sessionId") or asked.get("sessionId"), asked.get("sessionEpoch"))
        sessions[entry.client, answer.get("sessionId", 0)] = at
        for topic in answer["responses"]:
            for part in topic["partitions"]:
                where = (log.topic(topic), part["partitionIndex"])
                marks = (part["highWatermark"], part.get("lastStableOffset"), part.get("logStartOffset"))
                found = (part["recordsSizeInBytes"], part["errorCode"])
                yield (*who, *wishes, *session, *where, *at[where], *marks, *found)


# Offered protocols, reason, heartbeat interval and the broker's words, of an event that has none of them.
_NOTHING_SAID = (None, None, None, None)
_BEATS = {68: "consumer_heartbeat", 76: "share_heartbeat", 88: "streams_heartbeat"}
_DESCRIBES = {15: "describe", 69: "describe", 77: "share_describe", 89: "streams_describe"}


def events(log: Log) -> Iterator[Row]:
    for entry, who in log.of(11, 12, 13, 14, 15, *_BEATS, 69, 77, 89):
        asked, answer = entry.request, entry.response or {}
        member, group, code = asked.get("memberId"), asked.get("groupId"), answer.get("errorCode")
        if entry.api_key == 11:
            offered = ",".join(protocol["name"] for protocol in asked["protocols"])
            said = (offered, asked.get("reason"), None, None)
            yield ("join", *who, group, answer["memberId"] or member, answer["generationId"], *said, code)
        elif entry.api_key in (12, 14):
            event = {12: "heartbeat", 14: "sync"}[entry.api_key]
            yield (event, *who, group, member, asked["generationId"], *_NOTHING_SAID, code)
        elif entry.api_key == 13:
            members = [(one["memberId"], one["errorCode"]) for one in answer.get("members", ())] or [(member, code)]
            reasons = {one["memberId"]: one.get("reason") for one in asked.get("members", ())}
            for leaver, own_code in members:
                said = (None, reasons.get(leaver), None, None)
                yield ("leave", *who, group, leaver, None, *said, code or own_code)
        elif entry.api_key in _BEATS:
            epoch = asked["memberEpoch"] if asked["memberEpoch"] < 0 else answer["memberEpoch"]
            said = (None, None, answer["heartbeatIntervalMs"] or None, answer["errorMessage"])
            yield (_BEATS[entry.api_key], *who, group, answer["memberId"] or member, epoch, *said, code)
        else:
            for one in answer["groups"]:
                said = (None, None, None, one.get("errorMessage"))
                yield ("describe", *who, one["groupId"], None, one.get("groupEpoch"), *said, one["errorCode"])


def assignments(log: Log) -> Iterator[Row]:
    """Who was given what: plans that the coordinator took, answers, epochs of the newer protocol, descriptions."""
    for entry, who in log.of(14, 68, 76, *_DESCRIBES):
        asked, answer = entry.request, entry.response or {}
        group, generation = asked.get("groupId"), asked.get("generationId")
        if entry.api_key == 14 and answer["errorCode"] == 0:
            for plan in asked["assignments"]:
                for part in blob_parts(plan["assignment"]):
                    yield (*who[:2], group, generation, plan["memberId"], *part, "sync_leader")
            for part in blob_parts(answer["assignment"]):
                yield (*who[:2], group, generation, asked["memberId"], *part, "sync_answer")
        elif entry.api_key in (68, 76) and answer.get("assignment") is not None:
            for part in id_parts(log, answer["assignment"]):
                yield (*who[:2], group, answer["memberEpoch"], answer["memberId"], *part, _BEATS[entry.api_key])
        for one in answer.get("groups", ()):
            for member in one["members"]:
                epoch = member.get("memberEpoch")
                for part in described_parts(log, entry.api_key, one, member):
                    yield (*who[:2], one["groupId"], epoch, member["memberId"], *part, _DESCRIBES[entry.api_key])


def described_parts(log: Log, api_key: int, group: dict[str, Any], member: dict[str, Any]) -> list[Row]:
    """What a description says that a member has; of a streams group what its active tasks read."""
    if api_key == 15:
        return blob_parts(member["memberAssignment"])
    if api_key != 89:
        return id_parts(log, member["assignment"])
    read = {
        one["subtopologyId"]: [*one["sourceTopics"], *(topic["name"] for topic in one["repartitionSourceTopics"])]
        for one in group["topology"]["subtopologies"]
    }
    active = member["assignment"]["activeTasks"]
    parts: list[Row] = [
        (name, n) for task in active for name in read[task["subtopologyId"]] for n in task["partitions"]
    ]
    return parts or [(None, None)]


def blob_parts(text: str) -> list[Row]:
    """(topic, partition) of an assignment as members write it: version, topics, partitions; nulls if it has none."""
    blob = BytesIO(base64.b64decode(text))
    if not blob.getvalue():
        return []
    _, topics = struct.unpack(">hi", blob.read(6))
    parts: list[Row] = []
    for _ in range(topics):
        topic = blob.read(*struct.unpack(">h", blob.read(2))).decode()
        (count,) = struct.unpack(">i", blob.read(4))
        parts += [(topic, partition) for partition in struct.unpack(f">{count}i", blob.read(4 * count))]
    return parts or [(None, None)]


def id_parts(log: Log, given: dict[str, Any]) -> list[Row]:
    """(topic, partition) of an assignment by topic ids."""
    parts: list[Row] = [(log.topic(topic), part) for topic in given["topicPartitions"] for part in topic["partitions"]]
    return parts or [(None, None)]


class Case(NamedTuple):
    """A table, the columns compared, and the rows that the log makes of them."""

    table: str
    columns: tuple[str, ...]
    from_log: Callable[[Log], Iterator[Row]]


_MEMBER = ("group_id", "member_id", "group_instance_id", "generation")
_STORED = ("committed_offset", "leader_epoch", "metadata")
_WHERE = ("topic", "partition")
_MARKS = ("high_watermark", "last_stable_offset", "log_start_offset")
_WISHES = ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch")
_SAID = ("protocols_offered", "reason", "heartbeat_interval_ms")
_TOLD = ("error_code", "error_message")
CASES = (
    Case(
        "kafka_offset_commits",
        ("api", *WHO, *_MEMBER, *_WHERE, *_STORED, "producer_id", "producer_epoch", "error_code"),
        commits,
    ),
    Case("kafka_offset_fetches", (*WHO, "group_id", *_WHERE, *_STORED, "require_stable", "error_code"), offset_fetches),
    Case("kafka_list_offsets", (*WHO, *_WHERE, "timestamp", "offset", "error_code", "isolation_level"), list_offsets),
    Case(
        "kafka_produce_batches",
        (*WHO, *_WHERE, "base_offset", "batch_bytes", "acks", "timeout_ms", "transactional_id", *_TOLD),
        produced,
    ),
    Case(
        "kafka_group_events",
        ("event", *WHO, "group_id", "member_id", "generation", *_SAID, "error_message", "error_code"),
        events,
    ),
    Case(
        "kafka_assignments",
        ("client_address", "client_port", "group_id", "generation", "member_id", *_WHERE, "source"),
        assignments,
    ),
    Case(
        "kafka_fetch_partitions",
        (*WHO, *_WISHES, *_WHERE, "fetch_offset", "partition_max_bytes", *_MARKS, "records_bytes", "error_code"),
        fetched,
    ),
)


def whole_sets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one partition of one request as one: the log has the size of a message set, not of each message."""
    sets: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        whole = sets.setdefault((row["exchange_id"], row["topic"], row["partition"]), {**row, "batch_bytes": 0})
        whole["batch_bytes"] += row["batch_bytes"]
        whole["base_offset"] = min(whole["base_offset"], row["base_offset"])
    return list(sets.values())


# Captures of groups at work fill every table; in others some may have little or nothing to show.
EVERYDAY = ("kafka_fenced_commit", "kafka_healthy", "kafka_stale_commit")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.table)
@pytest.mark.parametrize("path", share(LOGS, smallest(LOGS, 2)), ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_rows_equal_the_broker_log(path: Path, case: Case) -> None:
    name = path.name.removesuffix(".jsonl.gz")
    rows = our_rows(name, case.table)
    if case.table == "kafka_fetch_partitions":
        rows = [row for row in rows if row["high_watermark"] is not None]  # the others were asked for, not answered
    elif case.table == "kafka_produce_batches":
        rows = whole_sets(rows)
    ours = Counter(tuple(row[column] for column in case.columns) for row in rows)
    logged = Counter(case.from_log(log_of(name)))
    assert not logged - ours
    assert not ours - logged
    print(f"{case.table}: {ours.total()} rows of {len(case.columns)} columns")
    assert ours.total() >= 10 or name not in EVERYDAY


@pytest.mark.exhaustive
def test_little_is_left_out() -> None:
    for path in LOGS:
        log = log_of(path.name.removesuffix(".jsonl.gz"))
        assert len(log.left_out) <= len({entry.client for entry in log.entries}) // 5
