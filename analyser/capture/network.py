"""IPv4 and IPv6. In: rows of a Layer at IP headers. Out: addresses and where the transport header begins and ends.

Sources: RFC 791, RFC 8200, RFC 4302 (AH length).
"""

from dataclasses import dataclass

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.layer import IPV4, IPV6, Layer, Verdict
from wirewitness.analyser.capture.model import Bytes, Flags, Ids, Ints, Words

TCP = 6
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION = 0, 43, 44, 51, 60
EXTENSIONS = (HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION, 135, 139, 140)
MAX_EXTENSIONS = 16
NO_IP_ID = -1

IPV4_HEADER = np.dtype(
    [
        ("version_length", "u1"),
        ("service", "u1"),
        ("total_length", ">u2"),
        ("identification", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("checksum", ">u2"),
        ("source", ">u4"),
        ("destination", ">u4"),
    ]
)
IPV6_HEADER = np.dtype(
    [
        ("version_flow", ">u4"),
        ("payload_length", ">u2"),
        ("next_header", "u1"),
        ("hop_limit", "u1"),
        ("source_high", ">u8"),
        ("source_low", ">u8"),
        ("destination_high", ">u8"),
        ("destination_low", ">u8"),
    ]
)


@dataclass(slots=True)
class Packets:
    """One row for each IP packet.

    row: which record of the block. start: the IP header; transport: what follows it; stop: where the packet ends by its
    IP length, end: where its captured bytes end. protocol: the number of what is at `transport`. ip_id is NO_IP_ID in
    IPv6. Addresses are 128 bits in two words; of an IPv4 address only the low word is used.
    """

    row: Ints
    start: Ints
    end: Ints
    encapsulation: Ids
    is_ipv6: Flags
    verdict: Bytes
    protocol: Bytes
    transport: Ints
    stop: Ints
    ip_id: Ids
    ttl: Bytes
    source_high: Words
    source_low: Words
    destination_high: Words
    destination_low: Words

    def choose(self, keep: Flags) -> "Packets":
        """The packets where `keep` is True; the same value when that is all of them."""
        if keep.all():
            return self
        return Packets(*(getattr(self, name)[keep] for name in Packets.__slots__))


def decode_networks(data: bytearray, layer: Layer) -> Packets:
    """The IP packets among the rows, in the order of the rows."""
    is_ipv4, is_ipv6 = layer.kind == IPV4, layer.kind == IPV6
    if not is_ipv6.any():
        return decode_ipv4(data, layer.choose(is_ipv4))
    if not is_ipv4.any():
        return decode_ipv6(data, layer.choose(is_ipv6))
    return merge_packets([decode_ipv4(data, layer.choose(is_ipv4)), decode_ipv6(data, layer.choose(is_ipv6))])


def merge_packets(parts: list[Packets]) -> Packets:
    """All packets by record."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part.row for part in parts]), kind="stable")
    columns = (np.concatenate([getattr(part, name) for part in parts])[order] for name in Packets.__slots__)
    return Packets(*columns)


def decode_ipv4(data: bytearray, layer: Layer) -> Packets:
    """The IPv4 packets whose headers are at the start of each row."""
    start, end, count = layer.start, layer.end, len(layer.start)
    header = gather(data, start, IPV4_HEADER)
    version, length = header["version_length"] >> 4, (header["version_length"] & 15).astype(np.int64) * 4
    total = header["total_length"].astype(np.int64)
    protocol = header["protocol"]
    verdict = np.where(protocol == TCP, np.uint8(Verdict.TCP), np.uint8(Verdict.OTHER))
    verdict[(header["fragment"] & 0x3FFF) != 0] = Verdict.IP_FRAGMENT
    # length 0 is what segmentation offload leaves when it hands a packet to the capture before cutting it up
    bad = (version != 4) | (length < 20) | ((total < length) & (total != 0))
    verdict[bad] = Verdict.BAD_IP_HEADER
    verdict[start + 20 > end] = Verdict.IP_HEADER_CUT
    none: Words = np.zeros(count, np.uint64)
    source, destination = header["source"].astype(np.uint64), header["destination"].astype(np.uint64)
    stop = np.where(total == 0, layer.wire_end, start + total)
    ip_id = header["identification"].astype(np.int32)
    is_ipv6 = np.zeros(count, np.bool_)
    about = layer.row, start, end, layer.encapsulation, is_ipv6, verdict, protocol.copy()
    return Packets(*about, start + length, stop, ip_id, header["ttl"].copy(), none, source, none, destination)


def decode_ipv6(data: bytearray, layer: Layer) -> Packets:
    """As decode_ipv4; extension headers are followed packet by packet, they are rare."""
    start, end, count = layer.start, layer.end, len(layer.start)
    header = gather(data, start, IPV6_HEADER)
    following = header["next_header"].copy()
    transport = start + 40
    payload = header["payload_length"].astype(np.int64)
    stop = np.where(payload == 0, layer.wire_end, transport + payload)
    verdict = np.zeros(count, np.uint8)
    verdict[header["version_flow"] >> 28 != 6] = Verdict.BAD_IP_HEADER
    verdict[transport > end] = Verdict.IP_HEADER_CUT
    for row in np.flatnonzero(np.isin(following, EXTENSIONS) & (verdict == Verdict.TCP)).tolist():
        verdict[row], following[row], transport[row] = skip_extensions(
            data, int(following[row]), int(transport[row]), int(end[row])
        )
    verdict[(verdict == Verdict.TCP) & (following != TCP)] = Verdict.OTHER
    no_id = np.full(count, NO_IP_ID, np.int32)
    about = layer.row, start, end, layer.encapsulation, np.ones(count, np.bool_), verdict, following
    words = (header[name].astype(np.uint64) for name in IPV6_HEADER.names[4:]) if IPV6_HEADER.names else ()
    return Packets(*about, transport, stop, no_id, header["hop_limit"].copy(), *words)


def skip_extensions(data: bytearray, following: int, position: int, end: int) -> tuple[int, int, int]:
    """Verdict so far, number and offset of the first header that is not an IPv6 extension header."""
    for _ in range(MAX_EXTENSIONS):
        if following not in EXTENSIONS:
            return Verdict.TCP, following, position
        if position + 8 > end:
            return Verdict.IP_HEADER_CUT, following, position
        length = data[position + 1]
        if following == FRAGMENT:
            # offset 0 without "more fragments" is a whole packet (RFC 6946)
            if int.from_bytes(data[position + 2 : position + 4], "big") & 0xFFF9:
                return Verdict.IP_FRAGMENT, following, position
            size = 8
        else:
            size = (length + 2) * 4 if following == AUTHENTICATION else (length + 1) * 8
        if position + size > end:  # what would follow may lie beyond the block
            return Verdict.IP_HEADER_CUT, following, position
        following, position = data[position], position + size
    return Verdict.BAD_IP_HEADER, following, position
