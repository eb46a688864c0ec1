"""Captures that name processes: as Wireshark, ptcpdump and Apple's programs write them.

Sources: draft-ietf-opsawg-pcapng for epb_processid_threadid; ptcpdump's internal/writer/pcapng.go; Apple's libpcap
(pcap-ng.h, pcap-darwin.c) for process blocks; xnu's bsd/net/pktap.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.support.packets import block, option

COMMENT, FLAGS, PROCESS, DARWIN_PROCESS, DARWIN_EFFECTIVE = 1, 2, 8, 0x8001, 0x8003
INBOUND, OUTBOUND = 1, 2


def flags(direction: int, order: str = "<") -> bytes:
    """epb_flags with a direction."""
    return option(FLAGS, struct.pack(order + "I", direction), order)


def process_thread(pid: int, thread: int = 0, order: str = "<") -> bytes:
    """epb_processid_threadid."""
    return option(PROCESS, struct.pack(order + "II", pid, thread), order)


def comment(text: str, order: str = "<") -> bytes:
    """opt_comment."""
    return option(COMMENT, text.encode(), order)


def ptcpdump(
    pid: int,
    command: str,
    arguments: str = "",
    *,
    user: int = 0,
    container: tuple[str, str] | None = None,
    pod: tuple[str, str] | None = None,
    direction: int = OUTBOUND,
    thread: tuple[int, str] | None = None,
    parent: tuple[int, str, str] | None = None,
) -> bytes:
    """The options of a packet as ptcpdump writes them. container: name and id. pod: name and namespace."""
    parts = [comment(f"PID: {pid}\nCmd: {command}\nArgs: {arguments}")]
    if thread:
        parts.append(comment("ThreadId: {}\nThreadName: {}".format(*thread)))
    if user:
        parts.append(comment(f"UserId: {user}\nGroupId: {user}"))
    if parent:
        parts.append(comment("ParentPID: {}\nParentCmd: {}\nParentArgs: {}".format(*parent)))
    if container:
        labels = '{"com.docker.compose.service":"payments"}'
        parts.append(
            comment(
                f"ContainerName: {container[0]}\nContainerId: {container[1]}\nContainerImage: shop/payments:3\n"
                f"ContainerLabels: {labels}"
            )
        )
    if pod:
        parts.append(
            comment(f"PodName: {pod[0]}\nPodNamespace: {pod[1]}\nPodUID: 7f9c\nPodLabels: {{}}\nPodAnnotations: {{}}")
        )
    # gopacket writes flags before comments (pcapgo/ngwrite.go, WritePacketWithOptions)
    return flags(direction) + b"".join(parts)


def darwin_block(pid: int, name: str, order: str = "<") -> bytes:
    """A process block of Apple's tcpdump, with the name and a UUID."""
    return block(
        0x80000001,
        struct.pack(order + "I", pid) + option(2, name.encode(), order) + option(4, bytes(16), order) + bytes(4),
        order,
    )


def darwin(number: int | None, direction: int = OUTBOUND, effective: int | None = None, order: str = "<") -> bytes:
    """The options of a packet with the places of process blocks in their section."""
    parts = [] if number is None else [option(DARWIN_PROCESS, struct.pack(order + "I", number), order)]
    parts += [] if effective is None else [option(DARWIN_EFFECTIVE, struct.pack(order + "I", effective), order)]
    return b"".join([*parts, flags(direction, order)])


def pktap(
    packet: bytes, pid: int, name: str, direction: int = OUTBOUND, effective: tuple[int, str] = (0, ""), link: int = 1
) -> bytes:
    """A packet behind struct pktap_header. direction: PTH_FLAG_DIR_IN and PTH_FLAG_DIR_OUT have the same numbers."""
    interface = struct.pack("<III24sI", 156, 1, link, b"en0", direction)
    process = struct.pack("<IIIi17s3x", 2, 14, 0, pid, name.encode())
    header = interface + process + struct.pack("<IHHi17s3x", 0, 6, 0, effective[0], effective[1].encode())
    return header.ljust(156, b"\0") + packet


def pktap_2(
    packet: bytes, pid: int, name: str, direction: int = OUTBOUND, effective: tuple[int, str] = (0, ""), link: int = 1
) -> bytes:
    """A packet behind struct pktap_v2_hdr, whose names lie behind its fixed part."""
    fixed = 40
    own, other = name.encode() + b"\0", effective[1].encode() + b"\0"
    length = (fixed + len(own) + len(other) + 3) & ~3
    at, other_at = (fixed if name else 0), (fixed + len(own) if effective[1] else 0)
    header = struct.pack(
        "<6B5HIIIiiI", length, 0, 0, 0, at, other_at, link, 14, 0, 6, 6, 2, 0, 0, pid, effective[0],
        direction | 0x80000,
    )  # fmt: skip
    assert len(header) == fixed
    return (header + own + other).ljust(length, b"\0") + packet


Whose = Callable[[str, int, str, int], bytes]
_IP_AT = {1: 14, 113: 16, 276: 20, 101: 0}


def with_options(capture: bytes, whose: Whose) -> bytes:
    """A pcapng file of little endian order with one link type and IPv4, whose packets get other options.

    whose: source address and port, destination address and port -> the options.
    """
    parts: list[bytes] = []
    at, link = 0, 1
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        whole = capture[at : at + length]
        if kind == 1:
            (link,) = struct.unpack_from("<H", whole, 8)
        if kind == 6:
            (size,) = struct.unpack_from("<I", whole, 20)
            packet = whole[28 : 28 + size]
            ip = _IP_AT[link]
            ends = packet[ip + 12 : ip + 16], packet[ip + 16 : ip + 20]
            tcp = ip + 4 * (packet[ip] & 15)
            source, destination = (".".join(map(str, end)) for end in ends)
            ports = struct.unpack_from(">HH", packet, tcp)
            options = whose(source, ports[0], destination, ports[1])
            whole = block(6, whole[8 : 28 + size] + bytes(-size % 4) + options)
        parts.append(whole)
        at += length
    return b"".join(parts)
