"""Reassembly of one direction of a TCP connection. In: segments. Out: runs of stream bytes, and gaps.

The common case, bytes in order, is prepared by `analyser/flows.py` with array arithmetic and comes in through
`append_run`. Everything else (start, retransmission, overlap, disorder, loss) comes packet by packet through `segment`.
Sequence numbers are unwrapped: `next_seq` grows beyond 32 bits, so that stream offsets do.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import NamedTuple

from dissectors.core.limits import Limits

_HALF = 1 << 31
_MASK = (1 << 32) - 1
_PATIENCE_NS = 1_000_000_000
_UNACKED_FACTOR = 4


class Run(NamedTuple):
    """Contiguous stream bytes in pieces, one per segment.

    positions: offset of each piece in the run. packets, ts_ns: the packet it came in. order: the packet at which it
    became readable (later than `packets` where an earlier hole had to close first).
    """

    pieces: list[bytes] | list[memoryview]
    size: int
    positions: list[int]
    packets: list[int]
    ts_ns: list[int]
    order: list[int]


class Gap(NamedTuple):
    """Bytes that are missing from the capture. `order`, `ts_ns`: the packet at which that was decided."""

    size: int
    order: int
    ts_ns: int


class Pending(NamedTuple):
    """A segment that waits for earlier bytes."""

    seq: int
    packet: int
    ts_ns: int
    data: bytes


@dataclass(slots=True)
class Half:
    """One direction of a flow."""

    isn: int | None = None
    started: bool = False
    first_seq: int | None = None
    base: int = 0
    next_seq: int = 0
    acked: int = 0
    pending: list[Pending] | None = None
    pending_bytes: int = 0
    waited: int = 0
    waiting_since_ns: int = 0
    queue: list[Run | Gap] | None = None
    gap_bytes: int = 0
    retransmitted: int = 0
    out_of_order: int = 0
    truncated: int = 0
    fin_seq: int | None = None

    def start(self, seq: int, isn: int | None = None) -> None:
        """The stream's first byte has sequence number `seq`."""
        self.started = True
        self.isn = isn
        self.base = self.next_seq = self.acked = seq

    @property
    def clean(self) -> bool:
        """True when nothing is held back, so that in-order segments can be appended as they are."""
        return self.started and not self.pending

    @property
    def stream_bytes(self) -> int:
        """Stream bytes seen or skipped so far."""
        return self.next_seq - self.base

    def emit(self, item: Run | Gap) -> None:
        """Queue what the decoder takes next."""
        if self.queue is None:
            self.queue = []
        self.queue.append(item)

    def take(self) -> list[Run | Gap]:
        """What was queued since the last call."""
        queue, self.queue = self.queue or [], None
        return queue

    def append_run(self, run: Run) -> None:
        """Bytes that continue the stream exactly at `next_seq`."""
        self.next_seq += run.size
        self.emit(run)

    def unwrap(self, seq: int) -> int:
        """The unwrapped sequence number nearest to what is expected next."""
        return self.next_seq + ((seq - self.next_seq + _HALF) & _MASK) - _HALF

    def finish_at(self, seq: int) -> None:
        """The sender's FIN: its stream ends before `seq`."""
        self.fin_seq = self.unwrap(seq) if self.started else seq

    def acknowledged(self, ack: int) -> None:
        """The receiver confirmed all bytes before `ack`."""
        if self.started:
            unwrapped = self.unwrap(ack)
            self.acked = max(self.acked, unwrapped)

    def segment(self, seq: int, data: memoryview, wire_bytes: int, packet: int, ts_ns: int) -> None:
        """One segment with payload. `wire_bytes` above len(data) means that the snap length cut it."""
        if not self.started:
            self.start(seq)
        if len(data) < wire_bytes:
            self.truncated += 1
        at = self.unwrap(seq)
        behind = self.next_seq - at
        if behind < 0:
            self._hold(at, data, packet, ts_ns)
            return
        if behind >= wire_bytes:
            self.retransmitted += 1
            return
        if behind:
            self.retransmitted += 1
        self._deliver(at, data, packet, ts_ns, packet)
        if len(data) < wire_bytes:
            self._skip_to(at + wire_bytes, packet, ts_ns)
        if self.pending:
            self._drain(packet)

    def after_packet(self, packet: int, ts_ns: int, limits: Limits) -> None:
        """Called for every packet of the flow while segments are held: is the hole before them lost for good?

        It is when the receiver confirmed bytes behind it and the capture went on for a while without it, when far
        more packets passed although no acknowledgement is visible (one-sided capture), or when too much is held.
        """
        if not self.pending:
            return
        self.waited += 1
        confirmed = self.acked > self.next_seq
        patient = self.waited > limits.max_pending_packets or ts_ns - self.waiting_since_ns > _PATIENCE_NS
        if (
            (confirmed and patient)
            or self.waited > _UNACKED_FACTOR * limits.max_pending_packets
            or self.pending_bytes > limits.max_pending_bytes
        ):
            self._skip_to(self.pending[0].seq, packet, ts_ns)
            self._drain(packet)

    def flush(self, packet: int, ts_ns: int) -> None:
        """The flow ends: give up every hole and deliver what is held."""
        while self.pending:
            self._skip_to(self.pending[0].seq, packet, ts_ns)
            self._drain(packet)
        if self.fin_seq is not None:
            self._skip_to(self.fin_seq, packet, ts_ns)

    def _hold(self, at: int, data: memoryview, packet: int, ts_ns: int) -> None:
        self.out_of_order += 1
        if not self.pending:
            self.pending = []
            self.waited = 0
            self.waiting_since_ns = ts_ns
            # Only confirmations from here on count, so that the result does not depend on how packets were batched.
            self.acked = self.next_seq
        insort(self.pending, Pending(at, packet, ts_ns, bytes(data)))
        self.pending_bytes += len(data)

    def _drain(self, order: int) -> None:
        pending = self.pending or []
        used = 0
        for held in pending:
            if held.seq > self.next_seq:
                break
            used += 1
            self.pending_bytes -= len(held.data)
            if held.seq + len(held.data) > self.next_seq:
                self._deliver(held.seq, memoryview(held.data), held.packet, held.ts_ns, order)
            else:
                self.retransmitted += 1
        if used:
            del pending[:used]
            self.waited = 0
            if pending:
                self.waiting_since_ns = pending[0].ts_ns

    def _deliver(self, at: int, data: memoryview, packet: int, ts_ns: int, order: int) -> None:
        fresh = data[self.next_seq - at :]
        if fresh:
            self.append_run(Run([fresh], len(fresh), [0], [packet], [ts_ns], [order]))

    def _skip_to(self, seq: int, packet: int, ts_ns: int) -> None:
        missing = seq - self.next_seq
        if missing > 0:
            self.gap_bytes += missing
            self.next_seq = seq
            self.emit(Gap(missing, packet, ts_ns))
