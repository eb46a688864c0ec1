"""Ranges of a capture file that can be read on their own.

In: a file. Out: its ranges, found by walking the headers of its records; the packets of one range, with the numbers
that they have in the file; and the statistics of all ranges put together as if the file was read in one go. Files whose
reading depends on more than their head (compressed or damaged ones, pcapng with interfaces described between packets)
are one range.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, NamedTuple, cast

from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, PacketBatch, Source
from wirewitness.analyser.capture.blocks import BlockBuffer
from wirewitness.analyser.capture.clock import Clock
from wirewitness.analyser.capture.fragments import Fragments
from wirewitness.analyser.capture.model import Interface, add_remark
from wirewitness.analyser.capture.packet_positions import head_of
from wirewitness.analyser.capture.reader import note_end, open_blocks, open_walker
from wirewitness.analyser.capture.segments import decode_records
from wirewitness.analyser.capture.sources import Unclosed
from wirewitness.analyser.capture.workloads.seen import IdentitiesSeen

RANGE_BYTES = 64 << 20
# Pairs that a table of one range knows before it starts anew.
_MOST_PAIRS = 1 << 16


class Range(NamedTuple):
    """Bytes `start` to `end` of a file.

    head_bytes: what is read before them, from the file's start on. packets: how many lie before them, the last of which
    has the time `last_ns`. record_header_bytes: of a pcap file, once the file's first records were read for it.
    """

    number: int
    start: int
    end: int
    head_bytes: int = 0
    packets: int = 0
    last_ns: int = 0
    record_header_bytes: int = 0


class BlockSegments(NamedTuple):
    """Segments of a block. first_offset: where the block's first byte lies in the file; None for bytes not in it."""

    batch: PacketBatch
    endpoints: EndpointTable
    first_offset: int | None


@dataclass(slots=True)
class RangeStats:
    """What reading one range told.

    stats: without the texts that a capture brings along (comments, names, secrets): no table has them. clock_ns: the
    latest time of a TCP segment. fragments: there were IP fragments, whose other parts may lie in other ranges.
    end: the byte offset where reading ended; failure: why that is not the true end. is_lost: because a store did not
    give what follows.
    """

    stats: CaptureStats
    clock_ns: int | None = None
    fragments: bool = False
    end: int = 0
    failure: str = ""
    is_lost: bool = False


def find_ranges(source: Source, size: int, range_bytes: int, limits: CaptureLimits | None = None) -> list[Range]:
    """Ranges of about `range_bytes` of the file's first `size` bytes. CaptureError when it cannot be read."""
    limits = limits or CaptureLimits()
    whole = [Range(0, 0, size)]
    if size <= range_bytes:
        return whole
    stats, found = CaptureStats(source.name), []
    with source.open() as stream:
        blocks = BlockBuffer(_stretch(stream, 0, 0, size), limits)
        if open_blocks(blocks, stats, limits, source.name) is not blocks:
            return whole
        walker = open_walker(blocks, stats, limits, source)
        head_bytes, interfaces = (blocks.offset(blocks.start), 1) if stats.format == "pcap" else head_of(source)
        clock = Clock(limits, stats)
        start, packets, last_ns = 0, 0, 0
        before = Range(0, 0, size)
        while True:
            records = walker.walk()
            if len(records.start):
                clock.watch(records)
                packets, last_ns = packets + len(records.start), int(records.ts_ns[-1])
            if blocks.eof:
                break
            here = blocks.offset(blocks.start)
            if here - start >= range_bytes and packets > before.packets and here < size:
                found.append(before._replace(end=here))
                before = Range(len(found), here, size, head_bytes, packets, last_ns)
                start = here
            blocks.fill()
    found.append(before)
    odd = stats.remarks_dropped or stats.comments_dropped or any(stats.beyond_limits.values()) or blocks.error
    # Processes are described between packets, as interfaces may be: what follows depends on all that lies before.
    odd = odd or stats.identities.described > 0
    odd = odd or any(remark.severity == "error" or remark.code == "absurd_time" for remark in stats.remarks)
    if odd or not head_bytes or interfaces != len(stats.interfaces):
        return whole
    return [part._replace(record_header_bytes=walker.record_header_bytes) for part in found]


def read_range(source: Source, part: Range, told: RangeStats, limits: CaptureLimits) -> Iterator[BlockSegments]:
    """The segments of one range, block by block; `told` grows on the way and is final at the end.

    A piece's bytes are valid until the next one is asked for. CaptureError when the file cannot be read.
    """
    stats, endpoints = told.stats, EndpointTable(limits.max_pairs)
    told_header = replace(source, record_header_bytes=part.record_header_bytes)
    if part.number == 0:
        for remark in source.remarks:
            add_remark(stats, limits.max_remarks, remark)
    with _opened(source, part.end) as stream:
        bytes_of = _stretch(stream, part.head_bytes, part.start, part.end)
        outer = BlockBuffer(bytes_of, limits, first_offset=part.start - part.head_bytes)
        blocks = open_blocks(outer, stats, limits, source.name)
        walker = open_walker(blocks, stats, limits, told_header)
        if part.number:
            walker.resume(part.packets, part.last_ns)
        fragments, clock = Fragments(limits, stats), Clock(limits, stats, part.last_ns if part.packets else None)
        while True:
            records = walker.walk()
            if len(records.start):
                clock.watch(records)
                batch = decode_records(blocks.data, records, endpoints, stats, fragments)
                if len(batch):
                    latest = int(batch.ts_ns.max())
                    told.clock_ns = latest if told.clock_ns is None else max(told.clock_ns, latest)
                    in_file = blocks is outer and batch.data.obj is blocks.data
                    yield BlockSegments(batch, endpoints, blocks.offset(0) if in_file else None)
                del batch
                if len(endpoints) > _MOST_PAIRS:
                    endpoints = EndpointTable(limits.max_pairs)
            if blocks.eof:
                break
            blocks.fill()
    told.fragments, told.end, told.failure = fragments.met, blocks.offset(blocks.end), blocks.error
    # Damage of a compressed file is an OSError, too, but none of the system.
    failure = blocks.failure
    told.is_lost = isinstance(source.path, ObjectPath) and isinstance(failure, OSError) and failure.errno is not None
    stats.names, stats.secrets, stats.comments = {}, [], []


def _opened(source: Source, end: int) -> BinaryIO | Unclosed:
    """The file; of an object no bytes are fetched in vain behind `end`."""
    return source.path.open(end=end) if isinstance(source.path, ObjectPath) else source.open()


def merged(parts: Sequence[RangeStats], limits: CaptureLimits) -> CaptureStats:
    """The statistics of a file from those of its ranges, in their order; at least one."""
    first, *others = (part.stats for part in parts)
    total = replace(first, interfaces=[replace(one) for one in first.interfaces], remarks=list(first.remarks))
    total.undecoded_packets, total.beyond_limits = first.undecoded_packets.copy(), first.beyond_limits.copy()
    total.time_backwards = replace(first.time_backwards)
    total.identities = IdentitiesSeen()
    total.identities.merge(first.identities)
    for stats in others:
        _add(total, stats)
    note_end(total, limits, parts[-1].end, parts[-1].failure)
    return total


def is_exact(parts: Sequence[RangeStats], limits: CaptureLimits) -> bool:
    """False where the ranges of a file may have told something else than the file in one go."""
    if len(parts) == 1:
        return True
    limited = any(part.stats.remarks_dropped or any(part.stats.beyond_limits.values()) for part in parts)
    remarks = sum(len(part.stats.remarks) for part in parts)
    return not (limited or remarks > limits.max_remarks or any(part.fragments or part.failure for part in parts))


def _add(total: CaptureStats, stats: CaptureStats) -> None:
    for name in ("packets", "captured_bytes", "wire_bytes", "tcp_segments", "other_packets", "truncated_packets"):
        setattr(total, name, getattr(total, name) + getattr(stats, name))
    total.undecoded_packets.update(stats.undecoded_packets)
    total.time_backwards.count += stats.time_backwards.count
    total.time_backwards.largest_ns = max(total.time_backwards.largest_ns, stats.time_backwards.largest_ns)
    firsts = [ns for ns in (total.ts_first_ns, stats.ts_first_ns) if ns is not None]
    lasts = [ns for ns in (total.ts_last_ns, stats.ts_last_ns) if ns is not None]
    total.ts_first_ns, total.ts_last_ns = min(firsts, default=None), max(lasts, default=None)
    total.remarks += stats.remarks
    total.identities.merge(stats.identities)
    for known, later in zip(total.interfaces, stats.interfaces, strict=True):
        _add_drops(known, later)


def _add_drops(known: Interface, later: Interface) -> None:
    known.if_drop = known.if_drop if later.if_drop is None else later.if_drop
    known.os_drop = known.os_drop if later.os_drop is None else later.os_drop


class _Stretch(io.RawIOBase):
    """The first bytes of a file, then those of one range of it, and no more."""

    def __init__(self, stream: Any, head_bytes: int, start: int, end: int) -> None:
        self._stream = stream
        self._left = [(0, head_bytes), (start, end)]
        stream.seek(0 if head_bytes else start)

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        """As io.RawIOBase.readinto."""
        while self._left:
            start, end = self._left[0]
            if start >= end:
                self._left.pop(0)
                if self._left:
                    self._stream.seek(self._left[0][0])
                continue
            count = int(self._stream.readinto(memoryview(target)[: end - start]))
            self._left[0] = (start + count, end) if count else (end, end)
            if count:
                return count
        return 0


def _stretch(stream: object, head_bytes: int, start: int, end: int) -> BinaryIO:
    return cast(BinaryIO, _Stretch(stream, head_bytes, start, end))
