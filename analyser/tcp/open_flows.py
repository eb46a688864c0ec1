"""The flows that are known: by index, and which of them a pair of endpoints has now.

In: flows as they begin, close and end. Out: the flow that a packet's pair has, back from the shelf if it lies there;
what memory all of them take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.tcp.batches import PacketRow
from wirewitness.analyser.tcp.closed_flows import Shelf
from wirewitness.analyser.tcp.complete_connections import Whole, WholeRead
from wirewitness.analyser.tcp.complete_flows import Flags, WholeFlows, recent_of
from wirewitness.analyser.tcp.flow import Flow, handshake
from wirewitness.analyser.tcp.flow_memory import SHELVED_BYTES, held_by
from wirewitness.analyser.tcp.half_open import Attempt
from wirewitness.analyser.tcp.segment_intake import LINGER_NS, copy_note, is_new
from wirewitness.analyser.tcp.streams import HISTORY_BYTES, Half
from wirewitness.analyser.tcp.tcp import MASK, SYN
from wirewitness.dissectors.core.budget import Budget
from wirewitness.dissectors.core.limits import Limits

_NONE, _ENDED = -1, -2


class OpenFlows:
    """Flows that have not ended. opened: how many there ever were; their indices count from 0 in that order."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.open: dict[int, Flow] = {}
        self._shelf = Shelf()
        self.opened = 0
        self.budget = Budget(limits.max_held_bytes)
        self._closed: deque[tuple[int, int]] = deque()
        self._current: npt.NDArray[np.int32] = np.full(1024, _NONE, np.int32)
        self._end_seq: npt.NDArray[np.int64] = np.full((1024, 2), -1, np.int64)

    @property
    def kept(self) -> int:
        """Flows in memory."""
        return len(self.open) + len(self._shelf)

    @property
    def is_free(self) -> Flags:
        """For each pair whether it has no flow."""
        free: Flags = self._current < 0
        return free

    def grow(self, pairs: int) -> None:
        """There are so many pairs."""
        have = len(self._current)
        if pairs > have:
            size = max(pairs, 2 * have)
            current, end_seq = np.full(size, _NONE, np.int32), np.full((size, 2), -1, np.int64)
            current[:have], end_seq[:have] = self._current, self._end_seq
            self._current, self._end_seq = current, end_seq

    def begins(self, row: PacketRow, pair: int) -> bool:
        """Does this packet begin a flow on a pair that has none, or does it come late for one that ended?"""
        if self._current[pair] == _NONE or row.flags & SYN:
            return not row.copy
        end = int(self._end_seq[pair][int(row.from_low)])
        return row.wire_bytes > 0 and not row.copy and (end < 0 or is_new(end, row.seq))

    def start(self, pair: int, packet: int, ts_ns: int) -> Flow:
        """A new flow of this pair, with its first packet."""
        history_bytes = int(self._history_bytes(1)[0])
        halves = [Half(notes_left=self._limits.max_tcp_remarks, history_bytes=history_bytes) for _ in range(2)]
        flow = Flow(self.opened, pair, packet, ts_ns, ts_ns, packet, (halves[0], halves[1]))
        self.opened += 1
        self.open[flow.index] = flow
        self._current[pair] = flow.index
        return flow

    def from_attempt(self, attempt: Attempt) -> Flow:
        """The flow that an attempt to connect becomes."""
        flow = self.start(attempt.pair, attempt.packet, attempt.ts_ns)
        flow.last_packet, flow.ts_last_ns = attempt.last_packet, attempt.ts_last_ns
        flow.packets, flow.duplicates = attempt.packets, attempt.duplicates
        half = flow.halves[attempt.from_low]
        half.first_seq, half.last_ns = attempt.seq, attempt.heard_ns
        half.ttl, half.ttl_lowest, half.ttl_last = attempt.ttls
        half.packets = attempt.packets - attempt.duplicates
        options = attempt.window_scale, attempt.segment_size
        handshake(flow, attempt.from_low, attempt.seq, SYN, attempt.ts_ns, *options)
        if attempt.first_copy is not None:
            half.remark(copy_note(*attempt.first_copy))
        return flow

    def _history_bytes(self, count: int) -> npt.NDArray[np.int64]:
        """How much the streams of the next flows, so many, may remember."""
        kept = self.kept + np.arange(count)
        most = np.minimum(HISTORY_BYTES, self._limits.max_history_bytes // (4 * kept + 4))
        return np.maximum(most, 1)

    def known(self, index: int) -> Flow:
        """A flow that has not ended, back from the shelf if it lies there."""
        flow = self.open.get(index)
        if flow is None:
            was_whole = self._shelf.is_whole(index)
            flow = self.open[index] = self._shelf.take(index)
            if was_whole:
                self.closed(flow)
        return flow

    def of_pair(self, pair: int) -> Flow | None:
        """The flow that a pair has now."""
        current = int(self._current[pair])
        return self.known(current) if current >= 0 else None

    def stays(self, flow: Flow) -> None:
        """It is still the one that its pair has, whatever else began there."""
        self._current[flow.pair] = flow.index

    def closed(self, flow: Flow) -> None:
        """It has closed: when its time is up it is one of `long_closed`."""
        if flow.closed_ts_ns is not None:
            self._closed.append((flow.closed_ts_ns, flow.index))

    def long_closed(self, now_ns: int) -> Iterator[Flow]:
        """Flows that closed long ago."""
        while self._closed and now_ns - self._closed[0][0] > LINGER_NS:
            index = self._closed.popleft()[1]
            if index in self.open or index in self._shelf:
                yield self.known(index)

    def all(self) -> Iterator[Flow]:
        """All flows, in the order of their indices."""
        for index in sorted([*self.open, *self._shelf]):
            yield self.known(index)

    def idle(self, count: int) -> Iterator[Flow]:
        """So many flows that were idle longest, closed ones first."""
        shelved = list(islice(self._shelf, count))
        idle = sorted(self.open.values(), key=lambda flow: (flow.closed_ts_ns is None, flow.ts_last_ns))
        yield from map(self.known, shelved)
        yield from idle[: count - len(shelved)]

    def put_away(self, flow: Flow) -> None:
        """A closed flow that nothing decodes any more needs little memory."""
        if flow.closed_ts_ns is not None and flow.decoder is None and flow.index in self.open:
            self._draw(flow, SHELVED_BYTES)
            del self.open[flow.index]
            self._shelf.put(flow)

    def exchange(self, others: Mapping[int, Flow]) -> None:
        """Others take the places of the flows that began with the same packets. others: by first packet."""
        for index in [*self.open, *(one for one in self._shelf if not self._shelf.is_whole(one))]:
            flow = self.known(index)
            if flow.first_packet in others:
                other = others[flow.first_packet]
                other.index, other.pair = index, flow.pair
                self.budget.change(flow.held_bytes, other.held_bytes)
                self.open[index] = flow = other
            self.put_away(flow)

    def count(self, flow: Flow) -> None:
        """What it holds may have changed."""
        if flow.index in self.open:
            self._draw(flow, held_by(flow))

    def _draw(self, flow: Flow, held: int) -> None:
        self.budget.change(flow.held_bytes, held)
        flow.held_bytes = held

    def remove(self, flow: Flow) -> None:
        """It has ended."""
        self.budget.change(flow.held_bytes, 0)
        self._end_seq[flow.pair] = [half.next_seq & MASK if half.started else -1 for half in flow.halves]
        if self._current[flow.pair] == flow.index:
            self._current[flow.pair] = _ENDED
        del self.open[flow.index]

    def forget(self, pair: int) -> None:
        """As if the pair had had no flow."""
        self._current[pair] = _NONE

    def forget_pairs(
        self, count: int, used: Iterable[npt.NDArray[np.int64] | list[int]], *, ended: bool
    ) -> npt.NDArray[np.intp]:
        """Forget those of the first `count` pairs that never had a flow, but for the used ones; which ones these are.
        ended: also those whose flows have ended."""
        current = self._current[:count]
        idle = current == _NONE
        if ended:
            idle |= current == _ENDED
        for pairs in used:
            idle[pairs] = False
        current[idle], self._end_seq[: len(idle)][idle] = _NONE, -1
        found: npt.NDArray[np.intp] = np.flatnonzero(idle)
        return found

    def put_whole(self, found: Whole, read: WholeRead) -> None:
        """Remember connections that were read whole: what comes late belongs to them."""
        count = len(read.taken)
        history_bytes = self._history_bytes(count)
        flows = replace(
            found.flows.chosen(read.taken),
            protocol=read.protocol,
            protocols=read.protocols,
            history_bytes=history_bytes,
            recent=recent_of(found.streams, read.taken, history_bytes),
        )
        self._shelf.put_whole(flows, self.opened, self._limits.max_tcp_remarks)
        self._current[flows.pair] = self.opened + np.arange(count)
        self.opened += count
        self.budget.change(0, SHELVED_BYTES * count)

    def ended_whole(self, found: Whole, read: WholeRead) -> WholeFlows:
        """Connections that were read whole and that have ended: nothing that comes late belongs to them."""
        flows = replace(found.flows.chosen(read.taken), protocol=read.protocol, protocols=read.protocols)
        self._end_seq[flows.pair] = flows.end_seqs
        self._current[flows.pair] = _ENDED
        self.opened += len(flows)
        return flows

    def take_whole(self, now_ns: int | None = None) -> Iterator[WholeFlows]:
        """End connections that were read whole and that nothing came late for. now_ns: those that closed long ago."""
        for flows, index in self._shelf.take_whole(None if now_ns is None else now_ns - LINGER_NS):
            self.budget.change(SHELVED_BYTES * len(flows), 0)
            self._end_seq[flows.pair] = flows.end_seqs
            self._current[flows.pair[self._current[flows.pair] == index]] = _ENDED
            yield flows
