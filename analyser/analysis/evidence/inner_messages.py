"""The messages inside a carrier, read again. In: a flow's row. Out: its frames, and where their bytes lie on the wire.

What a carrier carries may be masked, compressed and cut anywhere, so the flow is decoded again from its first packet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.analysis.evidence.rows import FlowRow
from wirewitness.analyser.capture import CaptureLimits, CaptureStats, EndpointTable, PacketBatch, Source
from wirewitness.analyser.capture.packet_positions import Places, begin_at
from wirewitness.analyser.capture.reader import read_batches
from wirewitness.analyser.decoding.flow_decoder import FlowDecoder
from wirewitness.analyser.decoding.outer_map import Span, Watcher
from wirewitness.analyser.decoding.run.keys import Keys
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_table import FlowTable
from wirewitness.dissectors.carriers.tls.keylog import KeyRing
from wirewitness.dissectors.core.carrier import Carried, HiddenBytes, Opening
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame, split_packet
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.registry import CARRIERS, dissector_of

READ_LIMITS = CaptureLimits(block_bytes=1 << 20)


class CarriedMessage(NamedTuple):
    """A frame's bytes, and where they lie in the outer stream and in packets (file and number in one)."""

    direction: int
    stream_offset: int
    data: bytes
    spans: tuple[Span, ...]


See = Callable[[CarriedMessage], None]


class Watched(NamedTuple):
    """hidden: credentials in what opened the carrier. seen: (direction, from, to before) which outer bytes belong to
    messages or to the carrier."""

    hidden: list[HiddenBytes]
    seen: list[tuple[int, int, int]]


@dataclass(slots=True)
class _Watcher:
    see: See
    hidden: list[HiddenBytes] = field(default_factory=list)
    _seen: list[tuple[int, int, int]] = field(default_factory=list)
    # Of compressed outer bytes: how many inner ones they are, and how many of these belong to messages.
    _sizes: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    _used: Counter[tuple[int, int, int]] = field(default_factory=Counter)

    def opened(self, opening: Opening) -> None:
        self.hidden += opening.hidden
        self._seen += [(direction, 0, before) for direction, before in enumerate(opening.before)]

    def own(self, direction: int, start: int, end: int) -> None:
        self._seen.append((direction, start, end))

    def lost(self, direction: int, size: int) -> None: ...

    def piece(self, direction: int, piece: Carried, packet: int, order: int) -> None:
        if len(piece.data) != piece.end - piece.start:
            self._sizes[direction, piece.start, piece.end] += len(piece.data)

    def frame(self, frame: Frame, spans: Sequence[Span]) -> None:
        for span in spans:
            place = frame.direction, span.outer_start, span.outer_end
            if span.end - span.start == span.outer_end - span.outer_start and place not in self._sizes:
                self._seen.append(place)
            else:
                self._used[place] += span.end - span.start
        data = frame.data[frame.start : frame.end]
        self.see(CarriedMessage(frame.direction, frame.stream_offset, data, tuple(spans)))

    def watched(self) -> Watched:
        whole = [place for place, used in self._used.items() if used == self._sizes[place]]
        return Watched(self.hidden, self._seen + whole)


def watch(
    flow: FlowRow,
    sources: Sequence[Source],
    places: Sequence[Places],
    end: int,
    see: See,
    keylogs: Sequence[str] = (),
) -> Watched:
    """Decode the flow's packets before packet `end` (file and number in one) and show every message to `see`.

    keylogs: as in ReadOptions. Raises CaptureError.
    """
    if dissector_of(flow.protocol) is None:
        return Watched([], [])
    watcher = _Watcher(see)
    follow(flow, sources, places, end, watcher, keylogs)
    return watcher.watched()


def follow(
    flow: FlowRow,
    sources: Sequence[Source],
    places: Sequence[Places],
    end: int,
    watcher: Watcher,
    keylogs: Sequence[str] = (),
) -> KeyRing | None:
    """The same for a `Watcher`. The keys that there are, None where nothing is encrypted."""
    dissector = dissector_of(flow.protocol)
    endpoints, nobody = EndpointTable(), Sink([])
    known = {} if dissector is None else {dissector.name: dissector}
    keys = Keys(keylogs) if flow.encrypted else None
    carriers = CARRIERS if keys is None else keys.carriers

    def consume(one: Flow) -> None:
        if one.decoder is None and any(half.queue for half in one.halves):
            pair = endpoints[one.pair]
            forced = None if dissector is None else (dissector.name, flow.server[1])
            ports = (pair.high_port, pair.low_port)
            one.decoder = FlowDecoder(known, forced, ports, Limits(), DecodeOptions(), watcher, carriers)
        if one.decoder is not None:
            one.decoder.consume(one, nobody)
        if one.finished:
            one.decoder = None

    flows = FlowTable(Limits(), endpoints, consume, lambda _: None)
    last_file = -1
    for file, batch in _batches(flow, sources, places, end, endpoints, keys):
        if file != last_file:
            flows.next_file(file)
            last_file = file
        flows.feed(batch)
    flows.finish()
    return None if keys is None else keys.ring


def _batches(
    flow: FlowRow,
    sources: Sequence[Source],
    places: Sequence[Places],
    end: int,
    endpoints: EndpointTable,
    keys: Keys | None,
) -> Iterator[tuple[int, PacketBatch]]:
    """The flow's segments, with the numbers that packets have in their files."""
    first_file, first = split_packet(flow.key)
    last_file, stop = split_packet(end)
    pairs: set[int] = set()
    known = 0
    for file in range(first_file, min(last_file, len(sources) - 1) + 1):
        if sources[file].other_kind is not None:
            continue
        begin = begin_at(sources[file], first if file == first_file else 1, places[file])
        stats = CaptureStats(sources[file].name)
        for batch in read_batches(begin.source, endpoints, stats, READ_LIMITS):
            if keys is not None:
                keys.take(stats)
            for pair in range(known, len(endpoints)):
                if flow.client_is_low(endpoints[pair]) is not None:
                    pairs.add(pair)
            known = len(endpoints)
            packet = batch.packet + begin.skipped
            mine = np.isin(batch.pair, list(pairs))
            if file == first_file:
                mine &= packet >= first
            if file == last_file:
                mine &= packet < stop
            columns = {name: getattr(batch, name)[mine] for name in PacketBatch.__slots__[1:]}
            columns["packet"] = packet[mine]
            yield file, PacketBatch(batch.data, **columns)
            if file == last_file and len(packet) and packet[-1] >= stop:
                return
