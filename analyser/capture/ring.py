"""Packets of a network interface, through a ring of memory that the kernel shares (Linux: AF_PACKET, TPACKET_V3).

In: the name of an interface, or `any` for all there are, a filter program. Out: blocks of packets as columns, and how
many packets the kernel dropped. A block is copied out at once, so that the kernel has its memory back while the packets
are worked on.

Sources: Linux, Documentation/networking/packet_mmap.rst and include/uapi/linux/if_packet.h; libpcap's pcap-linux.c
for what a capture leaves out on the loopback interface and for tags that network cards take out of packets;
LINKTYPE_LINUX_SLL2 for the header that packets of all interfaces get.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import mmap
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.model import Ids, Ints, Rows

BLOCK_BYTES = 1 << 20
# A block that is not full is handed over after this time; it is the least delay from packet to finding.
RETIRE_MS = 50
SLACK = 64  # bytes behind a copied block that its user may write to
VLAN_TAG_BYTES = 4
# The name that stands for all interfaces, and the link type of its packets (Linux cooked, version 2).
ANY, COOKED = "any", 276
COOKED_BYTES = 20

_ALL_PROTOCOLS = 3
_SOL_PACKET = 263
_RX_RING, _STATISTICS, _VERSION, _IGNORE_OUTGOING = 5, 6, 10, 23
_TPACKET_V3 = 2
_SO_ATTACH_FILTER = 26
_GET_FLAGS, _GET_HARDWARE = 0x8913, 0x8927
_IS_UP, _IS_LOOPBACK = 1, 8
_MOST_NAME_BYTES = 15
_BLOCK_IS_OURS = 1
_VLAN_IN_HEADER, _TPID_IN_HEADER = 0x10, 0x40
_USUAL_TPID = 0x8100
_OUTGOING, _LOOPBACK_HARDWARE = 4, 772
# Kind of hardware (ARPHRD_*) to link type: Ethernet and loopback; tunnels and others whose packets start with IP.
_ETHERNET, _RAW_IP = 1, 101
# What filters see of packets: of cooked ones what follows the header that is put before them here.
FILTERED_AS = {COOKED: _RAW_IP}
_LINK_TYPES = {1: _ETHERNET, 772: _ETHERNET, 65534: _RAW_IP, 768: _RAW_IP, 769: _RAW_IP, 776: _RAW_IP, 778: _RAW_IP}

_BLOCK_HEAD = struct.Struct("=IIIIII")  # version, private offset, status, packets, offset of the first one, bytes used
_NEXT = struct.Struct("=I").unpack_from
_PACKET_HEAD = np.dtype(
    [
        ("next", "=u4"), ("seconds", "=u4"), ("nanoseconds", "=u4"), ("captured", "=u4"), ("wire", "=u4"),
        ("status", "=u4"), ("mac", "=u2"), ("net", "=u2"), ("hash", "=u4"), ("tci", "=u4"), ("tpid", "=u2"),
        ("padding", "V10"), ("family", "=u2"), ("protocol", ">u2"), ("interface", "=i4"), ("hardware", "=u2"),
        ("kind", "u1"), ("address_bytes", "u1"), ("address", "V8"),
    ]
)  # fmt: skip
_COOKED_HEAD = np.dtype(
    [
        ("protocol", ">u2"), ("padding", "V2"), ("interface", ">i4"), ("hardware", ">u2"), ("kind", "u1"),
        ("address_bytes", "u1"), ("address", "V8"),
    ]
)  # fmt: skip

FilterProgram = Sequence[tuple[int, int, int, int]]


class NoInterfaceError(Exception):
    """The interface is not there, is down, or is of a kind that cannot be read; the text is a sentence."""


@dataclass(slots=True)
class LinkPackets:
    """Packets of one block. start: where each lies in `data`, which has room for VLAN tags and headers before each
    packet, and SLACK bytes behind the last one; what is neither packet nor SLACK may be overwritten."""

    data: bytearray
    start: Ints
    captured: Ints
    wire: Ints
    ts_ns: Ints


def interface_facts(name: str) -> tuple[int, int]:
    """Link type and flags of an interface. Raises NoInterfaceError."""
    if name == ANY:
        return COOKED, _IS_UP
    asked = os.fsencode(name)
    if len(asked) > _MOST_NAME_BYTES:  # cut, it could be the name of another
        raise NoInterfaceError(f"there is no interface {name}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        request = struct.pack("16s24x", asked)
        try:
            (hardware,) = struct.unpack_from("H", fcntl.ioctl(asking, _GET_HARDWARE, request), 16)
            (flags,) = struct.unpack_from("H", fcntl.ioctl(asking, _GET_FLAGS, request), 16)
        except OSError as error:
            raise NoInterfaceError(f"there is no interface {name}") from error
    if hardware not in _LINK_TYPES:
        raise NoInterfaceError(f"interface {name} is of a kind that is not decoded (hardware type {hardware})")
    return _LINK_TYPES[hardware], flags


class Ring:
    """The packets of one interface from now on. Raises NoInterfaceError, PermissionError, OSError."""

    def __init__(self, name: str, program: FilterProgram, ring_bytes: int) -> None:
        """program: what the kernel lets through, empty for all. ring_bytes: a multiple of BLOCK_BYTES."""
        self.name = name
        self.link_type, flags = interface_facts(name)
        if not flags & _IS_UP:
            raise NoInterfaceError(f"interface {name} is down")
        self._blocks = ring_bytes // BLOCK_BYTES
        self._next = 0
        self._dropped = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM if name == ANY else socket.SOCK_RAW, 0)
        try:
            self._memory = self._prepare(program, flags, ring_bytes)
            bind_to(self._socket, name)
        except BaseException:
            self._socket.close()
            raise

    def _prepare(self, program: FilterProgram, flags: int, ring_bytes: int) -> mmap.mmap:
        """Everything is set before the socket is bound, so that no packet comes unfiltered."""
        self._socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V3)
        attach(self._socket, program)
        ignore_outgoing(self._socket, flags)
        frame_bytes = 2048  # only has to divide the block: packets may be larger
        shape = (BLOCK_BYTES, self._blocks, frame_bytes, ring_bytes // frame_bytes, RETIRE_MS, 0, 0)
        self._socket.setsockopt(_SOL_PACKET, _RX_RING, struct.pack("=7I", *shape))
        return mmap.mmap(self._socket.fileno(), ring_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)

    def fileno(self) -> int:
        """The socket's descriptor, readable when a block is there."""
        return self._socket.fileno()

    @property
    def gone(self) -> bool:
        """The interface went down or away; blocks that came before may still be there."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0

    def dropped(self) -> int:
        """Packets that the kernel dropped since the ring was opened."""
        counts = self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 12)
        self._dropped += struct.unpack("=III", counts)[1]
        return self._dropped

    def blocks(self, most: int) -> Iterator[LinkPackets]:
        """The blocks that are there now, at most so many, the oldest first."""
        for _ in range(most):
            if not self._status() & _BLOCK_IS_OURS:
                return
            at = self._next * BLOCK_BYTES
            _, _, _, packets, first, used = _BLOCK_HEAD.unpack_from(self._memory, at)
            data = bytearray(used + SLACK)
            data[:used] = memoryview(self._memory)[at : at + used]
            struct.pack_into("=I", self._memory, at + 8, 0)  # the kernel's again
            self._next = (self._next + 1) % self._blocks
            if packets:
                found = _packets(data, packets, first, cooked=self.link_type == COOKED)
                if len(found.start):
                    yield found

    def close(self) -> None:
        """Give the ring back."""
        self._memory.close()
        self._socket.close()

    def _status(self) -> int:
        return int(_NEXT(self._memory, self._next * BLOCK_BYTES + 8)[0])


def attach(packets: socket.socket, program: FilterProgram) -> None:
    """Let the kernel pass only what the program lets through; an empty one lets all."""
    if program:
        code = array.array("B", b"".join(struct.pack("=HBBI", *line) for line in program))
        address, _ = code.buffer_info()
        packets.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), address))


def ignore_outgoing(packets: socket.socket, flags: int) -> None:
    """What leaves through a loopback interface comes back through it. flags: of the interface."""
    if flags & _IS_LOOPBACK:
        packets.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)


def bind_to(packets: socket.socket, name: str) -> None:
    """To an interface, ANY for all of them; Python binds to named ones only."""
    if name != ANY:
        packets.bind((name, _ALL_PROTOCOLS))
        return
    address = struct.pack("=HHiHBB8x", socket.AF_PACKET, socket.htons(_ALL_PROTOCOLS), 0, 0, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.bind(packets.fileno(), address, len(address)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _packets(data: bytearray, count: int, first: int, *, cooked: bool = False) -> LinkPackets:
    """cooked: packets begin behind their link layer, and get a header in its place."""
    starts = []
    position = first
    for _ in range(count):
        starts.append(position)
        position += _NEXT(data, position)[0]
    heads = np.array(starts, np.int64)
    rows = gather(data, heads, _PACKET_HEAD)
    if cooked:  # what leaves through a loopback interface comes back through it
        kept = (rows["hardware"] != _LOOPBACK_HARDWARE) | (rows["kind"] != _OUTGOING)
        heads, rows = heads[kept], rows[kept]
    start = heads + rows["net" if cooked else "mac"]
    captured, wire = rows["captured"].astype(np.int64), rows["wire"].astype(np.int64)
    tagged = np.flatnonzero(rows["status"] & _VLAN_IN_HEADER)
    if len(tagged):
        put_back = _put_cooked_tags_back if cooked else _put_tags_back
        put_back(data, start[tagged], rows[tagged])
        start[tagged] -= VLAN_TAG_BYTES
        captured[tagged] += VLAN_TAG_BYTES
        wire[tagged] += VLAN_TAG_BYTES
    if cooked:
        _put_cooked_heads(data, start, rows)
        start, captured, wire = start - COOKED_BYTES, captured + COOKED_BYTES, wire + COOKED_BYTES
    ts_ns = rows["seconds"].astype(np.int64) * 1_000_000_000 + rows["nanoseconds"]
    return LinkPackets(data, start, captured, wire, ts_ns)


def _put_tags_back(data: bytearray, start: Ints, rows: Rows) -> None:
    """The card took the VLAN tag out of the packet: both addresses move forward and the tag goes behind them."""
    whole = np.frombuffer(data, np.uint8)
    places = start[:, None] - VLAN_TAG_BYTES + np.arange(16)
    head = np.empty((len(start), 16), np.uint8)
    head[:, :12] = whole[start[:, None] + np.arange(12)]
    head[:, 12:14] = _tags(rows).astype(">u2").view(np.uint8).reshape(-1, 2)
    head[:, 14:] = rows["tci"].astype(">u2").view(np.uint8).reshape(-1, 2)
    whole[places] = head


def _put_cooked_tags_back(data: bytearray, start: Ints, rows: Rows) -> None:
    """Number of the VLAN and ethertype go before the packet; the cooked header says that a tag follows."""
    whole = np.frombuffer(data, np.uint8)
    both = np.stack([rows["tci"], rows["protocol"]], axis=1).astype(">u2")
    whole[start[:, None] - VLAN_TAG_BYTES + np.arange(VLAN_TAG_BYTES)] = both.view(np.uint8)


def _put_cooked_heads(data: bytearray, start: Ints, rows: Rows) -> None:
    """The header of a packet of any interface, before each."""
    head = np.zeros(len(start), _COOKED_HEAD)
    for name in ("interface", "hardware", "kind", "address_bytes", "address"):
        head[name] = rows[name]
    head["protocol"] = np.where(rows["status"] & _VLAN_IN_HEADER, _tags(rows), rows["protocol"])
    whole = np.frombuffer(data, np.uint8)
    whole[start[:, None] + np.arange(-COOKED_BYTES, 0)] = head.view(np.uint8).reshape(-1, COOKED_BYTES)


def _tags(rows: Rows) -> Ids:
    """What kind of tag the card took out."""
    return np.where(rows["status"] & _TPID_IN_HEADER, rows["tpid"], _USUAL_TPID).astype(np.int32)
