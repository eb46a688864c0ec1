"""IPv4 and IPv6. In: offsets of network headers. Out: addresses and where the transport header begins and ends.

Sources: RFC 791, RFC 8200, RFC 4302 (AH length). Fragments and tunnels are not followed yet: they get a verdict.
"""

from dataclasses import dataclass

import numpy as np

from analyser.capture.gather import gather
from analyser.capture.link import Verdict
from analyser.capture.model import Bytes, Ints, Words

TCP = 6
TUNNELS = (4, 41, 47)  # IPv4, IPv6 and GRE inside IP
HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION = 0, 43, 44, 51, 60
EXTENSIONS = (HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION, 135, 139, 140)
MAX_EXTENSIONS = 16

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
class Networks:
    """One row for each IP packet. transport and end are offsets in the block; end is by the IP length, not by what was
    captured. Addresses are 128 bits in two words; of an IPv4 address only the low word is used."""

    verdict: Bytes
    transport: Ints
    end: Ints
    source_high: Words
    source_low: Words
    destination_high: Words
    destination_low: Words


def decode_ipv4(data: bytearray, start: Ints, end: Ints, wire_end: Ints) -> Networks:
    """Rows of IPv4 headers at `start`. `end` is where the captured bytes of each packet stop, `wire_end` where it would
    stop had all of it been captured."""
    header = gather(data, start, IPV4_HEADER)
    version, length = header["version_length"] >> 4, (header["version_length"] & 15).astype(np.int64) * 4
    total = header["total_length"].astype(np.int64)
    protocol = header["protocol"]
    verdict = np.where(protocol == TCP, np.uint8(Verdict.TCP), np.uint8(Verdict.OTHER))
    verdict[np.isin(protocol, TUNNELS)] = Verdict.IP_TUNNEL
    verdict[(header["fragment"] & 0x3FFF) != 0] = Verdict.IP_FRAGMENT
    # length 0 is what segmentation offload leaves when it hands a packet to the capture before cutting it up
    bad = (version != 4) | (length < 20) | ((total < length) & (total != 0))
    verdict[bad] = Verdict.BAD_IP_HEADER
    verdict[start + 20 > end] = Verdict.IP_HEADER_CUT
    none: Words = np.zeros(len(start), np.uint64)
    source, destination = header["source"].astype(np.uint64), header["destination"].astype(np.uint64)
    stop = np.where(total == 0, wire_end, start + total)
    return Networks(verdict, start + length, stop, none, source, none, destination)


def decode_ipv6(data: bytearray, start: Ints, end: Ints, wire_end: Ints) -> Networks:
    """As decode_ipv4; extension headers are followed packet by packet, they are rare."""
    header = gather(data, start, IPV6_HEADER)
    following = header["next_header"].astype(np.int64)
    transport = start + 40
    payload = header["payload_length"].astype(np.int64)
    stop = np.where(payload == 0, wire_end, transport + payload)
    verdict = np.zeros(len(start), np.uint8)
    verdict[header["version_flow"] >> 28 != 6] = Verdict.BAD_IP_HEADER
    verdict[transport > end] = Verdict.IP_HEADER_CUT
    for row in np.flatnonzero(np.isin(following, EXTENSIONS) & (verdict == Verdict.TCP)).tolist():
        verdict[row], following[row], transport[row] = skip_extensions(
            data, int(following[row]), int(transport[row]), int(end[row])
        )
    good = verdict == Verdict.TCP
    verdict[good & (following != TCP)] = Verdict.OTHER
    verdict[good & np.isin(following, TUNNELS)] = Verdict.IP_TUNNEL
    words = (header[name].astype(np.uint64) for name in IPV6_HEADER.names[4:]) if IPV6_HEADER.names else ()
    return Networks(verdict, transport, stop, *words)


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
        following, position = data[position], position + size
    return Verdict.BAD_IP_HEADER, following, position


def join_networks(first: Networks, second: Networks, order: Ints) -> Networks:
    """Both behind each other, then the rows in `order`."""
    columns = (np.concatenate((getattr(first, name), getattr(second, name)))[order] for name in Networks.__slots__)
    return Networks(*columns)
