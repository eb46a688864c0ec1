"""Log segments: what is one, its batches, and what becomes of bytes that are none."""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path

import pytest

from tests.support.packets import pcap
from tests.support.record_batches import Sent, message_set
from tests.support.request_log import heartbeat, line
from tests.support.segments import numbered, segment, write_segment
from wirewitness.analyser.capture import CaptureError, CaptureStats, open_captures
from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.endpoints import EndpointTable
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.log_segment import LogSegment, StoredBatch, is_log_segment, partition_of
from wirewitness.analyser.capture.reader import read_batches


def buffer(data: bytes, limits: CaptureLimits) -> BlockBuffer:
    return BlockBuffer(io.BytesIO(data), limits)


def read(data: bytes, limits: CaptureLimits | None = None) -> tuple[list[StoredBatch], CaptureStats]:
    """All batches of a segment, and what was remarked."""
    limits = limits or CaptureLimits(block_bytes=1 << 12)
    stats = CaptureStats("segment")
    found = LogSegment(buffer(data, limits), stats, limits)
    batches = list(found.batches())
    found.end()
    assert stats.captured_bytes == len(data)
    return batches, stats


def remarks(stats: CaptureStats) -> dict[str, int]:
    """Codes, and the number that each remark begins with."""
    return {one.code: int(one.text.split()[0].replace(",", "")) for one in stats.remarks}


THREE = segment((7, numbered(3)), (10, numbered(5, "zstd")), (15, numbered(2, "gzip")))


@pytest.mark.parametrize("block_bytes", [64, 300, 1 << 16])
def test_batches_have_their_places_whatever_the_blocks(block_bytes: int) -> None:
    batches, stats = read(THREE, CaptureLimits(block_bytes=block_bytes))
    assert b"".join(one.data for one in batches) == THREE
    assert [one.place for one in batches] == [0, len(numbered(3)), len(THREE) - len(batches[2].data)]
    assert all(one.crc_ok for one in batches)
    assert (stats.batches, stats.format, stats.remarks) == (3, "Kafka log segment", [])


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_read(magic: int) -> None:
    data = message_set([Sent(1_700_000_000_000 + n, b"k", b"v" * n) for n in range(4)], magic)
    assert is_log_segment(buffer(data, CaptureLimits()))
    batches, stats = read(data)
    assert len(batches) == 4
    assert stats.remarks == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(4096),
        THREE[:40],
        b"\x0b" + THREE[1:],
        THREE[:30] + b"\xff" + THREE[31:],
        pcap([]),
        line(heartbeat()).encode(),
        bytes.fromhex("0000000a000000c8") * 100,
        random.Random(5).randbytes(1 << 16),
    ],
    ids=["empty", "zeros", "cut", "offset", "checksum", "pcap", "request log", "index", "random"],
)
def test_nothing_else_is_a_segment(data: bytes) -> None:
    assert not is_log_segment(buffer(data, CaptureLimits()))


def test_a_cut_tail_and_reserved_zeros_are_normal() -> None:
    batches, stats = read(THREE[:-9])
    assert len(batches) == 2
    assert remarks(stats) == {"segment_cut": len(THREE) - 9 - len(b"".join(one.data for one in batches))}
    batches, stats = read(THREE + bytes(100_000))
    assert len(batches) == 3
    assert remarks(stats) == {"segment_zeros": 100_000}
    assert {one.severity for one in stats.remarks} == {"note"}


def test_a_wrong_checksum_between_batches_is_said_and_the_batch_kept() -> None:
    damaged = bytearray(THREE)
    damaged[len(numbered(3)) + 70] ^= 1
    batches, stats = read(bytes(damaged))
    assert [one.crc_ok for one in batches] == [True, False, True]
    assert remarks(stats) == {"segment_crc": 1}


@pytest.mark.parametrize("lies", [b"\0\0\0\1", b"\0\0\x40\0", b"\x07\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_behind_a_length_that_lies_the_next_batch_is_found(lies: bytes) -> None:
    first = len(numbered(3))
    damaged = THREE[: first + 8] + lies + THREE[first + 12 :]
    batches, stats = read(damaged)
    assert b"".join(one.data for one in batches) == THREE[:first] + batches[1].data
    assert damaged.endswith(batches[1].data)
    assert remarks(stats) == {"segment_damaged": len(damaged) - first - len(batches[1].data)}


def test_what_looks_like_batches_without_end_costs_no_more_than_the_slack() -> None:
    header = bytearray(segment((1, numbered(3)))[:61])
    header[8:12] = (200_000).to_bytes(4, "big")  # each states a whole batch with a wrong checksum
    data = segment((0, numbered(3))) + bytes(header) * 20_000
    batches, stats = read(data, CaptureLimits(block_bytes=1 << 16, segment_slack_bytes=1 << 20))
    assert len(batches) == 1
    assert remarks(stats)["segment_given_up"] > 0


def test_random_damage_loses_only_what_it_hits() -> None:
    chosen = random.Random(11)
    parts = [segment((10 * n, numbered(10, chosen.choice(["none", "lz4", "snappy"])))) for n in range(60)]
    for _ in range(30):
        hit = chosen.randrange(1, 59)
        noise = chosen.randbytes(chosen.randrange(1, 3000))
        data = b"".join([*parts[:hit], noise, *parts[hit + 1 :]])
        batches, _ = read(data)
        found = {one.data for one in batches if one.crc_ok}
        assert found == {*parts[:hit], *parts[hit + 1 :]}


def test_the_folder_names_the_partition() -> None:
    assert partition_of(Path("/data/orders-eu-12/00000000000000000000.log")) == ("orders-eu", 12)
    assert partition_of(Path("/data/__consumer_offsets-49/x.log.gz")) == ("__consumer_offsets", 49)
    deleted = "orders-3.0123456789abcdef0123456789abcdef-delete"
    assert partition_of(Path(f"/data/{deleted}/x.log")) == ("orders", 3)
    assert partition_of(Path("/data/segments/x.log")) is None
    assert partition_of(None) is None


def test_segments_of_a_folder_are_sources_and_indexes_are_not(tmp_path: Path) -> None:
    path = write_segment(tmp_path, "t-0", THREE)
    path.with_suffix(".index").write_bytes(bytes.fromhex("0000000a000000c8"))
    path.with_suffix(".timeindex").write_bytes(bytes(24))
    (tmp_path / "t-0" / "old.log.gz").write_bytes(gzip.compress(THREE))
    sources = open_captures([tmp_path])
    assert [(Path(one.name).name, one.is_segment) for one in sources] == [(path.name, True), ("old.log.gz", True)]
    assert "what is no capture: 2" in sources[0].remarks[0].text


def test_where_only_packets_will_do_that_is_said(tmp_path: Path) -> None:
    (source,) = open_captures([write_segment(tmp_path, "t-0", THREE)])
    with pytest.raises(CaptureError, match="is a log segment of Kafka: it has no packets"):
        list(read_batches(source, EndpointTable(10), CaptureStats("x")))
