"""From packet batches to flows with reassembled streams.

In: `PacketBatch` (arrays of TCP segments). Out: for every flow a batch touched, runs of stream bytes and gaps, handed
to a callback before the batch's buffer is used again.

A flow whose segments simply continue both streams is taken with array arithmetic and one join per direction. Start,
end, disorder, loss and cut packets send a flow's packets of that batch through the careful path, one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from analyser.capture import EndpointTable, PacketBatch
from analyser.streams import Half, Run
from dissectors.core.limits import Limits
from dissectors.core.model import packet_of

FIN, SYN, RST, ACK = 1, 2, 4, 16
_SPECIAL = FIN | SYN | RST
LINGER_NS = 60_000_000_000
_MASK = (1 << 32) - 1

IntArray = npt.NDArray[np.int64]


@dataclass(slots=True)
class Flow:
    """One TCP connection. `halves[0]` is what the pair's high endpoint sent, `halves[1]` what the low one sent.

    first_packet: the packet that opened it, in the order of the capture; no two flows share one, and it does not depend
        on how packets were batched or shared among processes, so rows name their flow by it.
    client_is_low: None until the handshake or the protocol tells. closed_by_low likewise.
    decoder: what consumes the streams; None once the flow is finished.
    """

    index: int
    pair: int
    first_packet: int
    ts_first_ns: int
    ts_last_ns: int
    last_packet: int
    packets: int = 0
    halves: tuple[Half, Half] = field(default_factory=lambda: (Half(), Half()))
    client_is_low: bool | None = None
    syn_seen: list[bool] = field(default_factory=lambda: [False, False])
    closed_by_low: bool | None = None
    first_close_ns: int | None = None
    closed_ts_ns: int | None = None
    protocol: str | None = None
    identified_by: str | None = None
    decoder: Any = None
    finished: bool = False


FlowCallback = Callable[[Flow], None]


def flow_id(flow: Flow, endpoints: EndpointTable) -> str:
    """Digest of endpoints, encapsulation and both initial sequence numbers (design: content, never a counter or time).

    A direction that starts mid-stream gives the first sequence number seen instead of the initial one.
    """
    names = endpoints[flow.pair]
    starts = [half.isn if half.isn is not None else half.first_seq for half in flow.halves]
    text = "|".join(
        str(part)
        for part in (
            names.low_address,
            names.low_port,
            names.high_address,
            names.high_port,
            names.encapsulation,
            *("" if start is None else start & _MASK for start in starts),
        )
    )
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class FlowTable:
    """All flows of an analysis. `consume(flow)` is called whenever a flow may have queued runs, in batch order."""

    def __init__(self, limits: Limits, consume: FlowCallback) -> None:
        self.flows: list[Flow] = []
        self._limits = limits
        self._consume = consume
        self._current: npt.NDArray[np.int32] = np.full(1024, -1, np.int32)
        self._file_index = 0

    def next_file(self, index: int) -> None:
        """Packets that follow come from the capture with this index."""
        self._file_index = index

    def feed(self, batch: PacketBatch) -> None:
        """Take one batch; calls `consume` for every flow in it."""
        if len(batch) == 0:
            return
        self._grow(int(batch.pair.max()) + 1)
        columns = _Columns(batch, self._file_index)
        order = np.argsort(batch.pair, kind="stable")
        pairs = batch.pair[order]
        bounds = np.flatnonzero(np.diff(pairs)) + 1
        firsts = np.concatenate(([0], bounds))
        lasts = np.concatenate((bounds, [len(pairs)]))
        special = np.add.reduceat((batch.flags[order] & _SPECIAL) != 0, firsts)
        ready = columns.runs(batch)
        ts_sorted = batch.ts_ns[order]
        for pair, first, last, unusual in zip(
            pairs[firsts].tolist(), firsts.tolist(), lasts.tolist(), special.tolist(), strict=True
        ):
            current = int(self._current[pair])
            flow = self.flows[current] if current >= 0 else None
            runs = ready.get(pair)
            if flow is None or unusual or not _continues(flow, runs):
                self._careful(columns.rows(order[first:last]), pair)
                continue
            if flow.finished:
                runs = ()
            for run in runs or ():
                flow.halves[run.from_low].append_run(columns.run(run))
            flow.packets += last - first
            flow.ts_last_ns = max(flow.ts_last_ns, int(ts_sorted[first:last].max()))
            flow.last_packet = int(columns.packet[order[last - 1]])
            self._consume(flow)

    def finish(self) -> None:
        """No packets follow: flush and finish every flow."""
        for flow in self.flows:
            self._finish(flow)

    def _finish(self, flow: Flow) -> None:
        if flow.finished:
            return
        for half in flow.halves:
            half.flush(flow.last_packet, flow.ts_last_ns)
        flow.finished = True
        self._consume(flow)

    def _grow(self, pairs: int) -> None:
        if pairs > len(self._current):
            grown = np.full(max(pairs, 2 * len(self._current)), -1, np.int32)
            grown[: len(self._current)] = self._current
            self._current = grown

    def _open(self, pair: int, packet: int, ts_ns: int) -> Flow:
        current = int(self._current[pair])
        if current >= 0:
            self._finish(self.flows[current])
        flow = Flow(len(self.flows), pair, packet, ts_ns, ts_ns, packet)
        self.flows.append(flow)
        self._current[pair] = flow.index
        return flow

    def _careful(self, rows: list[tuple[Any, ...]], pair: int) -> None:
        """All packets of one pair in one batch, one by one in capture order."""
        limits = self._limits
        current = int(self._current[pair])
        flow = self.flows[current] if current >= 0 else None
        for packet, ts_ns, from_low, seq, ack, flags, payload, wire_bytes in rows:
            if flow is None or (flags & SYN and _starts_anew(flow, from_low, seq)):
                if flow is not None:
                    self._consume(flow)
                flow = self._open(pair, packet, ts_ns)
            flow.packets += 1
            flow.ts_first_ns = min(flow.ts_first_ns, ts_ns)
            flow.ts_last_ns = max(flow.ts_last_ns, ts_ns)
            flow.last_packet = packet
            if flow.closed_ts_ns is not None and ts_ns - flow.closed_ts_ns > LINGER_NS:
                self._finish(flow)
            if flow.finished:
                continue
            sender, receiver = flow.halves[from_low], flow.halves[not from_low]
            if sender.first_seq is None:
                sender.first_seq = seq
            if flags & SYN:
                _handshake(flow, from_low, seq, flags)
                seq += 1
            if flags & ACK:
                receiver.acknowledged(ack)
            if wire_bytes:
                sender.segment(seq, payload, wire_bytes, packet, ts_ns)
            if flags & (FIN | RST):
                _close(flow, from_low, flags, seq + wire_bytes, ts_ns)
            for half in flow.halves:
                if half.pending:
                    half.after_packet(packet, ts_ns, limits)
        if flow is not None:
            self._consume(flow)


def _starts_anew(flow: Flow, from_low: bool, seq: int) -> bool:
    """Does this SYN begin another connection on the same endpoints (port reuse), or belong to the one known?"""
    half = flow.halves[from_low]
    if half.isn is not None:
        return half.isn & _MASK != seq
    return half.started


def _handshake(flow: Flow, from_low: bool, seq: int, flags: int) -> None:
    half = flow.halves[from_low]
    if not half.started:
        half.start(seq + 1, isn=seq)
    flow.syn_seen[from_low] = True
    if flow.client_is_low is None:
        flow.client_is_low = from_low != bool(flags & ACK)


def _close(flow: Flow, from_low: bool, flags: int, end_seq: int, ts_ns: int) -> None:
    if flow.first_close_ns is None or ts_ns < flow.first_close_ns:
        flow.closed_by_low, flow.first_close_ns = from_low, ts_ns
    if flags & FIN:
        flow.halves[from_low].finish_at(end_seq)
    if flags & RST or all(half.fin_seq is not None for half in flow.halves):
        flow.closed_ts_ns = ts_ns


@dataclass(slots=True)
class _ReadyRun:
    """Consecutive data segments of one direction in one batch: rows `first` to `last` of the sorted columns."""

    from_low: int
    first: int
    last: int
    seq: int
    in_order: bool


def _continues(flow: Flow, runs: tuple[_ReadyRun, ...] | None) -> bool:
    """True when every run of the flow in this batch continues its stream exactly."""
    if flow.closed_ts_ns is not None and not flow.finished:
        return False
    if any(half.pending for half in flow.halves):
        return False
    for run in runs or ():
        half = flow.halves[run.from_low]
        if not (run.in_order and half.started and half.next_seq & _MASK == run.seq):
            return False
    return True


class _Columns:
    """A batch's columns in the shapes the two paths need."""

    def __init__(self, batch: PacketBatch, file_index: int) -> None:
        self._batch = batch
        self._data = batch.data
        self.packet: IntArray = batch.packet + packet_of(file_index, 0)
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._packets: list[int] = []
        self._ts_ns: list[int] = []

    def runs(self, batch: PacketBatch) -> dict[int, tuple[_ReadyRun, ...]]:
        """Data segments sorted by pair, direction and capture order, cut into one run per pair and direction."""
        data = np.flatnonzero(batch.wire_payload_bytes > 0)
        if len(data) == 0:
            return {}
        key = batch.pair[data].astype(np.int64) * 2 + batch.from_low[data]
        by_key = np.argsort(key, kind="stable")
        rows = data[by_key]
        key = key[by_key]
        seq, size = batch.seq[rows], batch.payload_bytes[rows].astype(np.int64)
        starts = batch.payload_start[rows]
        self._starts, self._ends = starts.tolist(), (starts + size).tolist()
        self._packets, self._ts_ns = self.packet[rows].tolist(), batch.ts_ns[rows].tolist()
        new_run = np.concatenate(([True], key[1:] != key[:-1]))
        follows = np.concatenate(([True], ((seq[:-1] + size[:-1]) & _MASK) == seq[1:]))
        broken = ~(follows | new_run) | (size < batch.wire_payload_bytes[rows])
        firsts = np.flatnonzero(new_run)
        lasts = np.concatenate((firsts[1:], [len(rows)]))
        breaks = np.add.reduceat(broken, firsts)
        found: dict[int, tuple[_ReadyRun, ...]] = {}
        for run_key, first, last, run_seq, bad in zip(
            key[firsts].tolist(), firsts.tolist(), lasts.tolist(), seq[firsts].tolist(), breaks.tolist(), strict=True
        ):
            run = _ReadyRun(run_key & 1, first, last, run_seq, not bad)
            found[run_key >> 1] = (*found.get(run_key >> 1, ()), run)
        return found

    def run(self, ready: _ReadyRun) -> Run:
        """The bytes of a ready run."""
        first, last = ready.first, ready.last
        data = self._data
        pieces = [data[a:b] for a, b in zip(self._starts[first:last], self._ends[first:last], strict=True)]
        positions = list(accumulate(map(len, pieces), initial=0))
        size = positions.pop()
        packets = self._packets[first:last]
        return Run(pieces, size, positions, packets, self._ts_ns[first:last], packets)

    def rows(self, chosen: npt.NDArray[np.intp]) -> list[tuple[Any, ...]]:
        """(packet, ts_ns, from_low, seq, ack, flags, payload, wire payload bytes) of the chosen packets."""
        batch, data = self._batch, self._data
        starts = batch.payload_start[chosen]
        ends = starts + batch.payload_bytes[chosen]
        payloads = [data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        return list(
            zip(
                self.packet[chosen].tolist(),
                batch.ts_ns[chosen].tolist(),
                batch.from_low[chosen].tolist(),
                batch.seq[chosen].tolist(),
                batch.ack[chosen].tolist(),
                batch.flags[chosen].tolist(),
                payloads,
                batch.wire_payload_bytes[chosen].tolist(),
                strict=True,
            )
        )
