"""Encrypted connections in clear text: for each packet one with the same time, addresses, ports and flags, and with
the bytes that could be read when it came. In: a flow's row, its packets, keys. Out: `Clear`, which makes packets.

What was encrypted is shorter in clear text, so sequence numbers are made anew, from the same first ones. Link layer and
tunnels are left out: Ethernet, IP, TCP. Where bytes were lost, one is missing: nobody knows how many there were.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

from wirewitness.analyser.analysis.evidence.inner_messages import follow
from wirewitness.analyser.analysis.evidence.rows import FlowRow
from wirewitness.analyser.capture import Source
from wirewitness.analyser.capture.packet_positions import Places
from wirewitness.analyser.decoding.outer_map import Span
from wirewitness.dissectors.core.carrier import Carried, Opening
from wirewitness.dissectors.core.model import Frame

_SYN, _FIN, _RST, _PSH, _ACK = 2, 1, 4, 8, 16
_MASK = 0xFFFFFFFF
# A packet has 64 KiB at most; what is decrypted at once may be more.
_MOST_DATA_BYTES = 60_000
_MEMORY_BYTES = 64 << 20
_ETHERNET = {4: bytes.fromhex("020000000002 020000000001 0800"), 6: bytes.fromhex("020000000002 020000000001 86dd")}
_TCP, _TCP_BYTES, _HOPS = 6, 20, 64


class _Piece(NamedTuple):
    """start: its offset in the stream of clear text. place: where its bytes are kept."""

    start: int
    size: int
    place: int


class _Stream:
    """What one side said: pieces by the packet that they came in, and how far it could be read at which packet."""

    def __init__(self) -> None:
        self.of_packet: dict[int, list[_Piece]] = {}
        self._order: list[int] = []
        self._end: list[int] = []
        self._next = 0

    def add(self, packet: int, order: int, size: int, place: int) -> None:
        self.of_packet.setdefault(packet, []).append(_Piece(self._next, size, place))
        self._next += size
        self._order.append(order)
        self._end.append(self._next)

    def lost(self, size: int) -> None:
        self._next += max(size, 1)

    def offset(self, packet: int) -> int:
        """How far it was read when this packet had come."""
        at = bisect_right(self._order, packet)
        return self._end[at - 1] if at else 0


class Clear:
    """One connection. Raises CaptureError when captures cannot be read again. is_empty: nothing could be decrypted."""

    def __init__(
        self, flow: FlowRow, sources: Sequence[Source], places: Sequence[Places], end: int, keylogs: Sequence[str]
    ) -> None:
        self._flow = flow
        self._streams = (_Stream(), _Stream())
        self._data: IO[bytes] = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115  # closed with the object
        self._size = self._made = 0
        follow(flow, sources, places, end, self, keylogs)

    @property
    def is_empty(self) -> bool:
        return not any(stream.of_packet for stream in self._streams)

    def opened(self, opening: Opening) -> None:
        """Nothing is wanted of it."""

    def own(self, direction: int, start: int, end: int) -> None:
        """Nor of what is TLS's own."""

    def frame(self, frame: Frame, spans: Sequence[Span]) -> None:
        """Nor of where frames are cut."""

    def piece(self, direction: int, piece: Carried, packet: int, order: int) -> None:
        """See `Watcher`."""
        self._streams[direction].add(packet, order, len(piece.data), self._size)
        self._data.seek(self._size)
        self._size += self._data.write(piece.data)

    def lost(self, direction: int, size: int) -> None:
        """See `Watcher`."""
        self._streams[direction].lost(size)

    def packets(self, packet: int, direction: int, flags: int, window: int) -> Iterator[bytes]:
        """One packet in clear text, or some where one is too small. packet: its number, with the file's in one."""
        own, other = self._streams[direction], self._streams[1 - direction]
        pieces, ack = own.of_packet.get(packet), other.offset(packet)
        if pieces is None or flags & (_SYN | _RST):
            yield self._packet(direction, own.offset(packet) - bool(flags & _SYN), ack, flags & ~_PSH, window, b"")
            return
        parts = [part for piece in pieces for part in self._parts(piece)]
        for number, (start, data) in enumerate(parts):
            ends = flags & _FIN if number == len(parts) - 1 else 0
            yield self._packet(direction, start, ack, _PSH | _ACK | ends, window, data)

    def _parts(self, piece: _Piece) -> Iterator[tuple[int, bytes]]:
        for at in range(0, piece.size, _MOST_DATA_BYTES):
            self._data.seek(piece.place + at)
            yield piece.start + at, self._data.read(min(_MOST_DATA_BYTES, piece.size - at))

    def _packet(self, direction: int, offset: int, ack: int, flags: int, window: int, data: bytes) -> bytes:
        ends = (self._flow.client, self._flow.server)
        (source, source_port), (target, target_port) = ends[direction], ends[1 - direction]
        own, other = (self._flow.first_seqs[side] or 0 for side in (direction, 1 - direction))
        numbers = (own + offset) & _MASK, (other + ack) & _MASK if flags & _ACK else 0
        head = struct.pack(
            "!HHIIBBHHH", source_port, target_port, *numbers, _TCP_BYTES << 2, flags & 0xFF, window & 0xFFFF, 0, 0
        )
        self._made += 1
        addresses = ip_address(source).packed + ip_address(target).packed
        size = len(head) + len(data)
        checksum = _checksum(addresses + struct.pack("!II", size, _TCP) + head + data)
        segment = head[:16] + struct.pack("!H", checksum) + head[18:] + data
        if len(addresses) == 8:
            ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, self._made & 0xFFFF, 0, _HOPS, _TCP, 0) + addresses
            ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
            return _ETHERNET[4] + ip + segment
        return _ETHERNET[6] + struct.pack("!IHBB", 6 << 28, size, _TCP, _HOPS) + addresses + segment


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    padded = data + b"\0" * (len(data) & 1)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(total ^ 0xFFFF)
