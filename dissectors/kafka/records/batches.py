"""Headers of the record batches in a `records` field: a span of bytes in, one BatchHeader per batch out.

Nothing is decompressed and no record is read. Batches of format 2 have a header of 61 bytes; the older formats 0 and 1
are sets of single messages, of which a compressed one holds a set inside. A fetch answer may end inside a batch.
Source: https://kafka.apache.org/documentation/#recordbatch and KIP-98; formats 0 and 1: KIP-32.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Of a batch's attributes.
CODEC_BITS, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT = 7, 8, 16, 32

_V2 = struct.Struct(">qiibIhiqqqhii")
_PREFIX = struct.Struct(">qi")  # offset, bytes that follow: in front of every batch and message
_V1_TIMESTAMP = struct.Struct(">q")
_MAGIC_AT = 16
_SMALLEST = {0: 26, 1: 34, 2: _V2.size}  # whole entry: a message with null key and value, a batch without records


class BatchHeader(NamedTuple):
    """One batch of format 2, or one message of format 0 or 1.

    `start` is its position in the buffer, `batch_bytes` its whole size as it states it. `partial`: fewer bytes than
    that are there, or `error` says why it cannot be read on; what is behind a partial one is not read. What a format
    lacks, or what lies behind the cut, is None: for formats 0 and 1 all from the producer id on, and for a compressed
    message of theirs, whose base_offset is that of the last message inside, also records_count and last_offset_delta.
    Timestamps are ms since 1970.
    """

    start: int
    base_offset: int
    batch_bytes: int
    partial: bool
    error: str | None = None
    magic: int | None = None
    codec: str | None = None
    partition_leader_epoch: int | None = None
    crc: int | None = None
    timestamp_type: str | None = None
    transactional: bool | None = None
    control: bool | None = None
    last_offset_delta: int | None = None
    base_timestamp: int | None = None
    max_timestamp: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    base_sequence: int | None = None
    records_count: int | None = None


def batch_headers(buf: bytes, start: int, length: int) -> list[BatchHeader]:
    """The headers of all batches in buf[start:start + length], in order; the last one may be partial. Never raises.

    A rest of fewer than 12 bytes does not even hold an offset and a size, and is left out.
    """
    found: list[BatchHeader] = []
    pos, end = start, min(start + length, len(buf))
    while end - pos >= _PREFIX.size:
        header = _header(buf, pos, end)
        found.append(header)
        if header.partial:
            break
        pos += header.batch_bytes
    return found


def _header(buf: bytes, pos: int, end: int) -> BatchHeader:
    base_offset, size = _PREFIX.unpack_from(buf, pos)
    batch_bytes = _PREFIX.size + size
    if end - pos <= _MAGIC_AT:
        error = "impossible size" if size < 0 else None
        return BatchHeader(pos, base_offset, batch_bytes, partial=True, error=error)
    magic = buf[pos + _MAGIC_AT]
    smallest = _SMALLEST.get(magic)
    if smallest is None:
        return BatchHeader(pos, base_offset, batch_bytes, partial=True, error=f"unknown format {magic}", magic=magic)
    if batch_bytes < smallest:
        return BatchHeader(pos, base_offset, batch_bytes, partial=True, error="impossible size", magic=magic)
    partial = batch_bytes > end - pos
    if end - pos < smallest:
        return BatchHeader(pos, base_offset, batch_bytes, partial=True, magic=magic)
    return _batch(buf, pos, partial) if magic == 2 else _message(buf, pos, magic, partial)


def _batch(buf: bytes, pos: int, partial: bool) -> BatchHeader:
    (base_offset, size, leader_epoch, magic, crc, attributes, last_offset_delta, base_timestamp, max_timestamp) = (
        fields := _V2.unpack_from(buf, pos)
    )[:9]
    producer_id, producer_epoch, base_sequence, records_count = fields[9:]
    error = "negative number of records" if records_count < 0 or last_offset_delta < 0 else None
    return BatchHeader(
        pos,
        base_offset,
        _PREFIX.size + size,
        partial or error is not None,
        error,
        magic,
        codec_name(attributes & CODEC_BITS),
        leader_epoch,
        crc,
        "log_append_time" if attributes & LOG_APPEND_TIME_BIT else "create_time",
        bool(attributes & TRANSACTIONAL_BIT),
        bool(attributes & CONTROL_BIT),
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    )


def _message(buf: bytes, pos: int, magic: int, partial: bool) -> BatchHeader:
    base_offset, size = _PREFIX.unpack_from(buf, pos)
    attributes = buf[pos + 17]
    codec = codec_name(attributes & CODEC_BITS)
    single = codec == "none"
    timestamp = _V1_TIMESTAMP.unpack_from(buf, pos + 18)[0] if magic == 1 else None
    return BatchHeader(
        start=pos,
        base_offset=base_offset,
        batch_bytes=_PREFIX.size + size,
        partial=partial,
        magic=magic,
        codec=codec,
        crc=int.from_bytes(buf[pos + 12 : pos + 16], "big"),
        timestamp_type=None if magic == 0 else "log_append_time" if attributes & LOG_APPEND_TIME_BIT else "create_time",
        last_offset_delta=0 if single else None,
        base_timestamp=timestamp if single else None,
        max_timestamp=timestamp,
        records_count=1 if single else None,
    )


def codec_name(number: int) -> str:
    """The codec that attributes name with their CODEC_BITS."""
    return CODECS[number] if number < len(CODECS) else f"codec {number}"
