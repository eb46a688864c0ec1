"""The packets of a batch in the order in which flows are taken, numbered without those captured before.

In: a batch, and the order of its rows. Out: by number, the packet, its time and its acknowledgement. So "64 packets
later" is an addition, and "before" a comparison of two numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.segment_runs import Places
from wirewitness.analyser.tcp.tcp import ACK, MASK

_HALF = 1 << 31


class Acks(NamedTuple):
    """What one side acknowledged of the other's stream: the numbers of its packets, rising, and the unwrapped sequence
    numbers. furthest: how far from the stream's next byte any of them is."""

    numbers: list[int]
    seqs: list[int]
    furthest: int


class Passing:
    """Packets numbered in this order."""

    def __init__(
        self, batch: PacketBatch, packet: npt.NDArray[np.int64], order: Places, copies: npt.NDArray[np.bool_]
    ) -> None:
        """packet: the number that rows name a packet by."""
        self._batch = batch
        self._packet = packet
        counts = ~copies[order]
        self._rows: Places = order[counts]
        self._from_low = batch.from_low[self._rows]
        self._has_ack = (batch.flags[self._rows] & ACK) != 0
        self._ack = batch.ack[self._rows]
        self._numbers = np.empty(len(order), np.intp)
        self._numbers[order] = np.cumsum(counts) - counts

    def row(self, number: int) -> int:
        """The row of the batch."""
        return int(self._rows[number])

    def number(self, row: int) -> int:
        """The number of a row; of one captured before, that of the packet that follows it."""
        return int(self._numbers[row])

    def ends(self, rows: Places) -> tuple[int, int]:
        """The number of the first of these packets, which follow each other, and the one behind the last."""
        first = self.number(int(rows[0]))
        last = int(rows[-1])
        end = self.number(last)
        return first, end + (end < len(self._rows) and self.row(end) == last)

    def packet(self, number: int) -> int:
        """The number that rows name the packet by."""
        return int(self._packet[self._rows[number]])

    def ts_ns(self, number: int) -> int:
        """When it was captured."""
        return int(self._batch.ts_ns[self._rows[number]])

    def first_later(self, first: int, end: int, ts_ns: int) -> int | None:
        """The first packet from `first` to before `end` that was captured later than at `ts_ns`."""
        later = np.flatnonzero(self._batch.ts_ns[self._rows[first:end]] > ts_ns)
        return first + int(later[0]) if len(later) else None

    def acks(self, first: int, end: int, from_low: int, next_seq: int) -> Acks:
        """What this side acknowledged in these packets. next_seq: the next byte of the other's stream, unwrapped."""
        said = np.flatnonzero(self._has_ack[first:end] & (self._from_low[first:end] == from_low)) + first
        ahead = ((self._ack[said] - next_seq + _HALF) & MASK) - _HALF
        furthest = max(int(ahead.max()), -int(ahead.min())) if len(said) else 0
        return Acks(said.tolist(), (ahead + next_seq).tolist(), furthest)
