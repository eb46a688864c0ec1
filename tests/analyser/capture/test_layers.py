"""Link layers, IPv4, IPv6 and TCP headers."""

import struct

import pytest

from tests.analyser.capture.reading import read_bytes
from tests.support.packets import (
    Captured,
    cooked,
    cooked2,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    section,
    tcp,
)

HELLO = tcp(b"hello")
V4, V6 = ipv4(HELLO), ipv6(HELLO)
IPV6 = 0x86DD
FRAGMENT = struct.pack(">BBHI", 6, 0, 0, 1)


def padded(kind: int, length: int, following: int) -> bytes:
    """An IPv6 extension header of `length` times 8 bytes."""
    return bytes([following, length - 1]) + bytes(length * 8 - 2)


def loopback(body: bytes, family: int, order: str) -> bytes:
    return struct.pack(order + "I", family) + body


LINKS = {
    "ethernet": (1, ethernet(V4), ""),
    "ethernet ipv6": (1, ethernet(V6, IPV6), ""),
    "vlan": (1, ethernet(V4, tags=[(0x8100, 100)]), "vlan 100"),
    "vlan with priority": (1, ethernet(V4, tags=[(0x8100, 0xE064)]), "vlan 100"),
    "priority tag only": (1, ethernet(V4, tags=[(0x8100, 0xE000)]), ""),
    "qinq": (1, ethernet(V4, tags=[(0x88A8, 100), (0x8100, 200)]), "vlan 100/200"),
    "old qinq": (1, ethernet(V6, IPV6, tags=[(0x9100, 1), (0x8100, 4095)]), "vlan 1/4095"),
    "sixteen tags": (1, ethernet(V4, tags=[(0x8100, 1)] * 16), "vlan " + "/".join("1" * 16)),
    "four tags": (1, ethernet(V4, tags=[(0x8100, n) for n in (1, 2, 3, 4)]), "vlan 1/2/3/4"),
    "cooked": (113, cooked(V4), ""),
    "cooked vlan": (113, cooked(struct.pack(">HH", 7, 0x0800) + V4, 0x8100), "vlan 7"),
    "cooked ipv6": (113, cooked(V6, IPV6), ""),
    "cooked2": (276, cooked2(V4), ""),
    "cooked2 vlan": (276, cooked2(struct.pack(">HH", 7, 0x0800) + V4, 0x8100), "vlan 7"),
    "cooked2 ipv6": (276, cooked2(V6, IPV6), ""),
    "null little": (0, loopback(V4, 2, "<"), ""),
    "null big": (0, loopback(V4, 2, ">"), ""),
    "null ipv6 darwin": (0, loopback(V6, 30, "<"), ""),
    "null ipv6 freebsd": (0, loopback(V6, 28, "<"), ""),
    "null ipv6 openbsd": (0, loopback(V6, 24, ">"), ""),
    "null ipv6 linux": (0, loopback(V6, 10, "<"), ""),
    "ppp": (9, b"\x00\x21" + V4, ""),
    "ppp with address": (9, b"\xff\x03\x00\x57" + V6, ""),
    "ppp with a short protocol": (50, b"\xff\x03\x21" + V4, ""),
    "cisco hdlc": (104, b"\x0f\0\x08\0" + V4, ""),
    "loop": (108, loopback(V4, 2, ">"), ""),
    "loop ipv6": (108, loopback(V6, 24, ">"), ""),
    **{f"raw {number}": (number, V4, "") for number in (12, 14, 101, 228)},
    **{f"raw {number} ipv6": (number, V6, "") for number in (12, 14, 101, 229)},
}


@pytest.mark.parametrize(("link_type", "frame", "encapsulation"), LINKS.values(), ids=LINKS.keys())
def test_link_layer(link_type: int, frame: bytes, encapsulation: str) -> None:
    (segment,), stats = read_bytes(pcap([Captured(0, frame)], link_type=link_type))
    low = "2001:db8::1" if frame.endswith(V6) else "10.0.0.1"
    assert segment.payload == b"hello"
    assert segment.wire_payload_bytes == 5
    assert segment.ends == (low, 40000, low[:-1] + "2", 9092, encapsulation)
    assert stats.tcp_segments == 1


def test_same_addresses_in_two_vlans_are_two_pairs() -> None:
    frames = [ethernet(V4, tags=[(0x8100, vlan)]) for vlan in (5, 6, 5)] + [ethernet(V4)]
    segments, _ = read_bytes(pcap([Captured(0, frame) for frame in frames]))
    assert [s.ends.encapsulation for s in segments] == ["vlan 5", "vlan 6", "vlan 5", ""]


NOT_TCP = {
    "arp": (1, ethernet(bytes(28), 0x0806), "other"),
    "802.3 length": (1, ethernet(bytes(40), 38), "other"),
    "udp": (1, ethernet(ipv4(bytes(8), protocol=17)), "other"),
    "udp over ipv6": (1, ethernet(ipv6(bytes(8), next_header=17), IPV6), "other"),
    "icmp behind a hop-by-hop header": (1, ethernet(ipv6(padded(0, 1, 58) + bytes(8), next_header=0), IPV6), "other"),
    "unknown family": (0, loopback(V4, 99, "<"), "other"),
    "raw of no version": (101, b"\x90" + bytes(60), "other"),
    "unknown link type": (105, ethernet(V4), "unknown_link_type"),
    "ethernet header cut": (1, ethernet(V4)[:13], "link_header_cut"),
    "vlan header cut": (1, ethernet(V4, tags=[(0x8100, 1)])[:16], "link_header_cut"),
    "empty packet": (101, b"", "link_header_cut"),
    "seventeen tags": (1, ethernet(V4, tags=[(0x8100, 1)] * 17), "too_many_headers"),
    "ipv4 header cut": (1, ethernet(V4)[:33], "ip_header_cut"),
    "ipv6 header cut": (1, ethernet(V6, IPV6)[:53], "ip_header_cut"),
    "ipv4 in an ipv6 frame": (1, ethernet(V4, IPV6), "bad_ip_header"),
    "ipv6 in an ipv4 frame": (1, ethernet(V6), "bad_ip_header"),
    "short header length": (1, ethernet(b"\x44" + V4[1:]), "bad_ip_header"),
    "total length below header": (1, ethernet(ipv4(HELLO, total_length=19)), "bad_ip_header"),
    "first fragment": (1, ethernet(ipv4(HELLO, fragment=0x2000)), "ip_fragment"),
    "later fragment": (1, ethernet(ipv4(HELLO, fragment=100)), "ip_fragment"),
    "ipv6 fragment": (1, ethernet(ipv6(b"\6\0\0\x01" + bytes(4) + HELLO, next_header=44), IPV6), "ip_fragment"),
    "extension header cut": (1, ethernet(ipv6(b"\0" * 7, next_header=0), IPV6), "ip_header_cut"),
    "extension header beyond the packet": (
        1,
        ethernet(ipv6(b"\4\xff" + bytes(6), next_header=0), IPV6),
        "ip_header_cut",
    ),
    "endless extension headers": (1, ethernet(ipv6(padded(0, 1, 0) * 40, next_header=0), IPV6), "bad_ip_header"),
    "tcp header cut by the snaplen": (1, ethernet(V4)[:53], "tcp_header_cut"),
    "tcp header beyond the total length": (1, ethernet(ipv4(HELLO, total_length=39)), "bad_tcp_header"),
    "tcp offset too small": (1, ethernet(ipv4(HELLO[:12] + b"\x40" + HELLO[13:])), "bad_tcp_header"),
    "tcp offset beyond the packet": (1, ethernet(ipv4(HELLO[:12] + b"\xf0" + HELLO[13:])), "bad_tcp_header"),
}


@pytest.mark.parametrize(("link_type", "frame", "verdict"), NOT_TCP.values(), ids=NOT_TCP.keys())
def test_what_is_not_decoded_is_counted(link_type: int, frame: bytes, verdict: str) -> None:
    segments, stats = read_bytes(pcap([Captured(0, frame)] * 2, link_type=link_type))
    assert not segments
    assert stats.packets == 2
    if verdict == "other":
        assert (stats.other_packets, stats.undecoded_packets.total()) == (2, 0)
    else:
        assert (stats.other_packets, stats.undecoded_packets) == (0, {verdict: 2})


@pytest.mark.parametrize(
    ("link_type", "frame", "code"),
    [
        (105, V4, "unknown_link_type"),
        (101, ipv4(HELLO, fragment=1), "ip_fragment"),
        (101, ipv4(struct.pack(">HH", 0x2001, 0x880B) + bytes(40), protocol=47), "ip_tunnel"),
    ],
    ids=["link type", "fragments", "tunnel"],
)
def test_remarks_on_undecoded_packets(link_type: int, frame: bytes, code: str) -> None:
    _, stats = read_bytes(pcap([Captured(0, frame)], link_type=link_type))
    assert [r.code for r in stats.remarks] == [code]


def test_unknown_link_types_are_named_and_the_others_go_on() -> None:
    head = section() + interface() + interface(link_type=127) + interface(link_type=4321)
    capture = head + b"".join(enhanced(ethernet(V4), n, number=n % 3) for n in range(6))
    segments, stats = read_bytes(capture)
    assert [s.packet for s in segments] == [1, 4]
    assert stats.undecoded_packets == {"unknown_link_type": 4}
    assert stats.link_types == [1, 127, 4321]
    (remark,) = stats.remarks
    assert remark.text == (
        "4 packets are of a link type that is not decoded (127 IEEE 802.11 with radiotap header, 4321)"
    )


OPTIONS = bytes.fromhex("020405b4 0402 080a 0000000100000002 01 030307")
# frame, (captured payload, wire payload bytes)
PAYLOADS = {
    "plain": (ethernet(V4), b"hello", 5),
    "no payload": (ethernet(ipv4(tcp())), b"", 0),
    "ethernet padding": (ethernet(ipv4(tcp()), trailer=bytes(6)), b"", 0),
    "trailer": (ethernet(V4, trailer=b"FCS!"), b"hello", 5),
    "padding ipv6": (ethernet(V6, IPV6, trailer=bytes(6)), b"hello", 5),
    "tcp options": (ethernet(ipv4(tcp(b"hello", options=OPTIONS))), b"hello", 5),
    "ip options": (ethernet(ipv4(HELLO, options=b"\x94\x04\0\0")), b"hello", 5),
    "most options": (ethernet(ipv4(tcp(b"hello", options=bytes(40)), options=bytes(40))), b"hello", 5),
    "snaplen cuts the payload": (ethernet(V4)[:-2], b"hel", 5),
    "snaplen cuts all payload": (ethernet(V4)[:-5], b"", 5),
    "snaplen cuts tcp options": (ethernet(ipv4(tcp(b"hello", options=OPTIONS)))[:-11], b"", 5),
    "snaplen cuts ipv6": (ethernet(V6, IPV6)[:-1], b"hell", 5),
    "offloaded total length 0": (ethernet(ipv4(HELLO, total_length=0)), b"hello", 5),
    "offloaded ipv6 length 0": (ethernet(ipv6(HELLO, payload_length=0), IPV6), b"hello", 5),
    "hop-by-hop": (ethernet(ipv6(padded(0, 1, 6) + HELLO, next_header=0), IPV6), b"hello", 5),
    "routing": (ethernet(ipv6(padded(43, 3, 6) + HELLO, next_header=43), IPV6), b"hello", 5),
    "authentication": (ethernet(ipv6(b"\6\4" + bytes(22) + HELLO, next_header=51), IPV6), b"hello", 5),
    "atomic fragment": (ethernet(ipv6(FRAGMENT + HELLO, next_header=44), IPV6), b"hello", 5),
    "three extensions": (
        ethernet(ipv6(padded(0, 1, 60) + padded(60, 2, 44) + FRAGMENT + HELLO, next_header=0), IPV6),
        b"hello",
        5,
    ),
}


@pytest.mark.parametrize(("frame", "payload", "wire"), PAYLOADS.values(), ids=PAYLOADS.keys())
def test_payload(frame: bytes, payload: bytes, wire: int) -> None:
    (first, second), _ = read_bytes(pcap([Captured(0, frame)] * 2))
    assert (first.payload, first.wire_payload_bytes) == (payload, wire)
    assert (second.payload, second.wire_payload_bytes) == (payload, wire)


def test_tcp_fields() -> None:
    segment = tcp(b"x", source_port=65535, destination_port=1, seq=2**32 - 1, ack=2**31, flags=0xFF, window=65535)
    (found,), _ = read_bytes(pcap([Captured(0, ethernet(ipv4(segment, "255.0.0.1", "1.2.3.4")))]))
    assert (found.seq, found.ack, found.flags, found.window) == (2**32 - 1, 2**31, 0xFF, 65535)
    assert found.ends == ("1.2.3.4", 1, "255.0.0.1", 65535, "")
    assert not found.from_low


def test_ip_id_and_ttl() -> None:
    frames = [
        ethernet(ipv4(HELLO, ip_id=0, ttl=255)),
        ethernet(ipv6(HELLO, hop_limit=7), IPV6),
        ethernet(ipv4(HELLO, ip_id=65535, ttl=1)),
    ]
    found = read_bytes(pcap([Captured(0, frame) for frame in frames]))[0]
    assert [(s.ip_id, s.ttl) for s in found] == [(0, 255), (-1, 7), (65535, 1)]


def test_mixed_families_keep_capture_order() -> None:
    frames = [ethernet(V4), ethernet(V6, IPV6), ethernet(bytes(28), 0x0806), ethernet(V6, IPV6), ethernet(V4)]
    segments, _ = read_bytes(pcap([Captured(n, frame) for n, frame in enumerate(frames)], nanoseconds=True))
    assert [(s.packet, s.ts_ns, s.ends.low_address) for s in segments] == [
        (1, 0, "10.0.0.1"),
        (2, 1, "2001:db8::1"),
        (4, 3, "2001:db8::1"),
        (5, 4, "10.0.0.1"),
    ]


TRUNCATED = {
    "whole": (ethernet(V4), None, 0),
    "payload cut": (ethernet(V4)[:-1], 59, 1),
    "tcp header cut": (ethernet(V4)[:50], 59, 1),
    "not tcp": (ethernet(bytes(28), 0x0806), 60, 1),
    "only the trailer is missing": (ethernet(V4), 63, 0),
    "offloaded and cut": (ethernet(ipv4(HELLO, total_length=0))[:-1], 59, 1),
    "wire length below the captured one": (ethernet(V4), 20, 0),
}


@pytest.mark.parametrize(("frame", "wire", "truncated"), TRUNCATED.values(), ids=TRUNCATED.keys())
def test_truncated_packets_are_counted(frame: bytes, wire: int | None, truncated: int) -> None:
    _, stats = read_bytes(pcap([Captured(0, frame, wire)] * 2))
    assert stats.truncated_packets == 2 * truncated
    assert (stats.captured_bytes, stats.wire_bytes) == (2 * len(frame), 2 * max(wire or 0, len(frame)))


def test_wire_length_of_an_offloaded_packet() -> None:
    frame = ethernet(ipv4(HELLO, total_length=0))
    segments, _ = read_bytes(pcap([Captured(0, frame[:-2], wire) for wire in (59, 2**32 - 1)]))
    assert [(s.payload, s.wire_payload_bytes) for s in segments] == [(b"hel", 5), (b"hel", 3 + (1 << 20))]


@pytest.mark.parametrize("following", [4, 6, 17, 41, 43, 47])
@pytest.mark.parametrize("kind", [0, 43, 51, 60])
def test_an_extension_header_that_leads_out_of_the_block(kind: int, following: int) -> None:
    frame = ethernet(ipv6(bytes([following, 255]) + bytes(6), next_header=kind), IPV6)
    capture = pcap([Captured(0, frame)] * 40)
    segments, stats = read_bytes(capture, block_bytes=512)
    assert not segments
    assert stats.undecoded_packets == {"ip_header_cut": 40}
