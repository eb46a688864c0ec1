"""Record batches and message sets as another program writes them: kafka-python's record builders.

In: keys, values, headers, codec. Out: bytes of a batch. kafka-python is independent of this project's decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

CODEC_NUMBERS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class Sent(NamedTuple):
    """One record as an application sends it."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def batch(
    records: Sequence[Sent],
    codec: str = "none",
    *,
    transactional: bool = False,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A batch of format 2 with base offset 0. producer: id, epoch, base sequence."""
    size = 1 << 26
    builder = DefaultRecordBatchBuilder(2, CODEC_NUMBERS[codec], transactional, *producer, size)
    for index, record in enumerate(records):
        builder.append(index, record.timestamp_ms, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def message_set(records: Sequence[Sent], magic: int, codec: str = "none") -> bytes:
    """A message set of format 0 or 1; compressed: one wrapper message around them."""
    builder = LegacyRecordBatchBuilder(magic, CODEC_NUMBERS[codec], 1 << 26)
    for index, record in enumerate(records):
        builder.append(index, record.timestamp_ms, record.key, record.value)
    return bytes(builder.build())
