"""Records of every format and codec, as kafka-python writes and reads them, and of batches that lie."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from tests.dissectors.kafka.records.test_batches import (
    APPEND_TIME,
    COMMIT_MARKER,
    GZIP,
    GZIP_V1,
    LZ4,
    MESSAGES_V0,
    MESSAGES_V1,
    TIME_MS,
    TRANSACTIONAL,
)
from tests.support.record_batches import CODEC_NUMBERS, Sent, batch, message_set
from tests.support.shares import examples
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.kafka.records.record_sets import (
    Allowance,
    FirstRecord,
    OpenedBatch,
    control_type,
    first_record,
    opened_batches,
    record_headers,
    records_of,
)

HEADERS = [("trace", b"\x00\xff"), ("none", None), ("long", b"x" * 300), ("", b"")]
RECORDS = [
    Sent(
        TIME_MS + number * 37 - 1000 * (number == 7),
        None if number % 5 == 0 else b"key-%d" % number,
        None if number % 7 == 0 else b"v" * number * 3,
        HEADERS[: number % 5],
    )
    for number in range(300)
]
# offset, timestamp, key, value, headers
Read = tuple[int, int | None, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def opened(raw: bytes, limits: Limits | None = None) -> list[OpenedBatch]:
    return list(opened_batches(raw, 0, len(raw), Allowance(limits or Limits())))


def read(raw: bytes) -> list[Read]:
    """All records; every batch must be whole and right."""
    found: list[Read] = []
    for one in opened(raw):
        records, error = records_of(one)
        assert (error, one.crc_ok, one.limited) == (None, True, False)
        found += [_content(one.data, record) for record in records]
    return found


def _content(data: bytes, record: Any) -> Read:
    offset, time, key_at, key_bytes, value_at, value_bytes, headers_at, headers, stop = record
    listed, wrong = record_headers(data, headers_at, headers, stop)
    assert wrong is None
    key = None if key_bytes < 0 else data[key_at : key_at + key_bytes]
    value = None if value_bytes < 0 else data[value_at : value_at + value_bytes]
    return offset, time, key, value, tuple((name.decode(), content) for name, content in listed)


def read_by_kafka_python(raw: bytes) -> list[Read]:
    found: list[Read] = []
    sets = MemoryRecords(raw)
    while sets.has_next():
        found += [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in sets.next_batch()]
    return found


@pytest.mark.parametrize("codec", CODEC_NUMBERS)
def test_format_2_as_kafka_python_reads_it(codec: str) -> None:
    raw = batch(RECORDS, codec, transactional=True, producer=(7, 1, 50))
    assert read(raw) == read_by_kafka_python(raw)
    assert [(r.key, r.value) for r in RECORDS] == [(key, value) for _, _, key, value, _ in read(raw)]
    (one,) = opened(raw)
    assert one.uncompressed_bytes == len(batch(RECORDS))
    assert (one.header.producer_id, one.header.transactional, one.header.codec) == (7, True, codec)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_as_kafka_python_reads_them(magic: int, codec: str) -> None:
    raw = message_set(RECORDS, magic, codec)
    assert read(raw) == read_by_kafka_python(raw)
    assert [(r.key, r.value) for r in RECORDS] == [(key, value) for _, _, key, value, _ in read(raw)]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(TRANSACTIONAL, [(100, 0, b"k", b"v1"), (101, 5, None, b"v2")], id="transactional"),
        pytest.param(GZIP, [(200, 0, b"k", b"v1"), (201, 5, None, b"v2")], id="gzip"),
        pytest.param(LZ4, [(700, 0, b"k", b"v1")], id="lz4"),
        pytest.param(APPEND_TIME, [(800, 95_000_000_000, b"k", b"v1")], id="log append time"),
        pytest.param(MESSAGES_V0, [(400, None, b"k", b"v1"), (401, None, None, b"v2")], id="format 0"),
        pytest.param(MESSAGES_V1, [(300, 0, b"k", b"v1"), (301, 5, None, b"v2")], id="format 1"),
        pytest.param(GZIP_V1, [(500, 0, b"k", b"v1"), (501, 5, None, b"v2")], id="format 1, relative offsets"),
    ],
)
def test_what_the_java_client_wrote(raw: bytes, expected: list[tuple[Any, ...]]) -> None:
    found = [
        (offset, time if time is None else time - TIME_MS, key, value) for offset, time, key, value, _ in read(raw)
    ]
    if raw is APPEND_TIME:
        assert found[0][1] == struct.unpack_from(">q", raw, 35)[0] - TIME_MS
        found = [(found[0][0], expected[0][1], *found[0][2:])]
    assert found == expected


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "abort"), (1, "commit"), (2, "leader_change"), (3, "snapshot_header"), (9, "type 9"), (-1, "type -1")],
)
def test_control_records(number: int, name: str) -> None:
    raw = COMMIT_MARKER[:-10] + struct.pack(">h", number) + COMMIT_MARKER[-8:]
    (one,) = opened(raw)
    records, error = records_of(one)
    assert (error, [control_type(one.data, record) for record in records]) == (None, [name])
    assert control_type(b"", (0, 0, 0, 2, 0, 0, 0, 0, 0)) is None


def test_log_append_time_of_a_wrapper_is_that_of_all() -> None:
    inner = message_set(RECORDS[:3], 1)
    body = struct.pack(">bbqii", 1, 9, TIME_MS + 99, -1, len(packed := zlib_gzip(inner))) + packed
    message = struct.pack(">I", zlib.crc32(body)) + body
    raw = struct.pack(">qi", 1002, len(message)) + message
    assert [(offset, time) for offset, time, *_ in read(raw)] == [(1000 + n, TIME_MS + 99) for n in range(3)]


def zlib_gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def test_a_delete_horizon_moves_no_record() -> None:
    """KIP-534: with the flag the base timestamp is the horizon, and the deltas count from there."""
    later = [record._replace(timestamp_ms=record.timestamp_ms + 86_400_000) for record in RECORDS[1:4]]
    raw = bytearray(batch([Sent(TIME_MS, None, None), *later]))
    raw[21:23] = struct.pack(">h", 0x40)
    raw[17:21] = struct.pack(">I", crc32c.crc32c(bytes(raw[21:])))
    assert [time for _, time, *_ in read(bytes(raw))][1:] == [record.timestamp_ms for record in later]


@pytest.mark.parametrize("codec", CODEC_NUMBERS)
def test_a_wrong_checksum_is_told_and_the_records_are_read(codec: str) -> None:
    raw = batch(RECORDS[:5], codec)
    (one,) = opened(raw[:17] + bytes(4) + raw[21:])
    assert one.crc_ok is False
    assert len(records_of(one)[0]) == 5
    (old,) = opened(MESSAGES_V0[:12] + bytes(4) + MESSAGES_V0[16:29])
    assert (old.crc_ok, len(records_of(old)[0])) == (False, 1)


@pytest.mark.parametrize("raw", [batch(RECORDS[:20]), message_set(RECORDS[:20], 1, "gzip")], ids=["v2", "v1"])
def test_the_last_batch_of_a_fetch_may_be_cut(raw: bytes) -> None:
    for cut in range(12, len(raw)):
        whole, rest = opened(raw + raw[:cut])
        assert len(records_of(whole)[0]) == 20
        assert (rest.crc_ok, records_of(rest)) == (None, ([], None))


def test_limits_end_in_partial_results() -> None:
    small = Limits(max_decompressed_bytes=5000)
    for codec in ("gzip", "lz4", "zstd"):
        (one,) = opened(batch(RECORDS, codec), small)
        records, error = records_of(one)
        assert (one.limited, one.uncompressed_bytes) == (True, None)
        assert error
        assert 20 < len(records) < 300
    (many,) = opened(batch(RECORDS), Limits(max_records_per_batch=9))
    assert (many.limited, len(records_of(many)[0])) == (True, 9)
    (old,) = opened(message_set(RECORDS, 1, "gzip"), Limits(max_records_per_batch=9))
    assert len(records_of(old)[0]) == 9
    assert old.error


def test_a_flow_of_bombs_loses_its_allowance() -> None:
    bomb = batch([Sent(TIME_MS, None, bytes(4_000_000))], "zstd")
    allowance = Allowance(Limits(decompression_slack_bytes=10_000_000))
    told = [one.limited for _ in range(5) for one in opened_batches(bomb, 0, len(bomb), allowance)]
    assert told == [False, False, True, True, True]
    honest = batch(RECORDS, "zstd")
    assert [one.limited for one in opened_batches(honest, 0, len(honest), allowance)] == [False]


def test_bombs_of_many_flows_share_what_all_may_give() -> None:
    bomb = batch([Sent(TIME_MS, None, bytes(4_000_000))], "zstd")
    limits = Limits(decompression_slack_of_all_bytes=10_000_000)
    told = [one.limited for _ in range(5) for one in opened_batches(bomb, 0, len(bomb), Allowance(limits))]
    assert told == [False, False, True, True, True]


def test_small_records_of_many_flows_share_what_all_may_give() -> None:
    sent = [Sent(TIME_MS, None, None)] * 400
    limits = Limits(usual_records_per_compressed_byte=0, compressed_records_of_all=1000)
    packed, plain = batch(sent, "zstd"), batch(sent)
    sets = [one for _ in range(4) for one in opened_batches(packed, 0, len(packed), Allowance(limits))]
    assert [(len(records_of(one)[0]), one.limited) for one in sets] == [(400, False)] * 2 + [(200, True), (0, True)]
    for enough, data in ((limits, plain), (Limits(compressed_records_of_all=0), packed)):
        (whole,) = opened_batches(data, 0, len(data), Allowance(enough))
        assert (len(records_of(whole)[0]), whole.limited) == (400, False)


def test_small_messages_of_old_formats_share_it_too() -> None:
    packed = message_set([Sent(TIME_MS, None, None)] * 400, 1, "gzip")
    limits = Limits(usual_records_per_compressed_byte=0, compressed_records_of_all=1000)
    sets = [one for _ in range(4) for one in opened_batches(packed, 0, len(packed), Allowance(limits))]
    assert [len(records_of(one)[0]) for one in sets] == [400, 400, 200, 0]


def _batch_of(body: bytes, count: int) -> bytes:
    checked = struct.pack(">hiqqqhii", 0, max(count - 1, 0), TIME_MS, TIME_MS, -1, -1, -1, count) + body
    return struct.pack(">qiibI", 0, len(checked) + 9, 0, 2, crc32c.crc32c(checked)) + checked


GOOD = bytes.fromhex("12 00 00 00 02 6b 04 7631 00")


@pytest.mark.parametrize(
    ("body", "count", "read_before", "error"),
    [
        pytest.param(GOOD + GOOD, 2, 2, None, id="two good ones"),
        pytest.param(GOOD, 2, 1, "inside record 1 of 2", id="one is missing"),
        pytest.param(GOOD + b"\0", 1, 1, "1 bytes behind", id="a byte more"),
        pytest.param(GOOD + b"\x11" + GOOD[1:], 2, 1, "record 1: impossible size", id="negative size"),
        pytest.param(GOOD + b"\x7e" + GOOD[1:], 2, 1, "record 1: impossible size", id="size beyond the batch"),
        pytest.param(GOOD + b"\xff" * 11, 2, 1, "inside record 1", id="a size without end"),
        pytest.param(GOOD + bytes.fromhex("12 00 00 00 7e 6b 04 7631 00") + GOOD, 3, 1, "record 1", id="key too long"),
        pytest.param(
            GOOD + bytes.fromhex("12 00 00 00 02 6b 08 7631 00") + GOOD, 3, 1, "record 1", id="value too long"
        ),
        pytest.param(GOOD + bytes.fromhex("12 00 00 00 02 6b 04 7631 02"), 2, 1, "record 1", id="header is missing"),
        pytest.param(GOOD + bytes.fromhex("12 00 00 00 02 6b 04 7631 01"), 2, 1, "record 1", id="-1 headers"),
        pytest.param(bytes.fromhex("14 00 00 00 02 6b 04 7631 00 00"), 1, 0, "record 0", id="rest in a record"),
        pytest.param(bytes.fromhex("0a 00 00 00 01 01 00"), 1, 0, "record 0", id="size too small by one"),
        pytest.param(bytes.fromhex("0c 00 00 00 01 01 00"), 1, 1, None, id="null key and value"),
        pytest.param(bytes.fromhex("0c 00 00 00 03 03 00"), 1, 1, None, id="any negative size is null"),
        pytest.param(b"", 2_000_000_000, 0, "500000", id="two billion records of nothing"),
    ],
)
def test_damaged_records_end_the_batch(body: bytes, count: int, read_before: int, error: str | None) -> None:
    (one,) = opened(_batch_of(body, count))
    records, told = records_of(one)
    assert len(records) == read_before
    assert told is None if error is None else error in (told or "") or "records, more" in (told or "")


@pytest.mark.parametrize(
    ("inner", "error"),
    [
        pytest.param(GZIP_V1, "compressed again", id="compressed twice"),
        pytest.param(MESSAGES_V1[:50], "ends early", id="cut"),
        pytest.param(MESSAGES_V1 + b"\xff" * 30, "ends early", id="negative size"),
        pytest.param(MESSAGES_V1[:16] + b"\x05" + MESSAGES_V1[17:], "unknown format 5", id="magic 5"),
    ],
)
def test_damaged_sets_in_a_wrapper(inner: bytes, error: str) -> None:
    body = struct.pack(">bbqii", 1, 1, TIME_MS, -1, len(packed := zlib_gzip(inner))) + packed
    message = struct.pack(">I", zlib.crc32(body)) + body
    (one,) = opened(struct.pack(">qi", 9, len(message)) + message)
    assert error in (records_of(one)[1] or "")


SEEDS = [batch(RECORDS[:9], codec) for codec in CODEC_NUMBERS] + [
    message_set(RECORDS[:9], magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4")
]


@pytest.mark.parametrize("seed", SEEDS)
def test_truncation_at_every_byte(seed: bytes) -> None:
    for cut in range(len(seed)):
        for one in opened(seed[:cut]):
            records_of(one)
        (one, *_) = opened(seed[:8] + struct.pack(">i", max(cut - 12, 0)) + seed[12:cut]) or [None]
        if one is not None:
            assert len(records_of(one)[0]) <= 9


@examples(400)
@given(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 2000), st.binary(min_size=1, max_size=6)), max_size=4))
def test_changed_bytes_never_raise(seed: bytes, changes: list[tuple[int, bytes]]) -> None:
    raw = bytearray(seed)
    for at, change in changes:
        at %= len(raw)
        raw[at : at + len(change)] = change
    for one in opened(bytes(raw)):
        records, _ = records_of(one)
        for record in records:
            _, _, key_at, key_bytes, value_at, value_bytes, headers_at, headers, stop = record
            assert 0 <= key_at + max(key_bytes, 0) <= len(one.data)
            assert 0 <= value_at + max(value_bytes, 0) <= len(one.data)
            record_headers(one.data, headers_at, headers, stop)


@examples(200)
@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_never_raise(body: bytes, count: int) -> None:
    for one in [*opened(body), *opened(_batch_of(body, count))]:
        records_of(one)


def first(raw: bytes, codec: str = "none") -> FirstRecord:
    return first_record(raw, 0, len(raw), codec)


def test_content_is_that_of_key_and_value_of_the_first_record_whenever_and_by_whomever_it_is_sent() -> None:
    one = batch([Sent(TIME_MS, b"key", b"value" * 100, HEADERS)], producer=(77, 5, 9))
    again = batch([Sent(TIME_MS + 5, b"key", b"value" * 100), Sent(TIME_MS + 9, None, b"other")])
    content = crc32c.crc32c(b"\x06key" + b"\xe8\x07" + b"value" * 100)
    assert first(one) == first(again) == FirstRecord(content, 3, crc32c.crc32c(b"key"), "text")
    assert first(batch([Sent(TIME_MS, b"key", b"other")])).content_crc != content
    assert first(batch([Sent(TIME_MS, None, None)])) == FirstRecord(crc32c.crc32c(b"\x01\x01"), -1, None, "null")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"", "empty"),
        (b'{"a": 1} ', "json"),
        (b'[{"a": 1}', "json_cut"),
        ("grün".encode(), "text"),
        (b"\0\0\0\0\x07\x02", "schema_id"),
        (b"\0\0\0\x07", "binary"),
        (b"\x0a\xff", "binary"),
    ],
)
def test_kinds_of_values(value: bytes, kind: str) -> None:
    assert first(batch([Sent(TIME_MS, b"", value)]))[1:] == (0, 0, kind)


def test_of_a_compressed_batch_only_the_checksum_of_its_bytes_is_known() -> None:
    raw = batch([Sent(TIME_MS, b"key", b"value" * 100)], codec="gzip")
    assert first(raw, "gzip") == FirstRecord(crc32c.crc32c(raw[61:]))


@pytest.mark.parametrize("cut", range(2, 40))
def test_a_first_record_that_is_not_whole_is_not_known(cut: int) -> None:
    raw = batch([Sent(TIME_MS, b"key", b"value" * 6)])
    assert first(raw[: len(raw) - cut]) == FirstRecord()
    assert first(raw[:61] + b"\xff" * cut) == FirstRecord()
