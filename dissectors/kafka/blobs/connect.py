"""What Kafka Connect workers tell each other (protocol type "connect"): blobs in, worker states and assignments out.

Version 0 is the eager protocol; 1 adds what a worker runs, what it has to give up and a delay (KIP-415); 2 is the same
with signed internal requests (KIP-507). Later fields may be missing. Source: ConnectProtocol and
IncrementalCooperativeConnectProtocol of Apache Kafka.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.kafka.blobs.reader import BlobReader, TopicPartitions

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
