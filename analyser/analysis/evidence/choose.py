"""Which packets prove something. In: what is wanted. Out: those packets, read from the captures again.

A message brings all segments of its direction from its first to its last packet, a flow that is touched its handshake.
Of a segment in IP fragments only the last fragment is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.analysis.evidence.decrypted import Clear
from wirewitness.analyser.analysis.evidence.hiding import Hidden
from wirewitness.analyser.analysis.evidence.rows import FlowRow, MessageRow
from wirewitness.analyser.analysis.evidence.write import COMMENT, OutPacket
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, PacketBatch, Source
from wirewitness.analyser.capture.model import NOBODY
from wirewitness.analyser.capture.packet_positions import Places, begin_at
from wirewitness.analyser.capture.reader import Packets, read_packets
from wirewitness.analyser.capture.workload_options import local_identity, options_of
from wirewitness.analyser.capture.workloads.workload import Identity
from wirewitness.dissectors.core.model import packet_of, split_packet

# What a capture tells of packets beside their bytes, kept in evidence. In: blocks as they are read. Out: options.
#
# Owners stand on some packets of a connection, which need not be among those that are chosen: they go along to the
# next one that the same end sends.

Option = tuple[int, bytes]


@dataclass(slots=True)
class EndsTold:
    """The identities at both ends of a flow, 0 for the client's: those that are known, and those that are written."""

    known: dict[int, Identity] = field(default_factory=dict)
    written: dict[int, Identity] = field(default_factory=dict)

    def see(self, packets: Packets, row: int, side: int) -> None:
        """A packet of the flow, chosen or not. side: who sent it."""
        told = packets.records.identities
        if told is not None:
            for end, code in ((side, int(told.sender[row])), (1 - side, int(told.receiver[row]))):
                if code != NOBODY:
                    self.known[end] = told.identities[code]

    def options(self, side: int) -> list[Option]:
        """For a chosen packet that this side sent: who that is, or who receives it where the sender is told already."""
        for end in (side, 1 - side):
            identity = self.known.get(end)
            if identity is not None and self.written.get(end) != identity:
                self.written[end] = identity
                return options_of(local_identity(identity), "<", sent=end == side)
        return []


def comments_of(stats: CaptureStats, packets: Packets) -> dict[int, list[Option]]:
    """What people wrote on packets of a block, by row."""
    first, count = packets.records.first_packet, len(packets.records.start)
    found: dict[int, list[Option]] = {}
    for one in stats.comments:
        if one.packet is not None and first <= one.packet < first + count:
            found.setdefault(one.packet - first, []).append((COMMENT, one.text.encode("utf-8", "replace")))
    return found


LIMITS = CaptureLimits(block_bytes=1 << 21)
HANDSHAKE_PACKETS = 3
_SYN, _ETHERNET = 2, 1
FILL = b"*"
# Overwrites what is hidden in a packet; False where it cannot be reached.
Overwrite = Callable[[bytearray], bool]


class Stretch(NamedTuple):
    """Segments of a flow from packet `first` to `last`; direction None for both, else 0 from the client."""

    direction: int | None
    first: int
    last: int


@dataclass(slots=True)
class FlowChoice:
    """What is wanted of one flow. end: the first packet of the next flow on the same ports.

    hidden: what is overwritten of what the client and the server sent; None for nothing. clear: what is written in the
    place of its packets; None for themselves. told: what the capture says of its ends.
    """

    flow: FlowRow
    end: int
    stretches: list[Stretch] = field(default_factory=list)
    hidden: tuple[Hidden, Hidden] | None = None
    clear: Clear | None = None
    handshake: int = 0
    told: EndsTold = field(default_factory=EndsTold)


@dataclass(slots=True)
class Choice:
    """Everything wanted. comment: for every packet, where the format has room for one.

    redacting: a packet whose flow is not looked into is left out. overwritten, left_out: packets so far. faults: of our
    own while messages were looked into, by how often; such messages are overwritten as a whole.
    """

    flows: dict[int, FlowChoice] = field(default_factory=dict)
    packets: set[int] = field(default_factory=set)
    comment: str = ""
    redacting: bool = False
    overwritten: int = 0
    left_out: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def add_message(self, row: MessageRow, end: int, pieces: Sequence[int]) -> None:
        """A message; pieces: the packets that its bytes came in."""
        choice = self.flows.setdefault(row.flow.key, FlowChoice(row.flow, end))
        first, last = sorted((row.packet_first, row.packet_last))
        choice.stretches.append(Stretch(row.direction, first, last))
        self.packets.update(pieces)

    def add_flow(self, flow: FlowRow, end: int) -> None:
        """A whole flow."""
        choice = self.flows.setdefault(flow.key, FlowChoice(flow, end))
        choice.stretches.append(Stretch(None, flow.key, end - 1))

    def first(self) -> int:
        """The first packet that may be wanted."""
        return min([*self.flows, *self.packets], default=0)

    def last(self) -> int:
        """The last packet that may be wanted."""
        return max([*(s.last for choice in self.flows.values() for s in choice.stretches), *self.packets], default=-1)


def chosen_packets(choice: Choice, sources: Sequence[Source], places: Sequence[Places]) -> Iterator[OutPacket]:
    """The wanted packets in the order of the captures, overwritten where `hidden` says so."""
    first, last = choice.first(), choice.last()
    for file in range(split_packet(first)[0], min(split_packet(last)[0], len(sources) - 1) + 1):
        if sources[file].other_kind is not None:
            continue
        start = split_packet(first)[1] if file == split_packet(first)[0] else 1
        begin = begin_at(sources[file], start, places[file])
        finder = _PairFinder(choice)
        stats = CaptureStats(sources[file].name)
        for packets in read_packets(begin.source, finder.endpoints, stats, LIMITS):
            base = packet_of(file, begin.skipped)
            # Nobody looks for credentials in what people wrote.
            comments = {} if choice.redacting else comments_of(stats, packets)
            yield from _of_block(choice, packets, base, finder.flows(), comments)
            if base + packets.records.first_packet + len(packets.records.start) > last + 1:
                break


class _PairFinder:
    """Which pairs of one file are those of wanted flows."""

    def __init__(self, choice: Choice) -> None:
        self.endpoints = EndpointTable()
        self._wanted: dict[object, list[tuple[bool, FlowChoice]]] = {}
        for one in choice.flows.values():
            flow = one.flow
            for is_low, (low, high) in ((True, (flow.client, flow.server)), (False, (flow.server, flow.client))):
                self._wanted.setdefault((low, high, flow.encapsulation), []).append((is_low, one))
        self._found: list[tuple[int, bool, FlowChoice]] = []
        self._known = 0

    def flows(self) -> list[tuple[int, bool, FlowChoice]]:
        """(pair, client is the low end, flow) for the pairs so far."""
        for pair in range(self._known, len(self.endpoints)):
            ends = self.endpoints[pair]
            key = ((ends.low_address, ends.low_port), (ends.high_address, ends.high_port), ends.encapsulation)
            self._found += [(pair, is_low, one) for is_low, one in self._wanted.get(key, ())]
        self._known = len(self.endpoints)
        return self._found


def _of_block(
    choice: Choice,
    packets: Packets,
    base: int,
    flows: Sequence[tuple[int, bool, FlowChoice]],
    options: dict[int, list[Option]],
) -> Iterator[OutPacket]:
    """options: what packets have by their rows; identities come to it."""
    batch, records = packets.batch, packets.records
    here = range(base + records.first_packet, base + records.first_packet + len(records.start))
    unknown = _refuse if choice.redacting else None
    rows: dict[int, Overwrite | None] = {packet - here.start: unknown for packet in choice.packets if packet in here}
    clear: dict[int, Iterator[bytes]] = {}
    for pair, is_low, one in flows:
        for at in (batch.pair == pair).nonzero()[0].tolist():
            packet = base + int(batch.packet[at])
            if not one.flow.key <= packet < one.end:
                continue
            from_client = bool(batch.from_low[at]) == is_low
            one.told.see(packets, packet - here.start, int(not from_client))
            if packet in choice.packets or _is_wanted(one, packet, from_client, int(batch.flags[at])):
                rows[packet - here.start] = _redaction(one, batch, at, from_client, packets)
                options.setdefault(packet - here.start, []).extend(one.told.options(int(not from_client)))
                if one.clear is not None:
                    side, flags, window = int(not from_client), int(batch.flags[at]), int(batch.window[at])
                    clear[packet - here.start] = one.clear.packets(packet, side, flags, window)
    for row in sorted(rows):
        own = options.get(row, [])
        for made in clear.get(row, ()):
            yield OutPacket(int(records.ts_ns[row]), _ETHERNET, len(made), made, choice.comment, own)
            own = []
        if row in clear:
            continue
        start, size = int(records.start[row]), int(records.captured[row])
        data = bytearray(packets.data[start : start + size])
        redact = rows[row]
        if redact is not None:
            readable = redact(data)
            choice.overwritten += readable
            choice.left_out += not readable
            if not readable:
                continue
        link = records.link_type if isinstance(records.link_type, int) else int(records.link_type[row])
        wire = max(int(records.wire[row]), size)
        yield OutPacket(int(records.ts_ns[row]), link, wire, bytes(data), choice.comment, own)


def _refuse(_: bytearray) -> bool:
    """Mask nothing and report that: nobody looked for credentials in this packet."""
    return False


def _is_wanted(one: FlowChoice, packet: int, from_client: bool, flags: int) -> bool:
    if one.handshake < HANDSHAKE_PACKETS and (flags & _SYN or one.handshake):
        one.handshake += 1
        return True
    side = 0 if from_client else 1
    return any(s.first <= packet <= s.last and s.direction in (None, side) for s in one.stretches)


def _redaction(one: FlowChoice, batch: PacketBatch, at: int, from_client: bool, packets: Packets) -> Overwrite | None:
    """What overwrites what is hidden in this packet, None when there is nothing. False: it cannot be reached."""
    if one.hidden is None:
        return None
    size = int(batch.payload_bytes[at])
    seq = int(batch.seq[at]) + (1 if int(batch.flags[at]) & _SYN else 0)
    hidden = one.hidden[0 if from_client else 1].of_segment(seq, size)
    if not hidden:
        return None
    row = int(batch.packet[at]) - packets.records.first_packet
    offset = int(batch.payload_start[at]) - int(packets.records.start[row])

    def overwrite(data: bytearray) -> bool:
        if offset < 0 or offset + size > len(data):
            return False  # the payload was put together from fragments
        for start, end in hidden:
            data[offset + start : offset + end] = FILL * (end - start)
        return True

    return overwrite
