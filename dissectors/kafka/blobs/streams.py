"""What instances of a Kafka Streams application tell each other: user data of the assignor "stream" in, values out.

Source: SubscriptionInfoData.json, AssignmentInfo and ConsumerProtocolUtils of Apache Kafka 4.3. What an assignment says
of other hosts, behind the tasks, is left alone.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.blobs.reader import BlobReader, TopicPartitions
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile import Decoder, record_decoder
from wirewitness.dissectors.kafka.schema.primitives import Value

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
