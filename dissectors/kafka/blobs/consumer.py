"""Bytes that group members send each other through the coordinator: blobs in, subscriptions and assignments out.

These are the blobs of protocol type "consumer". Brokers do not look into them, so clients differ: some leave out the
last fields of the version that they name, some add bytes. A blob may therefore end before any field behind the topics,
and bytes that are left over are counted, not refused. A version above 3 begins like version 3.
Sources: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json of Apache Kafka; KIP-429 (version 1),
KIP-792 (2), KIP-881 (3); user data: StickyAssignor and CooperativeStickyAssignor of the Java client.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.kafka.blobs.reader import BlobReader, TopicPartitions


class Subscription(NamedTuple):
    """What a member wants; fields that its version or its client leaves out are None. `trailing_bytes`: left over."""

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned_partitions: tuple[TopicPartitions, ...] | None
    generation_id: int | None
    rack_id: str | None
    trailing_bytes: int


class Assignment(NamedTuple):
    """What a member is given."""

    version: int
    assigned_partitions: tuple[TopicPartitions, ...]
    user_data: bytes | None
    trailing_bytes: int


class StickyUserData(NamedTuple):
    """What a sticky assignor remembers of the generation before."""

    owned_partitions: tuple[TopicPartitions, ...] | None
    generation_id: int | None


def subscription(blob: bytes) -> Subscription:
    """The metadata of a "consumer" protocol in JoinGroup and DescribeGroups. Raises DecodeError."""
    reader = BlobReader(blob)
    version = reader.version()
    topics = tuple(reader.string() for _ in range(reader.count(2)))
    user_data = reader.nullable_bytes() if reader.more() else None
    owned = reader.topic_partitions() if version >= 1 and reader.more() else None
    generation_id = reader.int32() if version >= 2 and reader.more() else None
    rack_id = reader.nullable_string() if version >= 3 and reader.more() else None
    return Subscription(version, topics, user_data, owned, generation_id, rack_id, reader.left())


def assignment(blob: bytes) -> Assignment:
    """The assignment of a member in SyncGroup and DescribeGroups. Raises DecodeError, also for an empty blob."""
    reader = BlobReader(blob)
    version = reader.version()
    assigned = reader.topic_partitions()
    user_data = reader.nullable_bytes() if reader.more() else None
    return Assignment(version, assigned, user_data, reader.left())


def sticky_user_data(user_data: bytes, *, cooperative: bool) -> StickyUserData:
    """User data of a subscription made by the sticky (or the cooperative-sticky) assignor. Raises DecodeError.

    The cooperative one writes its generation only; the eager one its partitions and, since version 1, its generation.
    """
    reader = BlobReader(user_data)
    owned = None if cooperative else reader.topic_partitions()
    return StickyUserData(owned, reader.int32() if cooperative or reader.more() else None)
