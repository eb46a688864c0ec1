"""IPv4 and IPv6 fragments: put together in any order, bounded, overlaps refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.capture.reading import Segment, read_bytes
from tests.support.packets import (
    Captured,
    ethernet,
    ipv4,
    ipv4_fragments,
    ipv6,
    ipv6_fragments,
    pcap,
    tcp,
    udp,
    vxlan,
)
from tests.support.shares import examples
from wirewitness.analyser.capture.fragments import Fragment, Fragments, Whole
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats

PAYLOAD = bytes(range(256)) * 8
BODY = tcp(PAYLOAD, seq=7)
SECOND = 1_000_000_000
IPV6 = 0x86DD


def four(size: int = 600, *, body: bytes = BODY, protocol: int = 6, ip_id: int = 77) -> list[bytes]:
    return [ethernet(packet) for packet in ipv4_fragments(body, size, protocol=protocol, ip_id=ip_id)]


def six(size: int = 600, *, body: bytes = BODY, next_header: int = 6, number: int = 77) -> list[bytes]:
    return [ethernet(packet, IPV6) for packet in ipv6_fragments(body, size, next_header=next_header, number=number)]


def capture(frames: list[bytes], step_ns: int = 1000) -> bytes:
    return pcap([Captured(n * step_ns, frame) for n, frame in enumerate(frames)], nanoseconds=True)


def payloads(segments: list[Segment]) -> list[tuple[int, bytes]]:
    return [(segment.packet, segment.payload) for segment in segments]


FAMILIES = {"ipv4": four, "ipv6": six}
any_family = pytest.mark.parametrize("family", FAMILIES)


@any_family
def test_the_last_packet_carries_the_segment(family: str) -> None:
    frames = FAMILIES[family]()
    segments, stats = read_bytes(capture([*frames, ethernet(ipv4(tcp(b"next")))]))
    assert len(frames) == 4
    first, second = segments
    assert (first.packet, first.ts_ns, first.seq, first.payload) == (4, 3000, 7, PAYLOAD)
    assert first.wire_payload_bytes == len(PAYLOAD)
    assert first.ip_id == (77 if family == "ipv4" else -1)
    assert (second.packet, second.payload) == (5, b"next")
    assert (stats.other_packets, stats.undecoded_packets, stats.remarks) == (3, {}, [])


@given(
    st.sampled_from(sorted(FAMILIES)),
    st.permutations(range(13)),
    st.integers(200, 4000),
    st.integers(0, 3),
)
@examples(60)
def test_any_order_any_block_any_copies(family: str, order: list[int], block_bytes: int, copies: int) -> None:
    """Thirteen fragments in any order, some of them doubled, over blocks of any size."""
    frames = FAMILIES[family](160)
    assert len(frames) == 13
    shuffled = [frames[n] for n in order]
    doubled = [frame for n, frame in enumerate(shuffled) for _ in range(2 if n < copies else 1)]
    segments, stats = read_bytes(capture(doubled), block_bytes=block_bytes)
    assert payloads(segments) == [(13 + copies, PAYLOAD)]
    assert (stats.undecoded_packets, stats.remarks) == ({}, [])


def test_every_fragment_doubled_is_one_segment() -> None:
    segments, stats = read_bytes(capture([frame for frame in four() for _ in range(2)]))
    assert payloads(segments) == [(7, PAYLOAD)]
    assert (stats.other_packets, stats.undecoded_packets) == (7, {})


def test_a_number_used_again_is_another_packet() -> None:
    other = tcp(PAYLOAD[::-1], seq=9)
    segments, _ = read_bytes(capture([*four(), *four(body=other)]))
    assert payloads(segments) == [(4, PAYLOAD), (8, PAYLOAD[::-1])]


def test_interleaved_packets_and_protocols() -> None:
    """Equal numbers in other families, protocols, addresses and tunnels are other packets."""
    inner = ipv4_fragments(BODY, 600)
    wrapped = [ethernet(ipv4(udp(vxlan(ethernet(part), 3), 4789), protocol=17)) for part in inner]
    lists = [four(), six(), four(protocol=17), wrapped, four(ip_id=78)]
    segments, stats = read_bytes(capture([frame for group in zip(*lists, strict=True) for frame in group]))
    assert [(s.packet, s.ends.encapsulation) for s in segments] == [(16, ""), (17, ""), (19, "vxlan 3"), (20, "")]
    assert {s.payload for s in segments} == {PAYLOAD}
    assert stats.undecoded_packets == {}


@any_family
def test_a_fragmented_tunnel(family: str) -> None:
    body = udp(vxlan(ethernet(ipv4(BODY)), 42), 4789)
    frames = four(body=body, protocol=17) if family == "ipv4" else six(body=body, next_header=17)
    (segment,), _ = read_bytes(capture(frames))
    assert (segment.packet, segment.payload, segment.ends.encapsulation) == (4, PAYLOAD, "vxlan 42")
    assert (segment.ip_id, segment.ends.low_address) == (1, "10.0.0.1")


def test_fragments_of_a_fragment_in_a_tunnel() -> None:
    inner = [ethernet(packet) for packet in ipv4_fragments(BODY, 1200)]
    outer = [four(640, body=udp(vxlan(frame, 42), 4789), protocol=17, ip_id=n) for n, frame in enumerate(inner)]
    frames = [frame for group in outer for frame in group]
    (segment,), stats = read_bytes(capture(frames))
    assert (segment.packet, segment.payload) == (len(frames), PAYLOAD)
    assert stats.undecoded_packets == {}


def test_ipv6_extension_headers_before_and_behind_the_fragment_header() -> None:
    options = bytes([6, 0, 1, 4, 0, 0, 0, 0])
    body = options + BODY
    parts = ipv6_fragments(body, 600, next_header=60)
    moved = [ipv6(bytes([44, 0, 1, 4, 0, 0, 0, 0]) + packet[40:], next_header=0) for packet in parts]
    segments, _ = read_bytes(capture([ethernet(packet, IPV6) for packet in moved]))
    assert [s.payload for s in segments] == [PAYLOAD]


def test_a_fragment_header_inside_fragments_is_refused() -> None:
    body = struct.pack(">BBHI", 6, 0, 8, 5) + BODY
    segments, stats = read_bytes(capture(six(body=body, next_header=44)))
    assert not segments
    assert stats.undecoded_packets == {"bad_ip_header": 1}


@any_family
def test_a_missing_fragment_leaves_the_others_uncounted_for(family: str) -> None:
    frames = FAMILIES[family]()
    del frames[1]
    segments, stats = read_bytes(capture(frames))
    assert not segments
    assert stats.undecoded_packets == {"ip_fragment": 3}
    assert [r.code for r in stats.remarks] == ["ip_fragment"]


@pytest.mark.parametrize(("gap_s", "found"), [(29, 1), (31, 0)])
def test_time_out_by_the_clock_of_the_capture(gap_s: int, found: int) -> None:
    frames = four()
    packets = [Captured(n, frame) for n, frame in enumerate(frames[:3])] + [Captured(gap_s * SECOND, frames[3])]
    segments, stats = read_bytes(pcap(packets))
    assert len(segments) == found
    assert stats.undecoded_packets.total() == (0 if found else 4)


def at(offset: int, length: int, more: bool) -> bytes:
    """A fragment of BODY with other bytes, so that it is no copy."""
    return ethernet(ipv4(bytes(length), ip_id=77, fragment=offset // 8 | more << 13))


BAD = {
    "same place, other bytes": at(0, 600, True),
    "over the end of the one before": at(592, 16, True),
    "over the start of the next": at(1192, 16, True),
    "around another": at(0, 1800, True),
    "second end": at(1200, 100, False),
    "beyond the end": at(2400, 80, True),
    "odd length in the middle": at(2400, 81, True),
    "beyond 64 KiB": at(65528, 80, False),
    "empty": at(8, 0, True),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_overlaps_are_refused(bad: bytes) -> None:
    frames = four()
    segments, stats = read_bytes(capture([frames[0], frames[3], frames[1], bad, frames[2], *four(ip_id=9)]))
    assert payloads(segments) == [(9, PAYLOAD)]
    assert stats.undecoded_packets == {"ip_fragment": 5}
    assert [(r.severity, r.code, r.packet) for r in stats.remarks] == [
        ("warn", "bad_fragment", 4),
        ("warn", "ip_fragment", None),
    ]


def test_fragments_cut_by_the_snaplen() -> None:
    frames = [Captured(n, frame[:300], len(frame)) for n, frame in enumerate(four())]
    (segment,), stats = read_bytes(pcap(frames))
    assert segment.payload == PAYLOAD[: 300 - 54]
    assert segment.wire_payload_bytes == len(PAYLOAD)
    assert stats.truncated_packets == 4


@pytest.mark.parametrize("cut", [34, 37, 41], ids=["no bytes", "no whole header", "short"])
def test_first_fragment_without_a_tcp_header(cut: int) -> None:
    frames = four()
    segments, stats = read_bytes(
        pcap([Captured(0, frame[:cut] if n == 0 else frame) for n, frame in enumerate(frames)])
    )
    assert not segments
    assert stats.undecoded_packets == {"tcp_header_cut": 1}


def test_the_oldest_are_given_up() -> None:
    limits = CaptureLimits(max_datagrams=3, max_fragment_bytes=10_000)
    fragments = Fragments(limits, CaptureStats("x"))
    for number in range(4):
        assert fragments.add(bytes([number]), Fragment(0, 8, bytes(8), True, 6), 0, 1) is False
    last = Fragment(8, 8, bytes(8), False, 6)
    assert fragments.add(b"\0", last, 0, 1) is False
    assert fragments.add(b"\3", last, 0, 1) == Whole(6, bytes(16), 16)


def test_memory_is_bounded() -> None:
    limits = CaptureLimits(max_fragment_bytes=100_000)
    fragments = Fragments(limits, CaptureStats("x"))
    for number in range(20_000):
        fragments.add(number.to_bytes(4, "big"), Fragment(0, 1480, bytes(1480), True, 6), number, 1)
    held = [name for name in range(20_000) if name.to_bytes(4, "big") in fragments._datagrams]
    assert 50 < len(held) <= 100_000 // 1480 + 1
    assert held[-1] == 19_999
    assert fragments._cost_bytes <= 100_000 + 1480 + 256


@given(st.data())
@examples(150)
def test_damaged_fragments_never_raise(data: st.DataObject) -> None:
    frames = [*four(1400), *six(1400)]
    damaged = []
    for frame in data.draw(st.lists(st.sampled_from(frames), min_size=1, max_size=8)):
        copy = bytearray(frame)
        copy[data.draw(st.integers(12, 70))] = data.draw(st.integers(0, 255))
        damaged.append(bytes(copy))
    _, stats = read_bytes(capture(damaged))
    assert stats.packets == len(damaged)
    assert all(count > 0 for count in stats.undecoded_packets.values())
