"""pcap files. In: a block buffer at the start of a pcap file. Out: the records of each block.

Sources: draft-ietf-opsawg-pcap; libpcap's sf-pcap.c for old versions; Wireshark's wiretap/libpcap.h for IXIA's files
(1c0001ab, 1c0001ac), whose header is followed by the size of all records. Patched libpcaps: see pcap_headers.
"""

import struct
from collections.abc import Sequence

import numpy as np

from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.gather import gather
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, Interface, Ints, Records, Remark, add_remark
from wirewitness.analyser.capture.packing import TOO_MUCH
from wirewitness.analyser.capture.pcap_headers import OLD_MAGIC, ORDINARY, PATCHED_MAGIC, Common, Variant, header_bytes

FILE_HEADER_BYTES = 24
# magic: byte order, nanoseconds in one fraction unit, what record headers can be, bytes behind the file header
MAGICS: dict[bytes, tuple[str, int, Sequence[Variant], int]] = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000, OLD_MAGIC, 0),
    b"\xa1\xb2\xc3\xd4": (">", 1000, OLD_MAGIC, 0),
    b"\x4d\x3c\xb2\xa1": ("<", 1, ORDINARY, 0),
    b"\xa1\xb2\x3c\x4d": (">", 1, ORDINARY, 0),
    b"\x34\xcd\xb2\xa1": ("<", 1000, PATCHED_MAGIC, 0),
    b"\xa1\xb2\xcd\x34": (">", 1000, PATCHED_MAGIC, 0),
    b"\xab\x01\x00\x1c": ("<", 1000, ORDINARY, 4),
    b"\x1c\x00\x01\xab": (">", 1000, ORDINARY, 4),
    b"\xac\x01\x00\x1c": ("<", 1, ORDINARY, 4),
    b"\x1c\x00\x01\xac": (">", 1, ORDINARY, 4),
}
PATCHED_VERSION = (2, 4)  # under the ordinary magic, patched libpcaps wrote no other
FIRST_ORDERED_VERSION = (2, 3)  # files of older versions, and of DG/UX, have the two lengths of a packet swapped
DG_UX_VERSION = (543, 0)
# libpcap believes no record of these link types to be longer, and some writers exceed the snaplen they state
USUAL_SNAPLEN = 262_144
RESYNC_WINDOW_S = 86_400  # a record found behind damage lies at most this far from the last good one in time
FIRST_SCAN_BYTES, LAST_SCAN_BYTES = 1 << 12, 1 << 20


def record_layout(order: str, swapped: bool) -> "np.dtype[np.void]":
    """The part of a record header that all variants share."""
    lengths = ("wire", "captured") if swapped else ("captured", "wire")
    return np.dtype([(name, order + "u4") for name in ("seconds", "fraction", *lengths)])


class PcapWalker:
    """Finds the records of a pcap stream; `walk` is called after each fill of the buffer."""

    def __init__(
        self, blocks: BlockBuffer, stats: CaptureStats, limits: CaptureLimits, record_header_bytes: int = 0
    ) -> None:
        """Read the file header, which must be complete.

        record_header_bytes: known from reading the file's first records; without it, the first records here tell.
        """
        self._blocks, self._stats, self._limits = blocks, stats, limits
        magic = bytes(blocks.data[blocks.start : blocks.start + 4])
        self._order, self._unit_ns, variants, extra_bytes = MAGICS[magic]
        snaplen, network = struct.unpack_from(self._order + "II", blocks.data, blocks.start + 16)
        self._link_type = network & 0x03FFFFFF  # the upper bits tell the length of a frame check sequence
        self._max_captured = min(max(snaplen, USUAL_SNAPLEN), limits.max_packet_bytes)
        version = struct.unpack_from(self._order + "HH", blocks.data, blocks.start + 4)
        self._variants = ORDINARY if variants is OLD_MAGIC and version != PATCHED_VERSION else variants
        self._header_bytes = record_header_bytes
        swapped = version < FIRST_ORDERED_VERSION or version == DG_UX_VERSION
        self._layout = record_layout(self._order, swapped)
        self._captured_at = struct.Struct(self._order + ("12xI" if swapped else "8xI")).unpack_from
        self._packets = self._resyncs = 0
        self._seconds: int | None = None
        self._searching = False
        blocks.need(FILE_HEADER_BYTES + extra_bytes)
        blocks.start = min(blocks.start + FILE_HEADER_BYTES + extra_bytes, blocks.end)
        resolution = 6 if self._unit_ns == 1000 else 9
        stats.format, stats.snaplen = "pcap", snaplen
        stats.link_types.append(self._link_type)
        stats.interfaces.append(Interface("", self._link_type, snaplen, resolution))

    @property
    def record_header_bytes(self) -> int:
        """Bytes of a record header, 0 while the records read do not tell."""
        return self._header_bytes

    def resume(self, packets: int, last_ns: int) -> None:
        """Go on as if so many packets had been read, the last of them at `last_ns`."""
        self._packets, self._seconds = packets, last_ns // 1_000_000_000

    def walk(self) -> Records:
        """The whole records in the buffer, consumed; at the end of the stream what is left over gets a remark."""
        starts: list[int] = []
        while self._knows_header():
            if self._searching and not self._search():
                break
            damaged = self._chase(starts)
            if not damaged:
                break
            self._note_damage(len(starts))
        records = self._records(starts)
        self._packets += len(starts)
        if self._blocks.eof and self._blocks.start < self._blocks.end:
            self._note_rest()
        return records

    def _knows_header(self) -> bool:
        if not self._header_bytes:
            blocks, most = self._blocks, self._limits.max_packet_bytes
            common = Common(self._order, self._link_type, self._max_captured, most)
            found = header_bytes(self._variants, common, blocks.data, blocks.start, blocks.end, blocks.eof)
            self._header_bytes = found or 0
        return bool(self._header_bytes)

    def _chase(self, starts: list[int]) -> bool:
        """Append record positions, move the buffer's start behind them; True when a length cannot be."""
        blocks, header, limit = self._blocks, self._header_bytes, self._max_captured
        data, captured_at, append = blocks.data, self._captured_at, starts.append
        position, end = blocks.start, blocks.end
        known, last = len(starts), end - header
        damaged = False
        while position <= last:
            (captured,) = captured_at(data, position)
            if captured > limit:
                damaged = True
                break
            append(position)
            position += header + captured
        if position > end:
            position = starts.pop()
        if len(starts) > known:
            self._seconds = struct.unpack_from(self._order + "I", data, starts[-1])[0]
        blocks.start = position
        return damaged

    def _records(self, starts: list[int]) -> Records:
        position: Ints = np.fromiter(starts, dtype=np.int64, count=len(starts))
        rows = gather(self._blocks.data, position, self._layout)
        ts_ns = rows["seconds"].astype(np.int64) * 1_000_000_000 + rows["fraction"].astype(np.int64) * self._unit_ns
        captured, wire = rows["captured"].astype(np.int64), rows["wire"].astype(np.int64)
        return Records(self._packets + 1, position + self._header_bytes, captured, wire, ts_ns, self._link_type)

    def _note_damage(self, found: int) -> None:
        blocks = self._blocks
        offset, packet = blocks.offset(blocks.start), self._packets + found + 1
        (captured,) = self._captured_at(blocks.data, blocks.start)
        self._resyncs += 1
        text = f"the record at byte {offset} claims {captured} captured bytes; the bytes up to the next record are lost"
        if self._resyncs > self._limits.max_resyncs:
            text = f"the file is damaged in more than {self._limits.max_resyncs} places; reading stops at byte {offset}"
            self._stats.beyond_limits["too_many_damages"] += self._resyncs
            blocks.stop()
        else:
            blocks.start += 1
            self._searching = True
        remark = Remark("error", "damaged_record", text, packet, offset)
        add_remark(self._stats, self._limits.max_remarks, remark)

    def _note_rest(self) -> None:
        blocks = self._blocks
        offset, left = blocks.offset(blocks.start), blocks.end - blocks.start
        if not (self._searching or self._stats.beyond_limits[TOO_MUCH]):
            text = f"the last record is cut: {left} bytes at byte {offset} are not a whole packet"
            remark = Remark("warn", "cut_record", text, self._packets + 1, offset)
            add_remark(self._stats, self._limits.max_remarks, remark)
        blocks.start = blocks.end

    def _search(self) -> bool:
        """Move the buffer's start to the next plausible record; False when more bytes are needed (or none is left)."""
        blocks = self._blocks
        position, scan = blocks.start, FIRST_SCAN_BYTES
        while position + self._header_bytes <= blocks.end:
            stop = min(position + scan, blocks.end - self._header_bytes + 1)
            for candidate in self._plausible(np.arange(position, stop, dtype=np.int64)).tolist():
                follows = self._followed(candidate)
                if follows is None:
                    blocks.start = candidate
                    return False
                if follows:
                    blocks.start, self._searching = candidate, False
                    return True
            position, scan = stop, min(scan * 4, LAST_SCAN_BYTES)
        blocks.start = position
        return False

    def _plausible(self, positions: Ints) -> Ints:
        """Keep the positions where the bytes can be a record header."""
        rows = gather(self._blocks.data, positions, self._layout)
        captured, wire = rows["captured"], rows["wire"]
        good = (captured > 0) & (captured <= self._max_captured) & (captured <= wire)
        good &= (wire <= self._limits.max_packet_bytes) & (rows["fraction"] < 1_000_000_000 // self._unit_ns)
        if self._seconds is not None:
            good &= np.abs(rows["seconds"].astype(np.int64) - self._seconds) <= RESYNC_WINDOW_S
        chosen: Ints = positions[good]
        return chosen

    def _followed(self, candidate: int) -> bool | None:
        """Whether another record (or the end) follows the one at `candidate`; None while that is not in the buffer."""
        blocks = self._blocks
        (captured,) = self._captured_at(blocks.data, candidate)
        following = candidate + self._header_bytes + captured
        if following + self._header_bytes <= blocks.end:
            return len(self._plausible(np.array([following], dtype=np.int64))) == 1
        return following == blocks.end if blocks.eof else None
