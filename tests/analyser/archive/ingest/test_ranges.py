"""Ranges of a file tell together what the file tells in one go."""

from __future__ import annotations

import gzip
from dataclasses import fields
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.support.by_shards import chunks_of, told_of
from tests.support.packets import (
    Captured,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv4_fragments,
    option,
    pcap,
    section,
    simple,
    tcp,
)
from tests.support.patched_pcap import patched
from tests.support.wire import packets_of
from wirewitness.analyser.archive.ingest.ranges import find_ranges, is_exact, merged
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, Source, read_batches

LIMITS = CaptureLimits(block_bytes=2048)
# Texts that no table has.
LEFT_OUT = {"names", "comments", "secrets"}
PACKET = ethernet(ipv4(tcp(b"x" * 300, destination_port=9092)))
SAMPLE = (SAMPLES / "mongo_show_databases.pcapng").read_bytes()


def times(count: int, step_ns: int = 1000) -> list[Captured]:
    return [Captured(step_ns * number, PACKET) for number in range(count)]


def backwards() -> list[Captured]:
    packets = times(200, 10**9)
    packets[30], packets[60] = packets[60], packets[30]
    return packets


def damaged() -> bytes:
    """A record in the middle claims to be endless."""
    data = pcap(times(60))
    at = 24 + 30 * (16 + len(PACKET)) + 8
    return data[:at] + b"\xff" * 4 + data[at + 4 :]


STATISTICS = block(5, bytes(12) + option(5, (7).to_bytes(8, "little")))
CAPTURES = {
    "a sample": SAMPLE,
    "pcap": pcap(packets_of(SAMPLES / "mongo_show_databases.pcapng"), nanoseconds=True),
    "the last record is cut": SAMPLE[:-9],
    "pcap whose last record is cut": pcap(times(60))[:-9],
    "a clock that steps": pcap(backwards()),
    "drops are told at the end": section()
    + interface()
    + b"".join(enhanced(PACKET, number) for number in range(60))
    + STATISTICS,
    "packets without a time": section() + interface() + b"".join(simple(PACKET) for _ in range(60)),
    "a comment": section()
    + interface()
    + b"".join(enhanced(PACKET, number, options=option(1, b"here")) for number in range(60)),
    "patched libpcap": patched("suse6_3pcap", times(60)),
    "patched libpcap with the ordinary magic": patched("rh6_1pcap", times(60), ">"),
    "another link type": pcap(times(60), link_type=147),
}
WHOLE = {
    "compressed": gzip.compress(SAMPLE),
    "damaged": damaged(),
    "an interface between packets": section()
    + interface()
    + b"".join(enhanced(PACKET, number) for number in range(30))
    + interface()
    + b"".join(enhanced(PACKET, number) for number in range(30)),
}


def in_one_go(path: Path) -> CaptureStats:
    stats = CaptureStats("-")
    for _ in read_batches(Source("-", path), EndpointTable(), stats, LIMITS):
        pass
    return stats


def by_ranges(path: Path) -> tuple[int, CaptureStats]:
    told = told_of(chunks_of([Source("-", path)], 2, 4000, LIMITS))[0]
    assert is_exact(told, LIMITS)
    return len(told), merged(told, LIMITS)


@pytest.mark.parametrize("name", [*CAPTURES, *WHOLE])
def test_ranges_tell_what_the_file_tells(name: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes({**CAPTURES, **WHOLE}[name])
    count, stats = by_ranges(path)
    assert (count > 2) == (name in CAPTURES)
    whole = in_one_go(path)
    names = [field.name for field in fields(CaptureStats) if field.name not in LEFT_OUT]
    assert {name: getattr(stats, name) for name in names} == {name: getattr(whole, name) for name in names}


def test_ranges_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(CAPTURES["pcap"])
    size = path.stat().st_size
    found = find_ranges(Source("-", path), size, 4000, LIMITS)
    assert [part.start for part in found[1:]] == [part.end for part in found[:-1]]
    assert (found[0].start, found[-1].end) == (0, size)
    assert all(part.end - part.start >= 4000 for part in found[:-1])


def test_fragments_in_one_of_many_ranges_are_told(tmp_path: Path) -> None:
    pieces = [ethernet(piece) for piece in ipv4_fragments(tcp(bytes(100), destination_port=9092), 64)]
    path = tmp_path / "capture"
    path.write_bytes(pcap([*times(60), *(Captured(10**9, piece) for piece in pieces)]))
    told = told_of(chunks_of([Source("-", path)], 2, 4000, LIMITS))[0]
    assert len(told) > 2
    assert not is_exact(told, LIMITS)
    assert is_exact(told_of(chunks_of([Source("-", path)], 2, 1 << 40, LIMITS))[0], LIMITS)
