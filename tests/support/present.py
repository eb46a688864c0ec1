"""Which messages of a capture are all there after packets were lost: found from the packets alone.

In: packets, and the messages of the whole capture with their places as sequence numbers. Out: those places of which
every byte is in some packet. Nothing of the product reads here: headers are taken apart with struct.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tests.support.packets import SYN, Captured

_MASK = (1 << 32) - 1
_HALF = 1 << 31


class Place(NamedTuple):
    """A message on the wire: who sent it to whom, and the sequence number of its first byte."""

    source: str
    source_port: int
    target: str
    target_port: int
    seq: int


Sender = tuple[str, int, str, int]


def pieces_of(packets: Iterable[Captured]) -> dict[Sender, list[tuple[int, int]]]:
    """For each sender (sequence number, captured payload bytes) of every TCP segment over IPv4 in Ethernet."""
    found: dict[Sender, list[tuple[int, int]]] = defaultdict(list)
    for packet in packets:
        data = packet.data
        if data[12:14] != b"\x08\x00" or len(data) < 34 or data[23] != 6:
            continue
        transport, end = 14 + (data[14] & 15) * 4, 14 + int.from_bytes(data[16:18])
        if len(data) < transport + 14:
            continue
        source_port, target_port, seq, _, offset, flags = struct.unpack_from(">HHIIBB", data, transport)
        size = min(len(data), end) - (transport + (offset >> 4) * 4)
        if size > 0:
            source, target = (".".join(map(str, data[at : at + 4])) for at in (26, 30))
            first = seq + 1 if flags & SYN else seq
            found[source, source_port, target, target_port].append((first & _MASK, size))
    return found


def is_there(place: Place, length: int, pieces: Sequence[tuple[int, int]]) -> bool:
    """Is each of the `length` bytes from there in one of the pieces?"""
    near = sorted((((seq - place.seq + _HALF) & _MASK) - _HALF, size) for seq, size in pieces)
    reached = 0
    for start, size in near:
        if start > reached:
            break
        reached = max(reached, start + size)
    return reached >= length


def whole_messages(packets: Iterable[Captured], lengths: Mapping[Place, int]) -> set[Place]:
    """The places of which all bytes are in the packets."""
    pieces = pieces_of(packets)
    return {place for place, length in lengths.items() if is_there(place, length, pieces.get(place[:4], ()))}
