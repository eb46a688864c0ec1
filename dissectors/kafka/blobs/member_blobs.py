"""The blobs of any group, told in JSON: protocol type, protocol name and bytes in, one line of JSON out.

Known are consumers (with the user data of sticky assignors and of Kafka Streams), Connect workers and instances of the
Schema Registry. None for what is not known, for what cannot be read and for what would be very long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.blobs.consumer import assignment, sticky_user_data, subscription
from wirewitness.dissectors.kafka.blobs.reader import BlobReader, TopicPartitions
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile import Decoder, record_decoder
from wirewitness.dissectors.kafka.schema.primitives import Value, text

# What instances of a Kafka Streams application tell each other: user data of the assignor "stream" in, values out.
#
# Source: SubscriptionInfoData.json, AssignmentInfo and ConsumerProtocolUtils of Apache Kafka 4.3. What an assignment
# says of other hosts, behind the tasks, is left alone.

_SUBSCRIPTION_INFO = 1
_WITH_LATEST_VERSION, _WITH_TOPOLOGY_NAMES = 3, 10


class StreamsAssignment(NamedTuple):
    """Tasks of an instance as "subtopology_partition", of standby tasks the changelog partitions too."""

    version: int
    active_tasks: tuple[str, ...]
    standby_tasks: tuple[tuple[str, tuple[TopicPartitions, ...]], ...]


def streams_subscription(user_data: bytes) -> Value:
    """SubscriptionInfo by field names, as `internal/streams` describes it. Raises DecodeError."""
    version = BlobReader(user_data).int32()
    record = schema.records("streams")[_SUBSCRIPTION_INFO]
    if not record.versions.has(version):
        raise DecodeError(f"version {version} of a streams subscription is not known")
    return _subscription_decoder(version)(user_data, 0, len(user_data))[0]


def streams_assignment(user_data: bytes) -> StreamsAssignment:
    """Version and tasks of AssignmentInfo. Raises DecodeError."""
    reader = BlobReader(user_data)
    version = reader.int32()
    if version < 1:
        raise DecodeError(f"version {version} of a streams assignment is not known")
    if version >= _WITH_LATEST_VERSION:
        reader.int32()
    active = tuple(_task(reader, version) for _ in range(reader.count(8)))
    standby = tuple((_task(reader, version), _partitions(reader)) for _ in range(reader.count(12)))
    return StreamsAssignment(version, active, standby)


def _task(reader: BlobReader, version: int) -> str:
    subtopology, partition = reader.int32(), reader.int32()
    topology = reader.characters(reader.int32()) if version >= _WITH_TOPOLOGY_NAMES else ""
    return f"{topology}__{subtopology}_{partition}" if topology else f"{subtopology}_{partition}"


def _partitions(reader: BlobReader) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(reader.utf(), (reader.int32(),)) for _ in range(reader.count(6)))


@cache
def _subscription_decoder(version: int) -> Decoder:
    return record_decoder(schema.records("streams")[_SUBSCRIPTION_INFO], version, "response")


# What Kafka Connect workers tell each other (protocol type "connect"): blobs in, worker states and assignments out.
#
# Version 0 is the eager protocol; 1 adds what a worker runs, what it has to give up and a delay (KIP-415); 2 is the
# same with signed internal requests (KIP-507). Later fields may be missing. Source: ConnectProtocol and
# IncrementalCooperativeConnectProtocol of Apache Kafka.

# In place of a task number: the connector itself runs on this worker.
CONNECTOR = -1


class WorkerAssignment(NamedTuple):
    """What a worker runs: connectors, their tasks in place of partitions. error: 1 when configurations do not match."""

    version: int
    error: int
    leader: str | None
    leader_url: str | None
    config_offset: int
    assigned: tuple[TopicPartitions, ...]
    revoked: tuple[TopicPartitions, ...]
    delay_ms: int


class WorkerState(NamedTuple):
    """A worker as it joins; current: what it runs, None before version 1 and for a new worker."""

    version: int
    url: str | None
    config_offset: int
    current: WorkerAssignment | None


def worker_state(blob: bytes) -> WorkerState:
    """The metadata of a "connect" protocol in JoinGroup. Raises DecodeError."""
    reader = BlobReader(blob)
    version, url, config_offset = reader.version(), reader.nullable_string(), reader.int64()
    current = reader.nullable_bytes() if version >= 1 and reader.more() else None
    return WorkerState(version, url, config_offset, worker_assignment(current) if current else None)


def worker_assignment(blob: bytes) -> WorkerAssignment:
    """The assignment of a worker in SyncGroup. Raises DecodeError, also for an empty blob."""
    reader = BlobReader(blob)
    version, error = reader.version(), reader.int16()
    leader, leader_url, config_offset = reader.nullable_string(), reader.nullable_string(), reader.int64()
    assigned = reader.topic_partitions() if reader.more() else ()
    revoked = reader.topic_partitions() if version >= 1 and reader.more() else ()
    delay = reader.int32() if version >= 1 and reader.more() else 0
    return WorkerAssignment(version, error, leader, leader_url, config_offset, assigned, revoked, delay)


# What is longer is null in kafka_group_events. It is not lost: topics and partitions of consumers are rows and columns
# whatever their number, and `show` has every byte of the message.
MAX_JSON_BYTES = 64 * 1024
_STREAMS, _STICKY, _COOPERATIVE = "stream", "sticky", "cooperative-sticky"


def told_subscription(protocol_type: str | None, protocol_name: str | None, blob: bytes) -> str | None:
    """What a member says as it joins."""
    return _told(_SUBSCRIPTIONS, protocol_type, protocol_name, blob)


def told_assignment(protocol_type: str | None, protocol_name: str | None, blob: bytes) -> str | None:
    """What a member is given."""
    return _told(_ASSIGNMENTS, protocol_type, protocol_name, blob)


_Teller = Callable[[str | None, bytes], Any]


def _told(
    tellers: Mapping[str, _Teller], protocol_type: str | None, protocol_name: str | None, blob: bytes
) -> str | None:
    tell = tellers.get(protocol_type or "")
    if tell is None or not 0 < len(blob) <= MAX_JSON_BYTES:
        return None
    try:
        said = tell(protocol_name, blob)
        line = None if said is None else json.dumps(said, separators=(",", ":"), allow_nan=False)
    except (DecodeError, ValueError):  # a number that JSON cannot hold
        return None
    return line if line is not None and len(line) <= MAX_JSON_BYTES else None


def _consumer_subscription(name: str | None, blob: bytes) -> dict[str, Any]:
    found = subscription(blob)
    return _without_none(
        version=found.version,
        topics=list(found.topics),
        owned=None if found.owned_partitions is None else _parts(found.owned_partitions),
        generation_id=found.generation_id,
        rack_id=found.rack_id,
        user_data=_user_data(name, found.user_data),
    )


def _user_data(name: str | None, user_data: bytes | None) -> dict[str, Any] | None:
    """What an assignor adds, where it is one that is known."""
    if not user_data:
        return None
    try:
        if name in (_STICKY, _COOPERATIVE):
            sticky = sticky_user_data(user_data, cooperative=name == _COOPERATIVE)
            owned = None if sticky.owned_partitions is None else _parts(sticky.owned_partitions)
            return _without_none(owned=owned, generation_id=sticky.generation_id)
        return _streams_state(user_data) if name == _STREAMS else None
    except DecodeError:
        return None


def _streams_state(user_data: bytes) -> dict[str, Any]:
    found = streams_subscription(user_data)
    sums = found.get("task_offset_sums")
    return _without_none(
        version=found["version"],
        process_id=found["process_id"].hex(),
        end_point=text(found["user_end_point"]) if found.get("user_end_point") else None,
        tasks=None if sums is None else _offset_sums(sums),
        active_tasks=_tasks(found.get("prev_tasks")),
        standby_tasks=_tasks(found.get("standby_tasks")),
        error_code=found.get("error_code"),
        client_tags={text(tag["key"]): text(tag["value"]) for tag in found.get("client_tags", ())} or None,
    )


def _offset_sums(sums: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Task -> sum of the offsets of its changelogs; -2 for a task that is running."""
    found: dict[str, int] = {}
    for one in sums:
        for part in one.get("partition_to_offset_sum", (one,)):
            found[f"{one['topic_group_id']}_{part['partition']}"] = part["offset_sum"]
    return found


def _tasks(tasks: Iterable[dict[str, Any]] | None) -> list[str] | None:
    return None if tasks is None else [f"{one['topic_group_id']}_{one['partition']}" for one in tasks]


def _consumer_assignment(name: str | None, blob: bytes) -> dict[str, Any] | None:
    """Only what the table of assignments does not have: the tasks of Kafka Streams."""
    user_data = assignment(blob).user_data
    if name != _STREAMS or not user_data:
        return None
    found = streams_assignment(user_data)
    standby = {task: _parts(parts) for task, parts in found.standby_tasks}
    return {"version": found.version, "active_tasks": list(found.active_tasks), "standby_tasks": standby}


def _worker_state(name: str | None, blob: bytes) -> dict[str, Any]:
    found = worker_state(blob)
    runs = {} if found.current is None else _runs(found.current.assigned)
    return {"version": found.version, "url": found.url, "config_offset": found.config_offset, "runs": runs}


def _worker_assignment(name: str | None, blob: bytes) -> dict[str, Any]:
    found: WorkerAssignment = worker_assignment(blob)
    return {
        "version": found.version,
        "error": found.error,
        "leader_url": found.leader_url,
        "config_offset": found.config_offset,
        "runs": _runs(found.assigned),
        "revoked": _runs(found.revoked),
        "delay_ms": found.delay_ms,
    }


def _runs(assigned: Iterable[TopicPartitions]) -> dict[str, list[int | str]]:
    """Connector -> its tasks, "connector" for itself."""
    return {one.topic: ["connector" if task == CONNECTOR else task for task in one.partitions] for one in assigned}


def _json_object(name: str | None, blob: bytes) -> dict[str, Any]:
    """Instances of the Schema Registry write JSON themselves."""
    try:
        found = json.loads(blob)
    except (ValueError, RecursionError):
        raise DecodeError("not JSON") from None
    if not isinstance(found, dict):
        raise DecodeError("not a JSON object")
    return found


def _parts(found: Iterable[TopicPartitions]) -> dict[str, list[int]]:
    parts: dict[str, list[int]] = {}
    for one in found:
        parts.setdefault(one.topic, []).extend(one.partitions)
    return parts


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


_SUBSCRIPTIONS: Mapping[str, _Teller] = {
    "consumer": _consumer_subscription,
    "connect": _worker_state,
    "sr": _json_object,
}
_ASSIGNMENTS: Mapping[str, _Teller] = {
    "consumer": _consumer_assignment,
    "connect": _worker_assignment,
    "sr": _json_object,
}
