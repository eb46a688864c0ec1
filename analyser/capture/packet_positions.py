"""Where packets lie in a capture file, so that one can be read without all that lie before it.

In: a file. Out: places, and sources that begin at one. Compressed files, files with damage and pcapng files whose
interfaces are described between packets have no places: those are read from their start.
"""

import io
import struct
from bisect import bisect_right
from dataclasses import replace
from typing import BinaryIO, NamedTuple, cast

from wirewitness.analyser.capture.blocks import BlockBuffer, Rejoined
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats
from wirewitness.analyser.capture.pcapng import BYTE_ORDERS, SECTION
from wirewitness.analyser.capture.pcapng_packets import PACKET_BLOCKS
from wirewitness.analyser.capture.reader import open_blocks, open_walker
from wirewitness.analyser.capture.sources import Source

# A place for every so many bytes: what is read in vain before the packet that is wanted.
PLACE_LIMITS = CaptureLimits(block_bytes=1 << 18)
MAX_HEAD_BYTES = 1 << 20


class Places(NamedTuple):
    """Places in one file: `packets[i]` is the number of the first packet at or behind byte `offsets[i]`, both rising.

    head_bytes: what stands before the first packet and has to be read in any case. record_header_bytes: of a pcap file.
    No place at all: not possible.
    """

    head_bytes: int = 0
    packets: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()
    record_header_bytes: int = 0


class Beginning(NamedTuple):
    """A source whose first packet is not packet 1 of the file but comes `skipped` packets later."""

    source: Source
    skipped: int


def find_places(source: Source) -> Places:
    """The places of a file, read once from start to end. Raises CaptureError when it cannot be read."""
    stats = CaptureStats(source.name)
    packets, offsets = [], []
    with source.open() as stream:
        blocks = open_blocks(BlockBuffer(stream, PLACE_LIMITS), stats, PLACE_LIMITS, source.name)
        if stats.compression:
            return Places()
        walker = open_walker(blocks, stats, PLACE_LIMITS, source)
        head_bytes, interfaces = (blocks.offset(blocks.start), 1) if stats.format == "pcap" else head_of(source)
        count = 0
        while True:
            count += len(walker.walk().start)
            if blocks.eof:
                break
            packets.append(count + 1)
            offsets.append(blocks.offset(blocks.start))
            blocks.fill()
    if (
        not head_bytes
        or interfaces != len(stats.interfaces)
        or any(remark.severity == "error" for remark in stats.remarks)
    ):
        return Places()
    return Places(head_bytes, tuple(packets), tuple(offsets), walker.record_header_bytes)


def begin_at(source: Source, packet: int, places: Places) -> Beginning:
    """The source from the last place before `packet` on; the whole source where no place is known."""
    place = bisect_right(places.packets, packet) - 1
    if source.path is None or place < 0:
        return Beginning(source, 0)
    try:
        stream = source.path.open("rb", 0)
        head = _read(stream, places.head_bytes)
        stream.seek(places.offsets[place])
    except OSError as error:
        raise CaptureError(f"{source.name} cannot be read: {error.strerror or error}.") from error
    joined = cast(BinaryIO, io.BufferedReader(Rejoined(head, stream), 1 << 16))
    begun = replace(source, path=None, stream=joined, record_header_bytes=places.record_header_bytes)
    return Beginning(begun, places.packets[place] - 1)


def head_of(source: Source) -> tuple[int, int]:
    """Bytes of a pcapng file before its first packet, and interfaces described there; 0 if not known."""
    with source.open() as stream:
        head = _read(stream, MAX_HEAD_BYTES)
    order = BYTE_ORDERS.get(head[8:12])
    if order is None:
        return 0, 0
    position = interfaces = sections = 0
    while position + 12 <= len(head):
        kind, length = struct.unpack_from(order + "II", head, position)
        if kind in PACKET_BLOCKS:
            return position, interfaces
        interfaces += kind == 1
        sections += kind == SECTION
        if length < 12 or length & 3 or sections > 1:
            break
        position += length
    return 0, 0


def _read(stream: BinaryIO, count: int) -> bytes:
    parts: list[bytes] = []
    while count > 0 and (part := stream.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
