"""Cut and damaged captures, any block size, any bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.capture.reading import read_bytes
from tests.support.packets import (
    Captured,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    option,
    pcap,
    section,
    simple,
    tcp,
)
from tests.support.shares import examples

TS_NS = 1_700_000_000_000_000_000


def frame(number: int) -> bytes:
    """Different shapes and lengths by number."""
    body = tcp(bytes([number]) * (number * 7 % 90), source_port=1000 + number % 3, seq=number)
    if number % 5 == 3:
        return ethernet(bytes(28), 0x0806)
    if number % 5 == 4:
        return ethernet(ipv6(body), 0x86DD)
    return ethernet(ipv4(body), tags=[(0x8100, 9)] if number % 5 == 2 else [])


FRAMES = [frame(number) for number in range(23)]
PCAPNG = b"".join(
    [
        section("<"),
        interface("<", options=option(9, b"\x09")),
        *(enhanced(data, TS_NS + n, "<") for n, data in enumerate(FRAMES[:9])),
        block(0x0BAD_CAFE, bytes(300)),
        *(simple(data) for data in FRAMES[9:12]),
        section(">"),
        interface(">"),
        *(enhanced(data, TS_NS // 1000 + n, ">") for n, data in enumerate(FRAMES[12:])),
    ]
)
PCAP = pcap([Captured(TS_NS + n, data) for n, data in enumerate(FRAMES)], nanoseconds=True)
CAPTURES = {
    "pcap": PCAP,
    "pcap big-endian": pcap([Captured(TS_NS, data) for data in FRAMES], order=">"),
    "pcapng": PCAPNG,
}
WHOLE = {name: read_bytes(capture) for name, capture in CAPTURES.items()}
any_capture = st.sampled_from(sorted(CAPTURES))


def test_the_whole_captures_are_read() -> None:
    for name, (segments, stats) in WHOLE.items():
        assert (stats.packets, stats.other_packets, stats.remarks) == (23, 4, []), name
        assert [s.seq for s in segments] == [n for n in range(23) if n % 5 != 3]


@given(any_capture, st.integers(64, 4000))
@examples(60)
def test_block_size_changes_nothing(name: str, block_bytes: int) -> None:
    assert read_bytes(CAPTURES[name], block_bytes=block_bytes) == WHOLE[name]


@given(any_capture, st.data(), st.integers(64, 4000))
@examples(100)
def test_a_prefix_gives_a_prefix(name: str, data: st.DataObject, block_bytes: int) -> None:
    capture = CAPTURES[name]
    cut = data.draw(st.integers(28, len(capture) - 1))
    segments, stats = read_bytes(capture[:cut], block_bytes=block_bytes)
    whole, whole_stats = WHOLE[name]
    assert segments == whole[: len(segments)]
    assert stats.packets < whole_stats.packets
    assert {r.code for r in stats.remarks} <= {"cut_record", "no_packets"}


@pytest.mark.parametrize("name", CAPTURES)
def test_a_cut_last_record_is_a_remark(name: str) -> None:
    segments, stats = read_bytes(CAPTURES[name][:-3])
    assert segments == WHOLE[name][0][:-1]
    (remark,) = stats.remarks
    assert (remark.severity, remark.code, remark.packet) == ("warn", "cut_record", 23)
    last = len(FRAMES[-1])
    size = 16 + last if name != "pcapng" else 32 + last + -last % 4
    assert remark.byte_offset == len(CAPTURES[name]) - size


@given(any_capture, st.binary(max_size=2000), st.integers(64, 3000))
@examples(150)
def test_random_bytes_behind_a_header_never_raise(name: str, rest: bytes, block_bytes: int) -> None:
    header = CAPTURES[name][: {"pcapng": len(section() + interface())}.get(name, 24)]
    segments, stats = read_bytes(header + rest, block_bytes=block_bytes)
    again, stats_again = read_bytes(header + rest)
    assert (segments, stats) == (again, stats_again)


@given(any_capture, st.data(), st.integers(64, 3000))
@examples(200)
def test_overwritten_bytes_never_raise(name: str, data: st.DataObject, block_bytes: int) -> None:
    capture = bytearray(CAPTURES[name])
    at = data.draw(st.integers(24, len(capture) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=60))
    capture[at : at + len(noise)] = noise
    segments, stats = read_bytes(bytes(capture), block_bytes=block_bytes)
    again, stats_again = read_bytes(bytes(capture))
    assert (segments, stats) == (again, stats_again)


@given(st.binary(min_size=1, max_size=120), st.sampled_from([0, 1, 101, 108, 113, 276]))
@examples(200)
def test_random_packets_never_raise(packet: bytes, link_type: int) -> None:
    _, stats = read_bytes(pcap([Captured(0, packet), Captured(0, packet[:-1])], link_type=link_type))
    assert stats.packets == 2


@pytest.mark.parametrize("block_bytes", [64, 500, 1 << 20])
@pytest.mark.parametrize("captured", [0xFFFFFFFF, 0x7FFFFFFF, 262_145], ids=hex)
def test_pcap_goes_on_behind_an_impossible_length(block_bytes: int, captured: int) -> None:
    packets = [Captured(TS_NS, data) for data in FRAMES]
    head, tail = pcap(packets[:10]), pcap(packets[11:])[24:]
    bad = struct.pack("<IIII", TS_NS // 10**9, 0, captured, captured) + FRAMES[10]
    segments, stats = read_bytes(head + bad + tail, block_bytes=block_bytes)
    assert [s.seq for s in segments] == [n for n in range(23) if n % 5 != 3 and n != 10]
    assert stats.packets == 22
    (remark,) = stats.remarks
    assert (remark.severity, remark.code, remark.packet, remark.byte_offset) == (
        "error",
        "damaged_record",
        11,
        len(head),
    )


@pytest.mark.parametrize("block_bytes", [64, 500, 1 << 20])
@pytest.mark.parametrize("length", [0xFFFFFFFC, 0, 8, 13], ids=hex)
def test_pcapng_goes_on_behind_an_impossible_length(block_bytes: int, length: int) -> None:
    head = section() + interface() + b"".join(enhanced(data, TS_NS // 1000) for data in FRAMES[:10])
    bad = struct.pack("<II", 6, length) + enhanced(FRAMES[10])[8:]
    tail = b"".join(enhanced(data, TS_NS // 1000) for data in FRAMES[11:])
    segments, stats = read_bytes(head + bad + tail, block_bytes=block_bytes)
    assert [s.seq for s in segments] == [n for n in range(23) if n % 5 != 3 and n != 10]
    (remark,) = stats.remarks
    assert (remark.code, remark.packet, remark.byte_offset) == ("damaged_block", 11, len(head))


def test_pcapng_goes_on_at_a_section_of_the_other_byte_order() -> None:
    capture = section("<") + interface("<") + enhanced(FRAMES[0]) + b"\0" * 33
    capture += section(">") + interface(">") + enhanced(FRAMES[1], 5, ">")
    segments, stats = read_bytes(capture)
    assert [s.seq for s in segments] == [0, 1]
    assert [r.code for r in stats.remarks] == ["damaged_block"]


@pytest.mark.parametrize(
    "bad",
    [block(0x0A0D0D0A, bytes(16)), block(0x0A0D0D0A, b""), block(0x0A0D0D0A, section()[8:16])],
    ids=["no byte order mark", "no body", "short body"],
)
def test_pcapng_damaged_section_header(bad: bytes) -> None:
    segments, stats = read_bytes(section() + interface() + enhanced(FRAMES[0]) + bad + enhanced(FRAMES[1]))
    assert [s.seq for s in segments] == [0, 1]
    assert [r.code for r in stats.remarks] == ["damaged_block"]


def test_pcapng_packet_longer_than_its_block() -> None:
    good = enhanced(FRAMES[0])
    bad = good[:20] + struct.pack("<I", 5000) + good[24:]
    segments, stats = read_bytes(section() + interface() + bad + enhanced(FRAMES[1]))
    assert [s.seq for s in segments] == [0, 1]
    assert [(r.code, r.packet, r.byte_offset) for r in stats.remarks] == [("overlong_packet", 1, 48)]


def test_damage_everywhere_is_given_up() -> None:
    packets = [Captured(TS_NS, data) for data in FRAMES]
    bad = struct.pack("<IIII", 0, 0, 2**31, 2**31)
    capture = pcap([]) + b"".join(bad + pcap(packets)[24:] for _ in range(8))
    _, stats = read_bytes(capture, max_resyncs=5, max_remarks=3)
    assert stats.packets == 5 * 23
    assert [remark.code for remark in stats.remarks if remark.packet is not None] == ["damaged_record"] * 3
    assert stats.remarks_dropped == 3


def test_records_larger_than_a_block() -> None:
    large = ethernet(ipv4(tcp(bytes(60_000), seq=5)))
    packets = [Captured(TS_NS, data) for data in (FRAMES[1], large, FRAMES[2])]
    segments, stats = read_bytes(pcap(packets), block_bytes=64)
    assert [(s.seq, len(s.payload)) for s in segments] == [(1, 7), (5, 60_000), (2, 14)]
    assert not stats.remarks
