"""Packets of a flow that leave gaps in its streams, or come while some are open, taken together.

In: a flow with what waits behind gaps, and packets that only continue its streams or go on further ahead. Out: the
flow after them. When a gap is given up says `Half.after_packet`, packet by packet; here it is reckoned for each gap
from the numbers of packets, so that a gap is a step and not each packet that comes while it is open.
"""

from __future__ import annotations

from bisect import bisect_right

from wirewitness.analyser.tcp.acks import Said
from wirewitness.analyser.tcp.batches import BatchColumns, ReadyRun, Runs
from wirewitness.analyser.tcp.chunks import Run
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.packet_clock import Acks, Passing
from wirewitness.analyser.tcp.segment_intake import confirm_alike, count_together
from wirewitness.analyser.tcp.segment_runs import Places, Stretch
from wirewitness.analyser.tcp.streams import PATIENCE_NS, PENDING_BYTES, UNACKED_FACTOR, Half
from wirewitness.analyser.tcp.tcp import MASK
from wirewitness.dissectors.core.limits import Limits

# For fewer packets it does not pay to take them together.
LEAST = 8
# So many are taken at most: what they bring may all have to be held, for which there is a limit.
MOST = 1024
# Within this distance of the next byte sequence numbers are unwrapped alike, before and behind the packets.
_REACH_BYTES = 1 << 29


def goes_on(flow: Flow, runs: Runs, limits: Limits) -> bool:
    """True when every run continues what its side sent last, delivered or waiting, or lies behind it.

    And nothing but the packets that pass makes anybody give up a gap.
    """
    if flow.closed_ts_ns is not None or flow.is_claimed:
        return False
    for half, own in zip(flow.halves, runs, strict=True):
        if half.zero_since_ns is not None or (own and not half.started):
            return False
        end, held = half.sent_until, half.pending_bytes
        for run in own:
            end += ((run.seq - end) & MASK) + run.size
            held += run.size + (run.last - run.first) * PENDING_BYTES
        if end - half.next_seq >= _REACH_BYTES or held > limits.max_pending_bytes:
            return False
    return True


def take_with_gaps(
    flow: Flow,
    stretch: Stretch,
    rows: Places,
    runs: Runs,
    columns: BatchColumns,
    said: tuple[Said | None, Said | None],
    limits: Limits,
) -> bool:
    """Packets for which `goes_on` holds. False: an acknowledgement is far off, and nothing has been taken."""
    if not confirm_alike(flow, said):
        return False
    passing = columns.passing
    first, end = passing.ends(rows)
    sides = list[_Side]()
    for from_low, (half, own) in enumerate(zip(flow.halves, runs, strict=True)):
        if half.pending or own:
            acks = passing.acks(first, end, 1 - from_low, half.next_seq)
            if acks.furthest >= _REACH_BYTES:
                return False
            sides.append(_Side(half, own, columns, acks, limits))
    for side in sides:
        side.take(first, end, stretch.ts_last_ns)
    count_together(flow, stretch, rows, runs, columns, said)
    for side in sides:
        side.confirm()
    return True


class _Side:
    """What one side sent in these packets, and its stream."""

    def __init__(self, half: Half, runs: list[ReadyRun], columns: BatchColumns, acks: Acks, limits: Limits) -> None:
        self._half = half
        self._runs = runs
        self._columns = columns
        self._passing: Passing = columns.passing
        self._acks = acks
        self._limits = limits
        # What was confirmed before these packets since something waits; which acknowledgements count, and which of
        # them may be the first one beyond the gap in hand.
        self._acked = half.acked
        self._since = self._at = 0

    def take(self, first: int, end: int, ts_last_ns: int) -> None:
        """Packets from number `first` to before `end`; none of them was captured later than at `ts_last_ns`."""
        half, runs, passing = self._half, self._runs, self._passing
        # Packets that follow this one have passed since something waits, and what waited became readable at it.
        passed = first - 1 - half.waited if half.pending else first - 1
        given_up = before = first - 1
        delivered = list[bytes | memoryview]()
        taken = 0
        while half.pending or taken < len(runs):
            if half.pending:
                waits_since_ns = half.waiting_since_ns
            else:
                run = runs[taken]
                if half.next_seq & MASK == run.seq:
                    delivered += self._deliver(run, given_up if given_up > before else None)
                    taken += 1
                    continue
                begins = self._columns.first_number(run)
                waits_since_ns = passing.ts_ns(begins)
                if begins > given_up:
                    self._opened(begins)
                    passed = begins - 1
            may_be_late = ts_last_ns - waits_since_ns > PATIENCE_NS
            lost_at = self._lost_at(passed, given_up, end, waits_since_ns if may_be_late else None)
            if lost_at is None:
                half.waited, half.waiting_since_ns = end - 1 - passed, waits_since_ns
                break
            passed = given_up = lost_at
            packet, ts_ns = passing.packet(lost_at), passing.ts_ns(lost_at)
            delivered.clear()
            if half.pending:
                half.lose(packet, ts_ns)
            else:
                half.skip_to(half.unwrap(runs[taken].seq), packet, ts_ns)
        if delivered:
            half.remember(delivered)
        seq = half.sent_until
        for run in runs[taken:]:
            seq += (run.seq - seq) & MASK
            half.hold_run(seq, self._columns.run(run))
            seq += run.size

    def confirm(self) -> None:
        """Of what waits, only what was confirmed since it does counts."""
        if self._half.pending:
            self._half.acked = max([self._acked, *self._acks.seqs[self._since :]])

    def _opened(self, number: int) -> None:
        """Nothing waited before this packet: only confirmations from here on count."""
        self._acked = self._half.next_seq
        self._since = bisect_right(self._acks.numbers, number)
        self._at = max(self._at, self._since)

    def _deliver(self, run: ReadyRun, given_up: int | None) -> list[bytes | memoryview]:
        """A run that continues the stream; what came by the packet with which a gap was given up waited for it."""
        ready = self._columns.run(run)
        waited = 0 if given_up is None else self._columns.come_by(run, given_up)
        if given_up is not None and waited:
            pieces, size, segments = ready
            order = [self._passing.packet(given_up)] * waited + segments.order[waited:]
            ready = Run(pieces, size, segments._replace(order=order))
            self._half.out_of_order += waited
        self._half.deliver_run(ready)
        return ready.pieces

    def _lost_at(self, passed: int, given_up: int, end: int, waits_since_ns: int | None) -> int | None:
        """The packet with which the first gap is given up; None where that is not before `end`.

        passed: the last packet that does not count. given_up: the last one with which the one before was given up, or
        before these packets. waits_since_ns: None where no packet is so late that patience ends.
        """
        most = self._limits.max_pending_packets
        found = max(passed + UNACKED_FACTOR * most + 1, given_up + 1)
        confirmed = self._confirmed_at(given_up + 1)
        if confirmed is not None:
            patient = max(passed + most + 1, confirmed)
            if waits_since_ns is not None:
                late = self._passing.first_later(confirmed, min(patient, end), waits_since_ns + PATIENCE_NS)
                patient = patient if late is None else late
            found = min(found, patient)
        return found if found < end else None

    def _confirmed_at(self, first: int) -> int | None:
        """The first packet, `first` or behind it, by which a byte behind the gap was confirmed."""
        next_seq, (numbers, seqs, _) = self._half.next_seq, self._acks
        if self._acked > next_seq:
            return first
        # Holes come one behind the other, and so do the acknowledgements that are beyond them.
        while self._at < len(seqs) and seqs[self._at] <= next_seq:
            self._at += 1
        return max(numbers[self._at], first) if self._at < len(seqs) else None
