"""Signs of waiting that TCP itself imposes, found in whole columns.

In: batches with their packets pair by pair. Out: for each pair the moments that may belong to a wait, in the order of
the capture; `analyser/tcp/waits.py` puts them together, flow by flow.

  Stall   a segment, silence, its bare acknowledgement, and at once the sender's next segment: Nagle's rule on one side
          meets delayed acknowledgement on the other.
  Full    what is on its way fills the receive window that was told. Looked at on a grid of 8.4 ms, not packet by
          packet: between two packets of a pair in different cells of the grid, the first one's state held.

Both need two packets of a pair that are apart in time, so one comparison of times leaves few rows of a busy capture.
The last packets of each pair are kept for the next batch; nothing depends on how packets were batched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.batches import BatchColumns, FlagArray, IntArray
from wirewitness.analyser.tcp.tcp import ACK, FIN, MASK, RST, SYN

CELL_BITS = 23
CELL_NS = 1 << CELL_BITS
# Acknowledgements are delayed by 500 ms at most (RFC 9293, 3.8.6.3), and a round trip takes less than a second.
LONGEST_NS = 1 << 30
SHORTEST_STALL_NS = 20_000_000
LATEST_ANSWER_NS = 50_000_000
# Less on its way fills no window of a bulk transfer.
LEAST_FLIGHT_BYTES = 1024
MOST_SHIFT = 14
# A window counts as full with less than this part of it left; what is left must be less than a segment, too.
_ROOM_PART = 8

_COLUMNS = ("pair", "from_low", "ts_ns", "now_ns", "packet", "seq", "size", "ack", "flags", "window")
_PAIR, _LOW, _TS, _NOW, _PACKET, _SEQ, _SIZE, _ACK, _FLAGS, _WINDOW = range(len(_COLUMNS))


class Stall(NamedTuple):
    """A segment of `size` bytes was confirmed at `acked_ns`, after which `next_size` bytes at `seq` came."""

    packet: int
    from_low: bool
    packet_last: int
    ts_ns: int
    acked_ns: int
    ts_last_ns: int
    seq: int
    size: int
    next_size: int


class Full(NamedTuple):
    """From the packet at ts_ns to that at ts_last_ns the sender (`from_low`) had the window full but for `room` bytes.

    That is so if windows are scaled by `shift` bits; no other shift fits. first_cell, cells: which instants of the grid
    lie between. end_seq: where the bytes sent ended.
    """

    packet: int
    from_low: bool
    packet_last: int
    ts_ns: int
    ts_last_ns: int
    first_cell: int
    cells: int
    end_seq: int
    window: int
    shift: int
    room: int


Signs = list[Stall | Full]


class SignFinder:
    """Finds signs; remembers the last packets of each pair that was heard of in the last second."""

    def __init__(self) -> None:
        self._held: IntArray = np.zeros((0, len(_COLUMNS)), np.int64)

    def feed(
        self, batch: PacketBatch, columns: BatchColumns, order: npt.NDArray[np.intp], copies: FlagArray
    ) -> dict[int, Signs]:
        """Signs of a batch by pair. `order`: its packets pair by pair; copies and SYNs are left out."""
        # A SYN that nobody answers does not end a wait, and behind any other one comes the SYN-ACK.
        left_out = copies | ((batch.flags & (SYN | ACK)) == SYN)
        if left_out.any():
            order = order[~left_out[order]]
        rows = _Rows(self._held, batch, columns, order)
        found: dict[int, Signs] = {}
        apart = rows.apart()
        for pair, stall in _stalls(rows, apart):
            found.setdefault(pair, []).append(stall)
        for pair, full in _full(rows, apart):
            found.setdefault(pair, []).append(full)
        for signs in found.values():
            signs.sort()
        self._held = rows.last_ones()
        return found


class _Rows:
    """Packets held back and those of a batch, pair by pair. Places count in that order, `of` gives single columns."""

    def __init__(self, held: IntArray, batch: PacketBatch, columns: BatchColumns, order: npt.NDArray[np.intp]) -> None:
        self._held = held
        self._fresh: Sequence[npt.NDArray[np.generic]] = (
            batch.pair, batch.from_low, batch.ts_ns, columns.now_ns, columns.packet,
            batch.seq, batch.wire_payload_bytes, batch.ack, batch.flags, batch.window,
        )  # fmt: skip
        self._now_ns = int(columns.now_ns[-1])
        pairs = batch.pair[order]
        firsts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1]))) if len(pairs) else order[:0]
        self._pairs = pairs[firsts]
        at, known = _where(held[:, _PAIR], self._pairs)
        self._unheard = held[~known]
        # Where a row is found: held ones first, then those of the batch.
        at = at[known]
        before = firsts[at]
        self.rows: npt.NDArray[np.intp] = np.insert(order + len(held), before, np.flatnonzero(known))
        ends = np.concatenate((firsts[1:], [len(pairs)])) if len(pairs) else firsts
        self._lasts = ends + np.cumsum(np.bincount(at, minlength=len(firsts))) - 1
        self.ts_ns: IntArray = np.concatenate((held[:, _TS], batch.ts_ns))[self.rows]
        sides = np.concatenate((held[:, _LOW].astype(np.bool_), batch.from_low))[self.rows]
        self._turns = np.flatnonzero(sides[1:] != sides[:-1])

    def of(self, column: int, places: npt.NDArray[np.intp]) -> IntArray:
        """One column of the packets at these places."""
        rows, count = self.rows[places], len(self._held)
        values: IntArray = self._fresh[column][np.maximum(rows - count, 0)].astype(np.int64)
        old = rows < count
        if old.any():
            values[old] = self._held[rows[old], column]
        return values

    def fresh(self, places: npt.NDArray[np.intp]) -> FlagArray:
        """Is the packet at each place one of this batch?"""
        return self.rows[places] >= len(self._held)

    def apart(self) -> npt.NDArray[np.intp]:
        """Places of packets whose pair's next packet is in a later cell of the grid, but not much later."""
        cells = self.ts_ns >> CELL_BITS
        places = np.flatnonzero(cells[1:] > cells[:-1])
        same = self.of(_PAIR, places) == self.of(_PAIR, places + 1)
        places = places[same]
        near = self.ts_ns[places + 1] - self.ts_ns[places] <= LONGEST_NS
        near &= self.of(_NOW, places + 1) - self.of(_NOW, places) <= LONGEST_NS
        found: npt.NDArray[np.intp] = places[near]
        return found

    def answered(self, places: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], FlagArray]:
        """Place of the last packet of the other side before each place, and whether there is one."""
        turn = np.searchsorted(self._turns, places) - 1
        if len(self._turns) == 0:
            return places, np.zeros(len(places), np.bool_)
        before = self._turns[np.maximum(turn, 0)]
        return before, (turn >= 0) & (self.of(_PAIR, before) == self.of(_PAIR, places))

    def last_ones(self) -> IntArray:
        """What the next batch needs: the last two packets of each pair, and the last one of the other side."""
        lasts = self._lasts
        lasts = lasts[(self.of(_FLAGS, lasts) & SYN) == 0]
        lasts = lasts[self._now_ns - self.of(_NOW, lasts) <= LONGEST_NS]
        previous = np.maximum(lasts - 1, 0)
        beside = (previous < lasts) & (self.of(_PAIR, previous) == self.of(_PAIR, lasts))
        other, heard = self.answered(lasts)
        places = np.unique(np.concatenate((lasts, previous[beside], other[heard])))
        kept = np.stack([self.of(column, places) for column in range(len(_COLUMNS))], axis=1)
        idle = self._unheard[self._now_ns - self._newest(self._unheard) <= LONGEST_NS]
        both = np.concatenate((idle, kept))
        return both[np.argsort(both[:, _PAIR], kind="stable")]

    def _newest(self, held: IntArray) -> IntArray:
        """The capture's clock at the last packet held of each row's pair."""
        ends = np.searchsorted(held[:, _PAIR], held[:, _PAIR], side="right") - 1
        newest: IntArray = held[ends, _NOW]
        return newest


def _where(wanted: IntArray, among: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.intp], FlagArray]:
    """Place of each wanted number among different ones in any order, and whether it is there."""
    order = np.argsort(among, kind="stable")
    found = np.searchsorted(among[order], wanted)
    known = found < len(among)
    found[known] = order[found[known]]
    known[known] = among[found[known]] == wanted[known]
    return found, known


def _stalls(rows: _Rows, apart: npt.NDArray[np.intp]) -> list[tuple[int, Stall]]:
    """Data, its bare acknowledgement after a while, and at once data behind it."""
    apart = apart[apart + 2 < len(rows.rows)]
    apart = apart[rows.ts_ns[apart + 1] - rows.ts_ns[apart] >= SHORTEST_STALL_NS]
    apart = apart[rows.fresh(apart + 2)]
    sent, acked, more = apart, apart + 1, apart + 2
    answer_ns = rows.ts_ns[more] - rows.ts_ns[acked]
    end = rows.of(_SEQ, sent) + rows.of(_SIZE, sent) & MASK
    good = (rows.of(_PAIR, sent) == rows.of(_PAIR, more)) & (answer_ns >= 0) & (answer_ns <= LATEST_ANSWER_NS)
    good &= (rows.of(_LOW, sent) != rows.of(_LOW, acked)) & (rows.of(_LOW, sent) == rows.of(_LOW, more))
    good &= (rows.of(_SIZE, sent) > 0) & (rows.of(_SIZE, acked) == 0) & (rows.of(_SIZE, more) > 0)
    good &= (rows.of(_ACK, acked) == end) & (rows.of(_SEQ, more) == end) & (rows.of(_WINDOW, acked) > 0)
    good &= ((rows.of(_FLAGS, sent) | rows.of(_FLAGS, acked)) & (SYN | FIN | RST)) == 0
    good &= ((rows.of(_FLAGS, more) & (SYN | RST)) == 0) & ((rows.of(_FLAGS, acked) & ACK) != 0)
    good &= rows.of(_NOW, more) - rows.of(_NOW, sent) <= LONGEST_NS
    sent, acked, more = sent[good], acked[good], more[good]
    stalls = map(
        Stall,
        rows.of(_PACKET, sent).tolist(),
        rows.of(_LOW, sent).astype(np.bool_).tolist(),
        rows.of(_PACKET, more).tolist(),
        rows.ts_ns[sent].tolist(),
        rows.ts_ns[acked].tolist(),
        rows.ts_ns[more].tolist(),
        rows.of(_SEQ, more).tolist(),
        rows.of(_SIZE, sent).tolist(),
        rows.of(_SIZE, more).tolist(),
    )
    return list(zip(rows.of(_PAIR, sent).tolist(), stalls, strict=True))


def _full(rows: _Rows, apart: npt.NDArray[np.intp]) -> list[tuple[int, Full]]:
    """Both senders of a pair, before each time without a packet: does what is on its way fill the other's window?"""
    apart = apart[rows.fresh(apart + 1)]
    other, heard = rows.answered(apart)
    apart, other = apart[heard], other[heard]
    # Each packet once as the sender's last one, once as the receiver's.
    before, sender, receiver = (np.concatenate(two) for two in ((apart, apart), (apart, other), (other, apart)))
    end = rows.of(_SEQ, sender) + rows.of(_SIZE, sender) & MASK
    flight, window = end - rows.of(_ACK, receiver) & MASK, rows.of(_WINDOW, receiver)
    likely = (flight >= LEAST_FLIGHT_BYTES) & (flight <= 0xFFFF << MOST_SHIFT) & (window > 0)
    before, sender, receiver = before[likely], sender[likely], receiver[likely]
    end, flight, window = end[likely], flight[likely], window[likely]
    shift = np.clip(np.ceil(np.log2(flight / window)), 0, MOST_SHIFT).astype(np.int64)
    room = (window << shift) - flight
    after = before + 1
    good = (room >= 0) & (room * _ROOM_PART < window << shift)
    good &= ((rows.of(_FLAGS, sender) | rows.of(_FLAGS, receiver)) & (SYN | RST)) == 0
    good &= (rows.of(_FLAGS, receiver) & ACK) != 0
    for place in (sender, receiver):
        good &= rows.of(_NOW, after) - rows.of(_NOW, place) <= LONGEST_NS
    before, sender, after = before[good], sender[good], after[good]
    first_cell = rows.ts_ns[before] >> CELL_BITS
    signs = map(
        Full,
        rows.of(_PACKET, before).tolist(),
        rows.of(_LOW, sender).astype(np.bool_).tolist(),
        rows.of(_PACKET, after).tolist(),
        rows.ts_ns[before].tolist(),
        rows.ts_ns[after].tolist(),
        (first_cell + 1).tolist(),
        ((rows.ts_ns[after] >> CELL_BITS) - first_cell).tolist(),
        end[good].tolist(),
        (window << shift)[good].tolist(),
        shift[good].tolist(),
        room[good].tolist(),
    )
    return list(zip(rows.of(_PAIR, before).tolist(), signs, strict=True))
