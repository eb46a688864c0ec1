"""Connections that lie in one batch from their first SYN to both FINs, with nothing out of the ordinary between.

In: a batch, in which pairs lie one behind the other. Out: `Whole`, all that is known of them as columns: there is no
`Flow` for these, unless something comes late (`analyser/tcp/closed_flows.py`). A SYN and its SYN-ACK, segments that
continue their streams, a FIN of each side; no copy, nothing sent again, missing or cut, no closed window, no reset. One
packet after the other would give the same; of all others it is asked what that gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.complete_flows import NO_PROTOCOL, OfSides, Resets, Segments, WholeFlows, WholeStreams
from wirewitness.analyser.tcp.segment_intake import LINGER_NS
from wirewitness.analyser.tcp.segment_runs import Flags, Places
from wirewitness.analyser.tcp.tcp import ACK, FIN, MASK, RST, SYN

# For fewer connections in a batch it does not pay to look for them.
LEAST = 64
# A longer stream costs what its messages cost, however its connection is taken.
MOST_STREAM_BYTES = 1 << 16
_HANDSHAKE = SYN | ACK | FIN | RST

Ints = npt.NDArray[np.int64]


class Sorted(NamedTuple):
    """The packets of some pairs, each pair's in the order of capture. first, until: of each pair's among `rows`."""

    rows: Places
    first: Ints
    until: Ints

    def each(self) -> Ints:
        """For each packet the number of its pair."""
        return np.repeat(np.arange(len(self.first)), self.until - self.first)

    def left(self, numbers: Ints, packets: int) -> Flags:
        """Which packets of a batch of so many are not of these pairs."""
        mine = np.zeros(len(self.first), bool)
        mine[numbers] = True
        left = np.ones(packets, bool)
        left[self.rows[mine[self.each()]]] = False
        return left

    def but_last(self) -> Sorted:
        """All but the last packet of each pair."""
        last = np.ones(len(self.rows), bool)
        last[self.until - 1] = False
        number = np.arange(len(self.first))
        return Sorted(self.rows[last], self.first - number, self.until - number - 1)

    def chosen(self, good: Flags) -> Sorted:
        """The packets of these pairs only."""
        counts = (self.until - self.first)[good]
        until = np.cumsum(counts)
        return Sorted(self.rows[good[self.each()]], until - counts, until)


def whole_flows(
    batch: PacketBatch,
    packet: Ints,
    order: Places,
    copies: Flags,
    now_ns: Ints,
    is_free: Flags,
    waiting: Iterable[int],
) -> Whole | None:
    """The whole connections of a batch; None where there are so few that nobody takes them together.

    packet: numbers with that of the file. order: the batch's rows by pair. now_ns: the capture's clock at each.
    is_free: for each pair whether it has no flow. waiting: pairs of which something is known that is no flow yet.
    """
    found = _candidates(batch, order, is_free)
    if found is None:
        return None
    good = _nothing_waits(batch, found, waiting)
    good &= ~_any_odd(batch, copies, found) & (
        now_ns[found.rows[found.until - 1]] - _closed_ns(batch, now_ns, found) <= LINGER_NS
    )
    sides = Sides.of(batch, found)
    good &= sides.continue_(batch)
    if np.count_nonzero(good) < LEAST:
        return None
    found = found.chosen(good)
    one, other = _ends(batch, found)
    earlier = np.where(batch.ts_ns[other] < batch.ts_ns[one], other, one)
    sides = Sides.of(batch, found)
    return columns_of(batch, found, packet, Closing(earlier, now_ns[other]), sides, sides)


def reset_flows(
    batch: PacketBatch, order: Places, copies: Flags, now_ns: Ints, is_free: Flags, waiting: Iterable[int]
) -> Sorted | None:
    """The connections of a batch that are whole but that a reset ends them, with or without FINs before it; None where
    there are few. See `whole_flows`; what may come late for these is up to the caller."""
    found = _candidates(batch, order, is_free, reset=True)
    if found is None:
        return None
    good = _nothing_waits(batch, found, waiting)
    resets = found.rows[found.until - 1]
    good &= ~copies[resets] & (batch.wire_payload_bytes[resets] == 0) & (batch.dsack_bytes[resets] == 0)
    good &= (batch.flags[resets] & (SYN | FIN | RST)) == RST
    before = found.but_last()
    good &= ~_any_odd(batch, copies, before)
    good &= now_ns[resets] - now_ns[found.rows[found.first]] <= LINGER_NS
    good &= Sides.of(batch, found).continue_(batch)
    return found.chosen(good) if np.count_nonzero(good) >= LEAST else None


def _nothing_waits(batch: PacketBatch, found: Sorted, waiting: Iterable[int]) -> Flags:
    nothing: Flags = ~np.isin(batch.pair[found.rows[found.first]], np.fromiter(waiting, np.int64))
    return nothing


def _candidates(batch: PacketBatch, order: Places, is_free: Flags, *, reset: bool = False) -> Sorted | None:
    """Pairs without a flow that begin with a SYN and its answer, with two FINs behind, or with a reset at the end."""
    pairs, flags = batch.pair[order], batch.flags[order]
    first = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    until = np.append(first[1:], len(order))
    opens = ((flags[first] & _HANDSHAKE) == SYN) & is_free[pairs[first]]
    if np.count_nonzero(opens) < LEAST:
        return None
    second = np.minimum(first + 1, len(order) - 1)
    sides = batch.from_low[order]
    opens &= ((flags[second] & _HANDSHAKE) == SYN | ACK) & (sides[first] != sides[second])
    if reset:
        opens &= (flags[until - 1] & RST) != 0
    else:
        opens &= np.add.reduceat((flags & FIN) != 0, first, dtype=np.int64) == 2
    if np.count_nonzero(opens) < LEAST:
        return None
    return Sorted(order, first, until).chosen(opens)


def _any_odd(batch: PacketBatch, copies: Flags, found: Sorted) -> Flags:
    """Pairs of which a packet says more than that it continues the streams."""
    rows = found.rows
    flags = batch.flags[rows]
    special = ((flags & (SYN | RST)) != 0) | ((flags & ACK) == 0)
    special[found.first] = special[found.first + 1] = False
    odd = special | copies[rows] | (batch.window[rows] == 0) | (batch.dsack_bytes[rows] > 0)
    odd |= batch.wire_payload_bytes[rows] != batch.payload_bytes[rows]
    any_odd: Flags = np.logical_or.reduceat(odd, found.first)
    return any_odd


def _ends(batch: PacketBatch, found: Sorted) -> tuple[Places, Places]:
    """The first and the second FIN of each pair."""
    ends = found.rows[(batch.flags[found.rows] & FIN) != 0]
    return ends[0::2], ends[1::2]


def _closed_ns(batch: PacketBatch, now_ns: Ints, found: Sorted) -> Ints:
    closed: Ints = now_ns[_ends(batch, found)[1]]
    return closed


class Whole(NamedTuple):
    """What was found. packets: those of the connections."""

    flows: WholeFlows
    streams: WholeStreams
    packets: Sorted


class WholeRead(NamedTuple):
    """What became of whole connections. taken: the numbers of those that were read. protocol: of each of them its
    number in `protocols`, NO_PROTOCOL without any."""

    taken: Ints
    protocol: Ints
    protocols: Sequence[str]


class WholeReader(Protocol):
    """Reads whole connections; those that it does not take are read like others."""

    def read(self, found: Whole) -> WholeRead:
        """Take those that it can read, and give their rows."""
        ...

    def ended(self, flows: WholeFlows) -> None:
        """Nothing came late for these."""
        ...


class Closing(NamedTuple):
    """What closed connections. first: the packet by which one side first did; closed_ns: the clock when all was over.

    reset: the packet of the reset; none where FINs alone did it.
    """

    first: Places
    closed_ns: Ints
    reset: Places | None = None


class Sides(NamedTuple):
    """The packets of both sides, those of the client of pair n as side 2n, of its server as 2n + 1.

    first, until: of each side's among `rows`; there is one of each at least.
    """

    rows: Places
    side: Ints
    first: Ints
    until: Ints

    @classmethod
    def of(cls, batch: PacketBatch, found: Sorted) -> Sides:
        """Those of these pairs, which begin with a packet of the client and one of the server."""
        from_low = batch.from_low[found.rows]
        each = found.each()
        side = each * 2 + (from_low != from_low[found.first][each])
        by_side = np.argsort(side, kind="stable")
        counts = np.bincount(side, minlength=2 * len(found.first))
        until = np.cumsum(counts)
        return cls(found.rows[by_side], side[by_side], until - counts, until)

    def continue_(self, batch: PacketBatch) -> Flags:
        """Pairs of which each side's segments follow each other up to its FIN, and are confirmed within its stream.

        A reset need not have FINs before it.
        """
        rows = self.rows
        flags = batch.flags[rows]
        size = batch.payload_bytes[rows].astype(np.int64)
        fins = (flags & FIN) != 0
        sent = size + ((flags & SYN) != 0) + fins
        moving = np.flatnonzero(sent)
        side, seq, after = self.side[moving], batch.seq[rows[moving]], (batch.seq[rows] + sent)[moving] & MASK
        broken = (side[1:] == side[:-1]) & ((seq[1:] != after[:-1]) | fins[moving[:-1]])
        good = np.ones(len(self.first), bool)
        good[side[1:][broken]] = False
        streams = np.add.reduceat(size, self.first)
        good &= streams <= MOST_STREAM_BYTES
        has_fin = np.logical_or.reduceat(fins, self.first)
        good &= confirmed_by(batch, self) <= (streams + has_fin)[_others(len(streams))]
        is_reset = np.logical_or.reduceat((flags & RST) != 0, self.first)
        both: Flags = good[0::2] & good[1::2] & (has_fin[0::2] & has_fin[1::2] | is_reset[0::2] | is_reset[1::2])
        return both


def _others(sides: int) -> Ints:
    """For each side the other one of its pair."""
    return np.arange(sides) ^ 1


def confirmed_by(batch: PacketBatch, sides: Sides) -> Ints:
    """How many bytes of the other's stream each side confirms at most, the FIN as one; -1 where it confirms nothing."""
    base = batch.seq[sides.rows[sides.first]] + 1
    rows = sides.rows
    ahead = (batch.ack[rows] - base[_others(len(base))][sides.side]) & MASK
    ahead[(batch.flags[rows] & ACK) == 0] = -1
    most: Ints = np.maximum.reduceat(ahead, sides.first)
    return most


def columns_of(batch: PacketBatch, found: Sorted, packet: Ints, closing: Closing, sides: Sides, heard: Sides) -> Whole:
    """heard: the packets of both sides that are no resets."""
    rows, firsts = found.rows, found.rows[found.first]
    ts_ns = batch.ts_ns[rows]
    streams = _streams(batch, sides, packet)
    segments = (streams.until - streams.first).reshape(-1, 2).sum(axis=1)
    flows = WholeFlows(
        pair=batch.pair[firsts].astype(np.int64),
        client_is_low=batch.from_low[firsts],
        first_packet=packet[firsts],
        last_packet=packet[rows[found.until - 1]],
        ts_first_ns=np.minimum.reduceat(ts_ns, found.first),
        ts_last_ns=np.maximum.reduceat(ts_ns, found.first),
        packets=found.until - found.first,
        data_segments=segments,
        syn_ns=batch.ts_ns[firsts],
        syn_ack_ns=batch.ts_ns[rows[found.first + 1]],
        closed_by_low=batch.from_low[closing.first],
        first_close_ns=batch.ts_ns[closing.first],
        closed_ts_ns=closing.closed_ns,
        protocol=np.full(len(firsts), NO_PROTOCOL),
        history_bytes=np.zeros(len(firsts), np.int64),
        sides=_of_sides(batch, sides, heard),
        resets=None if closing.reset is None else _resets(batch, closing.reset, packet),
    )
    return Whole(flows, streams, found)


def _resets(batch: PacketBatch, rows: Places, packet: Ints) -> Resets:
    ttl, ip_id = (column[rows].astype(np.int64) for column in (batch.ttl, batch.ip_id))
    return Resets(batch.from_low[rows], ttl, packet[rows], batch.ts_ns[rows], ip_id)


def _of_sides(batch: PacketBatch, sides: Sides, heard: Sides) -> OfSides:
    rows, firsts = sides.rows, sides.rows[sides.first]
    ttl = batch.ttl[heard.rows].astype(np.int64)
    return OfSides(
        isn=batch.seq[firsts],
        size=np.add.reduceat(batch.payload_bytes[rows].astype(np.int64), sides.first),
        confirmed=confirmed_by(batch, sides)[_others(len(firsts))],
        last_ns=np.maximum.reduceat(batch.ts_ns[heard.rows], heard.first),
        ttl=ttl[heard.first],
        ttl_lowest=np.minimum.reduceat(ttl, heard.first),
        ttl_last=ttl[heard.until - 1],
        packets=heard.until - heard.first,
        ip_id=batch.ip_id[heard.rows[heard.until - 1]].astype(np.int64),
        window_scale=batch.window_scale[firsts].astype(np.int64),
        segment_size=batch.segment_size[firsts].astype(np.int64),
    )


def _streams(batch: PacketBatch, sides: Sides, packet: Ints) -> WholeStreams:
    data = np.flatnonzero(batch.payload_bytes[sides.rows] > 0)
    rows = sides.rows[data]
    counts = np.bincount(sides.side[data], minlength=len(sides.first))
    until = np.cumsum(counts)
    sizes = batch.payload_bytes[rows].astype(np.int64)
    segments = Segments(batch.payload_start[rows], sizes, packet[rows], batch.ts_ns[rows])
    return WholeStreams(batch.data, segments, until - counts, until)
