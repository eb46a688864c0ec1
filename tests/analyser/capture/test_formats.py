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


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "expected_ns"), [(0x1C0001AB, 5_000_007_000), (0x1C0001AC, 5_000_000_007)], ids=hex)
def test_pcap_of_ixia(order: str, magic: int, expected_ns: int) -> None:
    records = (struct.pack(order + "IIII", 5, 7, len(FRAME), len(FRAME)) + FRAME) * 2
    head = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 1) + struct.pack(order + "I", len(records))
    segments, stats = read_bytes(head + records, block_bytes=64)
    assert [(s.packet, s.ts_ns, s.payload) for s in segments] == [(n, expected_ns, b"hello") for n in (1, 2)]
    assert not stats.remarks
    assert [r.code for r in read_bytes(head[:26])[1].remarks] == ["no_packets"]


@pytest.mark.parametrize(("major", "minor", "swapped"), [(2, 2, True), (543, 0, True), (2, 4, False)])
def test_pcap_of_old_versions_has_its_lengths_swapped(major: int, minor: int, swapped: bool) -> None:
    cut = FRAME[:57]
    lengths = (len(FRAME), len(cut)) if swapped else (len(cut), len(FRAME))
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, major, minor, 0, 0, 65535, 1)
    segments, _ = read_bytes(head + (struct.pack("<IIII", 5, 7, *lengths) + cut) * 2)
    assert [(s.packet, s.payload, s.wire_payload_bytes) for s in segments] == [(1, b"hel", 5), (2, b"hel", 5)]


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


LAST_NS = 2**63 - 1 - 3600 * 10**9
# if_tsresol, if_tsoffset, units -> time
TIMES = {
    "offset": (6, 1_600_000_000, 10**14, 1_700_000_000 * SECOND),
    "negative offset": (6, -3600, 10**14, 99_996_400 * SECOND),
    "last time": (9, 0, LAST_NS, LAST_NS),
    "last time with offset": (9, 1, LAST_NS - SECOND, LAST_NS),
    "most picoseconds": (12, 0, 2**64 - 1, (2**64 - 1) // 1000),
    "last microsecond": (6, 0, LAST_NS // 1000, LAST_NS // 1000 * 1000),
}
ABSURD_TIMES = {
    "after the last time": (9, 0, 2**63, LAST_NS),
    "most units": (9, 0, 2**64 - 1, LAST_NS),
    "microseconds": (6, 0, LAST_NS // 1000 + 1, LAST_NS),
    "seconds": (0, 0, 2**64 - 1, LAST_NS),
    "binary": (0x80 | 20, 0, 2**64 - 1, LAST_NS),
    "offset goes too far": (9, 2, LAST_NS - SECOND, LAST_NS),
    "largest offset": (6, 2**63 - 1, 10**14, LAST_NS),
    "smallest offset": (6, -(2**63), 10**14, 0),
    "before 1970": (6, -101, 10**8, 0),
}


@pytest.mark.parametrize(("resolution", "offset_s", "units", "expected_ns"), TIMES.values(), ids=TIMES.keys())
def test_timestamp_offset(resolution: int, offset_s: int, units: int, expected_ns: int) -> None:
    options = option(9, bytes([resolution])) + option(14, struct.pack("<q", offset_s))
    segments, stats = read_bytes(section() + interface(options=options) + enhanced(FRAME, units))
    assert [s.ts_ns for s in segments] == [expected_ns]
    assert not stats.remarks


@pytest.mark.parametrize(
    ("resolution", "offset_s", "units", "expected_ns"), ABSURD_TIMES.values(), ids=ABSURD_TIMES.keys()
)
def test_absurd_times_are_clamped(resolution: int, offset_s: int, units: int, expected_ns: int) -> None:
    options = option(9, bytes([resolution])) + option(14, struct.pack("<q", offset_s))
    head = section() + interface() + interface(options=options)
    good, bad = enhanced(FRAME, 10**15), enhanced(FRAME, units, number=1)
    segments, stats = read_bytes(head + good + bad + good + bad)
    assert [s.ts_ns for s in segments] == [10**18, expected_ns, 10**18, expected_ns]
    assert stats.time_backwards.count > 0
    assert [(r.severity, r.packet) for r in stats.remarks if r.code == "absurd_time"] == [("warn", 2)]


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


def names_block(order: str, *records: tuple[int, bytes], options: bytes = b"") -> bytes:
    body = b"".join(option(kind, value, order) for kind, value in records)
    return block(4, body + bytes(4) + options, order)


@pytest.mark.parametrize("order", ["<", ">"])
def test_names(order: str) -> None:
    ipv6_address = bytes.fromhex("20010db8000000000000000000000001")
    first = names_block(
        order,
        (1, b"\x0a\0\0\1broker-1.example\0kafka\0"),
        (2, ipv6_address + b"broker-6\0"),
        (3, b"\2\0\0\0\0\1nic\0"),
        (1, b"\x0a\0\0"),
        (1, b"\x0a\0\0\2\0"),
        options=option(1, b"a comment on names", order),
    )
    second = names_block(order, (1, b"\x0a\0\0\1other\0"), (1, b"\x0a\0\0\3d\xc3\xbcmp"))
    _, stats = read_bytes(section(order) + first + interface(order) + enhanced(FRAME, 1, order) + second)
    assert stats.names == {"10.0.0.1": "broker-1.example", "2001:db8::1": "broker-6", "10.0.0.3": "dümp"}
    assert [(c.packet, c.text) for c in stats.comments] == [(None, "a comment on names")]
    assert not stats.remarks


@pytest.mark.parametrize("order", ["<", ">"])
def test_secrets_are_kept_and_do_not_show(order: str) -> None:
    key_log = b"CLIENT_RANDOM 0011 2233\n"
    blocks = [
        block(10, struct.pack(order + "II", 0x544C534B, len(key_log)) + key_log, order),
        block(10, struct.pack(order + "II", 0x1234, 3) + b"abcd", order),
        block(10, struct.pack(order + "II", 0x57474B4C, 0), order),
        block(10, struct.pack(order + "I", 0x57474B4C), order),
    ]
    _, stats = read_bytes(section(order) + b"".join(blocks) + interface(order) + enhanced(FRAME, 1, order))
    assert [(s.kind, s.data) for s in stats.secrets] == [("TLS key log", key_log), ("kind 0x00001234", b"abc")]
    assert "CLIENT_RANDOM" not in repr(stats)
    assert "24 bytes" in repr(stats)
    assert "abc" not in str(stats.secrets)


def test_names_and_secrets_are_bounded() -> None:
    names = names_block("<", *((1, bytes([10, 0, 0, n]) + b"x\0") for n in range(9)))
    secret = block(10, struct.pack("<II", 1, 100) + bytes(100))
    capture = section() + names + secret * 9 + interface() + enhanced(FRAME)
    assert len(read_bytes(capture, max_names=5)[1].names) == 5
    assert len(read_bytes(capture, max_secrets=4)[1].secrets) == 4
    assert len(read_bytes(capture, max_secrets_bytes=350)[1].secrets) == 3


@pytest.mark.parametrize("order", ["<", ">"])
def test_comments(order: str) -> None:
    def noted(*texts: str) -> bytes:
        return b"".join(option(1, text.encode(), order) for text in texts)

    end = bytes(4)
    flags, long_name = option(2, bytes(4), order), option(0x8001, b"process", order)
    capture = b"".join(
        [
            section(order, noted("of the section") + end),
            interface(order, options=noted("of the interface")),
            enhanced(FRAME, 1, order, options=noted("first", "second") + end),
            enhanced(FRAME, 2, order),
            enhanced(FRAME[:-1], 3, order, options=flags + long_name + noted("dümp")),
            enhanced(FRAME, 4, order, options=flags + end + noted("behind the end")),
            enhanced(FRAME, 5, order, options=struct.pack(order + "HH", 1, 9) + b"cut"),
            old_packet(FRAME, 6, order, options=noted("old") + end),
            simple(FRAME, order),
            block(5, struct.pack(order + "III", 0, 0, 0) + noted("of the statistics"), order),
        ]
    )
    segments, stats = read_bytes(capture)
    assert [s.packet for s in segments] == [1, 2, 3, 4, 5, 6, 7]
    assert [(c.packet, c.text) for c in stats.comments if c.packet] == [
        (1, "first"),
        (1, "second"),
        (3, "dümp"),
        (6, "old"),
    ]
    assert [c.text for c in stats.comments if not c.packet] == [
        "of the section",
        "of the interface",
        "of the statistics",
    ]
    assert not stats.remarks


def test_comments_are_bounded() -> None:
    comment = option(1, b"x" * 5000)
    _, stats = read_bytes(section() + interface() + enhanced(FRAME, options=comment) * 9, max_comments=4)
    assert [len(c.text) for c in stats.comments] == [4096] * 4
    assert stats.comments_dropped == 5


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_time_backwards(block_bytes: int) -> None:
    times_ns = [5 * SECOND, 5 * SECOND, 4_999_999_000, 6 * SECOND, 5_500_000_000, 7 * SECOND]
    _, stats = read_bytes(pcap([Captured(ns, FRAME) for ns in times_ns]), block_bytes=block_bytes)
    assert (stats.time_backwards.count, stats.time_backwards.largest_ns) == (2, SECOND // 2)
    assert not stats.remarks


@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_clock_jumps(block_bytes: int) -> None:
    times_s = [1_700_000_000, 1_721_000_000, 1_700_000_000, 1_700_000_001]
    _, stats = read_bytes(pcap([Captured(s * SECOND, FRAME) for s in times_s]), block_bytes=block_bytes)
    assert (stats.time_backwards.count, stats.time_backwards.largest_ns) == (1, 21_000_000 * SECOND)
    assert [(r.severity, r.code, r.packet) for r in stats.remarks] == [
        ("note", "time_jump", 2),
        ("warn", "time_backwards", 3),
    ]
    assert "21000000 s pass before packet 2" in stats.remarks[0].text


def test_remarks_on_jumps_are_few() -> None:
    _, stats = read_bytes(pcap([Captured(n % 2 * 10**18, FRAME) for n in range(100)]))
    assert stats.time_backwards.count == 49
    assert [remark.code for remark in stats.remarks] == [*["time_jump", "time_backwards"] * 5, "too_many_clock_steps"]
    assert stats.remarks_dropped == 0


@pytest.mark.parametrize("capture", [pcap([]), section() + interface()], ids=["pcap", "pcapng"])
def test_header_only(capture: bytes) -> None:
    segments, stats = read_bytes(capture)
    assert not segments
    assert (stats.packets, stats.ts_first_ns, stats.ts_last_ns) == (0, None, None)
    assert [(r.severity, r.code) for r in stats.remarks] == [("note", "no_packets")]
