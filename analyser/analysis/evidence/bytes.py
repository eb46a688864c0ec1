"""The bytes of a message, read again from its packets. In: a message's row. Out: its bytes and where they came.

TCP puts the pieces in order: the message's first byte has a known sequence number, and of bytes that came twice the
first copy counts, as in reassembly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirewitness.analyser.analysis.evidence.inner_messages import CarriedMessage, watch
from wirewitness.analyser.analysis.evidence.rows import FlowRow, MessageRow
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, Source
from wirewitness.analyser.capture.packet_positions import Places, begin_at
from wirewitness.analyser.capture.reader import Packets, read_packets
from wirewitness.dissectors.core.model import packet_of, split_packet

READ_LIMITS = CaptureLimits(block_bytes=1 << 20)
# Packets before the one with the first byte that may hold later bytes: packets come out of order.
DISORDER_PACKETS = 1000
_HALF, _MASK = 1 << 31, (1 << 32) - 1
_SYN = 2


class PacketBytes(NamedTuple):
    """Bytes `start` to before `end` of a message came in this packet (file and number in one)."""

    start: int
    end: int
    packet: int


class MessageBytes(NamedTuple):
    """A message's bytes; pieces rise and cover them."""

    data: bytes
    pieces: tuple[PacketBytes, ...]


class BytesGone(LookupError):
    """The packets do not hold what the index says: the capture changed."""


class FlowPackets(NamedTuple):
    """The packets of one block, and which rows of its batch belong to the flow. file: index of the capture."""

    packets: Packets
    rows: Sequence[int]
    from_client: Sequence[bool]
    file: int
    skipped: int


def message_bytes(
    row: MessageRow, sources: Sequence[Source], places: Sequence[Places], keylogs: Sequence[str] = ()
) -> MessageBytes:
    """Read a message again: the bytes that its dissector saw. keylogs: as in ReadOptions.

    Raises BytesGone, CaptureError.
    """
    if row.flow.carrier is not None:
        return _carried_bytes(row, sources, places, keylogs)
    first = max(row.flow.key, min(row.packet_first, row.packet_last) - DISORDER_PACKETS)
    last = max(row.packet_first, row.packet_last)
    found = _collect(row, sources, places, first, last)
    if found is None and first > row.flow.key:
        found = _collect(row, sources, places, row.flow.key, last)
    if found is None:
        raise BytesGone(f"the packets of message {row.message_id().text()} do not hold it")
    return found


def _carried_bytes(
    row: MessageRow, sources: Sequence[Source], places: Sequence[Places], keylogs: Sequence[str]
) -> MessageBytes:
    wanted = row.direction, row.stream_offset
    found: list[MessageBytes] = []

    def see(message: CarriedMessage) -> None:
        if (message.direction, message.stream_offset) == wanted and not found:
            pieces = tuple(PacketBytes(s.start, s.end, s.packet) for s in message.spans)
            found.append(MessageBytes(message.data, pieces))

    watch(row.flow, sources, places, max(row.packet_first, row.packet_last) + 1, see, keylogs)
    if not found:
        raise BytesGone(f"the packets of message {row.message_id().text()} do not hold it")
    return found[0]


def flow_packets(
    flow: FlowRow, sources: Sequence[Source], places: Sequence[Places], first: int, last: int
) -> Iterator[FlowPackets]:
    """The blocks from packet `first` to `last` (files and numbers in one), with the rows of the flow's pair."""
    first_file, last_file = split_packet(first)[0], split_packet(last)[0]
    for file in range(first_file, min(last_file, len(sources) - 1) + 1):
        if sources[file].other_kind is not None:
            continue
        start = split_packet(first)[1] if file == first_file else 1
        begin = begin_at(sources[file], start, places[file])
        endpoints, known, pairs = EndpointTable(), 0, dict[int, bool]()
        for packets in read_packets(begin.source, endpoints, CaptureStats(sources[file].name), READ_LIMITS):
            for pair in range(known, len(endpoints)):
                is_low = flow.client_is_low(endpoints[pair])
                if is_low is not None:
                    pairs[pair] = is_low
            known = len(endpoints)
            batch = packets.batch
            for pair, is_low in pairs.items():
                rows = (batch.pair == pair).nonzero()[0]
                yield FlowPackets(
                    packets, rows.tolist(), (batch.from_low[rows] == is_low).tolist(), file, begin.skipped
                )
            if not pairs:
                yield FlowPackets(packets, [], [], file, begin.skipped)
            if packet_of(file, packets.records.first_packet + begin.skipped + len(packets.records.start)) > last:
                return


def _collect(
    row: MessageRow, sources: Sequence[Source], places: Sequence[Places], first: int, last: int
) -> MessageBytes | None:
    first_seq = row.flow.first_seqs[row.direction]
    if first_seq is None:
        return None
    filler = _Filler(row.length_bytes or 0)
    start_seq = first_seq + row.stream_offset
    for block in flow_packets(row.flow, sources, places, first, last):
        batch = block.packets.batch
        for at, from_client in zip(block.rows, block.from_client, strict=True):
            packet = packet_of(block.file, int(batch.packet[at]) + block.skipped)
            if from_client == bool(row.direction) or not first <= packet <= last or not batch.payload_bytes[at]:
                continue
            seq = int(batch.seq[at]) + (1 if int(batch.flags[at]) & _SYN else 0)
            position = ((seq - start_seq + _HALF) & _MASK) - _HALF
            begin = int(batch.payload_start[at])
            filler.add(position, batch.data[begin : begin + int(batch.payload_bytes[at])], packet)
        if filler.missing == 0:
            return filler.result()
    return None


class _Filler:
    """Bytes put at their places; the first copy stays."""

    def __init__(self, size: int) -> None:
        self.missing = size
        self._data = bytearray(size)
        self._gaps = [(0, size)] if size else []
        self._pieces: list[PacketBytes] = []

    def add(self, position: int, payload: memoryview, packet: int) -> None:
        gaps: list[tuple[int, int]] = []
        for start, end in self._gaps:
            first, last = max(start, position), min(end, position + len(payload))
            if first >= last:
                gaps.append((start, end))
                continue
            self._data[first:last] = payload[first - position : last - position]
            self._pieces.append(PacketBytes(first, last, packet))
            self.missing -= last - first
            gaps += [gap for gap in ((start, first), (last, end)) if gap[0] < gap[1]]
        self._gaps = gaps

    def result(self) -> MessageBytes:
        return MessageBytes(bytes(self._data), tuple(sorted(self._pieces)))
