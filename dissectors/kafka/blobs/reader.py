"""Values in the blobs that group members send each other: bytes in, one value after the other out."""

from __future__ import annotations

import struct
from typing import NamedTuple

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.schema.primitives import text


class TopicPartitions(NamedTuple):
    """A topic and partitions of it."""

    topic: str
    partitions: tuple[int, ...]


class BlobReader:
    """A position in one blob; each method reads one value or raises DecodeError."""

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._pos = 0

    def left(self) -> int:
        return len(self._blob) - self._pos

    def more(self) -> bool:
        return self._pos < len(self._blob)

    def version(self) -> int:
        version = self.int16()
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
        size = self.int16()
        return None if size < 0 else text(self._take(size))

    def utf(self) -> str:
        """A string of Java's DataOutput: a size without a sign, then bytes."""
        return text(self._take(int.from_bytes(self._take(2), "big")))

    def characters(self, count: int) -> str:
        """UTF-16 code units, as Java's writeChars leaves them."""
        if count < 0:
            raise DecodeError("a negative number of characters")
        return self._take(2 * count).decode("utf-16-be", "backslashreplace")

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._take(size)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def _partitions(self) -> tuple[int, ...]:
        count = self.count(4)
        return struct.unpack(f">{count}i", self._take(4 * count))

    def _take(self, size: int) -> bytes:
        if size > self.left():
            raise DecodeError("the blob ends inside a field")
        self._pos += size
        return self._blob[self._pos - size : self._pos]
