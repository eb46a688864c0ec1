"""Is there a carrier around a flow's protocol? In: what a flow's two directions delivered so far. Out: `Inside`.

A carrier is opened by what both sides say first. In a connection that was open before the capture, segments must look
like those of a carrier, and what they carry must be a protocol that somebody recognises. A carrier may lie in
another one: WebSocket in TLS.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.decoding.faults import Failed, Fault
from wirewitness.analyser.decoding.inner_streams import CarriedStream
from wirewitness.analyser.tcp.chunks import Gap, Run
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.dissectors.core.budget import CARRIER_BYTES, INFLATE_BYTES
from wirewitness.dissectors.core.carrier import Carrier, Opening
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.protocol import Sink

# Segments of each direction that are looked at for the frames of a carrier that was opened before.
MAX_SEGMENTS = 64

Items = list[tuple[bool, Run | Gap]]


class Inside(NamedTuple):
    """A carrier around a flow. opening: None where it was opened before the capture. streams: of high and low end.

    within: the carrier that this one lies in, None for TCP alone.
    """

    carrier: Carrier
    opening: Opening | None
    client_is_low: bool
    streams: tuple[CarriedStream, CarriedStream]
    within: Inside | None = None

    def take(self, items: Items, out: Sink) -> Items:
        """The inner items of those of TCP."""
        if self.within is None:
            return self.take_next(items, out)
        found = self.take_next(self.within.take(items, out), out)
        for stream in self.streams:
            stream.forget()
        return found

    def take_next(self, items: Items, out: Sink) -> Items:
        """The inner items of those that lie right around them."""
        return [(from_low, inner) for from_low, item in items for inner in self.streams[from_low].take(item, out)]

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for what follows."""
        around = 0 if self.within is None else self.within.held_bytes
        return around + sum(stream.held_bytes for stream in self.streams)

    @property
    def own_bytes(self) -> int:
        """Memory beside that, roughly."""
        around = 0 if self.within is None else self.within.own_bytes
        inflates = self.opening is not None and bool(self.opening.compression)
        return around + CARRIER_BYTES + (INFLATE_BYTES if inflates else 0)

    @property
    def over(self) -> bool:
        """Nothing more comes of either direction."""
        around = self.within is not None and self.within.over
        return around or all(stream.over for stream in self.streams)

    def again(self, carriers: Mapping[str, Carrier]) -> Inside:
        """The same with the carrier of that name, which gives its unwrappers what is not kept of them."""
        carrier = carriers.get(self.carrier.name, self.carrier)
        for stream in self.streams:
            stream.again(carrier)
        return self._replace(carrier=carrier, within=None if self.within is None else self.within.again(carriers))

    def faults_of(self, from_low: bool) -> list[Fault]:
        """Why a direction cannot be read any further."""
        around = [] if self.within is None else self.within.faults_of(from_low)
        fault = self.streams[from_low].fault
        return around if fault is None else [*around, fault]

    def faults(self) -> list[Fault]:
        """Where a stream cannot be read any further, of both."""
        return self.faults_of(False) + self.faults_of(True)

    def let_go(self, out: Sink) -> Items:
        """The inner items that come of keeping nothing."""
        found = [] if self.within is None else self.take_next(self.within.let_go(out), out)
        return found + [(bool(side), inner) for side in (0, 1) for inner in self.streams[side].let_go(out)]


# (first inner bytes of the high and of the low endpoint, the carrier around them) -> does somebody know them?
Recognised = Callable[[tuple[bytes, bytes], Inside], bool]


def possible(carriers: Iterable[Carrier], within: Inside | None) -> list[Carrier]:
    """Those that may be here. within: what was found around it, None for TCP alone."""
    return [carrier for carrier in carriers if within is None or within.carrier.name in carrier.lies_in]


def opened(
    flow: Flow,
    heads: tuple[bytes, bytes],
    carriers: Iterable[Carrier],
    limits: Limits,
    failed: Failed,
    within: Inside | None,
) -> Inside | bool:
    """The carrier that both sides opened; True while it may still come to that, False when it does not.

    heads: the first bytes of the high and of the low endpoint. failed: told which carrier raises. within: as in
    `possible`.
    """
    waiting = False
    for carrier in carriers:
        try:
            inside = _opened(flow, heads, carrier, limits, within)
        except Exception as error:  # the bytes may be a protocol's own
            failed(carrier.name, caught(error))
            continue
        if isinstance(inside, Inside):
            return inside
        waiting = waiting or inside
    return waiting


def _opened(
    flow: Flow, heads: tuple[bytes, bytes], carrier: Carrier, limits: Limits, within: Inside | None
) -> Inside | bool:
    waiting = False
    for client_is_low in _orientations(flow):
        client, server = heads[client_is_low], heads[not client_is_low]
        if not client or not carrier.may_open(client):
            continue
        opening = carrier.opening(client, server)
        if opening is not None:
            return _inside(carrier, opening, client_is_low, limits, within)
        waiting = True
    return waiting


def underway(
    flow: Flow,
    items: Items,
    carriers: Iterable[Carrier],
    limits: Limits,
    failed: Failed,
    recognised: Recognised,
    within: Inside | None,
) -> Inside | None:
    """A carrier that was opened before the capture, or where it was is lost. failed: told which carrier raises."""
    for carrier in carriers:
        try:
            inside = _underway(flow, items, carrier, limits, failed, recognised, within)
        except Exception as error:  # the bytes may be a protocol's own
            failed(carrier.name, caught(error))
            continue
        if inside is not None:
            return inside
    return None


def _underway(
    flow: Flow,
    items: Items,
    carrier: Carrier,
    limits: Limits,
    failed: Failed,
    recognised: Recognised,
    within: Inside | None,
) -> Inside | None:
    sent = [{carrier.looks_like(start) for start in _segment_starts(items, side)} for side in (False, True)]
    for client_is_low in _orientations(flow):
        client, server = sent[client_is_low], sent[not client_is_low]
        if CLIENT_TO_SERVER not in client or (server and SERVER_TO_CLIENT not in server):
            continue
        tried = _inside(carrier, None, client_is_low, limits, within)
        inner = tried.take_next(items, Sink([]))
        for stream in tried.streams:
            if stream.fault is not None:
                failed(carrier.name, stream.fault.kind)
                return None
        inner = [(s, i._replace(pieces=[b"".join(i.pieces)]) if isinstance(i, Run) else i) for s, i in inner]
        heads = head(inner, False, limits.max_probe_bytes), head(inner, True, limits.max_probe_bytes)
        fresh = _inside(carrier, None, client_is_low, limits, within)
        if recognised(heads, fresh):
            return fresh
    return None


def up_to(items: Items, sizes: tuple[int, int]) -> Items:
    """The first bytes of the high and of the low endpoint, in whole segments."""
    left = list(sizes)
    found: Items = []
    for from_low, item in items:
        if isinstance(item, Run) and left[from_low] < item.size:
            count = bisect_left(item.segments.positions, left[from_low])
            size = item.end_of(count - 1)
            item = Run([b"".join(item.pieces)[:size]], size, item.segments.part(0, count))
        if isinstance(item, Run):
            left[from_low] = max(left[from_low] - item.size, 0)
        if item.size and (isinstance(item, Run) or left[from_low]):
            found.append((from_low, item))
    return found


def starts_missing(flow: Flow, items: Items) -> tuple[bool, bool]:
    """Does the capture lack the first bytes of the high and of the low endpoint? A side without bytes lacks none."""
    firsts = (next((item for side, item in items if side == from_low), None) for from_low in (False, True))
    high, low = (
        first is not None and (half.isn is None or isinstance(first, Gap))
        for first, half in zip(firsts, flow.halves, strict=True)
    )
    return high, low


def begins_in_the_middle(flow: Flow, items: Items, sizes: tuple[int, int], within: Inside | None) -> bool:
    """Could the beginning of the carrier be missing in the first bytes, so many of each endpoint? within: as in
    `possible`; what was opened in the capture has a beginning there."""
    halves = () if within is not None and within.opening is not None else zip(flow.halves, sizes, strict=True)
    if any(half.isn is None for half, size in halves if size):
        return True
    left = list(sizes)
    for from_low, item in items:
        if isinstance(item, Run):
            left[from_low] -= item.size
        elif left[from_low] > 0:
            return True
    return False


def _inside(
    carrier: Carrier, opening: Opening | None, client_is_low: bool, limits: Limits, within: Inside | None
) -> Inside:
    unwrappers = [carrier.unwrapper(direction, opening, limits) for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT)]
    to_server, to_client = opening.before if opening is not None else (0, 0)
    told = None if opening is None else opening.told
    high, low = (None, None) if within is None else (stream.places for stream in within.streams)
    around, before = (low, high) if client_is_low else (high, low)
    client = CarriedStream(CLIENT_TO_SERVER, unwrappers[CLIENT_TO_SERVER], to_server, None, around)
    server = CarriedStream(SERVER_TO_CLIENT, unwrappers[SERVER_TO_CLIENT], to_client, told, before)
    return Inside(carrier, opening, client_is_low, (server, client) if client_is_low else (client, server), within)


def _orientations(flow: Flow) -> tuple[bool, ...]:
    return (True, False) if flow.client_is_low is None else (flow.client_is_low,)


def _segment_starts(items: Items, side: bool) -> list[bytes]:
    """The first bytes of the first segments of one direction."""

    def starts() -> Iterator[bytes]:
        for from_low, item in items:
            if from_low == side and isinstance(item, Run):
                data = item.pieces[0]
                yield from (bytes(data[position : position + 2]) for position in item.segments.positions)

    return list(islice(starts(), MAX_SEGMENTS))


def head(items: Items, side: bool, limit: int) -> bytes:
    """The first contiguous bytes of one direction, at most `limit`."""
    parts: list[bytes] = []
    size = 0
    for from_low, item in items:
        if from_low != side:
            continue
        if isinstance(item, Gap):
            if size:
                break
            continue
        parts.append(bytes(item.pieces[0][: limit - size]))
        size += item.size
        if size >= limit:
            break
    return b"".join(parts)
