"""The same captures through tshark: packet numbers, sequence numbers, lengths and payload bytes agree."""

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from pyarrow import Table
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, CookedLinux, Dot1AD, Dot1Q, Ether, Loopback
from scapy.packet import Packet
from scapy.utils import PcapNgWriter, wrpcap

from tests.analyser.capture.reading import read_source
from tests.analyser.capture.test_damage import CAPTURES, FRAMES
from tests.analyser.capture.test_layers import LINKS
from tests.support.packets import Captured, block, enhanced, interface, old_packet, option, pcap, section
from tests.support.patched_pcap import KINDS, patched
from tests.support.shares import every, share, smallest
from tests.support.whole import whole_of
from wirewitness.analyser import read
from wirewitness.analyser.capture import CaptureError, open_captures
from wirewitness.analyser.tables.tables import TABLES

ROOT = Path(__file__).resolve().parents[3]
FOREIGN = ROOT.parent / "shared" / "captures"
FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.len",
    "tcp.payload",
)

pytestmark = pytest.mark.usefixtures("tshark")


class Ordinary(NamedTuple):
    """A sample as pcap: its size, its tables."""

    sample: Path
    size: int
    tables: Mapping[str, Table]


def tshark_rows(path: Path) -> list[list[str]]:
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp", "-T", "fields"]
    # checksums are left to offloading in many captures; reassembly is not asked for
    for preference in ("tcp.desegment_tcp_streams:FALSE", "tcp.check_checksum:FALSE", "ip.defragment:FALSE"):
        command += ["-o", preference]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def our_rows(path: Path) -> list[list[str]]:
    segments, _ = read_source(open_captures([path])[0])
    return [
        [
            str(s.packet),
            f"{s.ts_ns // 10**9}.{s.ts_ns % 10**9:09d}",
            str(s.seq),
            str(s.ack),
            f"0x{s.flags:04x}",
            str(s.window),
            str(s.wire_payload_bytes),
            s.payload.hex(),
        ]
        for s in segments
    ]


def compare(path: Path) -> None:
    ours, theirs = our_rows(path), tshark_rows(path)
    assert len(ours) == len(theirs)
    for mine, row in zip(ours, theirs, strict=True):
        # the raw acknowledgment of a segment without ACK and empty trailing fields are not printed
        row += [""] * (len(FIELDS) - len(row))
        row[3] = row[3] or mine[3]
        row[1] = row[1] or mine[1]  # a simple packet block has no time
        assert mine == row


def tcp_packets(link: Packet, ip: Packet) -> list[Packet]:
    """A short connection over the layers given, with options, an unrelated packet and zero-length segments."""
    there = {"sport": 40000, "dport": 29092}
    options = [("MSS", 1460), ("SAckOK", b""), ("WScale", 7)]
    times = [("Timestamp", (1, 2))]
    return [
        link / ip / TCP(**there, flags="S", seq=2**32 - 3, options=options),
        link / ip / TCP(**there, flags="A", seq=2**32 - 2, ack=7, window=4096),
        link / ip / UDP(sport=1, dport=2) / b"not tcp",
        link / ip / TCP(**there, flags="PA", seq=2**32 - 2, ack=7, options=times) / bytes(range(200)),
        link / ip / TCP(**there, flags="PA", seq=198, ack=7) / b"x",
        link / ip / TCP(**there, flags="FA", seq=199, ack=7),
        link / ip / TCP(**there, flags="R", seq=200),
    ]


V4, V6 = IP(src="10.1.0.1", dst="10.1.0.2"), IPv6(src="2001:db8::1", dst="2001:db8::2")
MAC = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
BUILT: dict[str, list[Packet]] = {
    "ethernet": tcp_packets(MAC, V4),
    "ipv6": tcp_packets(MAC, V6),
    "ip options": tcp_packets(MAC, IP(src="10.1.0.1", dst="10.1.0.2", options=[b"\x94\x04\0\0"])),
    "extension headers": tcp_packets(MAC, V6 / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt()),
    "vlan": tcp_packets(MAC / Dot1Q(vlan=100), V4),
    "qinq": tcp_packets(MAC / Dot1AD(vlan=100) / Dot1Q(vlan=200), V6),
    "cooked": tcp_packets(CookedLinux(), V4),
    "loopback": tcp_packets(Loopback(type=2), V4),
    "raw": [packet[IP] for packet in tcp_packets(MAC, V4)],
    "others between": [MAC / ARP(), *tcp_packets(MAC, V4), MAC / V4 / ICMP(), *tcp_packets(MAC / Dot1Q(vlan=5), V6)],
}


IN_PCAPNG = [name for name in BUILT if name != "loopback"]


def stamped(packets: list[Packet]) -> list[Packet]:
    for number, packet in enumerate(packets):
        packet.time = 1_700_000_000 + number / 1000
    return packets


@pytest.mark.parametrize("name", BUILT)
def test_pcap_built_with_scapy(tmp_path: Path, name: str) -> None:
    path = tmp_path / "built.pcap"
    wrpcap(str(path), stamped(BUILT[name]))
    assert len(our_rows(path)) >= 6
    compare(path)


@pytest.mark.parametrize("name", share(IN_PCAPNG, every(3, IN_PCAPNG)))
def test_pcapng_built_with_scapy(tmp_path: Path, name: str) -> None:
    path = tmp_path / "built.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for packet in stamped(BUILT[name]):
            writer.write(packet)
    assert len(our_rows(path)) >= 6
    compare(path)


@pytest.mark.parametrize("snaplen", [54, 60, 66, 80, 100])
def test_cut_packets(tmp_path: Path, snaplen: int) -> None:
    path = tmp_path / "built.pcap"
    wrpcap(str(path), stamped(BUILT["ethernet"]))
    cut = tmp_path / "cut.pcap"
    subprocess.run(["editcap", "-F", "pcap", "-s", str(snaplen), str(path), str(cut)], check=True, capture_output=True)
    ours = our_rows(cut)
    theirs = tshark_rows(cut)
    assert [row[:3] + row[6:7] for row in ours] == [row[:3] + row[6:7] for row in theirs]


PCAP_RECORDS = {order: pcap([Captured(10**18, frame) for frame in FRAMES], order=order)[24:] for order in "<>"}
# captures in shapes that scapy does not write
BYTES = {
    **CAPTURES,
    "pcapng numbered blocks": section()
    + interface()
    + enhanced(FRAMES[1])
    + block(9, b"__REALTIME_TIMESTAMP=1\nMESSAGE=x\n")
    + enhanced(FRAMES[2]),
    "pcapng old packets": section(">") + interface(">") + old_packet(FRAMES[1], 5, ">") + old_packet(FRAMES[2], 9, ">"),
    "pcapng comments": section()
    + interface()
    + enhanced(FRAMES[1], 10**15, options=option(1, b"a comment") + bytes(4))
    + block(4, option(1, b"\x0a\0\0\1name\0") + bytes(4))
    + block(10, struct.pack("<II", 0x544C534B, 4) + b"#abc")
    + old_packet(FRAMES[2], 10**15 + 1, options=option(2, bytes(4))),
    "pcap ixia": struct.pack("<IHHiIIII", 0x1C0001AB, 2, 4, 0, 0, 65535, 1, 0) + PCAP_RECORDS["<"],
    "pcap ixia big-endian": struct.pack(">IHHiIIII", 0x1C0001AB, 2, 4, 0, 0, 65535, 1, 0) + PCAP_RECORDS[">"],
    "pcap version 2.2": struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 2, 0, 0, 65535, 1) + PCAP_RECORDS["<"],
    "pcapng resolution": section()
    + interface(options=option(9, b"\x94"))
    + enhanced(FRAMES[1], (1_700_000_000 << 20) + 777),
    "pcapng offset": section() + interface(options=option(14, bytes([100] + [0] * 7))) + enhanced(FRAMES[1], 5_000_000),
    **{
        name: pcap([Captured(10**9, frame)] * 2, link_type=link_type)
        for name, (link_type, frame, _) in LINKS.items()
        if link_type != 1 and name != "null ipv6 linux"  # tshark knows the families of the BSDs only
    },
}


@pytest.mark.parametrize("name", share(BYTES, every(3, BYTES)))
def test_capture_of_our_builders(tmp_path: Path, name: str) -> None:
    path = tmp_path / "built.pcap"
    path.write_bytes(BYTES[name])
    assert our_rows(path)
    compare(path)


def foreign_captures() -> list[Path]:
    return sorted(FOREIGN.glob("*.pcap")) if FOREIGN.is_dir() else []


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="the folder ../shared/captures is not there")
@pytest.mark.parametrize("path", share(foreign_captures(), every(3, foreign_captures())), ids=lambda path: path.stem)
def test_foreign_capture(path: Path) -> None:
    assert our_rows(path)
    compare(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", "<>")
def test_patched_pcap(tmp_path: Path, kind: str, order: str) -> None:
    path = tmp_path / "built.pcap"
    path.write_bytes(patched(kind, [Captured(10**18, frame) for frame in FRAMES], order))
    assert our_rows(path)
    compare(path)


def tables_of(path: Path) -> Mapping[str, Table]:
    """All tables but the findings, which are made of nothing else and cost as much as they do."""
    with read([path], tables=[name for name in TABLES if name != "findings"]) as found:
        return whole_of(found, str(path)).tables


@pytest.fixture(scope="module", params=["kafka_fenced_commit", "mqtt_faults"])
def ordinary(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ordinary:
    path = tmp_path_factory.mktemp("ordinary") / "o.pcap"
    sample = ROOT / "sample_pcaps" / f"{request.param}.pcapng"
    subprocess.run(["editcap", "-F", "pcap", str(sample), str(path)], check=True)
    return Ordinary(sample, path.stat().st_size, tables_of(path))


@pytest.mark.parametrize("kind", share(KINDS, every(3, KINDS)))
def test_patched_pcap_of_editcap(tmp_path: Path, kind: str, ordinary: Ordinary) -> None:
    path = tmp_path / "p.pcap"
    subprocess.run(["editcap", "-F", kind, str(ordinary.sample), str(path)], check=True)
    assert path.stat().st_size > ordinary.size
    compare(path)
    sizes = {"size_bytes", "bytes"}
    for table, rows in tables_of(path).items():
        left_out = [column for column in rows.schema.names if table == "captures" and column in sizes]
        assert rows.drop_columns(left_out).equals(ordinary.tables[table].drop_columns(left_out)), table


# what editcap writes of any Ethernet capture; without a sign of their own are commview-ncf and commview-ncfx
FOREIGN_KINDS = {
    "5views": "an InfoVista 5View capture",
    "k12text": "a K12 text capture",
    "lanalyzer": "a LANalyzer capture",
    "netmon1": "a Network Monitor capture",
    "netmon2": "a Network Monitor capture",
    "nettl": "an HP-UX nettl trace",
    "ngsniffer": "a Sniffer (DOS) capture",
    "ngwsniffer_1_1": "a NetXRay or Sniffer (Windows) capture",
    "ngwsniffer_2_0": "a NetXRay or Sniffer (Windows) capture",
    "observer": "an Observer capture",
    "snoop": "a Solaris snoop capture",
    "visual": "a Visual Networks capture",
}


# what editcap does not read back as it was written
NOT_CONVERTED = {"k12text", "nettl", "observer"}


@pytest.mark.parametrize("kind", FOREIGN_KINDS)
def test_what_only_wireshark_reads_is_named_and_converted_as_told(tmp_path: Path, kind: str) -> None:
    ordinary, path, converted = (tmp_path / name for name in ("ordinary.pcap", "foreign", "converted.pcapng"))
    ordinary.write_bytes(pcap([Captured(10**18 + number * 10**9, frame) for number, frame in enumerate(FRAMES)]))
    subprocess.run(["editcap", "-F", kind, str(ordinary), str(path)], check=True)
    with pytest.raises(CaptureError) as caught:
        open_captures([path])
    text = str(caught.value)
    assert f"{path} is not a capture: it looks like {FOREIGN_KINDS[kind]}, which is not supported; " in text
    if kind in NOT_CONVERTED:
        return
    told = text.split("Wireshark's editcap makes a capture of it: ")[1].removesuffix(".")
    command = [{"IN": str(path), "OUT": str(converted)}.get(word, word) for word in told.split()]
    subprocess.run(command, check=True)
    assert [row[2:7] for row in our_rows(converted)] == [row[2:7] for row in our_rows(ordinary)]


SAMPLES = sorted((ROOT / "sample_pcaps").glob("*.pcapng"))


@pytest.mark.parametrize("path", share(SAMPLES, smallest(SAMPLES)), ids=lambda path: path.stem)
def test_sample(path: Path) -> None:
    assert our_rows(path)
    compare(path)
