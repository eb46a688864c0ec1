"""Packet blocks of pcapng as columns. In: where the blocks lie. Out: where the packets lie, their lengths and times.

Source: draft-ietf-opsawg-pcapng. Kinds: enhanced (6), simple (3) and obsolete (2) packet blocks, and the blocks that
Wireshark 4 numbers as packets although they carry none: systemd journal, custom and Sysdig event blocks.
"""

from dataclasses import dataclass

import numpy as np

from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.interfaces import InterfaceTable
from wirewitness.analyser.capture.link import NO_INTERFACE, NO_PACKET
from wirewitness.analyser.capture.model import Flags, Ids, Ints, Rows, Words
from wirewitness.analyser.capture.pcapng_packet_options import OptionPlaces

OLD_PACKET, SIMPLE_PACKET, PACKET = 2, 3, 6
NUMBERED_BLOCKS = (9, 0xBAD, 0x40000BAD, 0x204, 0x216, 0x221)
# the usual kind first: the walk looks each block up here
PACKET_BLOCKS = (PACKET, OLD_PACKET, SIMPLE_PACKET, *NUMBERED_BLOCKS)
HEADER_BYTES, SIMPLE_HEADER_BYTES, TRAILER_BYTES = 28, 12, 4


@dataclass(frozen=True, slots=True)
class Epoch:
    """Which interfaces packet blocks mean from the `first`-th of a walk on: `interfaces` of them, from `base` on."""

    first: int
    order: str
    base: int
    interfaces: int


@dataclass(slots=True)
class PacketColumns:
    """One row for each block. has_time: False where the block has no timestamp. overlong: the rows that claim more
    captured bytes than their block has. absurd_time: the first row whose time was out of range, None if there is none.
    options: where the options of packets begin and end."""

    start: Ints
    captured: Ints
    wire: Ints
    ts_ns: Ints
    link_type: Ids
    has_time: Flags
    overlong: Ints
    absurd_time: int | None
    options: OptionPlaces


def packet_layout(order: str) -> "np.dtype[np.void]":
    """The head of an enhanced packet block; the obsolete one differs in the width of the interface number only."""
    names = ("kind", "length", "interface", "high", "low", "captured", "wire")
    return np.dtype([(name, order + "u4") for name in names])


def decode_packets(data: bytearray, position: Ints, epochs: list[Epoch], interfaces: InterfaceTable) -> PacketColumns:
    """Columns of the packet blocks at `position`, all whole in `data`."""
    spans = np.diff([epoch.first for epoch in epochs] + [len(position)])
    is_little: Flags = np.repeat([epoch.order == "<" for epoch in epochs], spans)
    base: Ints = np.repeat([epoch.base for epoch in epochs], spans)
    known: Ints = np.repeat([epoch.interfaces for epoch in epochs], spans)
    rows = _read_rows(data, position, is_little)
    kind, number = rows["kind"], rows["interface"].astype(np.int64)
    captured, wire = rows["captured"].astype(np.int64), rows["wire"].astype(np.int64)
    units: Words = (rows["high"].astype(np.uint64) << np.uint64(32)) | rows["low"]
    room = rows["length"].astype(np.int64) - (HEADER_BYTES + TRAILER_BYTES)
    start = position + HEADER_BYTES
    has_time: Flags = (kind == PACKET) | (kind == OLD_PACKET)
    if not has_time.all():
        simple = kind == SIMPLE_PACKET
        start[simple] = position[simple] + SIMPLE_HEADER_BYTES
        room[simple] += HEADER_BYTES - SIMPLE_HEADER_BYTES
        wire[simple] = number[simple]  # its original length stands where others have the interface
        number[simple] = 0
        snaplen = np.array([*interfaces.snaplen, 0])[np.where(known > 0, base, -1)]
        captured[simple] = np.where(snaplen > 0, np.minimum(wire, snaplen), wire)[simple]
    bare = np.flatnonzero(~np.isin(kind, (PACKET, OLD_PACKET, SIMPLE_PACKET)))
    room = np.maximum(room, 0)
    overlong = np.flatnonzero(has_time & (captured > room))
    captured = np.minimum(captured, room)
    options = _place_options(start, captured, position + rows["length"] - TRAILER_BYTES, has_time, is_little)
    captured[bare] = wire[bare] = 0
    index = np.where(number < known, base + number, NO_INTERFACE)
    link_type, ts_ns, absurd = interfaces.resolve(index, units)
    absurd_rows = np.flatnonzero(absurd & has_time) if absurd is not None else position[:0]
    link_type[bare] = NO_PACKET
    start = np.where(captured > 0, start, position)
    first_absurd = int(absurd_rows[0]) if len(absurd_rows) else None
    return PacketColumns(start, captured, wire, ts_ns, link_type, has_time, overlong, first_absurd, options)


def _place_options(start: Ints, captured: Ints, end: Ints, has_options: Flags, is_little: Flags) -> OptionPlaces:
    """Options stand behind the packet's bytes, which are padded to four."""
    begin = start + ((captured + 3) & ~3)
    rows = np.flatnonzero(has_options & (begin < end))
    return OptionPlaces(rows, begin[rows], end[rows], is_little[rows])


def _read_rows(data: bytearray, position: Ints, is_little: Flags) -> Rows:
    """The heads of the blocks; sections of both byte orders in one block of bytes are rare, so that case costs more."""
    order = "<" if is_little.all() else ">"
    rows = gather(data, position, packet_layout(order))
    if order == ">" and is_little.any():
        rows[is_little] = gather(data, position[is_little], packet_layout("<")).astype(rows.dtype)
    old = np.flatnonzero(rows["kind"] == OLD_PACKET)
    number = rows["interface"][old]
    rows["interface"][old] = np.where(is_little[old], number & 0xFFFF, number >> 16)
    return rows
