"""Builders of packets and captures for tests: plain struct packing, independent of the reader under test."""

import ipaddress
import struct
from collections.abc import Sequence
from typing import NamedTuple

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


class Captured(NamedTuple):
    """One packet for a capture file; wire_bytes None means that all of it was captured."""

    ts_ns: int
    data: bytes
    wire_bytes: int | None = None

    @property
    def wire(self) -> int:
        return len(self.data) if self.wire_bytes is None else self.wire_bytes


def tcp(
    payload: bytes = b"",
    *,
    source_port: int = 40000,
    destination_port: int = 9092,
    seq: int = 1,
    ack: int = 1,
    flags: int = PSH | ACK,
    window: int = 512,
    options: bytes = b"",
) -> bytes:
    """A TCP segment; `options` is a multiple of four bytes. Checksums stay 0, as offloading leaves them."""
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(">HHIIBBHHH", source_port, destination_port, seq, ack, offset, flags, window, 0, 0)
    return head + options + payload


def ipv4(
    body: bytes,
    source: str = "10.0.0.1",
    destination: str = "10.0.0.2",
    *,
    protocol: int = 6,
    options: bytes = b"",
    total_length: int | None = None,
    fragment: int = 0,
    ip_id: int = 1,
    ttl: int = 64,
) -> bytes:
    """An IPv4 packet; total_length overrides the true one, fragment is the whole field with its flags."""
    length = 20 + len(options)
    total = length + len(body) if total_length is None else total_length
    addresses = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(destination).packed
    head = struct.pack(">BBHHHBBH", 0x40 | length // 4, 0, total, ip_id, fragment, ttl, protocol, 0)
    return head + addresses + options + body


def ipv6(
    body: bytes,
    source: str = "2001:db8::1",
    destination: str = "2001:db8::2",
    *,
    next_header: int = 6,
    payload_length: int | None = None,
    hop_limit: int = 64,
) -> bytes:
    """An IPv6 packet; extension headers belong to `body`."""
    length = len(body) if payload_length is None else payload_length
    addresses = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(destination).packed
    return struct.pack(">IHBB", 0x6000_0000, length, next_header, hop_limit) + addresses + body


def ethernet(
    body: bytes, ethertype: int = 0x0800, *, tags: Sequence[tuple[int, int]] = (), trailer: bytes = b""
) -> bytes:
    """An Ethernet frame; `tags` are (tag ethertype, tag control) from the outermost in."""
    head = bytes.fromhex("020000000002 020000000001")
    for kind, control in tags:
        head += struct.pack(">HH", kind, control)
    return head + struct.pack(">H", ethertype) + body + trailer


def cooked(body: bytes, ethertype: int = 0x0800) -> bytes:
    """Linux cooked v1."""
    return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), ethertype) + body


def cooked2(body: bytes, ethertype: int = 0x0800) -> bytes:
    """Linux cooked v2."""
    return struct.pack(">HHIHBB8s", ethertype, 0, 2, 1, 0, 6, bytes(8)) + body


def udp(body: bytes, destination_port: int, *, source_port: int = 51234) -> bytes:
    """A UDP datagram without a checksum."""
    return struct.pack(">HHHH", source_port, destination_port, 8 + len(body), 0) + body


def mpls(body: bytes, *labels: int) -> bytes:
    """A label stack, the outermost first."""
    last = len(labels) - 1
    return b"".join(struct.pack(">I", n << 12 | (i == last) << 8 | 64) for i, n in enumerate(labels)) + body


def pppoe(body: bytes, session: int, *, protocol: bytes = b"\x00\x21", version_code: int = 0x1100) -> bytes:
    """A PPPoE session packet around a PPP protocol number (two bytes, or one) and its packet."""
    return struct.pack(">HHH", version_code, session, len(protocol) + len(body)) + protocol + body


def vxlan(frame: bytes, number: int, *, flags: int = 8) -> bytes:
    """A VXLAN header and an Ethernet frame."""
    return struct.pack(">II", flags << 24, number << 8) + frame


def geneve(body: bytes, number: int, *, protocol: int = 0x6558, options: bytes = b"", version: int = 0) -> bytes:
    """A GENEVE header with options of a multiple of four bytes."""
    return struct.pack(">BBHI", version << 6 | len(options) // 4, 0, protocol, number << 8) + options + body


def gre(body: bytes, protocol: int = 0x0800, *, flags: int = 0) -> bytes:
    """A GRE header with the fields that the flags name (checksum, key, sequence number), all zero."""
    return struct.pack(">HH", flags, protocol) + bytes(4) * (flags >> 12 & 0xB).bit_count() + body


def erspan2(frame: bytes, session: int) -> bytes:
    """An ERSPAN II header and an Ethernet frame, to be put in GRE 0x88be with a sequence number."""
    return struct.pack(">HHI", 0x1000 | 7, 0xA000 | session, 3) + frame


def erspan3(body: bytes, session: int, *, frame_type: int = 0, platform: bytes = b"") -> bytes:
    """An ERSPAN III header and what it carries, to be put in GRE 0x22eb; `platform` is empty or eight bytes."""
    last = frame_type << 10 | (1 if platform else 0)
    return struct.pack(">HHIHH", 0x2000 | 7, 0xA000 | session, 12345, 0, last) + platform + body


def ipv4_fragments(body: bytes, size: int, *, protocol: int = 6, ip_id: int = 77) -> list[bytes]:
    """IPv4 packets that carry `body` in parts of `size` bytes, a multiple of eight."""
    return [
        ipv4(
            body[at : at + size],
            protocol=protocol,
            ip_id=ip_id,
            fragment=at // 8 | (0x2000 if at + size < len(body) else 0),
        )
        for at in range(0, len(body), size)
    ]


def ipv6_fragments(body: bytes, size: int, *, next_header: int = 6, number: int = 77) -> list[bytes]:
    """IPv6 packets that carry `body` in parts of `size` bytes, a multiple of eight."""
    return [
        ipv6(
            struct.pack(">BBHI", next_header, 0, at | (at + size < len(body)), number) + body[at : at + size],
            next_header=44,
        )
        for at in range(0, len(body), size)
    ]


def pcap(
    packets: Sequence[Captured],
    *,
    order: str = "<",
    nanoseconds: bool = False,
    link_type: int = 1,
    snaplen: int = 262144,
    magic: int = 0,
    more: bytes = b"",
) -> bytes:
    """A pcap file. magic: another than that of the time unit; more: stands behind each record header."""
    usual, unit_ns = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    magic = magic or usual
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link_type)]
    for packet in packets:
        seconds, fraction = divmod(packet.ts_ns, 1_000_000_000)
        parts.append(struct.pack(order + "IIII", seconds, fraction // unit_ns, len(packet.data), packet.wire))
        parts.append(more + packet.data)
    return b"".join(parts)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A pcapng block around a body."""
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def option(code: int, value: bytes, order: str = "<") -> bytes:
    """A pcapng option with its padding."""
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<", options: bytes = b"") -> bytes:
    """A section header block."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options, order)


def interface(order: str = "<", *, link_type: int = 1, snaplen: int = 0, options: bytes = b"") -> bytes:
    """An interface description block."""
    return block(1, struct.pack(order + "HHI", link_type, 0, snaplen) + options, order)


def enhanced(
    data: bytes,
    units: int = 0,
    order: str = "<",
    *,
    number: int = 0,
    wire: int | None = None,
    options: bytes = b"",
) -> bytes:
    """An enhanced packet block; `units` is the timestamp in units of the interface."""
    head = struct.pack(
        order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(data), len(data) if wire is None else wire
    )
    return block(6, head + data + (bytes(-len(data) % 4) + options if options else b""), order)


def old_packet(
    data: bytes,
    units: int = 0,
    order: str = "<",
    *,
    number: int = 0,
    wire: int | None = None,
    options: bytes = b"",
) -> bytes:
    """An obsolete packet block."""
    sizes = len(data), len(data) if wire is None else wire
    head = struct.pack(order + "HHIIII", number, 0, units >> 32, units & 0xFFFFFFFF, *sizes)
    return block(2, head + data + (bytes(-len(data) % 4) + options if options else b""), order)


def simple(data: bytes, order: str = "<", *, wire: int | None = None) -> bytes:
    """A simple packet block."""
    return block(3, struct.pack(order + "I", len(data) if wire is None else wire) + data, order)
