"""pcapng files. In: a block buffer at the start of a pcapng file. Out: the records of each block.

Source: draft-ietf-opsawg-pcapng. The block walk only notes where packet blocks lie; their fields are read as columns.
"""

import struct

import numpy as np

from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.descriptions import (
    add_comment,
    read_comments,
    read_names,
    read_secrets,
    read_section,
    read_statistics,
)
from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.interfaces import InterfaceTable, decode_interface
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, Flags, Ints, Records, Remark, add_remark
from wirewitness.analyser.capture.packing import TOO_MUCH
from wirewitness.analyser.capture.pcapng_packet_options import packet_options
from wirewitness.analyser.capture.pcapng_packets import PACKET_BLOCKS, Epoch, decode_packets
from wirewitness.analyser.capture.pcapng_workloads import DARWIN_BLOCK, PcapngIdentities

SECTION, INTERFACE, NAMES, STATISTICS, SECRETS = 0x0A0D0D0A, 1, 4, 5, 10
SECTION_BYTES = b"\x0a\x0d\x0d\x0a"
BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
KNOWN_BLOCKS = (SECTION, INTERFACE, NAMES, STATISTICS, 7, 8, SECRETS, DARWIN_BLOCK, *PACKET_BLOCKS)
LEAST_BLOCK_BYTES, LEAST_SECTION_BYTES = 12, 28
SCAN_BYTES = 1 << 16


class PcapngWalker:
    """Finds the packets of a pcapng stream; `walk` is called after each fill of the buffer."""

    def __init__(self, blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits) -> None:
        self._blocks, self._stats, self._limits = blocks, stats, limits
        self._interfaces = InterfaceTable()
        self._order, self._base, self._known = "<", 0, 0
        self._expected = 0  # the block before the first is the zeroed lead of the buffer
        self._packets = self._resyncs = 0
        self._searching = self._absurd_times = False
        self._last_ts_ns = 0
        self._identities = PcapngIdentities(stats.identities)
        stats.format = "pcapng"

    @property
    def record_header_bytes(self) -> int:
        """0: blocks say themselves how long they are."""
        return 0

    def resume(self, packets: int, last_ns: int) -> None:
        """Go on as if so many packets had been read, the last of them at `last_ns`."""
        self._packets, self._last_ts_ns = packets, last_ns

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
        self._identities.end_walk()
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
                length = self._section_bytes(position)
            if trailer != expected or length > limit or length < LEAST_BLOCK_BYTES or length & 3:
                repeated = trailer != expected
                lengths = f"before it the length {expected} is repeated as {trailer}"
                damage = lengths if repeated else f"its length is given as {length}"
                break
            if position + length > end:
                break
            if kind in PACKET_BLOCKS:
                append(position)
            else:
                self._read_block(kind, position, length, len(starts))
                if kind in (SECTION, INTERFACE):
                    epochs.append(self._epoch(len(starts)))
                    head = struct.Struct(self._order + "III").unpack_from
            position, expected = position + length, length
        blocks.start, self._expected = position, expected
        return damage

    def _section_bytes(self, position: int) -> int:
        """The length of the section header at `position` by its own byte order, 0 when it cannot be one."""
        data = self._blocks.data
        order = BYTE_ORDERS.get(bytes(data[position + 8 : position + 12]))
        length = int(struct.unpack_from(order + "I", data, position + 4)[0]) if order else 0
        return length if length >= LEAST_SECTION_BYTES else 0

    def _read_block(self, kind: int, position: int, length: int, packets: int) -> None:
        """Read a block that is no packet, behind so many packets of this walk; a section header sets the byte order
        from here on."""
        body = bytes(memoryview(self._blocks.data)[position + 8 : position + length - 4])
        if kind == SECTION:
            self._order = BYTE_ORDERS[body[:4]]
            self._base, self._known = len(self._interfaces.link_type), 0
            self._identities.new_section(packets)
            read_section(body, self._order, self._stats, self._limits)
        elif kind == INTERFACE and len(body) >= 8:
            self._read_interface(body)
        elif kind == STATISTICS and len(body) >= 12:
            self._read_statistics(body)
        elif kind == NAMES:
            read_names(body, self._order, self._stats, self._limits)
        elif kind == SECRETS and len(body) >= 8:
            read_secrets(body, self._order, self._stats, self._limits)
        elif kind == DARWIN_BLOCK and len(body) >= 4:
            self._identities.describe(body, self._order, packets)

    def _read_interface(self, body: bytes) -> None:
        if len(self._interfaces.link_type) >= self._limits.max_interfaces:
            self._stats.beyond_limits["too_many_interfaces"] += 1
            return
        interface, offset_s = decode_interface(body, self._order)
        read_comments(body[8:], self._order, self._stats, self._limits)
        self._interfaces.add(interface, offset_s)
        self._known += 1
        stats = self._stats
        stats.interfaces.append(interface)
        stats.snaplen = max(stats.snaplen, interface.snaplen)
        if interface.link_type not in stats.link_types:
            stats.link_types.append(interface.link_type)

    def _read_statistics(self, body: bytes) -> None:
        (number,) = struct.unpack_from(self._order + "I", body)
        if number < self._known:
            read_statistics(body[12:], self._order, self._stats.interfaces[self._base + number])
            read_comments(body[12:], self._order, self._stats, self._limits)

    def _records(self, starts: list[int], epochs: list[Epoch]) -> Records:
        position: Ints = np.fromiter(starts, dtype=np.int64, count=len(starts))
        columns = decode_packets(self._blocks.data, position, epochs, self._interfaces)
        self._note_overlong(columns.overlong.tolist(), starts)
        if columns.absurd_time is not None:
            self._note_absurd_time(starts[columns.absurd_time], self._packets + columns.absurd_time + 1)
        options = packet_options(self._blocks.data, columns.options)
        identities, comments = self._identities.told(self._blocks.data, options, len(starts)) if options else (None, ())
        for row, comment in comments:
            add_comment(self._stats, self._limits, self._packets + row + 1, comment)
        self._fill_times(columns.ts_ns, columns.has_time)
        link_type = columns.link_type
        uniform = len(link_type) > 0 and bool((link_type == link_type[0]).all())
        return Records(
            self._packets + 1,
            columns.start,
            columns.captured,
            columns.wire,
            columns.ts_ns,
            int(link_type[0]) if uniform else link_type,
            identities,
        )

    def _note_overlong(self, rows: list[int], starts: list[int]) -> None:
        most = self._limits.max_remarks
        for row in rows[:most]:
            packet, offset = self._packets + row + 1, self._blocks.offset(starts[row])
            text = f"packet {packet} claims more captured bytes than its block at byte {offset} has"
            add_remark(self._stats, most, Remark("warn", "overlong_packet", text, packet, offset))
        self._stats.remarks_dropped += len(rows[most:])

    def _note_absurd_time(self, position: int, packet: int) -> None:
        if self._absurd_times:
            return
        self._absurd_times = True
        offset = self._blocks.offset(position)
        text = (
            f"the time of packet {packet} is outside the years 1970 to 2262; such times are set to the nearest of these"
        )
        add_remark(self._stats, self._limits.max_remarks, Remark("warn", "absurd_time", text, packet, offset))

    def _fill_times(self, ts_ns: Ints, has_time: Flags) -> None:
        """Blocks without a time take that of the packet before them, 0 at the start."""
        if not has_time.all():
            source = np.maximum.accumulate(np.where(has_time, np.arange(len(ts_ns)), -1))
            ts_ns[:] = np.where(source < 0, self._last_ts_ns, ts_ns[source])
        if len(ts_ns):
            self._last_ts_ns = int(ts_ns[-1])

    def _note_damage(self, reason: str, found: int) -> None:
        blocks = self._blocks
        offset, packet = blocks.offset(blocks.start), self._packets + found + 1
        self._resyncs += 1
        text = f"the block at byte {offset} is damaged ({reason}); the bytes up to the next whole block are lost"
        if self._resyncs > self._limits.max_resyncs:
            text = f"the file is damaged in more than {self._limits.max_resyncs} places; reading stops at byte {offset}"
            self._stats.beyond_limits["too_many_damages"] += self._resyncs
            blocks.stop()
        else:
            self._searching = True
        remark = Remark("error", "damaged_block", text, packet, offset)
        add_remark(self._stats, self._limits.max_remarks, remark)

    def _note_rest(self) -> None:
        blocks = self._blocks
        offset, left = blocks.offset(blocks.start), blocks.end - blocks.start
        if not (self._searching or self._stats.beyond_limits[TOO_MUCH]):
            text = f"the last block is cut: {left} bytes at byte {offset} are not a whole block"
            remark = Remark("warn", "cut_record", text, self._packets + 1, offset)
            add_remark(self._stats, self._limits.max_remarks, remark)
        blocks.start = blocks.end

    def _search(self) -> bool:
        """Move the buffer's start to the next whole block of a known type; False when more bytes are needed."""
        blocks = self._blocks
        position = blocks.start
        while position + LEAST_BLOCK_BYTES <= blocks.end:
            stop = min(position + SCAN_BYTES, blocks.end - LEAST_BLOCK_BYTES + 1)
            for place in self._plausible(np.arange(position, stop, dtype=np.int64)).tolist():
                whole = self._whole(place)
                if whole is None:
                    blocks.start = place
                    return False
                if whole:
                    blocks.start, self._searching = place, False
                    # what lies before is damage: no length to compare with
                    (self._expected,) = struct.unpack_from(self._order + "I", blocks.data, place - 4)
                    return True
            position = stop
        blocks.start = position
        return False

    def _plausible(self, places: Ints) -> Ints:
        """Keep the places where the bytes can be the head of a block."""
        rows = gather(self._blocks.data, places, np.dtype([(name, self._order + "u4") for name in ("kind", "length")]))
        kind, length = rows["kind"], rows["length"]
        sized = (length >= LEAST_BLOCK_BYTES) & (length <= self._limits.max_packet_bytes) & (length & 3 == 0)
        maybe = np.flatnonzero(sized | (kind == SECTION))  # few: looking for their kind costs most
        kind = kind[maybe]
        chosen: Ints = places[maybe[np.isin(kind, KNOWN_BLOCKS) | (kind == SECTION)]]
        return chosen

    def _whole(self, place: int) -> bool | None:
        """Whether a block at `place` repeats its length at its end; None while that is not in the buffer."""
        data, end = self._blocks.data, self._blocks.end
        (length,) = struct.unpack_from(self._order + "I", data, place + 4)
        if data[place : place + 4] == SECTION_BYTES:
            length = self._section_bytes(place)
        if length < LEAST_BLOCK_BYTES or length > self._limits.max_packet_bytes or length & 3:
            return False
        if place + length > end:
            return False if self._blocks.eof else None
        return data[place + 4 : place + 8] == data[place + length - 4 : place + length]
