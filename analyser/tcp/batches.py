"""A packet batch in the shapes that the two paths of the flow table need.

In: a `PacketBatch`, and which of its packets are copies. Out: runs of in-order data segments per stretch and direction
for the quick path, rows of single packets for the careful one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.acks import Said, said_in
from wirewitness.analyser.tcp.chunks import Run, Segments
from wirewitness.analyser.tcp.packet_clock import Passing
from wirewitness.analyser.tcp.segment_runs import Places, Stretch, Stretches
from wirewitness.analyser.tcp.tcp import MASK
from wirewitness.dissectors.core.model import packet_of

_ROWS_AT_A_TIME = 4096

IntArray = npt.NDArray[np.int64]
FlagArray = npt.NDArray[np.bool_]


class PacketRow(NamedTuple):
    """One packet for the careful path. now_ns: latest time in the capture up to it. copy: it was captured before."""

    packet: int
    ts_ns: int
    now_ns: int
    from_low: bool
    seq: int
    ack: int
    flags: int
    window: int
    payload: memoryview
    wire_bytes: int
    copy: bool
    window_scale: int
    segment_size: int
    dsack_seq: int
    dsack_bytes: int
    ttl: int
    ip_id: int


@dataclass(slots=True)
class ReadyRun:
    """Data segments of one direction in one stretch, each of which begins where the one before it ended: rows `first`
    to `last` of the sorted columns. size: bytes."""

    first: int
    last: int
    seq: int
    size: int


# The runs of a stretch that the high endpoint sent, and those of the low one. Behind the first one, bytes are missing
# in front of each.
Runs = tuple[list[ReadyRun], list[ReadyRun]]
NO_RUNS: Runs = ([], [])


class BatchColumns:
    """A batch's columns. `copies`: True where a packet was captured before."""

    def __init__(
        self, batch: PacketBatch, file_index: int, copies: FlagArray, now_ns: int, clock: IntArray | None = None
    ) -> None:
        """now_ns: the capture's clock before the batch. clock: for each packet, where packets are left out."""
        self._batch = batch
        self._data = batch.data
        self._copies = copies
        self.file_index = file_index
        self.packet: IntArray = batch.packet + packet_of(file_index, 0)
        running = np.maximum.accumulate(batch.ts_ns) if clock is None else clock
        self.now_ns: IntArray = np.maximum(running, now_ns)
        self._seq = np.zeros(0, np.int64)
        self._rows: Places = np.zeros(0, np.intp)
        self._order: Places = np.zeros(0, np.intp)
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._packets: list[int] = []
        self._ts_ns: list[int] = []

    def runs(self, cut: Stretches) -> dict[int, Runs]:
        """Data segments in the order of stretch, direction and capture, a run wherever bytes are missing before it.

        By the stretch's number. Packets that must be looked at one by one are left out.
        """
        batch = self._batch
        rows = self._order = cut.order
        chosen = (batch.wire_payload_bytes[rows] > 0) & ~self._copies[rows] & ~cut.alone
        if not chosen.any():
            return {}
        rows = rows[chosen]
        key = cut.number[chosen] * 2 + batch.from_low[rows]
        by_key = np.argsort(key, kind="stable")
        rows, key = rows[by_key], key[by_key]
        seq, size = batch.seq[rows], batch.payload_bytes[rows].astype(np.int64)
        self._seq, self._rows = seq, rows
        starts = batch.payload_start[rows]
        self._starts, self._ends = starts.tolist(), (starts + size).tolist()
        self._packets, self._ts_ns = self.packet[rows].tolist(), batch.ts_ns[rows].tolist()
        begins = (key[1:] != key[:-1]) | (seq[1:] != (seq[:-1] + size[:-1]) & MASK)
        firsts = np.flatnonzero(np.concatenate(([True], begins)))
        lasts = np.append(firsts[1:], len(rows)).tolist()
        sizes = np.add.reduceat(size, firsts).tolist()
        found: dict[int, Runs] = {}
        for run_key, first, last, run_seq, run_size in zip(
            key[firsts].tolist(), firsts.tolist(), lasts, seq[firsts].tolist(), sizes, strict=True
        ):
            of_stretch = found.get(run_key >> 1)
            if of_stretch is None:
                of_stretch = found[run_key >> 1] = ([], [])
            of_stretch[run_key & 1].append(ReadyRun(first, last, run_seq, run_size))
        return found

    def part(self, stretch: Stretch, runs: Runs, rows: Places, first: int, until: int) -> tuple[Stretch, Runs]:
        """A stretch and its runs, of which `rows` are all rows, from its packet `first` to before `until`."""
        chosen = rows[first:until]
        ts_ns = self._batch.ts_ns[chosen]
        part = stretch._replace(
            first=stretch.first + first,
            last=stretch.first + until,
            copies=int(self._copies[chosen].sum()) if stretch.copies else 0,
            ts_first_ns=int(ts_ns.min()),
            ts_last_ns=int(ts_ns.max()),
        )
        high, low = runs
        ends = int(chosen[0]), int(chosen[-1])
        return part, (self._between(high, *ends), self._between(low, *ends))

    def _between(self, runs: list[ReadyRun], first_row: int, last_row: int) -> list[ReadyRun]:
        """What of these runs of one direction lies between two rows, both included."""
        rows = self._rows
        begin = bisect_left(runs, first_row, key=lambda run: rows[run.last - 1])
        end = bisect_right(runs, last_row, begin, key=lambda run: rows[run.first])
        found = runs[begin:end]
        if found:
            found[0] = self._cut(found[0], first_row, last_row)
            found[-1] = self._cut(found[-1], first_row, last_row)
        return found

    def _cut(self, run: ReadyRun, first_row: int, last_row: int) -> ReadyRun:
        """What of a run lies between two rows, which is something."""
        first = bisect_left(self._rows, first_row, run.first, run.last)
        last = bisect_right(self._rows, last_row, first, run.last)
        if (first, last) == (run.first, run.last):
            return run
        seq = int(self._seq[first])
        # Each segment begins where the one before it ended.
        size = ((int(self._seq[last - 1]) - seq) & MASK) + self._ends[last - 1] - self._starts[last - 1]
        return ReadyRun(first, last, seq, size)

    @cached_property
    def passing(self) -> Passing:
        """The packets in their order, numbered; once there are runs."""
        return Passing(self._batch, self.packet, self._order, self._copies)

    def come_by(self, run: ReadyRun, number: int) -> int:
        """How many of a run's segments have come with the packet of this number (`Passing`) or before."""
        row = self.passing.row(number)
        return bisect_right(self._rows, row, run.first, run.last) - run.first

    def first_number(self, run: ReadyRun) -> int:
        """The number (`Passing`) of the packet in which a run begins."""
        return self.passing.number(int(self._rows[run.first]))

    def said(self, rows: Places) -> tuple[Said | None, Said | None]:
        """See `said_in`."""
        return said_in(self._batch, self._copies, rows)

    def first_of(self, chosen: npt.NDArray[np.intp], from_low: int) -> tuple[int, int] | None:
        """Sequence number and TTL of the first of these packets that this side sent."""
        batch = self._batch
        sent = chosen[(batch.from_low[chosen] == from_low) & ~self._copies[chosen]]
        return (int(batch.seq[sent[0]]), int(batch.ttl[sent[0]])) if len(sent) else None

    def each(self, chosen: npt.NDArray[np.intp]) -> Iterator[PacketRow]:
        """The chosen packets one by one, made on the way."""
        for first in range(0, len(chosen), _ROWS_AT_A_TIME):
            yield from self.rows(chosen[first : first + _ROWS_AT_A_TIME])

    def run(self, ready: ReadyRun) -> Run:
        """The bytes of a ready run."""
        first, last = ready.first, ready.last
        data = self._data
        ends = zip(self._starts[first:last], self._ends[first:last], strict=True)
        pieces: list[bytes | memoryview] = [data[a:b] for a, b in ends]
        positions = list(accumulate(map(len, pieces), initial=0))
        size = positions.pop()
        packets = self._packets[first:last]
        return Run(pieces, size, Segments(positions, packets, self._ts_ns[first:last], packets))

    def rows(self, chosen: npt.NDArray[np.intp]) -> list[PacketRow]:
        """The chosen packets one by one."""
        batch, data = self._batch, self._data
        starts = batch.payload_start[chosen]
        ends = starts + batch.payload_bytes[chosen]
        payloads = [data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        columns = (
            self.packet[chosen].tolist(),
            batch.ts_ns[chosen].tolist(),
            self.now_ns[chosen].tolist(),
            batch.from_low[chosen].tolist(),
            batch.seq[chosen].tolist(),
            batch.ack[chosen].tolist(),
            batch.flags[chosen].tolist(),
            batch.window[chosen].tolist(),
            payloads,
            batch.wire_payload_bytes[chosen].tolist(),
            self._copies[chosen].tolist(),
            batch.window_scale[chosen].tolist(),
            batch.segment_size[chosen].tolist(),
            batch.dsack_seq[chosen].tolist(),
            batch.dsack_bytes[chosen].tolist(),
            batch.ttl[chosen].tolist(),
            batch.ip_id[chosen].tolist(),
        )
        return list(map(PacketRow._make, zip(*columns, strict=True)))
