"""Headers of record batches and of the older message sets; bytes and values as the Java client 3.9.1 gives them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.dissectors.kafka.records.batches import BatchHeader, batch_headers

TIME_MS = 1_700_000_000_000
TRANSACTIONAL = bytes.fromhex(
    "0000000000000064 00000044 00000005 02 a7862e16"  # base offset, length, leader epoch, magic, crc
    "0010 00000001 0000018bcfe56800 0000018bcfe56805"  # attributes, last offset delta, base and max timestamp
    "000000000000004d 0002 0000000a 00000002"  # producer id and epoch, base sequence, count
    "12000000026b0476310010000a020104763200"  # two records
)
GZIP = bytes.fromhex(
    "00000000000000c8 00000058 00000005 02 dc10350f 0001 00000001 0000018bcfe56800 0000018bcfe56805"
    "000000000000004d 0002 0000000c 00000002"
    "1f8b08000000000000ff1362606060ca662933641060e06262642933620000df69c17e13000000"
)
COMMIT_MARKER = bytes.fromhex(
    "0000000000000258 00000042 00000005 02 127c9dfd 0030 00000000 0000018bcfe56809 0000018bcfe56809"
    "000000000000004d 0002 ffffffff 00000001 2000000008000000010c00000000000300"
)
LZ4 = bytes.fromhex(
    "00000000000002bc 0000004a ffffffff 02 605f7999 0003 00000000 0000018bcfe56800 0000018bcfe56800"
    "ffffffffffffffff ffff ffffffff 00000001 04224d186040820a00008012000000026b0476310000000000"
)
APPEND_TIME = bytes.fromhex(
    "0000000000000320 0000003b ffffffff 02 e8cf4fe3 0008 00000000 0000018bcfe56800 000001a1f8a3a958"
    "ffffffffffffffff ffff ffffffff 00000001 12000000026b04763100"
)
MESSAGES_V1 = bytes.fromhex(
    "000000000000012c 00000019 3e731674 01 00 0000018bcfe56800 00000001 6b 00000002 7631"
    "000000000000012d 00000018 820bfd03 01 00 0000018bcfe56805 ffffffff 00000002 7632"
)
MESSAGES_V0 = bytes.fromhex(
    "0000000000000190 00000011 61505427 00 00 00000001 6b 00000002 7631"
    "0000000000000191 00000010 d5960a78 00 00 ffffffff 00000002 7632"
)
GZIP_V1 = bytes.fromhex(
    "00000000000001f5 00000054 d64c7ec2 01 01 0000018bcfe56805 ffffffff 0000003e"
    "1f8b08000000000000ff6360800349bb62b112462083b1fbfcd30c9008633690602a33842a00c9493471ff65862b62fd0f04603546003dc95b"
    "2449000000"
)

HEADERS = {
    "transactional": BatchHeader(
        start=0,
        base_offset=100,
        batch_bytes=80,
        partial=False,
        magic=2,
        codec="none",
        partition_leader_epoch=5,
        crc=2810588694,
        timestamp_type="create_time",
        transactional=True,
        control=False,
        last_offset_delta=1,
        base_timestamp=TIME_MS,
        max_timestamp=TIME_MS + 5,
        producer_id=77,
        producer_epoch=2,
        base_sequence=10,
        records_count=2,
    ),
    "gzip": BatchHeader(
        start=0,
        base_offset=200,
        batch_bytes=100,
        partial=False,
        magic=2,
        codec="gzip",
        partition_leader_epoch=5,
        crc=3692049679,
        timestamp_type="create_time",
        transactional=False,
        control=False,
        last_offset_delta=1,
        base_timestamp=TIME_MS,
        max_timestamp=TIME_MS + 5,
        producer_id=77,
        producer_epoch=2,
        base_sequence=12,
        records_count=2,
    ),
    "commit marker": BatchHeader(
        start=0,
        base_offset=600,
        batch_bytes=78,
        partial=False,
        magic=2,
        codec="none",
        partition_leader_epoch=5,
        crc=310156797,
        timestamp_type="create_time",
        transactional=True,
        control=True,
        last_offset_delta=0,
        base_timestamp=TIME_MS + 9,
        max_timestamp=TIME_MS + 9,
        producer_id=77,
        producer_epoch=2,
        base_sequence=-1,
        records_count=1,
    ),
    "message of format 0": BatchHeader(
        start=0,
        base_offset=400,
        batch_bytes=29,
        partial=False,
        magic=0,
        codec="none",
        crc=1632654375,
        last_offset_delta=0,
        records_count=1,
    ),
    "compressed message of format 1": BatchHeader(
        start=0,
        base_offset=501,
        batch_bytes=96,
        partial=False,
        magic=1,
        codec="gzip",
        crc=3595337410,
        timestamp_type="create_time",
        max_timestamp=TIME_MS + 5,
    ),
}


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        pytest.param(TRANSACTIONAL, "transactional", id="transactional"),
        pytest.param(GZIP, "gzip", id="gzip"),
        pytest.param(COMMIT_MARKER, "commit marker", id="commit marker"),
        pytest.param(MESSAGES_V0[:29], "message of format 0", id="format 0"),
        pytest.param(GZIP_V1, "compressed message of format 1", id="format 1 compressed"),
    ],
)
def test_header_in_full(raw: bytes, name: str) -> None:
    assert batch_headers(raw, 0, len(raw)) == [HEADERS[name]]
    assert batch_headers(b"\xff" * 9 + raw + b"\x00" * 99, 9, len(raw)) == [HEADERS[name]._replace(start=9)]


@pytest.mark.parametrize(
    ("raw", "field", "expected"),
    [
        pytest.param(LZ4, "codec", ["lz4"], id="lz4"),
        pytest.param(APPEND_TIME, "timestamp_type", ["log_append_time"], id="log append time"),
        pytest.param(MESSAGES_V1, "base_offset", [300, 301], id="format 1, two messages"),
        pytest.param(MESSAGES_V1, "max_timestamp", [TIME_MS, TIME_MS + 5], id="format 1, timestamps"),
        pytest.param(MESSAGES_V0, "batch_bytes", [29, 28], id="format 0, two messages"),
        pytest.param(GZIP + TRANSACTIONAL + COMMIT_MARKER, "base_offset", [200, 100, 600], id="three batches"),
        pytest.param(GZIP + TRANSACTIONAL + COMMIT_MARKER, "start", [0, 100, 180], id="their positions"),
        pytest.param(MESSAGES_V0 + TRANSACTIONAL, "magic", [0, 0, 2], id="formats mixed in an upgraded log"),
        pytest.param(b"", "magic", [], id="no records"),
    ],
)
def test_headers_by_field(raw: bytes, field: str, expected: list[object]) -> None:
    assert [getattr(header, field) for header in batch_headers(raw, 0, len(raw))] == expected


@pytest.mark.parametrize(("number", "name"), [(2, "snappy"), (4, "zstd"), (5, "codec 5"), (7, "codec 7")])
def test_codec_numbers(number: int, name: str) -> None:
    raw = TRANSACTIONAL[:21] + struct.pack(">h", number) + TRANSACTIONAL[23:]
    assert batch_headers(raw, 0, len(raw))[0].codec == name


@pytest.mark.parametrize("second", [TRANSACTIONAL, MESSAGES_V1[:37], MESSAGES_V0[:29]], ids=["v2", "v1", "v0"])
def test_answer_cut_in_its_last_batch(second: bytes) -> None:
    """Every length of the rest: its header is given as far as it is there, and marked."""
    whole = batch_headers(second, 0, len(second))[0]
    for cut in range(len(second)):
        for behind in (b"", second):  # the bytes behind the span are another field's
            first, *rest = batch_headers(GZIP + second[:cut] + behind, 0, len(GZIP) + cut)
            assert first == HEADERS["gzip"]
            assert len(rest) == (1 if cut >= 12 else 0)
            for header in rest:
                assert header.partial
                assert header.error is None
                known = {name: value for name, value in header._asdict().items() if value is not None}
                expected = whole._replace(start=len(GZIP), partial=True)._asdict()
                assert known.items() <= expected.items()
    assert len(batch_headers(TRANSACTIONAL[:61], 0, 61)) == 1
    assert batch_headers(TRANSACTIONAL[:61], 0, 61)[0].records_count == 2


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        pytest.param(TRANSACTIONAL[:8] + b"\xff\xff\xff\xff" + TRANSACTIONAL[12:], "impossible size", id="negative"),
        pytest.param(TRANSACTIONAL[:8] + b"\x00\x00\x00\x00" + TRANSACTIONAL[12:], "impossible size", id="zero"),
        pytest.param(TRANSACTIONAL[:8] + b"\x00\x00\x00\x30" + TRANSACTIONAL[12:], "impossible size", id="too small"),
        pytest.param(TRANSACTIONAL[:8] + b"\x7f\xff\xff\xff" + TRANSACTIONAL[12:], None, id="2 GiB"),
        pytest.param(TRANSACTIONAL[:16] + b"\x03" + TRANSACTIONAL[17:], "unknown format 3", id="magic 3"),
        pytest.param(TRANSACTIONAL[:57] + b"\xff" + TRANSACTIONAL[58:], "negative number of records", id="count"),
    ],
)
def test_hostile_batch_ends_the_list(raw: bytes, error: str | None) -> None:
    (header,) = batch_headers(raw + TRANSACTIONAL, 0, len(raw) + len(TRANSACTIONAL))
    assert (header.partial, header.error) == (True, error)


@given(st.binary(max_size=400), st.integers(0, 400), st.integers(-5, 2**31))
def test_any_bytes_give_headers(buf: bytes, start: int, length: int) -> None:
    headers = batch_headers(buf, start, length)
    assert all(header.partial is False for header in headers[:-1])
    assert sum(header.batch_bytes for header in headers if not header.partial) <= len(buf)
