"""Writing pcapng. In: names of interfaces, packets of a ring. Out: bytes of sections, packets and statistics.

Source: draft-ietf-opsawg-pcapng. Blocks are in the byte order of this machine; times are in nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from wirewitness.analyser.capture.descriptions import ISB_IFDROP, ISB_OSDROP, SHB_APPLICATION
from wirewitness.analyser.capture.model import Ints
from wirewitness.analyser.capture.pcapng import INTERFACE, SECTION, STATISTICS
from wirewitness.analyser.capture.pcapng_packets import HEADER_BYTES, PACKET, TRAILER_BYTES
from wirewitness.analyser.capture.ring import LinkPackets

SNAPLEN = 0  # no limit
_MAGIC = 0x1A2B3C4D
_OPTION_END, _OPTION_NAME, _OPTION_TSRESOL = 0, 2, 9
_HEADER_WORDS = HEADER_BYTES // 4


def section(interfaces: Sequence[tuple[str, int]]) -> bytes:
    """The head of a file: a section and its interfaces, each with name and link type."""
    head = struct.pack("=IHHq", _MAGIC, 1, 0, -1) + _option(SHB_APPLICATION, b"wirewitness") + _end()
    blocks = [_block(SECTION, head)]
    for name, link_type in interfaces:
        options = _option(_OPTION_NAME, name.encode("utf-8", "replace")) + _option(_OPTION_TSRESOL, b"\x09") + _end()
        blocks.append(_block(INTERFACE, struct.pack("=HHI", link_type, 0, SNAPLEN) + options))
    return b"".join(blocks)


def statistics(interface: int, ts_ns: int, system_drops: int, own_drops: int = 0) -> bytes:
    """What an interface lost since the section began: by the kernel, and on the way from there to the reader."""
    body = struct.pack("=III", interface, ts_ns >> 32, ts_ns & 0xFFFFFFFF)
    body += _option(ISB_OSDROP, struct.pack("=Q", system_drops))
    if own_drops:
        body += _option(ISB_IFDROP, struct.pack("=Q", own_drops))
    return _block(STATISTICS, body + _end())


def packet_blocks(packets: LinkPackets, interface: int) -> list[memoryview]:
    """One block for each packet, made where the packet lies: what stands around it is overwritten."""
    padded: Ints = (packets.captured + 3) & ~3
    total = padded + (HEADER_BYTES + TRAILER_BYTES)
    head = np.empty((len(total), _HEADER_WORDS), np.uint32)
    times = packets.ts_ns.astype(np.uint64)
    columns = (PACKET, total, interface, times >> np.uint64(32), times & np.uint64(0xFFFFFFFF), packets.captured)
    for place, column in enumerate((*columns, packets.wire)):
        head[:, place] = np.asarray(column)
    whole = np.frombuffer(packets.data, np.uint8)
    start, end = packets.start, packets.start + padded
    # Padding and trailer reach into the head of the next packet, which has been read.
    whole[(start + packets.captured)[:, None] + np.arange(4)] = 0
    whole[end[:, None] + np.arange(TRAILER_BYTES)] = total.astype(np.uint32).view(np.uint8).reshape(-1, 4)
    whole[start[:, None] + np.arange(-HEADER_BYTES, 0)] = head.view(np.uint8)
    view = memoryview(packets.data)
    ends = (end + TRAILER_BYTES).tolist()
    return [view[first:last] for first, last in zip((start - HEADER_BYTES).tolist(), ends, strict=True)]


def with_options(block: memoryview, options: bytes) -> bytes:
    """The block of a packet, which has no options, with some. options: whole ones, without an end mark."""
    length = struct.pack("=I", len(block) + len(options) + len(_end()))
    return b"".join((block[:4], length, block[8:-TRAILER_BYTES], options, _end(), length))


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + value + bytes(-len(value) % 4)


def _end() -> bytes:
    return struct.pack("=HH", _OPTION_END, 0)
