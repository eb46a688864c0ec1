"""pcapng files. In: a block buffer at the start of a pcapng file. Out: the records of each block.

Source: draft-ietf-opsawg-pcapng. The block walk only notes where packet blocks lie; their fields are read as columns.
"""

import struct
from dataclasses import dataclass

import numpy as np

from analyser.capture.blocks import BlockBuffer
from analyser.capture.gather import gather
from analyser.capture.interfaces import InterfaceTable, decode_interface
from analyser.capture.limits import CaptureLimits
from analyser.capture.link import NO_INTERFACE
from analyser.capture.model import CaptureStats, Flags, Ids, Ints, Records, Remark, Rows, Words, add_remark
from analyser.capture.options import read_options, text_option

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, STATISTICS, PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6
SECTION_BYTES = b"\x0a\x0d\x0d\x0a"
BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
# Blocks that Wireshark numbers as packets although they carry none (systemd journal, custom, Sysdig)
NUMBERED_BLOCKS = (9,)
KNOWN_BLOCKS = (SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, 4, STATISTICS, PACKET, 7, 8, 9, 10, 0xBAD, 0x40000BAD)
PACKET_BLOCKS = (PACKET, OLD_PACKET, SIMPLE_PACKET)
LEAST_BLOCK_BYTES = 12
HEADER_BYTES, SIMPLE_HEADER_BYTES, TRAILER_BYTES = 28, 12, 4
SHB_HARDWARE, SHB_OS, SHB_APPLICATION, ISB_IFDROP, ISB_OSDROP = 2, 3, 4, 5, 7
SCAN_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Epoch:
    """Which interfaces packet blocks mean from the `first`-th of a walk on."""

    first: int
    order: str
    base: int
    interfaces: int


def packet_layout(order: str) -> "np.dtype[np.void]":
    """The head of EPB and, but for the 16-bit interface, of the obsolete packet block."""
    names = ("kind", "length", "interface", "high", "low", "captured", "wire")
    return np.dtype([(name, order + "u4") for name in names])


class PcapngWalker:
    """Finds the packets of a pcapng stream; `walk` is called after each fill of the buffer."""

    def __init__(self, blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits) -> None:
        self._blocks, self._stats, self._limits = blocks, stats, limits
        self._interfaces = InterfaceTable()
        self._order, self._base, self._known = "<", 0, 0
        self._expected: int | None = 0  # the block before the first is the zeroed lead of the buffer
        self._packets = self._resyncs = 0
        self._searching = False
        self._last_ts_ns = 0
        stats.format = "pcapng"

    def walk(self) -> Records:
        """The whole packet blocks in the buffer, consumed; at the end of the stream a rest gets a remark."""
        starts: list[int] = []
        epochs = [self._epoch(0)]
        while True:
            if self._searching and not self._search():
                break
            damage = self._chase(starts, epochs)
            if not damage:
                break
            self._note_damage(damage, len(starts))
        records = self._records(starts, epochs)
        self._packets += len(starts)
        if self._blocks.eof and self._blocks.start < self._blocks.end:
            self._note_rest()
        return records

    def _epoch(self, first: int) -> Epoch:
        return Epoch(first, self._order, self._base, self._known)

    def _chase(self, starts: list[int], epochs: list[Epoch]) -> str:
        """Append the positions of packet blocks and read the other kinds; the reason when the walk cannot go on."""
        blocks, limit = self._blocks, self._limits.max_packet_bytes
        data, append, end = blocks.data, starts.append, blocks.end
        head = struct.Struct(self._order + "III").unpack_from
        position, expected = blocks.start, self._expected
        damage = ""
        while position + LEAST_BLOCK_BYTES <= end:
            trailer, kind, length = head(data, position - 4)
            if kind == SECTION:
                order = BYTE_ORDERS.get(bytes(data[position + 8 : position + 12]))
                if order is None:
                    damage = "a section header without byte order mark"
                    break
                if order != self._order:
                    self._order = order
                    head = struct.Struct(order + "III").unpack_from
                    _, _, length = head(data, position - 4)
                    expected = trailer if trailer == expected else expected
            if trailer != expected and expected is not None:
                damage = f"the length before it is repeated as {trailer}, not {expected}"
                break
            if length > limit or length < LEAST_BLOCK_BYTES or length & 3:
                damage = f"a block length of {length}"
                break
            if position + length > end:
                break
            if kind in PACKET_BLOCKS:
                append(position)
            else:
                self._read_block(kind, bytes(memoryview(data)[position + 8 : position + length - 4]))
                if kind in (SECTION, INTERFACE):
                    epochs.append(self._epoch(len(starts)))
            position, expected = position + length, length
        blocks.start, self._expected = position, expected
        return damage

    def _read_block(self, kind: int, body: bytes) -> None:
        stats = self._stats
        if kind == SECTION:
            self._base, self._known = len(self._interfaces.link_type), 0
            for code, value in read_options(body[16:], self._order):
                text = text_option(value)
                stats.hardware = text if code == SHB_HARDWARE else stats.hardware
                stats.os = text if code == SHB_OS else stats.os
                stats.application = text if code == SHB_APPLICATION else stats.application
        elif kind == INTERFACE and len(body) >= 8 and len(self._interfaces.link_type) < self._limits.max_interfaces:
            interface, offset_s = decode_interface(body, self._order)
            self._interfaces.add(interface, offset_s)
            self._known += 1
            stats.interfaces.append(interface)
            stats.snaplen = max(stats.snaplen, interface.snaplen)
            if interface.link_type not in stats.link_types:
                stats.link_types.append(interface.link_type)
        elif kind == STATISTICS and len(body) >= 12:
            self._read_statistics(body)

    def _read_statistics(self, body: bytes) -> None:
        (number,) = struct.unpack_from(self._order + "I", body)
        if number >= self._known:
            return
        interface = self._stats.interfaces[self._base + number]
        for code, value in read_options(body[12:], self._order):
            if code in (ISB_IFDROP, ISB_OSDROP) and len(value) == 8:
                (count,) = struct.unpack(self._order + "Q", value)
                setattr(interface, "if_drop" if code == ISB_IFDROP else "os_drop", count)

    def _records(self, starts: list[int], epochs: list[Epoch]) -> Records:
        position: Ints = np.fromiter(starts, dtype=np.int64, count=len(starts))
        bounds = np.array([epoch.first for epoch in epochs] + [len(starts)])
        spans = np.diff(bounds)
        is_little = np.repeat([epoch.order == "<" for epoch in epochs], spans)
        base: Ints = np.repeat([epoch.base for epoch in epochs], spans)
        known: Ints = np.repeat([epoch.interfaces for epoch in epochs], spans)
        if is_little.all() or not is_little.any():
            order = "<" if is_little.all() else ">"
            return self._decode(gather(self._blocks.data, position, packet_layout(order)), order, position, base, known)
        rows = gather(self._blocks.data, position, packet_layout("<"))
        big = gather(self._blocks.data, position[~is_little], packet_layout(">"))
        rows[~is_little] = big.astype(packet_layout("<"))
        old = ~is_little & (rows["kind"] == OLD_PACKET)
        rows["interface"][old] >>= 16
        return self._decode(rows, "<", position, base, known)

    def _decode(self, rows: Rows, order: str, position: Ints, base: Ints, known: Ints) -> Records:
        """Columns of the packet blocks at `position`."""
        interface = rows["interface"].astype(np.int64)
        captured, wire = rows["captured"].astype(np.int64), rows["wire"].astype(np.int64)
        room = rows["length"].astype(np.int64) - (HEADER_BYTES + TRAILER_BYTES)
        units: Words = (rows["high"].astype(np.uint64) << np.uint64(32)) | rows["low"]
        start = position + HEADER_BYTES
        if not (rows["kind"] == PACKET).all():
            old = rows["kind"] == OLD_PACKET
            interface[old] = (interface[old] >> 16) if order == ">" else (interface[old] & 0xFFFF)
            simple = rows["kind"] == SIMPLE_PACKET
            room[simple] += HEADER_BYTES - SIMPLE_HEADER_BYTES
            start[simple] = position[simple] + SIMPLE_HEADER_BYTES
            wire[simple] = interface[simple]
            interface[simple] = 0
            snaplen = np.array([*self._interfaces.snaplen, 0])[np.where(known > 0, base, -1)]
            captured[simple] = np.where(snaplen > 0, np.minimum(wire, snaplen), wire)[simple]
        index = np.where(interface < known, base + interface, NO_INTERFACE)
        room = np.maximum(room, 0)
        start = np.where(room > 0, start, position)
        link_type, ts_ns = self._interfaces.resolve(index, units)
        self._fill_times(ts_ns, rows["kind"] == SIMPLE_PACKET)
        return Records(self._packets + 1, start, np.minimum(captured, room), wire, ts_ns, self._uniform(link_type))

    def _fill_times(self, ts_ns: Ints, simple: Flags) -> None:
        """Simple packet blocks have no time: they take that of the packet before them, 0 at the start."""
        if simple.any():
            source = np.maximum.accumulate(np.where(simple, -1, np.arange(len(ts_ns))))
            ts_ns[:] = np.where(source < 0, self._last_ts_ns, ts_ns[source])
        if len(ts_ns):
            self._last_ts_ns = int(ts_ns[-1])

    @staticmethod
    def _uniform(link_type: Ids) -> int | Ids:
        return int(link_type[0]) if len(link_type) and (link_type == link_type[0]).all() else link_type

    def _note_damage(self, reason: str, found: int) -> None:
        blocks = self._blocks
        offset, packet = blocks.offset(blocks.start), self._packets + found + 1
        self._resyncs += 1
        text = f"the block at byte {offset} is damaged ({reason}); the bytes up to the next whole block are lost"
        if self._resyncs > self._limits.max_resyncs:
            text = f"the file is damaged in more than {self._limits.max_resyncs} places; reading stops at byte {offset}"
            blocks.stop()
        else:
            self._searching = True
        remark = Remark("error", "damaged_block", text, packet, offset)
        add_remark(self._stats, self._limits.max_remarks, remark)

    def _note_rest(self) -> None:
        blocks = self._blocks
        offset, left = blocks.offset(blocks.start), blocks.end - blocks.start
        if not self._searching:
            text = f"the last block is cut: {left} bytes at byte {offset} are not a whole block"
            remark = Remark("warn", "cut_record", text, self._packets + 1, offset)
            add_remark(self._stats, self._limits.max_remarks, remark)
        blocks.start = blocks.end

    def _search(self) -> bool:
        """Move the buffer's start to the next whole block of a known type; False when more bytes are needed."""
        blocks = self._blocks
        layout = np.dtype([("kind", self._order + "u4"), ("length", self._order + "u4")])
        tail = np.dtype([("length", self._order + "u4")])
        position = blocks.start
        while position + LEAST_BLOCK_BYTES <= blocks.end:
            places: Ints = np.arange(position, min(position + SCAN_BYTES, blocks.end - 11), dtype=np.int64)
            rows = gather(blocks.data, places, layout)
            length = rows["length"].astype(np.int64)
            good = np.isin(rows["kind"], KNOWN_BLOCKS) & (length >= LEAST_BLOCK_BYTES) & (length & 3 == 0)
            good &= length <= self._limits.max_packet_bytes
            for place, size in zip(places[good].tolist(), length[good].tolist(), strict=True):
                if place + size > blocks.end:
                    if not blocks.eof:
                        blocks.start = place
                        return False
                    continue
                if int(gather(blocks.data, np.array([place + size - 4]), tail)["length"][0]) == size:
                    blocks.start, self._expected, self._searching = place, None, False
                    return True
            position = int(places[-1]) + 1
        blocks.start = position
        return False
