"""From packet batches to flows with reassembled streams.

In: `PacketBatch` (arrays of TCP segments). Out: for every flow a batch touched, runs of stream bytes and gaps, handed
to a callback before the batch's buffer is used again; and every flow once more when it has ended and leaves memory.

Packets that simply continue both streams of a flow are taken with array arithmetic and one join per direction; its
start and end, disorder, loss, closed windows and cut packets through the careful path, one by one, until what follows
continues the streams again. A closed flow stays for a while, packed, since late packets belong to it. Nothing depends
on how packets were batched, unless a limit on the whole of all flows is reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

import numpy as np
import numpy.typing as npt

from analyser.capture import EndpointTable, PacketBatch
from analyser.faults import CODE, caught, sentence
from analyser.flows.acks import said_by_side
from analyser.flows.batches import BatchColumns, PacketRow, ReadyRun
from analyser.flows.copies import Copies
from analyser.flows.flow import Flow, handshake
from analyser.flows.half_open import Attempt, HalfOpen
from analyser.flows.holding import LEAST_WAITING_BYTES, SHELVED_BYTES, add_note, held_by, limit_note, waiting_bytes
from analyser.flows.holes import LEAST, continues_behind, may_wait, wait_together
from analyser.flows.notes import Note
from analyser.flows.shelf import Shelf
from analyser.flows.streams import HISTORY_BYTES, Half
from analyser.flows.stretches import Places, Stretch, stretches
from analyser.flows.taking import LINGER_NS, continues, copy_note, is_new, is_past, take, take_together
from analyser.flows.tcp import MASK, SYN
from analyser.flows.two_points import Delays
from analyser.flows.wait_signs import SignFinder, Signs
from analyser.flows.waits import settle, watch
from dissectors.core.budget import Budget
from dissectors.core.limits import Limits
from dissectors.core.model import packet_of

_NONE, _ENDED = -1, -2
_FORGET_PAIRS_AT = 1 << 16
# So many packets of a stretch are taken one by one before it is asked whether the rest can be taken together.
_CAREFUL_PACKETS = 8

FlowCallback = Callable[[Flow], None]


def _nobody(_: Flow) -> None:
    """Ignore the flow."""


class FlowTable:
    """The open flows of an analysis.

    consume(flow): called whenever a flow may have queued runs, in batch order. ended(flow): called once, after the last
    `consume`; the table forgets the flow then. Indices count from 0 in the order in which flows were opened.
    with_waits: find out what TCP makes flows wait for.
    """

    def __init__(
        self,
        limits: Limits,
        endpoints: EndpointTable,
        consume: FlowCallback,
        ended: FlowCallback,
        with_waits: bool = True,
    ) -> None:
        self.stray_packets = 0
        # Latest time in the capture so far.
        self.now_ns = 0
        # For captures without an end: endpoints whose flows ended are forgotten when there are many; what they send
        # later is taken for another flow.
        self.forgets_ended = False
        self._limits = limits
        self._endpoints = endpoints
        self._consume = consume
        self._ended = ended
        self._open: dict[int, Flow] = {}
        self._shelf = Shelf()
        self._opened = 0
        self._half_open = HalfOpen(limits.max_half_open)
        self._half_open_rows = 0
        self._copies = Copies()
        self._sign_finder = SignFinder() if with_waits else None
        self._signs: dict[int, Signs] = {}
        self.delays = Delays(endpoints, limits.max_compared_pairs)
        self._closed: deque[tuple[int, int]] = deque()
        self._faults: deque[Note] = deque(maxlen=limits.max_expert_infos)
        self._current: npt.NDArray[np.int32] = np.full(1024, _NONE, np.int32)
        self._end_seq: npt.NDArray[np.int64] = np.full((1024, 2), -1, np.int64)
        self._forget_pairs_at = _FORGET_PAIRS_AT
        self.budget = Budget(limits.max_held_bytes)
        self._file_index = self._packets_before = 0

    def __len__(self) -> int:
        """Flows opened so far."""
        return self._opened

    @property
    def kept(self) -> int:
        """Flows in memory."""
        return len(self._open) + len(self._shelf)

    def next_file(self, index: int, packets_before: int | None = None) -> None:
        """Packets that follow come from the capture with this index.

        packets_before: how many are in the captures before it; None where nobody counts them: then packets of different
        captures are not compared.
        """
        self._file_index = index
        self._packets_before = packet_of(index, 0) if packets_before is None else packets_before

    @contextmanager
    def without_callbacks(self) -> Iterator[None]:
        """For the time of the block the table can be pickled."""
        consume, ended = self._consume, self._ended
        self.call(_nobody, _nobody)
        try:
            yield
        finally:
            self.call(consume, ended)

    def call(self, consume: FlowCallback, ended: FlowCallback) -> None:
        """Call these from now on."""
        self._consume, self._ended = consume, ended

    def advance(self, now_ns: int) -> None:
        """The capture's clock has come to this time, in packets that are not fed here."""
        self.now_ns = max(self.now_ns, now_ns)

    def feed(self, batch: PacketBatch, clock: npt.NDArray[np.int64] | None = None) -> None:
        """Take one batch; calls `consume` for every flow in it.

        clock: latest time in the capture up to each packet, where packets of other flows are not in the batch.
        """
        if len(batch) == 0:
            return
        self._grow(int(batch.pair.max()) + 1)
        copies = self._copies.mark(batch, self._packets_before)
        self.delays.feed(batch, self._packets_before)
        columns = BatchColumns(batch, self._file_index, copies, self.now_ns, clock)
        cut = stretches(batch, copies)
        if self._sign_finder is not None:
            try:
                self._signs = self._sign_finder.feed(batch, columns, cut.order, copies)
            except Exception as error:
                self.now_ns = int(columns.now_ns[0])
                self._signs, self._sign_finder = {}, None
                self._faults.append(self._fault(error, "what finds waits", "no more of them are found"))
        said = said_by_side(batch, copies, cut)
        ready, alone = columns.runs(cut), columns.each(cut.order[cut.alone])
        pair, flow = -1, None
        for number, stretch in enumerate(cut.all):
            if stretch.pair != pair:
                self._leave(flow)
                pair, flow = stretch.pair, self._current_flow(stretch.pair)
            rows = cut.order[stretch.first : stretch.last]
            row = next(alone) if stretch.alone else None
            try:
                if row is not None and stretch.only_syns and flow is None:
                    self._give_up(*self._half_open.seen(pair, row))
                elif row is not None:
                    flow = self._careful(flow, pair, [row])
                elif flow is None or not continues(flow, ready.get(number, ()), int(columns.now_ns[rows[-1]])):
                    flow = self._until_continued(flow, stretch, rows, ready.get(number, ()), columns)
                else:
                    by_side = (said[0].get(number), said[1].get(number))
                    take_together(flow, stretch, rows, ready.get(number, ()), columns, by_side)
            except Exception as error:
                flow = None
                self._given_up(pair, error)
        self._leave(flow)
        self.now_ns = int(columns.now_ns[-1])
        self._forget_closed()
        self._keep_within_limits()
        if self._endpoints.known >= self._forget_pairs_at:
            self._forget_pairs()

    def put_away(self, flows: Iterable[Flow]) -> None:
        """Between two batches: those of these flows that are over need little memory from here on."""
        for flow in flows:
            self._put_away(flow)

    def finish(self) -> None:
        """No packets follow: flush and end every flow."""
        self._give_up(*self._half_open.take_all())
        for index in sorted([*self._open, *self._shelf]):
            self._finish(self._known_flow(index))

    def remarks(self) -> list[Note]:
        """What is to be said of no single flow. Complete after `finish`."""
        found = [*self._faults]
        if self._half_open.uncounted_rows:
            found.append(Note("half_open_flows", self._half_open.summary(), 0, self.now_ns, None, "warn", "limit"))
        if self.delays.left_out:
            text = "so many connections were captured at two points that latencies between the points are left out"
            found.append(Note("compared_pairs", text, 0, self.now_ns, None, "note", "limit"))
        return found

    # ------------------------------------------------------------------------------------------------------------------

    def _finish(self, flow: Flow) -> None:
        try:
            self._read_rest(flow)
        except Exception as error:
            flow.decoder, flow.waits, flow.finished = None, None, True
            self._faults.append(self._fault(error, "what ends connections", "one is not wholly told"))
        self.budget.change(flow.held_bytes, 0)
        self._end_seq[flow.pair] = [half.next_seq & MASK if half.started else -1 for half in flow.halves]
        if self._current[flow.pair] == flow.index:
            self._current[flow.pair] = _ENDED
        del self._open[flow.index]
        self._ended(flow)

    def _read_rest(self, flow: Flow) -> None:
        """Nothing more comes of this flow."""
        if any(half.queue for half in flow.halves):
            # What came in time is read before what is given up now, whether or not both are in one batch.
            self._consume(flow)
        for half in flow.halves:
            half.flush(flow.last_packet, flow.ts_last_ns)
        settle(flow, self._limits)
        flow.finished = True
        self._consume(flow)

    def _fault(self, error: Exception, what: str, rest: str) -> Note:
        return Note(CODE, sentence(caught(error), what, rest), 0, self.now_ns, None, "error", "undecoded")

    def _given_up(self, pair: int, error: Exception) -> None:
        """A fault of our own came up at the pair's flow: it ends here, and what follows is read as another."""
        note = self._fault(error, "what follows connections", "this one is read anew from here on")
        current = int(self._current[pair])
        if current < 0:
            self._faults.append(note)
            return
        flow = self._known_flow(current)
        add_note(flow, note._replace(packet=flow.last_packet, ts_ns=flow.ts_last_ns))
        self._finish(flow)
        self._current[pair] = _NONE

    def _known_flow(self, index: int) -> Flow:
        """A flow that has not ended, back from the shelf if it lies there."""
        flow = self._open.get(index)
        if flow is None:
            flow = self._open[index] = self._shelf.take(index)
        return flow

    def _current_flow(self, pair: int) -> Flow | None:
        current = int(self._current[pair])
        return self._known_flow(current) if current >= 0 else None

    def _leave(self, flow: Flow | None) -> None:
        """No more packets of this flow in the batch."""
        if flow is None:
            return
        try:
            self._watch(flow)
            self._pass_on(flow)
        except Exception as error:
            self._given_up(flow.pair, error)
            return
        self._put_away(flow)
        if self.budget.is_exceeded:
            self._let_go()

    def _put_away(self, flow: Flow) -> None:
        """A closed flow that nothing decodes any more needs little memory."""
        if flow.closed_ts_ns is not None and flow.decoder is None and flow.index in self._open:
            self._draw(flow, SHELVED_BYTES)
            del self._open[flow.index]
            self._shelf.put(flow)

    def _watch(self, flow: Flow, before: int | None = None, *, ends: bool = False) -> None:
        """Take what was found of the flow's packets in this batch, see `watch`."""
        signs = self._signs.get(flow.pair)
        if signs:
            watch(flow, signs, self._limits, before, ends=ends)

    def _pass_on(self, flow: Flow) -> None:
        self._consume(flow)
        self._draw(flow, held_by(flow))

    def recount(self, flows: Iterable[Flow]) -> None:
        """What these hold has changed since they were passed on."""
        for flow in flows:
            if flow.index in self._open:
                self._draw(flow, held_by(flow))
        if self.budget.is_exceeded:
            self._let_go()

    def _draw(self, flow: Flow, held: int) -> None:
        self.budget.change(flow.held_bytes, held)
        flow.held_bytes = held

    def _forget_closed(self) -> None:
        """End flows that closed long ago; whatever their pair sends later is told by `_begins`."""
        while self._closed and self.now_ns - self._closed[0][0] > LINGER_NS:
            index = self._closed.popleft()[1]
            if index in self._open or index in self._shelf:
                self._finish(self._known_flow(index))

    def _forget_pairs(self) -> None:
        """Forget endpoints that never had a flow and on which nobody waits: those of a flood of attempts."""
        current = self._current[: len(self._endpoints)]
        idle = current == _NONE
        if self.forgets_ended and not self._endpoints.has_encapsulations:
            idle |= current == _ENDED
        for used in (self._half_open.pairs, self._copies.pairs, self.delays.pairs):
            idle[used] = False
        current[idle], self._end_seq[: len(idle)][idle] = _NONE, -1
        self._endpoints.forget(np.flatnonzero(idle))
        self._forget_pairs_at = max(_FORGET_PAIRS_AT, 2 * self._endpoints.known)

    def _keep_within_limits(self) -> None:
        limits = self._limits
        if self.kept > limits.max_open_flows:
            text = f"more than {limits.max_open_flows} flows were open; this one was idle long and is taken as ended"
            for flow in self._idle(self.kept - limits.max_open_flows * 9 // 10):
                self._end_early(flow, "open_flows", text)

    def _let_go(self) -> None:
        """The budget is used up: those that wait with most let go; where that is not enough, idle flows end."""
        text = f"all flows together held more than {self._limits.max_held_bytes} bytes; this one"
        for flow in sorted(self._open.values(), key=waiting_bytes, reverse=True):
            waiting = waiting_bytes(flow)
            if self.budget.is_ample or waiting < LEAST_WAITING_BYTES:
                break
            limit_note(flow, "held_bytes", f"{text} let go of {waiting}")
            for half in flow.halves:
                half.give_up(flow.last_packet, flow.ts_last_ns)
            flow.let_go = True
            self._pass_on(flow)
            flow.let_go = False
        if self.budget.is_ample:
            return
        for flow in self._idle(self.kept):
            self._end_early(flow, "held_bytes", f"{text} was idle long and is taken as ended")
            if self.budget.is_ample:
                return

    def _end_early(self, flow: Flow, code: str, text: str) -> None:
        """It may go on, so nobody knows what became of what waits."""
        limit_note(flow, code, text)
        flow.let_go = flow.ended_early = True
        self._finish(flow)

    def _idle(self, count: int) -> Iterator[Flow]:
        """So many flows that were idle longest, closed ones first."""
        shelved = list(islice(self._shelf, count))
        idle = sorted(self._open.values(), key=lambda flow: (flow.closed_ts_ns is None, flow.ts_last_ns))
        yield from map(self._known_flow, shelved)
        yield from idle[: count - len(shelved)]

    def _grow(self, pairs: int) -> None:
        have = len(self._current)
        if pairs > have:
            size = max(pairs, 2 * have)
            current, end_seq = np.full(size, _NONE, np.int32), np.full((size, 2), -1, np.int64)
            current[:have], end_seq[:have] = self._current, self._end_seq
            self._current, self._end_seq = current, end_seq

    def _start(self, pair: int, packet: int, ts_ns: int) -> Flow:
        limits = self._limits
        history_bytes = max(min(HISTORY_BYTES, limits.max_history_bytes // (4 * self.kept + 4)), 1)
        halves = [Half(notes_left=limits.max_tcp_remarks, history_bytes=history_bytes) for _ in range(2)]
        flow = Flow(self._opened, pair, packet, ts_ns, ts_ns, packet, (halves[0], halves[1]))
        self._opened += 1
        self._open[flow.index] = flow
        self._current[pair] = flow.index
        return flow

    def _begins(self, row: PacketRow, pair: int) -> bool:
        """Does this packet begin a flow on a pair that has none, or does it come late for one that ended?"""
        if self._current[pair] == _NONE or row.flags & SYN:
            return not row.copy
        end = int(self._end_seq[pair][int(row.from_low)])
        return row.wire_bytes > 0 and not row.copy and (end < 0 or is_new(end, row.seq))

    def _give_up(self, *attempts: Attempt) -> None:
        """Attempts that nobody answered: flows of their own, or only counted."""
        for attempt in attempts:
            if self._half_open_rows < self._limits.max_half_open:
                self._half_open_rows += 1
                self._finish(self._from_attempt(attempt))
            else:
                self._half_open.count(attempt, self._endpoints[attempt.pair])

    def _from_attempt(self, attempt: Attempt) -> Flow:
        flow = self._start(attempt.pair, attempt.packet, attempt.ts_ns)
        flow.last_packet, flow.ts_last_ns = attempt.last_packet, attempt.ts_last_ns
        flow.packets, flow.duplicates = attempt.packets, attempt.duplicates
        half = flow.halves[attempt.from_low]
        half.first_seq, half.last_ns = attempt.seq, attempt.heard_ns
        half.ttl, half.ttl_lowest, half.ttl_last = attempt.ttls
        options = attempt.window_scale, attempt.segment_size
        handshake(flow, attempt.from_low, attempt.seq, SYN, attempt.ts_ns, *options)
        if attempt.first_copy is not None:
            half.remark(copy_note(*attempt.first_copy))
        return flow

    def _until_continued(
        self,
        flow: Flow | None,
        stretch: Stretch,
        rows: Places,
        runs: tuple[ReadyRun, ...],
        columns: BatchColumns,
    ) -> Flow | None:
        """A stretch, one packet after the other until the rest of it continues the flow's streams."""
        now_ns = int(columns.now_ns[rows[-1]])
        taken, more = 0, _CAREFUL_PACKETS
        while taken < len(rows):
            if taken and flow is not None and flow.settled:
                rest, left = columns.part(stretch, runs, rows, taken, len(rows))
                if continues(flow, left, now_ns):
                    take_together(flow, rest, rows[taken:], left, columns, columns.said(rows[taken:]))
                    return flow
            held = 0 if flow is None else may_wait(flow, rows[taken:], columns, self._limits)
            if flow is not None and held >= LEAST:
                first, held_runs = columns.part(stretch, runs, rows, taken, taken + held)
                if continues_behind(flow, held_runs, self._limits):
                    own = rows[taken : taken + held]
                    wait_together(flow, first, own, held_runs, columns, columns.said(own))
                    taken, more = taken + held, _CAREFUL_PACKETS
                    continue
            flow = self._careful(flow, stretch.pair, columns.rows(rows[taken : taken + more]))
            taken, more = taken + more, 2 * more
        return flow

    def _careful(self, flow: Flow | None, pair: int, rows: list[PacketRow]) -> Flow | None:
        """Packets of one pair, one by one in capture order. flow: the pair's flow so far; the result: after them."""
        if flow is None and pair in self._half_open:
            flow = self._from_attempt(self._half_open.pop(pair))
        for row in rows:
            if flow is not None and is_past(flow, row):
                self._watch(flow, row.packet, ends=True)
                self._finish(flow)
                flow = None
            if flow is None and not self._begins(row, pair):
                self.stray_packets += 1
                continue
            if flow is None:
                flow = self._start(pair, row.packet, row.ts_ns)
            if self._signs:
                self._watch(flow, row.packet)
            was_closed = flow.closed_ts_ns is not None
            take(flow, row, self._limits)
            if flow.closed_ts_ns is not None and not was_closed:
                self._closed.append((flow.closed_ts_ns, flow.index))
        return flow
