"""pcap and pcapng: byte orders, resolutions, block kinds, sections."""

import struct

import pytest

from tests.analyser.capture.reading import read_bytes
from tests.support.packets import (
    Captured,
    block,
    cooked,
    enhanced,
    ethernet,
    interface,
    ipv4,
    old_packet,
    option,
    pcap,
    section,
    simple,
    tcp,
)

SECOND = 1_000_000_000
TS_NS = 1_700_000_000 * SECOND + 123_456_789
FRAME = ethernet(ipv4(tcp(b"hello")))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("nanoseconds", "expected_ns"), [(False, 123_456_000), (True, 123_456_789)], ids=["us", "ns"])
def test_pcap(order: str, nanoseconds: bool, expected_ns: int) -> None:
    capture = pcap([Captured(TS_NS, FRAME), Captured(TS_NS + SECOND, FRAME)], order=order, nanoseconds=nanoseconds)
    segments, stats = read_bytes(capture)
    assert [(s.packet, s.ts_ns % SECOND, s.payload) for s in segments] == [
        (1, expected_ns, b"hello"),
        (2, expected_ns, b"hello"),
    ]
    assert segments[1].ts_ns - segments[0].ts_ns == SECOND
    assert (stats.format, stats.link_types, stats.packets, stats.snaplen) == ("pcap", [1], 2, 262144)
    assert (stats.ts_first_ns, stats.ts_last_ns) == (segments[0].ts_ns, segments[1].ts_ns)
    assert stats.captured_bytes == stats.wire_bytes == 2 * len(FRAME)
    assert not stats.remarks


def test_pcap_with_long_record_headers() -> None:
    head = struct.pack("<IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 65535, 1)
    record = struct.pack("<IIIIIHBB", 5, 7, len(FRAME), len(FRAME), 1, 0x0800, 0, 0) + FRAME
    segments, _ = read_bytes(head + record * 2)
    assert [(s.packet, s.ts_ns, s.payload) for s in segments] == [(n, 5_000_007_000, b"hello") for n in (1, 2)]


def test_link_type_ignores_the_frame_check_bits() -> None:
    assert read_bytes(pcap([Captured(0, FRAME)], link_type=0x4000_0001))[1].link_types == [1]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("tsresol", "units", "expected_ns"),
    [
        (None, 1_700_000_000_123_456, TS_NS - 789),
        (6, 1_700_000_000_123_456, TS_NS - 789),
        (9, TS_NS, TS_NS),
        (3, 1_700_000_000_123, TS_NS - 456_789),
        (0, 1_700_000_000, 1_700_000_000 * SECOND),
        (12, 1_700_000 * 10**12 + 1999, 1_700_000 * SECOND + 1),
        (0x80 | 10, 1_700_000_000 << 10 | 512, 1_700_000_000 * SECOND + SECOND // 2),
        (0x80 | 32, 1_700_000_000 << 32 | 1 << 30, 1_700_000_000 * SECOND + SECOND // 4),
        (0x80 | 40, 1_700_000 << 40 | 1 << 39, 1_700_000 * SECOND + SECOND // 2),
        (0x80, 1_700_000_000, 1_700_000_000 * SECOND),
        (0x7F, 5, 0),
        (0xFF, 5, 0),
    ],
)
def test_timestamp_resolution(order: str, tsresol: int | None, units: int, expected_ns: int) -> None:
    options = b"" if tsresol is None else option(9, bytes([tsresol]), order)
    capture = section(order) + interface(order, options=options) + enhanced(FRAME, units, order)
    segments, stats = read_bytes(capture)
    assert [s.ts_ns for s in segments] == [expected_ns]
    assert stats.interfaces[0].tsresol == (6 if tsresol is None else tsresol)


@pytest.mark.parametrize("offset_s", [1_600_000_000, -3600, 2**63 - 1])
def test_timestamp_offset(offset_s: int) -> None:
    options = option(14, struct.pack("<q", offset_s))
    segments, _ = read_bytes(section() + interface(options=options) + enhanced(FRAME, 100_000_000_000_000))
    expected = (100_000_000 * SECOND + offset_s * SECOND) % 2**64
    assert segments[0].ts_ns % 2**64 == expected


@pytest.mark.parametrize("order", ["<", ">"])
def test_packet_block_kinds(order: str) -> None:
    capture = b"".join(
        [
            section(order),
            interface(order),
            enhanced(FRAME, 10, order),
            simple(FRAME, order),
            block(0x0BAD_CAFE, b"unknown", order),
            old_packet(FRAME, 30, order),
            simple(FRAME, order),
        ]
    )
    segments, stats = read_bytes(capture)
    assert [(s.packet, s.ts_ns, s.payload) for s in segments] == [
        (1, 10_000, b"hello"),
        (2, 10_000, b"hello"),
        (3, 30_000, b"hello"),
        (4, 30_000, b"hello"),
    ]
    assert not stats.remarks


def test_simple_packet_is_cut_at_the_snaplen_of_the_interface() -> None:
    cut = FRAME[:57]
    segments, stats = read_bytes(section() + interface(snaplen=57) + simple(cut, wire=len(FRAME)))
    assert [(s.payload, s.wire_payload_bytes) for s in segments] == [(b"hel", 5)]
    assert stats.truncated_packets == 1


@pytest.mark.parametrize("kind", [9, 0xBAD, 0x40000BAD, 0x204], ids=["journal", "custom", "custom_copy", "sysdig"])
def test_blocks_that_wireshark_numbers_without_being_packets(kind: int) -> None:
    capture = section() + interface() + enhanced(FRAME) + block(kind, b"MESSAGE=x" * 9) + enhanced(FRAME)
    segments, stats = read_bytes(capture)
    assert [s.packet for s in segments] == [1, 3]
    assert (stats.packets, stats.other_packets) == (3, 1)


def test_sections_have_their_own_byte_order_and_interfaces() -> None:
    nano, cooked_frame = option(9, b"\x09"), cooked(ipv4(tcp(b"cooked")))
    capture = b"".join(
        [
            section("<"),
            interface("<", options=nano),
            interface("<", link_type=113),
            enhanced(FRAME, 1, "<"),
            enhanced(cooked_frame, 1, "<", number=1),
            section(">"),
            interface(">", link_type=113),
            enhanced(cooked_frame, 2, ">"),
            old_packet(cooked_frame, 3, ">"),
            enhanced(FRAME, 2, ">", number=1),
            section("<"),
            interface("<"),
            old_packet(FRAME, 4, "<"),
        ]
    )
    segments, stats = read_bytes(capture)
    assert [(s.packet, s.ts_ns, s.payload) for s in segments] == [
        (1, 1, b"hello"),
        (2, 1000, b"cooked"),
        (3, 2000, b"cooked"),
        (4, 3000, b"cooked"),
        (6, 4000, b"hello"),
    ]
    assert stats.undecoded_packets == {"unknown_interface": 1}
    assert stats.link_types == [1, 113]
    assert [i.link_type for i in stats.interfaces] == [1, 113, 113, 1]


@pytest.mark.parametrize("order", ["<", ">"])
def test_descriptions_and_drop_counters(order: str) -> None:
    about = option(2, b"a cpu", order) + option(3, b"an os", order) + option(4, "dümp".encode(), order)
    names = option(2, b"eth0", order) + option(3, b"uplink", order)
    drops = option(5, struct.pack(order + "Q", 7), order) + option(7, struct.pack(order + "Q", 9), order)
    capture = b"".join(
        [
            section(order, about),
            interface(order, snaplen=96, options=names),
            enhanced(FRAME, 1, order),
            block(5, struct.pack(order + "III", 0, 0, 0) + drops, order),
            block(5, struct.pack(order + "III", 8, 0, 0) + drops, order),
        ]
    )
    _, stats = read_bytes(capture)
    assert (stats.hardware, stats.os, stats.application) == ("a cpu", "an os", "dümp")
    (only,) = stats.interfaces
    assert (only.name, only.description, only.snaplen, only.if_drop, only.os_drop) == ("eth0", "uplink", 96, 7, 9)
    assert stats.snaplen == 96


@pytest.mark.parametrize("capture", [pcap([]), section() + interface()], ids=["pcap", "pcapng"])
def test_header_only(capture: bytes) -> None:
    segments, stats = read_bytes(capture)
    assert not segments
    assert (stats.packets, stats.ts_first_ns, stats.ts_last_ns) == (0, None, None)
    assert [(r.severity, r.code) for r in stats.remarks] == [("note", "no_packets")]
