"""Bytes that group members send each other through the coordinator: blobs in, subscriptions and assignments out.

These are the blobs of protocol type "consumer". Brokers do not look into them, so clients differ: some leave out the
last fields of the version that they name, some add bytes. A blob may therefore end before any field behind the topics,
and bytes that are left over are counted, not refused. A version above 3 begins like version 3.
Sources: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json of Apache Kafka; KIP-429 (version 1),
KIP-792 (2), KIP-881 (3); user data: StickyAssignor and CooperativeStickyAssignor of the Java client.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from dissectors.core.errors import DecodeError
from dissectors.kafka.primitives import text


class TopicPartitions(NamedTuple):
    """A topic and partitions of it."""

    topic: str
    partitions: tuple[int, ...]


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
    reader = _Reader(blob)
    version = reader.version()
    topics = tuple(reader.string() for _ in range(reader.count(2)))
    user_data = reader.nullable_bytes() if reader.more() else None
    owned = reader.topic_partitions() if version >= 1 and reader.more() else None
    generation_id = reader.int32() if version >= 2 and reader.more() else None
    rack_id = reader.nullable_string() if version >= 3 and reader.more() else None
    return Subscription(version, topics, user_data, owned, generation_id, rack_id, reader.left())


def assignment(blob: bytes) -> Assignment:
    """The assignment of a member in SyncGroup and DescribeGroups. Raises DecodeError, also for an empty blob."""
    reader = _Reader(blob)
    version = reader.version()
    assigned = reader.topic_partitions()
    user_data = reader.nullable_bytes() if reader.more() else None
    return Assignment(version, assigned, user_data, reader.left())


def sticky_user_data(user_data: bytes, *, cooperative: bool) -> StickyUserData:
    """User data of a subscription made by the sticky (or the cooperative-sticky) assignor. Raises DecodeError.

    The cooperative one writes its generation only; the eager one its partitions and, since version 1, its generation.
    """
    reader = _Reader(user_data)
    owned = None if cooperative else reader.topic_partitions()
    return StickyUserData(owned, reader.int32() if cooperative or reader.more() else None)


class _Reader:
    """A position in one blob; each method reads one value or raises DecodeError."""

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._pos = 0

    def left(self) -> int:
        return len(self._blob) - self._pos

    def more(self) -> bool:
        return self._pos < len(self._blob)

    def version(self) -> int:
        version = self._int16()
        if version < 0:
            raise DecodeError(f"version {version} of a group member's blob")
        return version

    def count(self, smallest: int) -> int:
        """The number of elements of an array, each of `smallest` bytes or more; null counts as none."""
        count = self.int32()
        if count * smallest > self.left():
            raise DecodeError("an array has more elements than bytes left")
        return max(0, count)

    def topic_partitions(self) -> tuple[TopicPartitions, ...]:
        return tuple(TopicPartitions(self.string(), self._partitions()) for _ in range(self.count(6)))

    def string(self) -> str:
        found = self.nullable_string()
        if found is None:
            raise DecodeError("a topic is null")
        return found

    def nullable_string(self) -> str | None:
        size = self._int16()
        return None if size < 0 else text(self._take(size))

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._take(size)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def _int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def _partitions(self) -> tuple[int, ...]:
        count = self.count(4)
        return struct.unpack(f">{count}i", self._take(4 * count))

    def _take(self, size: int) -> bytes:
        if size > self.left():
            raise DecodeError("the blob ends inside a field")
        self._pos += size
        return self._blob[self._pos - size : self._pos]
