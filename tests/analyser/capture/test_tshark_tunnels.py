"""Tunnels, labels and fragments through tshark: the same segments in the same packets, the same streams."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.contrib.mpls import MPLS, EoMCW
from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6
from scapy.layers.l2 import GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet
from scapy.utils import wrpcap

from tests.analyser.capture.reading import read_source
from tests.analyser.capture.test_fragments import four, six
from tests.analyser.capture.test_tunnels import TUNNELS
from tests.support.packets import Captured, pcap
from tests.support.shares import pairs, turns
from wirewitness.analyser.capture import open_captures

pytestmark = pytest.mark.usefixtures("tshark")

FIELDS = ("frame.number", "tcp.seq_raw", "tcp.len", "tcp.payload")
FOLLOW = ("-z", "follow,tcp,raw,0")
PREFERENCES = (
    "tcp.desegment_tcp_streams:FALSE",
    "tcp.check_checksum:FALSE",
    "ip.defragment:TRUE",
    "ipv6.defragment:TRUE",
)
DECODE_AS = ("udp.port==8472,vxlan", "mpls.label==17,pwethcw", "mpls.label==18,pwethnocw")


def tshark(path: Path, *arguments: str) -> list[str]:
    command = ["tshark", "-n", "-r", str(path), *arguments]
    for preference in PREFERENCES:
        command += ["-o", preference]
    for rule in DECODE_AS:
        command += ["-d", rule]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def tshark_rows(path: Path, *arguments: str) -> list[list[str]]:
    """One row for each packet that holds TCP; FOLLOW among the arguments adds lines with the bytes of a stream."""
    arguments = ("-Y", "tcp", "-T", "fields", *arguments)
    for field in FIELDS:
        arguments += ("-e", field)
    rows = [line.split("\t") for line in tshark(path, *arguments)]
    return [row + [""] * (len(FIELDS) - len(row)) for row in rows]


def our_rows(path: Path) -> list[list[str]]:
    segments, _ = read_source(open_captures([path])[0])
    return [[str(s.packet), str(s.seq), str(s.wire_payload_bytes), s.payload.hex()] for s in segments]


def followed(lines: list[list[str]]) -> dict[str, str]:
    """Sender -> bytes of a stream as hex; tshark names the two nodes and shifts the lines of the second."""
    nodes = [line[0].partition(": ")[2] for line in lines if line[0].startswith("Node ")]
    after = next(n for n, line in enumerate(lines) if line[0].startswith("Node 1")) + 1
    body = [line for line in lines[after:] if not line[0].startswith("=")]
    return {nodes[0]: "".join(line[0] for line in body), nodes[1]: "".join(line[1] for line in body)}


def our_stream(path: Path) -> dict[str, str]:
    """Sender -> bytes, for captures whose segments come in order."""
    sent: dict[str, str] = {}
    for segment in read_source(open_captures([path])[0])[0]:
        ends = segment.ends
        low = (ends.low_address, ends.low_port) if segment.from_low else (ends.high_address, ends.high_port)
        name = f"[{low[0]}]:{low[1]}" if ":" in low[0] else f"{low[0]}:{low[1]}"
        sent[name] = sent.get(name, "") + segment.payload.hex()
    return sent


def dialogue(there: Packet, back: Packet) -> list[Packet]:
    """A connection inside the layers given for each direction."""
    client, server = {"sport": 40000, "dport": 29092}, {"sport": 29092, "dport": 40000}
    question, answer = bytes(range(200)), bytes(range(255, -1, -1)) * 4
    seq, ack = 2**32 - 50, 900
    return [
        there / TCP(**client, flags="S", seq=seq - 1, options=[("MSS", 1460)]),
        back / TCP(**server, flags="SA", seq=ack - 1, ack=seq),
        there / TCP(**client, flags="A", seq=seq, ack=ack),
        there / TCP(**client, flags="PA", seq=seq, ack=ack) / question,
        back / TCP(**server, flags="A", seq=ack, ack=(seq + 200) % 2**32),
        back / TCP(**server, flags="PA", seq=ack, ack=(seq + 200) % 2**32) / answer,
        there / TCP(**client, flags="PA", seq=(seq + 200) % 2**32, ack=ack + 1024) / b"more",
        there / TCP(**client, flags="FA", seq=(seq + 204) % 2**32, ack=ack + 1024),
    ]


MAC = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
INNER_MAC = Ether(src="06:00:00:00:00:01", dst="06:00:00:00:00:02")
OUTER, OUTER6 = IP(src="192.0.2.1", dst="192.0.2.2"), IPv6(src="2001:db8:f::1", dst="2001:db8:f::2")
GENEVE_OPTION = GeneveOptions(classid=1, type=2, data=b"12345678")
WRAPPINGS: dict[str, tuple[Packet, Packet | None]] = {
    "ethernet": (MAC, None),
    "vlan": (MAC / Dot1Q(vlan=100), None),
    "qinq": (MAC / Dot1AD(vlan=100) / Dot1Q(vlan=200), None),
    "mpls": (MAC / MPLS(label=1000, s=1), MAC / MPLS(label=2001, s=1)),
    "mpls stack": (MAC / MPLS(label=1000, s=0) / MPLS(label=17, s=1), MAC / MPLS(label=30, s=1)),
    "mpls pseudowire": (MAC / MPLS(label=1000, s=0) / MPLS(label=17, s=1) / EoMCW() / INNER_MAC, None),
    "mpls pseudowire without control word": (MAC / MPLS(label=18, s=1) / INNER_MAC, None),
    "vxlan": (MAC / OUTER / UDP(sport=5, dport=4789) / VXLAN(vni=42, flags=8) / INNER_MAC, None),
    "vxlan 8472": (MAC / OUTER / UDP(sport=5, dport=8472) / VXLAN(vni=42, flags=8) / INNER_MAC, None),
    "vxlan over ipv6": (MAC / OUTER6 / UDP(sport=5, dport=4789) / VXLAN(vni=42, flags=8) / INNER_MAC, None),
    "vxlan with vlan": (
        MAC / OUTER / UDP(sport=5, dport=4789) / VXLAN(vni=42, flags=8) / INNER_MAC / Dot1Q(vlan=7),
        None,
    ),
    "geneve": (MAC / OUTER / UDP(sport=5, dport=6081) / GENEVE(vni=7, options=[GENEVE_OPTION]) / INNER_MAC, None),
    "gre": (MAC / OUTER / GRE(), None),
    "gre key, sequence, checksum": (
        MAC / OUTER / GRE(key_present=1, key=5, seqnum_present=1, sequence_number=3, chksum_present=1),
        None,
    ),
    "gre ethernet": (MAC / OUTER / GRE(proto=0x6558) / INNER_MAC, None),
    "erspan 1": (MAC / OUTER / GRE(proto=0x88BE) / INNER_MAC, None),
    "erspan 2": (
        MAC / OUTER / GRE(proto=0x88BE, seqnum_present=1, sequence_number=1) / ERSPAN_II(session_id=9) / INNER_MAC,
        None,
    ),
    "erspan 3": (
        MAC / OUTER / GRE(proto=0x22EB, seqnum_present=1, sequence_number=1) / ERSPAN_III(session_id=9) / INNER_MAC,
        None,
    ),
    "ip in ip": (MAC / OUTER, None),
    "ip in ipv6": (MAC / OUTER6, None),
    "vxlan in gre": (
        MAC / OUTER / GRE(proto=0x6558) / INNER_MAC / OUTER6 / UDP(sport=5, dport=4789) / VXLAN(vni=1, flags=8) / MAC,
        None,
    ),
}
ENDS: dict[str, tuple[Packet, Packet]] = {
    "ipv4": (IP(src="10.1.0.1", dst="10.1.0.2"), IP(src="10.1.0.2", dst="10.1.0.1")),
    "ipv6": (IPv6(src="2001:db8::1", dst="2001:db8::2"), IPv6(src="2001:db8::2", dst="2001:db8::1")),
}


def session(ends: tuple[Packet, Packet]) -> list[Packet]:
    """In a PPPoE session the PPP protocol tells the family."""
    number = 0x21 if isinstance(ends[0], IP) else 0x57
    return dialogue(*(MAC / PPPoE(sessionid=5) / PPP(proto=number) / end for end in ends))


def in_fragments(ends: tuple[Packet, Packet]) -> list[Packet]:
    """Every packet in parts of at most 200 bytes."""
    if isinstance(ends[0], IP):
        packets = dialogue(MAC / ends[0], MAC / ends[1])
        for number, packet in enumerate(packets):
            packet[IP].id = number
        return [part for packet in packets for part in fragment(packet, 200)]
    packets = dialogue(ends[0] / IPv6ExtHdrFragment(), ends[1] / IPv6ExtHdrFragment())
    for number, packet in enumerate(packets):
        packet[IPv6ExtHdrFragment].id = number
    return [MAC / part for packet in packets for part in fragment6(packet, 280)]


def wrapped(name: str, ends: tuple[Packet, Packet]) -> list[Packet]:
    there, back = WRAPPINGS[name]
    return dialogue(there / ends[0], (there if back is None else back) / ends[1])


CASES: dict[str, Callable[[tuple[Packet, Packet]], list[Packet]]] = {
    **{name: lambda ends, name=name: wrapped(name, ends) for name in WRAPPINGS},  # type: ignore[misc]
    "pppoe": session,
    "fragments": in_fragments,
}


@pytest.mark.parametrize(
    ("name", "family"), pairs([(name, family) for family in ENDS for name in CASES], turns(CASES, ENDS))
)
def test_built_with_scapy(tmp_path: Path, name: str, family: str) -> None:
    path = tmp_path / "built.pcap"
    packets = CASES[name](ENDS[family])
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number / 1000
    wrpcap(str(path), packets)
    ours = our_rows(path)
    assert len(ours) == 8
    theirs = tshark_rows(path, *FOLLOW)
    assert ours == theirs[:8]
    assert our_stream(path) == followed(theirs[8:])


TSHARK_CANNOT = {"erspan 3 of ip"}  # tshark 4.0 names the frame type and shows bytes


def test_our_tunnels(tmp_path: Path) -> None:
    path = tmp_path / "built.pcap"
    frames = [frame for name, (frame, _) in TUNNELS.items() if name not in TSHARK_CANNOT]
    path.write_bytes(pcap([Captured(n * 1000, frame) for n, frame in enumerate(frames)]))
    ours, theirs = our_rows(path), tshark_rows(path)
    assert len(ours) == len(frames)
    assert ours == theirs


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_our_fragments(tmp_path: Path, family: str, order: tuple[int, ...]) -> None:
    path = tmp_path / "built.pcap"
    frames = four() if family == "ipv4" else six()
    path.write_bytes(pcap([Captured(n * 1000, frames[place]) for n, place in enumerate(order)]))
    ours = our_rows(path)
    assert len(ours) == 1
    assert ours == tshark_rows(path)
