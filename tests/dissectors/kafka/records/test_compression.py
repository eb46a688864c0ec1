"""Decompression under a limit; compressed bytes come from kafka-python's codecs and the codecs' own libraries."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from collections.abc import Callable
from functools import partial

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.codec import gzip_encode, lz4_encode, lz4_encode_old_kafka, snappy_encode, zstd_encode

from tests.support.shares import examples
from tests.support.timing import takes_less_than
from wirewitness.dissectors.kafka.records.compression import LIMIT_REACHED, Decompressed, decompress

MIB = 1 << 20
TEXT = b"".join(b'{"id":%d,"state":"paid"}' % number for number in range(3000))

Encoder = Callable[[bytes], bytes]
ENCODERS: dict[str, tuple[str, Encoder]] = {
    "gzip": ("gzip", gzip_encode),
    "gzip, two members": ("gzip", lambda data: gzip.compress(data[:999]) + gzip.compress(data[999:])),
    "snappy, raw": ("snappy", lambda data: snappy_encode(data, xerial_compatible=False)),
    "snappy, xerial": ("snappy", lambda data: snappy_encode(data, xerial_compatible=True, xerial_blocksize=5000)),
    "snappy, two xerial streams": ("snappy", lambda data: snappy_encode(data[:999]) + snappy_encode(data[999:])),
    "lz4": ("lz4", lz4_encode),
    "lz4, old checksum": ("lz4", lz4_encode_old_kafka),
    "lz4, stated size": ("lz4", lambda data: lz4.frame.compress(data, store_size=True)),
    "zstd": ("zstd", zstd_encode),
    "zstd, no stated size": ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress),
    "none": ("none", bytes),
}
COMPRESSING = [name for name in ENCODERS if name != "none"]
each_encoder = pytest.mark.parametrize("name", COMPRESSING)


def packed(name: str, data: bytes) -> tuple[str, bytes]:
    codec, encode = ENCODERS[name]
    return codec, encode(data)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(300_000)], ids=["empty", "one byte", "text", "zeros"])
def test_what_went_in_comes_out(name: str, data: bytes) -> None:
    assert decompress(*packed(name, data), 64 * MIB) == Decompressed(data)


def test_kafka_s_old_lz4_header_is_not_what_lz4_reads() -> None:
    with pytest.raises(RuntimeError, match="headerChecksum"):
        lz4.frame.decompress(lz4_encode_old_kafka(TEXT))


@each_encoder
def test_the_limit_ends_it(name: str) -> None:
    codec, data = packed(name, TEXT)
    assert decompress(codec, data, len(TEXT)) == Decompressed(TEXT)
    out = decompress(codec, data, 10_000)
    assert TEXT.startswith(out.data)
    assert (out.error, out.limited) == (LIMIT_REACHED, True)
    # A raw snappy block is all or nothing.
    assert len(out.data) == (10_000 if codec != "snappy" else 10_000 if "5000" in name else len(out.data))


BOMBS: dict[str, tuple[str, Encoder]] = {
    "gzip": ("gzip", lambda data: gzip.compress(data, 6)),
    "snappy": ("snappy", snappy.compress),
    "xerial": ("snappy", lambda data: snappy_encode(data, xerial_blocksize=MIB)),
    "lz4": ("lz4", lambda data: lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX4MB)),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "zstd, no stated size": ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_stops_at_the_limit(name: str) -> None:
    codec, encode = BOMBS[name]
    bomb = encode(bytes(128 * MIB))
    limit = 4 * MIB
    tracemalloc.start()
    out = decompress(codec, bomb, limit)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (out.limited, len(out.data) <= limit) == (True, True)
    assert peak < 5 * limit
    assert takes_less_than(1, lambda: decompress(codec, bomb, limit))


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        pytest.param("zstd", bytes.fromhex("28b52ffd e0 ffffffffffffff7f 0100 00"), id="zstd states 8 EiB"),
        pytest.param("zstd", bytes.fromhex("28b52ffd 00 ff 010000"), id="zstd window of 3.75 TiB"),
        pytest.param("snappy", bytes.fromhex("ffffffff0f 00 41"), id="snappy states 4 GiB"),
        pytest.param("snappy", b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1\x7f\xff\xff\xff\x00", id="xerial block of 2 GiB"),
        pytest.param("lz4", bytes.fromhex("04224d18 6c40 ffffffffffffff7f 00") + b"\xff\xff\xff\x7f", id="lz4 8 EiB"),
        pytest.param("codec 5", b"abc", id="no such codec"),
    ],
)
def test_what_it_states_is_not_allocated(codec: str, data: bytes) -> None:
    tracemalloc.start()
    out = decompress(codec, data, 64 * MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert out.error
    assert out.data == b""
    assert peak < MIB


def test_many_empty_frames_take_no_time() -> None:
    for codec, frame in (("gzip", gzip.compress(b"")), ("lz4", lz4.frame.compress(b"")), ("zstd", zstd_encode(b""))):
        frames = frame * (MIB // len(frame))
        assert takes_less_than(1, partial(decompress, codec, frames, 64 * MIB))


@each_encoder
def test_cut_data_gives_a_prefix(name: str) -> None:
    codec, data = packed(name, TEXT)
    for cut in range(0, len(data), max(1, len(data) // 200)):
        out = decompress(codec, data[:cut], 64 * MIB)
        assert TEXT.startswith(out.data)
        assert out.error or out.data == TEXT or "two" in name or cut == 0


@pytest.mark.parametrize(
    ("codec", "encode"),
    [
        ("gzip", gzip.compress),
        ("lz4", lambda data: lz4.frame.compress(data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_checksum=True)),
        ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress),
    ],
    ids=["gzip", "lz4", "zstd"],
)
def test_what_was_readable_before_damage_is_kept(codec: str, encode: Encoder) -> None:
    data = random.Random(5).randbytes(600_000)
    encoded = encode(data)
    at = len(encoded) * 3 // 4
    out = decompress(codec, encoded[:at] + b"\xff" * 40 + encoded[at + 40 :], 64 * MIB)
    assert out.error
    assert out.data[:300_000] == data[:300_000]


@pytest.mark.parametrize("name", ["gzip", "lz4", "zstd"])
def test_bytes_behind_the_last_frame_are_not_read(name: str) -> None:
    codec, data = packed(name, TEXT)
    assert decompress(codec, data + b"more", 64 * MIB)[:-1] == Decompressed(TEXT)[:-1]


@examples(300)
@given(st.sampled_from(["gzip", "snappy", "lz4", "zstd", "none", "x"]), st.binary(max_size=300), st.integers(1, 5000))
@example("lz4", b"\x04\x22\x4d\x18\x40", 9)
def test_any_bytes_never_raise(codec: str, data: bytes, limit: int) -> None:
    for start in (b"", b"\x1f\x8b\x08", b"\x82SNAPPY\x00", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd"):
        out = decompress(codec, start + data, limit)
        assert codec == "none" or len(out.data) <= limit


@examples(200)
@given(st.sampled_from(COMPRESSING), st.integers(0, 10**6), st.integers(0, 255), st.integers(1, 200_000))
def test_changed_bytes_never_raise(name: str, at: int, byte: int, limit: int) -> None:
    codec, data = packed(name, TEXT)
    at %= len(data)
    assert len(decompress(codec, data[:at] + bytes((byte,)) + data[at + 1 :], limit).data) <= limit
