"""MPLS, PPPoE and tunnels: the TCP inside is found, what wraps it is named from the outermost in."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analyser.capture.reading import read_bytes
from tests.support.packets import (
    Captured,
    erspan2,
    erspan3,
    ethernet,
    geneve,
    gre,
    ipv4,
    ipv6,
    mpls,
    pcap,
    pppoe,
    tcp,
    udp,
    vxlan,
)
from tests.support.shares import examples

HELLO = tcp(b"hello")
V4, V6 = ipv4(HELLO, ip_id=5, ttl=9), ipv6(HELLO)
IN4, IN6 = ethernet(V4), ethernet(V6, 0x86DD)
IPV6 = 0x86DD
SEQUENCE = 0x1000


def over_ip(body: bytes, protocol: int) -> bytes:
    return ethernet(ipv4(body, "192.0.2.1", "192.0.2.2", protocol=protocol, ip_id=1000, ttl=200))


def over_ip6(body: bytes, protocol: int) -> bytes:
    return ethernet(ipv6(body, "2001:db8:ffff::1", "2001:db8:ffff::2", next_header=protocol), IPV6)


def over_udp(body: bytes, port: int) -> bytes:
    return over_ip(udp(body, port), 17)


def nested(depth: int) -> bytes:
    packet = V4
    for _ in range(depth):
        packet = ipv4(packet, protocol=4)
    return ethernet(packet)


TUNNELS = {
    "mpls": (ethernet(mpls(V4, 1000), 0x8847), "mpls"),
    "mpls two labels": (ethernet(mpls(V4, 1000, 2001), 0x8847), "mpls"),
    "mpls ipv6": (ethernet(mpls(V6, 1000), 0x8847), "mpls"),
    "mpls multicast ethertype": (ethernet(mpls(V4, 16), 0x8848), "mpls"),
    "mpls pseudowire": (ethernet(mpls(IN4, 1000, 18), 0x8847), "mpls"),
    "mpls pseudowire control word": (ethernet(mpls(bytes(4) + IN4, 1000, 17), 0x8847), "mpls"),
    "mpls pseudowire vlan": (
        ethernet(mpls(bytes(4) + ethernet(V4, tags=[(0x8100, 3)]), 17), 0x8847),
        "mpls, vlan 3",
    ),
    "mpls behind vlan": (ethernet(mpls(V4, 1000), 0x8847, tags=[(0x8100, 8)]), "vlan 8, mpls"),
    "pppoe": (ethernet(pppoe(V4, 5), 0x8864), "pppoe 5"),
    "pppoe ipv6": (ethernet(pppoe(V6, 5, protocol=b"\0\x57"), 0x8864), "pppoe 5"),
    "pppoe short protocol": (ethernet(pppoe(V4, 65535, protocol=b"\x21"), 0x8864), "pppoe 65535"),
    "pppoe behind qinq": (
        ethernet(pppoe(V4, 5), 0x8864, tags=[(0x88A8, 1), (0x8100, 2)]),
        "vlan 1/2, pppoe 5",
    ),
    "vxlan": (over_udp(vxlan(IN4, 42), 4789), "vxlan 42"),
    "vxlan ipv6": (over_udp(vxlan(IN6, 0xFFFFFF), 4789), "vxlan 16777215"),
    "vxlan over ipv6": (over_ip6(udp(vxlan(IN4, 42), 4789), 17), "vxlan 42"),
    "vxlan linux port": (over_udp(vxlan(IN4, 42), 8472), "vxlan 42"),
    "vxlan inner vlan": (over_udp(vxlan(ethernet(V4, tags=[(0x8100, 7)]), 42), 4789), "vxlan 42, vlan 7"),
    "vxlan outer vlan": (
        ethernet(ipv4(udp(vxlan(IN4, 42), 4789), protocol=17), tags=[(0x8100, 100)]),
        "vlan 100, vxlan 42",
    ),
    "geneve": (over_udp(geneve(IN4, 7), 6081), "geneve 7"),
    "geneve options": (over_udp(geneve(IN4, 7, options=bytes(32)), 6081), "geneve 7"),
    "geneve all options": (over_udp(geneve(IN4, 0, options=bytes(252)), 6081), "geneve 0"),
    "geneve ipv4": (over_udp(geneve(V4, 0, protocol=0x0800, options=bytes(8)), 6081), "geneve 0"),
    "geneve ipv6": (over_udp(geneve(V6, 7, protocol=IPV6), 6081), "geneve 7"),
    "gre": (over_ip(gre(V4), 47), "gre"),
    "gre ipv6": (over_ip(gre(V6, IPV6), 47), "gre"),
    "gre over ipv6": (over_ip6(gre(V4), 47), "gre"),
    "gre ethernet": (over_ip(gre(IN4, 0x6558), 47), "gre"),
    "gre key": (over_ip(gre(V4, flags=0x2000), 47), "gre"),
    "gre sequence": (over_ip(gre(V4, flags=SEQUENCE), 47), "gre"),
    "gre checksum": (over_ip(gre(V4, flags=0x8000), 47), "gre"),
    "gre all fields": (over_ip(gre(V4, flags=0xB000), 47), "gre"),
    "gre mpls": (over_ip(gre(mpls(V4, 30), 0x8847), 47), "gre, mpls"),
    "erspan 1": (over_ip(gre(IN4, 0x88BE), 47), "erspan"),
    "erspan 2": (over_ip(gre(erspan2(IN4, 9), 0x88BE, flags=SEQUENCE), 47), "erspan 9"),
    "erspan 3": (over_ip(gre(erspan3(IN4, 1023), 0x22EB, flags=SEQUENCE), 47), "erspan 1023"),
    "erspan 3 platform": (
        over_ip(gre(erspan3(IN4, 9, platform=bytes(8)), 0x22EB, flags=SEQUENCE), 47),
        "erspan 9",
    ),
    "erspan 3 of ip": (over_ip(gre(erspan3(V4, 9, frame_type=2), 0x22EB, flags=SEQUENCE), 47), "erspan 9"),
    "ip in ip": (over_ip(V4, 4), "ip-in-ip"),
    "ipv6 in ipv4": (over_ip(V6, 41), "ip-in-ip"),
    "ipv4 in ipv6": (over_ip6(V4, 4), "ip-in-ip"),
    "ipv6 in ipv6": (over_ip6(V6, 41), "ip-in-ip"),
    "erspan of vxlan": (
        over_ip(gre(erspan2(over_udp(vxlan(IN4, 42), 4789), 9), 0x88BE, flags=SEQUENCE), 47),
        "erspan 9, vxlan 42",
    ),
    "gre in vxlan in geneve": (
        over_udp(geneve(over_udp(vxlan(over_ip(gre(V4), 47), 2), 8472), 1), 6081),
        "geneve 1, vxlan 2, gre",
    ),
    "seven tunnels": (nested(7), ", ".join(["ip-in-ip"] * 7)),
}


@pytest.mark.parametrize(("frame", "encapsulation"), TUNNELS.values(), ids=TUNNELS.keys())
def test_tunnel(frame: bytes, encapsulation: str) -> None:
    (segment,), stats = read_bytes(pcap([Captured(0, frame)]))
    low = "2001:db8::1" if frame.endswith(V6) else "10.0.0.1"
    assert segment.payload == b"hello"
    assert segment.wire_payload_bytes == 5
    assert segment.ends == (low, 40000, low[:-1] + "2", 9092, encapsulation)
    assert (segment.ip_id, segment.ttl) == ((-1, 64) if frame.endswith(V6) else (5, 9))
    assert (stats.tcp_segments, stats.truncated_packets, stats.remarks) == (1, 0, [])


def test_all_tunnels_in_one_capture_keep_their_order() -> None:
    frames = [IN4, *(frame for frame, _ in TUNNELS.values()), IN6]
    segments, _ = read_bytes(pcap([Captured(n, frame) for n, frame in enumerate(frames)], nanoseconds=True))
    assert [(s.packet, s.ts_ns, s.payload) for s in segments] == [(n + 1, n, b"hello") for n in range(len(frames))]
    assert [s.ends.encapsulation for s in segments] == ["", *(text for _, text in TUNNELS.values()), ""]


NOT_TCP = {
    "mpls of something else": (ethernet(mpls(bytes(60), 5), 0x8847), "mpls"),
    "mpls label cut": (ethernet(mpls(b"", 5, 6)[:7], 0x8847), "link_header_cut"),
    "mpls without a bottom": (ethernet(struct.pack(">I", 0x10) * 20, 0x8847), "too_many_headers"),
    "pppoe discovery": (ethernet(bytes(40), 0x8863), "other"),
    "pppoe of another code": (ethernet(pppoe(V4, 5, version_code=0x11A7), 0x8864), "other"),
    "pppoe link control": (ethernet(pppoe(bytes(40), 5, protocol=b"\xc0\x21"), 0x8864), "other"),
    "pppoe cut": (ethernet(pppoe(V4, 5)[:7], 0x8864), "link_header_cut"),
    "vxlan without a number": (over_udp(vxlan(IN4, 42, flags=0), 4789), "other"),
    "vxlan of arp": (over_udp(vxlan(ethernet(bytes(28), 0x0806), 42), 4789), "other"),
    "vxlan of udp": (over_udp(vxlan(ethernet(ipv4(udp(bytes(9), 53), protocol=17)), 42), 4789), "other"),
    "vxlan cut": (over_udp(vxlan(IN4, 42), 4789)[:48], "tunnel_header_cut"),
    "frame in vxlan cut": (over_udp(vxlan(IN4, 42), 4789)[:60], "link_header_cut"),
    "ip in vxlan cut": (over_udp(vxlan(IN4, 42), 4789)[:80], "ip_header_cut"),
    "other udp": (over_udp(vxlan(IN4, 42), 4788), "other"),
    "udp cut": (over_udp(b"", 4789)[:40], "other"),
    "geneve of version 1": (over_udp(geneve(IN4, 7, version=1), 6081), "other"),
    "geneve of something else": (over_udp(geneve(bytes(60), 7, protocol=0x1234), 6081), "other"),
    "geneve options beyond the packet": (over_udp(b"\x3f" + geneve(IN4, 7)[1:], 6081), "tunnel_header_cut"),
    "gre keepalive": (over_ip(gre(b"", 0), 47), "other"),
    "gre cut": (over_ip(gre(b"")[:3], 47), "tunnel_header_cut"),
    "gre fields cut": (over_ip(gre(b"", flags=0xB000)[:9], 47), "ip_header_cut"),
    "gre with source routes": (over_ip(gre(V4, flags=0x4000), 47), "ip_tunnel"),
    "gre version 1": (over_ip(gre(bytes(40), 0x880B, flags=0x3001), 47), "ip_tunnel"),
    "erspan 2 cut": (over_ip(gre(bytes(7), 0x88BE, flags=SEQUENCE), 47), "link_header_cut"),
    "erspan 3 of infiniband": (over_ip(gre(erspan3(V4, 9, frame_type=3), 0x22EB), 47), "other"),
    "ip in ip of something else": (over_ip(bytes(40), 4), "bad_ip_header"),
    "eight tunnels": (nested(8), "too_many_headers"),
}


@pytest.mark.parametrize(("frame", "verdict"), NOT_TCP.values(), ids=NOT_TCP.keys())
def test_what_is_not_decoded_is_counted(frame: bytes, verdict: str) -> None:
    segments, stats = read_bytes(pcap([Captured(0, frame)] * 2))
    assert not segments
    expected = (2, {}) if verdict == "other" else (0, {verdict: 2})
    assert (stats.other_packets, stats.undecoded_packets) == expected


def test_the_same_addresses_in_two_tunnels_are_two_pairs() -> None:
    frames = [over_udp(vxlan(IN4, number), 4789) for number in (1, 2, 1)]
    segments, _ = read_bytes(pcap([Captured(0, frame) for frame in frames]))
    assert [s.ends.encapsulation for s in segments] == ["vxlan 1", "vxlan 2", "vxlan 1"]


def test_labels_of_each_direction_do_not_part_a_connection() -> None:
    back = ipv4(tcp(b"back", source_port=9092, destination_port=40000), "10.0.0.2", "10.0.0.1")
    frames = [ethernet(mpls(V4, 1000), 0x8847), ethernet(mpls(back, 2001), 0x8847)]
    there, again = read_bytes(pcap([Captured(0, frame) for frame in frames]))[0]
    assert there.ends == again.ends
    assert there.from_low != again.from_low


def test_padding_behind_a_tunnelled_packet_is_no_payload() -> None:
    frame = over_udp(vxlan(ethernet(ipv4(tcp()), trailer=bytes(6)), 42), 4789) + b"\0" * 4
    (segment,), _ = read_bytes(pcap([Captured(0, frame)]))
    assert (segment.payload, segment.wire_payload_bytes) == (b"", 0)


def test_offloaded_packet_in_a_tunnel_ends_with_the_outer_one() -> None:
    frame = over_ip(gre(ipv4(HELLO, total_length=0)), 47) + b"FCS!"
    (segment,), _ = read_bytes(pcap([Captured(0, frame)]))
    assert (segment.payload, segment.wire_payload_bytes) == (b"hello", 5)


def test_a_cut_tunnelled_packet_is_truncated() -> None:
    frame = over_udp(vxlan(IN4, 42), 4789)
    (segment,), stats = read_bytes(pcap([Captured(0, frame[:-2], len(frame))]))
    assert (segment.payload, segment.wire_payload_bytes, stats.truncated_packets) == (b"hel", 5, 1)


@given(st.sampled_from(sorted(TUNNELS)), st.data())
@examples(300)
def test_damaged_tunnels_never_raise(name: str, data: st.DataObject) -> None:
    frame = bytearray(TUNNELS[name][0])
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(12, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)))
    _, stats = read_bytes(pcap([Captured(0, bytes(frame)), Captured(0, bytes(frame[:cut]))]))
    assert stats.packets == 2


@given(st.permutations(sorted(TUNNELS)), st.integers(64, 6000))
@examples(40)
def test_block_size_changes_nothing(names: list[str], block_bytes: int) -> None:
    capture = pcap([Captured(n, TUNNELS[name][0]) for n, name in enumerate(names)])
    assert read_bytes(capture, block_bytes=block_bytes) == read_bytes(capture)
