"""The same connection captured at two points of its way, for example with and without a VLAN tag, or in a tunnel.

The two have different flows, since the encapsulation belongs to a flow's key. In: batches (how much later does the one
point see a packet than the other?), and what is known of ended flows. Out: which flow is a duplicate of which, with the
latency of the way between the points and the offset of their clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import EndpointTable, PacketBatch
from wirewitness.analyser.tcp.tcp import MASK

SAMPLES = 100
_TAIL_PACKETS = 4096
_NEIGHBOURS = 50
_HALF = 1 << 31
_NS_PER_MS = 1e6

# Columns of what is remembered of a packet, and where its number stands among them.
_WIDTH, _PACKET = 7, 3

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


class Seen(NamedTuple):
    """What is compared of an ended flow. Sequence numbers are (low endpoint's, high endpoint's), -1 where unknown.

    ends: the pair's endpoints without encapsulation. starts: first sequence number of each stream. sizes: their bytes.
    """

    row: int
    pair: int
    ends: tuple[str, int, str, int]
    ts_first_ns: int
    ts_last_ns: int
    isns: tuple[int, int]
    starts: tuple[int, int]
    sizes: tuple[int, int]
    gap_bytes: int


class Duplicate(NamedTuple):
    """Row `row` saw the connection of row `of` once more.

    hop_latency_ms, clock_offset_ms: from the point of `of` to that of `row`; None where too little was seen of both
    directions. The offset is how far the clock of `row` is ahead.
    """

    row: int
    of: int
    hop_latency_ms: float | None
    clock_offset_ms: float | None


class Delays:
    """Samples of how much later one pair sees a packet than another with the same endpoints.

    most: pairs that samples are kept of, each side for itself. left_out: there were more.
    """

    def __init__(self, endpoints: EndpointTable, most: int) -> None:
        self._endpoints = endpoints
        self._most = most
        self.left_out = False
        self._samples: dict[tuple[int, int, int], list[int]] = {}
        self._tail: Ints = np.zeros((0, _WIDTH), np.int64)

    def feed(self, batch: PacketBatch, packets_before: int) -> None:
        """Compare the packets of a batch with each other and with those shortly before.

        packets_before: so many are in the files before this one.
        """
        if not self._endpoints.has_encapsulations:
            # Some may follow: what is near to them is remembered, no more.
            self._tail = np.concatenate((self._tail, _columns(batch, packets_before, len(batch) - _TAIL_PACKETS)))
            self._tail = self._tail[-_TAIL_PACKETS:].copy()
            return
        held = len(self._tail)
        rest = np.concatenate((self._tail, _columns(batch, packets_before, 0)))
        keys = self._mixed(rest)
        self._tail = rest[-_TAIL_PACKETS:].copy()
        order = np.argsort(keys, kind="stable")
        earlier, later = order[:-1], order[1:]
        same = (keys[earlier] == keys[later]) & (rest[earlier, 0] != rest[later, 0]) & (later >= held)
        same &= rest[later, _PACKET] - rest[earlier, _PACKET] <= _TAIL_PACKETS
        earlier, later = earlier[same], later[same]
        by_time = np.argsort(later, kind="stable")
        for (first, low, first_ns), (second, _, second_ns) in zip(
            rest[earlier[by_time], :3].tolist(), rest[later[by_time], :3].tolist(), strict=True
        ):
            self._add(first, second, low, second_ns - first_ns)

    @property
    def pairs(self) -> npt.NDArray[np.int64]:
        """Pairs that have samples or may get some from the packets that are remembered."""
        sampled = [pair for first, second, _ in self._samples for pair in (first, second)]
        return np.concatenate((self._tail[:, 0], np.array(sampled, np.int64)))

    def between(self, of: int, pair: int) -> tuple[float | None, float | None]:
        """(hop latency, clock offset) in ms from the point of `of` to that of `pair`; the median of both directions."""
        sign = 1 if of < pair else -1
        sides = [self._samples.get((min(of, pair), max(of, pair), side), []) for side in (0, 1)]
        if not all(sides):
            return None, None
        there, back = (sign * median(samples) for samples in sides)
        return abs(there - back) / 2 / _NS_PER_MS, (there + back) / 2 / _NS_PER_MS

    def _add(self, first: int, second: int, from_low: int, later_ns: int) -> None:
        key = (min(first, second), max(first, second), from_low)
        samples = self._samples.get(key)
        if samples is None:
            if len(self._samples) >= self._most:
                self.left_out = True
                return
            samples = self._samples[key] = []
        if len(samples) < SAMPLES:
            samples.append(later_ns if first < second else -later_ns)

    def _mixed(self, columns: Ints) -> Words:
        """A number that two sightings of one packet share: endpoints, header fields and IP identification."""
        mixed = self._endpoints.bare_hashes()[columns[:, 0]]
        for part in columns[:, _PACKET + 1 :].T:
            mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15) + part.astype(np.uint64)
        return mixed


def _columns(batch: PacketBatch, packets_before: int, first: int) -> Ints:
    """Pair, side, time and number of the packets from the `first` on, and the words that tell them apart."""
    rows = slice(max(first, 0), None)
    sides = batch.from_low[rows].astype(np.int64)
    lengths = batch.wire_payload_bytes[rows].astype(np.int64) << 32
    columns = (
        batch.pair[rows].astype(np.int64),
        sides,
        batch.ts_ns[rows],
        batch.packet[rows] + packets_before,
        batch.seq[rows] << 32 | batch.ack[rows],
        lengths | batch.flags[rows].astype(np.int64) << 1 | sides,
        np.maximum(batch.ip_id[rows], 0).astype(np.int64) << 16 | batch.window[rows],
    )
    return np.stack(columns, axis=1)


def duplicates(flows: Sequence[Seen], delays: Delays) -> Iterator[Duplicate]:
    """Flows that are further sightings of another one: the one with fewer gaps is kept, of equal ones the earlier.

    `flows` in the order of their first packets.
    """

    def ends(flow: Seen) -> tuple[str, int, str, int]:
        return flow.ends

    for _, group in groupby(sorted(flows, key=ends), ends):
        taken: set[int] = set()
        members = sorted(group, key=lambda flow: (flow.ts_first_ns, flow.row))
        for place, flow in enumerate(members):
            if flow.row in taken:
                continue
            near = members[place + 1 : place + 1 + _NEIGHBOURS]
            again = [other for other in near if other.row not in taken and same_connection(flow, other)]
            if not again:
                continue
            taken.update(other.row for other in (flow, *again))
            kept = min((flow, *again), key=lambda seen: (seen.gap_bytes, seen.row))
            for other in (flow, *again):
                if other is not kept:
                    yield Duplicate(other.row, kept.row, *delays.between(kept.pair, other.pair))


def same_connection(one: Seen, other: Seen) -> bool:
    """Are these two sightings of one connection? Endpoints are equal already."""
    if one.pair == other.pair or one.ts_last_ns < other.ts_first_ns or other.ts_last_ns < one.ts_first_ns:
        return False
    known = [(a, b) for a, b in zip(one.isns, other.isns, strict=True) if a >= 0 and b >= 0]
    if known:
        return all(a == b for a, b in known)
    return any(
        _overlap(one.starts[side], one.sizes[side], other.starts[side], other.sizes[side])
        for side in (0, 1)
        if one.sizes[side] and other.sizes[side]
    )


def _overlap(start: int, size: int, other_start: int, other_size: int) -> bool:
    ahead = ((other_start - start + _HALF) & MASK) - _HALF
    return ahead < size and -ahead < other_size
