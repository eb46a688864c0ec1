"""Records of a `records` field: a span of bytes in, one OpenedBatch per batch (formats 0 and 1: per message) out.

Formats 0 and 1 are sets of messages; a compressed message holds a set (KIP-31: in format 1 with relative offsets, and
the wrapper has the offset of the last one). Format 2 has varints and headers (KIP-98, KIP-82). Nothing here raises, on
any bytes; what was readable before the damage is kept. Checksums: CRC-32 in formats 0 and 1, CRC-32C in format 2.
Source: https://kafka.apache.org/documentation/#recordbatch, KIP-31, KIP-32, KIP-98, KIP-534.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.payloads import PAYLOAD_KINDS, payload_kind
from wirewitness.dissectors.kafka.records.batches import BatchHeader, batch_headers
from wirewitness.dissectors.kafka.records.compression import decompress

# offset, timestamp in ms, position and size of key and of value (size -1: null), position and number of headers, end.
# A timestamp that the format or the producer does not give is None.
Record = tuple[int, int | None, int, int, int, int, int, int, int]
# Key and value (None: null) of a header.
Header = tuple[bytes, bytes | None]

_BATCH_HEADER_BYTES = 61
_V2_CHECKED_AT = 21  # the checksum covers all from the attributes on
_V1_CHECKED_AT = 16
_LEAST_RECORD_BYTES = 7
_MAX_VARINT_BYTES = 10
_ZIGZAG = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))
_NO_TIMESTAMP = -1
_CONTROL_TYPES = ("abort", "commit", "leader_change", "snapshot_header", "snapshot_footer", "kraft_version", "voters")
_read_int = struct.Struct(">i").unpack_from
_read_long = struct.Struct(">q").unpack_from
_read_control = struct.Struct(">hh").unpack_from


class OpenedBatch(NamedTuple):
    """One batch, decompressed.

    crc_ok: None where the batch is cut. data: for format 2 its records, one behind the other; `records_of` reads them.
    records_count: how many they are. records: read already (formats 0 and 1), positions in `data`; None for format 2.
    uncompressed_bytes: size of the batch had it not been compressed, None where that is not known.
    error: why records are missing; limited: because a limit was reached.
    """

    header: BatchHeader
    crc_ok: bool | None
    data: bytes
    records_count: int
    records: list[Record] | None = None
    uncompressed_bytes: int | None = None
    error: str | None = None
    limited: bool = False

    @property
    def fixed_ms(self) -> int | None:
        """The time of every record, where the broker gave it."""
        return self.header.max_timestamp if self.header.timestamp_type == "log_append_time" else None


def opened_batches(buf: bytes, start: int, length: int, allowance: Allowance) -> Iterator[OpenedBatch]:
    """The batches of buf[start:start + length] in order, decompressed. A cut or unreadable last one has no records."""
    end = min(start + length, len(buf))
    for header in batch_headers(buf, start, length):
        crc_ok = checksum_ok(buf, header, end)
        if header.partial:
            yield OpenedBatch(header, crc_ok, b"", 0, [], error=header.error)
        elif header.magic == 2:
            yield _batch(buf, header, crc_ok, allowance)
        else:
            yield _message(buf, header, crc_ok, allowance)


def records_of(batch: OpenedBatch) -> tuple[list[Record], str | None]:
    """The records of an opened batch as far as they can be read, and why some are missing. Never raises."""
    if batch.records is not None:
        return batch.records, batch.error
    header = batch.header
    records, wrong = split_records(
        batch.data, batch.records_count, header.base_offset, header.base_timestamp or 0, batch.fixed_ms
    )
    return records, batch.error or wrong


def checksum_ok(buf: bytes, header: BatchHeader, end: int) -> bool | None:
    """Is the checksum right? None where bytes up to `end` do not hold the whole batch, or it has no known format."""
    behind = header.start + header.batch_bytes
    if header.crc is None or behind > end:
        return None
    view = memoryview(buf)
    if header.magic == 2:
        import crc32c  # with what it imports itself it takes longer than many captures without a batch

        return bool(crc32c.crc32c(view[header.start + _V2_CHECKED_AT : behind]) == header.crc)
    return zlib.crc32(view[header.start + _V1_CHECKED_AT : behind]) == header.crc


class FirstRecord(NamedTuple):
    """What the first record of a batch says; None where it is not known.

    content_crc: CRC-32C of key and value. Sent again by another client, at another time or with other headers, a record
    keeps it. Of a compressed batch it is that of all its records as they are compressed, and nothing else is known.
    key_bytes: -1 for a null key. key_crc: CRC-32C of the key; None for a null key. value_kind: one of VALUE_KINDS.
    """

    content_crc: int | None = None
    key_bytes: int | None = None
    key_crc: int | None = None
    value_kind: str | None = None


# Kinds of payloads; a null; and what a schema registry's serialisers write: a zero byte and the schema's id.
VALUE_KINDS = (*PAYLOAD_KINDS, "null", "schema_id")
SCHEMA_ID_BYTES = 5


def value_kind(value: bytes | None) -> str:
    """One of VALUE_KINDS."""
    if value is None:
        return "null"
    if value[:1] == b"\0" and len(value) >= SCHEMA_ID_BYTES:
        return "schema_id"
    return PAYLOAD_KINDS[payload_kind(value)]


def first_record(buf: bytes | memoryview, start: int, stop: int, codec: str | int) -> FirstRecord:
    """What the first record says of the batch of format 2 in buf[start:stop]."""
    import crc32c

    at = start + _BATCH_HEADER_BYTES
    view = memoryview(buf)
    if codec not in {"none", 0}:
        return FirstRecord(None if at >= stop else int(crc32c.crc32c(view[at:stop])))
    try:
        size, at = _varint(buf, at)
        stop = min(stop, at + size)
        _, at = _varint(buf, _varint(buf, at + 1)[1])  # behind attributes, and what is later by time and offset
        key_bytes, key_at = _varint(buf, at)
        value_bytes, value_at = _varint(buf, key_at + max(key_bytes, 0))
    except IndexError:
        return FirstRecord()
    end = value_at + max(value_bytes, 0)
    if end > stop:
        return FirstRecord()
    return FirstRecord(
        int(crc32c.crc32c(view[at:end])),
        max(key_bytes, -1),
        None if key_bytes < 0 else int(crc32c.crc32c(view[key_at : key_at + key_bytes])),
        value_kind(None if value_bytes < 0 else bytes(view[value_at:end])),
    )


def record_headers(data: bytes, at: int, count: int, end: int) -> tuple[list[Header], str | None]:
    """Headers of a record of format 2, which ends at `end`, and what is wrong with them."""
    found: list[Header] = []
    try:
        for _ in range(count):
            size, at = _varint(data, at)
            if not 0 <= size <= end - at:
                return found, "impossible size of a header"
            name = data[at : at + size]
            size, at = _varint(data, at + size)
            if size > end - at:
                return found, "impossible size of a header"
            value = None if size < 0 else data[at : at + size]
            found.append((name, value))
            at += max(size, 0)
    except IndexError:
        return found, "a header ends early"
    return found, None


def control_type(data: bytes, record: Record) -> str | None:
    """What a control record says: abort, commit, ... ; None where its key does not tell."""
    _, _, key_at, key_bytes, *_ = record
    if key_bytes < 4:
        return None
    _, number = _read_control(data, key_at)
    return _CONTROL_TYPES[number] if 0 <= number < len(_CONTROL_TYPES) else f"type {number}"


def _batch(buf: bytes, header: BatchHeader, crc_ok: bool | None, allowance: Allowance) -> OpenedBatch:
    """A whole batch of format 2."""
    body = buf[header.start + _BATCH_HEADER_BYTES : header.start + header.batch_bytes]
    data, error, limited, _ = decompress(header.codec or "none", body, allowance.limit(len(body)))
    allowance.spend(len(body), len(data))
    size = None if error else _BATCH_HEADER_BYTES + len(data)
    is_plain = (header.codec or "none") == "none"
    count, most = header.records_count or 0, allowance.max_records if is_plain else allowance.most_records(len(body))
    if count > most:
        count, limited = most, True
        error = error or f"{header.records_count} records, more than are decoded of one batch"
    if not is_plain:
        allowance.spend_records(len(body), min(count, len(data) // _LEAST_RECORD_BYTES))
    return OpenedBatch(header, crc_ok, data, count, None, size, error, limited)


def split_records(
    data: bytes, count: int, base_offset: int, base_ms: int, fixed_ms: int | None
) -> tuple[list[Record], str | None]:
    """`count` records of format 2 that fill `data`, and what is wrong. Offsets and times are deltas to the base.

    This is the meaning of record data; analyser/decoding/rows/record_arrays.py reads many whole batches at once and
    must agree.
    Varints of one byte are read in place: a call for each of the six of a record doubles the time.
    """
    records: list[Record] = []
    add = records.append
    at, size = 0, len(data)
    none_given = base_ms == _NO_TIMESTAMP and fixed_ms is None
    try:
        for _ in range(count):
            byte = data[at]
            if byte < 128:
                length, at = _ZIGZAG[byte], at + 1
            else:
                length, at = _varint(data, at)
            stop = at + length
            if length < 0 or stop > size:
                return records, f"record {len(records)}: impossible size"
            byte = data[at + 1]
            if byte < 128:
                later_ms, at = _ZIGZAG[byte], at + 2
            else:
                later_ms, at = _varint(data, at + 1)
            byte = data[at]
            if byte < 128:
                offset, key_at = _ZIGZAG[byte], at + 1
            else:
                offset, key_at = _varint(data, at)
            byte = data[key_at]
            if byte < 128:
                key_bytes, key_at = _ZIGZAG[byte], key_at + 1
            else:
                key_bytes, key_at = _varint(data, key_at)
            value_at = key_at + key_bytes if key_bytes > 0 else key_at
            byte = data[value_at]
            if byte < 128:
                value_bytes, value_at = _ZIGZAG[byte], value_at + 1
            else:
                value_bytes, value_at = _varint(data, value_at)
            at = value_at + value_bytes if value_bytes > 0 else value_at
            byte = data[at]
            if byte < 128:
                headers, at = _ZIGZAG[byte], at + 1
            else:
                headers, at = _varint(data, at)
            # A header takes two bytes at least; without headers the record ends here.
            if headers < 0 or at + 2 * headers > stop or (headers == 0 and at != stop):
                return records, f"record {len(records)}: its fields do not fit its size"
            time = fixed_ms if fixed_ms is not None else None if none_given else base_ms + later_ms
            sizes = max(key_bytes, -1), max(value_bytes, -1)
            add((base_offset + offset, time, key_at, sizes[0], value_at, sizes[1], at, headers, stop))
            at = stop
    except (IndexError, OverflowError):
        return records, f"the data ends inside record {len(records)} of {count}"
    return records, None if at == size else f"{size - at} bytes behind the last record"


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A zigzag varint of up to 64 bits and the position behind it. IndexError when it does not end."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 128 and value < 1 << 64:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift >= 7 * _MAX_VARINT_BYTES:
            raise IndexError("a number of more than 64 bits")


def _message(buf: bytes, header: BatchHeader, crc_ok: bool | None, allowance: Allowance) -> OpenedBatch:
    """A whole message of format 0 or 1, or the set inside a compressed one."""
    data = buf[header.start : header.start + header.batch_bytes]
    record, error = _single(data, 0, len(data), header.magic or 0)
    if record is None:
        return OpenedBatch(header, crc_ok, data, 0, [], error=error)
    if header.codec == "none":
        return OpenedBatch(header, crc_ok, data, 1, [record], len(data))
    _, wrapper_ms, _, _, at, size, *_ = record
    body = data[at : at + max(size, 0)]
    inner, error, limited, _ = decompress(header.codec or "", body, allowance.limit(len(body)))
    allowance.spend(len(body), len(inner))
    fixed = wrapper_ms if header.timestamp_type == "log_append_time" else None
    records, wrong = _set(inner, header, fixed, allowance.most_records(len(body)))
    allowance.spend_records(len(body), len(records))
    size_if_plain = None if error else len(inner)
    return OpenedBatch(header, crc_ok, inner, len(records), records, size_if_plain, error or wrong, limited)


def _set(data: bytes, wrapper: BatchHeader, fixed_ms: int | None, most: int) -> tuple[list[Record], str | None]:
    """The messages inside a compressed one; those of format 1 count from the first, the wrapper has the last offset."""
    records: list[Record] = []
    error: str | None = None
    at = 0
    while at < len(data) and error is None:
        size = _read_int(data, at + 8)[0] if at + 17 <= len(data) else -1
        stop = at + 12 + size
        if size < 0 or stop > len(data):
            error = f"message {len(records)} ends early"
        elif len(records) >= most:
            error = f"more than {most} messages, the most that are decoded of one"
        elif data[at + 17 : at + 18] and data[at + 17] & 7:
            error = f"message {len(records)} is compressed again"
        else:
            record, error = _single(data, at, stop, data[at + 16])
            if record is not None:
                records.append(record)
            at = stop
    if wrapper.magic == 1 and records:
        # A producer may leave the wrapper's offset at 0: the broker gives the real ones.
        shift = max(0, wrapper.base_offset - records[-1][0])
        records = [
            (record[0] + shift, fixed_ms if fixed_ms is not None else record[1], *record[2:]) for record in records
        ]
    return records, error


def _single(data: bytes, at: int, stop: int, magic: int) -> tuple[Record | None, str | None]:
    """The message in data[at:stop]."""
    pos = at + 18
    time: int | None = None
    if magic not in {0, 1}:
        return None, f"unknown format {magic}"
    if magic == 1 and pos + 8 <= stop:
        time = _read_long(data, pos)[0]
        pos += 8
    fields: list[int] = []
    for _ in range(2):
        size = _read_int(data, pos)[0] if pos + 4 <= stop else -2
        if size < -1 or pos + 4 + size > stop:
            return None, "key or value does not fit its message"
        fields += (pos + 4, size)
        pos += 4 + max(size, 0)
    if pos != stop:
        return None, "bytes behind the value of a message"
    key_at, key_bytes, value_at, value_bytes = fields
    offset: int = _read_long(data, at)[0]
    ms = None if time == _NO_TIMESTAMP else time
    return (offset, ms, key_at, key_bytes, value_at, value_bytes, stop, 0, stop), None
