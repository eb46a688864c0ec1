"""From packet batches to flows with reassembled streams.

In: `PacketBatch` (arrays of TCP segments). Out: for every flow a batch touched, runs of stream bytes and gaps, handed
to a callback before the batch's buffer is used again; and every flow once more when it has ended and leaves memory.

Packets that simply continue both streams of a flow are taken with array arithmetic and one join per direction, and so
are those that leave gaps or come while some are open (`gaps.py`); its start and end, what is sent again or overtakes,
closed windows and cut packets through the careful path, one by one, until what follows continues the streams again. A
closed flow stays for a while, packed, since late packets belong to it. Nothing depends on how packets were batched,
unless a limit on the whole of all flows is reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.base.faults import CODE, told
from wirewitness.analyser.base.words import count
from wirewitness.analyser.capture import EndpointTable, PacketBatch
from wirewitness.analyser.tcp.acks import Said, said_by_side
from wirewitness.analyser.tcp.batch_wait_signs import FoundSigns
from wirewitness.analyser.tcp.batches import NO_RUNS, BatchColumns, PacketRow, Runs
from wirewitness.analyser.tcp.claims import Claims
from wirewitness.analyser.tcp.complete_connection_intake import TakenWhole
from wirewitness.analyser.tcp.complete_connections import WholeReader
from wirewitness.analyser.tcp.duplicates import Copies
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.flow_memory import LEAST_WAITING_BYTES, add_note, limit_note, waiting_bytes
from wirewitness.analyser.tcp.gaps import LEAST, MOST, goes_on, take_with_gaps
from wirewitness.analyser.tcp.half_open import Attempt, HalfOpen
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.open_flows import OpenFlows
from wirewitness.analyser.tcp.reset_flows import Part
from wirewitness.analyser.tcp.segment_intake import (
    LINGER_NS,
    claims,
    confirm_alike,
    continues,
    follower,
    ignore_claims,
    is_past,
    start_unseen,
    take,
    take_together,
)
from wirewitness.analyser.tcp.segment_runs import Flags, Places, Stretch, Stretches, by_pair, stretches
from wirewitness.analyser.tcp.two_points import Delays
from wirewitness.analyser.tcp.waits import settle
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import packet_of

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
    with_waits: find out what TCP makes flows wait for. whole: reads connections that lie wholly in one batch, many at a
    time; no `Flow` is made of those it takes, and neither `consume` nor `ended` hears of them. None for nobody.
    """

    def __init__(
        self,
        limits: Limits,
        endpoints: EndpointTable,
        consume: FlowCallback,
        ended: FlowCallback,
        with_waits: bool = True,
        whole: WholeReader | None = None,
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
        self._flows = OpenFlows(limits)
        self._taken_whole = TakenWhole(self._flows, whole, self._whole_failed)
        self._half_open = HalfOpen(limits.max_half_open)
        self._half_open_rows = 0
        self._copies = Copies()
        self._ended_early = 0
        self._signs = FoundSigns(limits, with_waits)
        self.delays = Delays(endpoints, limits.max_compared_pairs)
        self._faults: deque[Note] = deque(maxlen=limits.max_expert_infos)
        self._forget_pairs_at = _FORGET_PAIRS_AT
        self.budget = self._flows.budget
        self._file_index = self._packets_before = 0

    def __len__(self) -> int:
        """Flows opened so far."""
        return self._flows.opened

    @property
    def kept(self) -> int:
        """Flows in memory."""
        return self._flows.kept + len(self._taken_whole.aside)

    def open_flows(self) -> Iterable[Flow]:
        """Flows that may still be read."""
        return self._flows.open.values()

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
        consume, ended, whole = self._consume, self._ended, self._taken_whole.reader
        self.call(_nobody, _nobody, None)
        try:
            yield
        finally:
            self.call(consume, ended, whole)

    def call(self, consume: FlowCallback, ended: FlowCallback, whole: WholeReader | None) -> None:
        """Call these from now on."""
        self._consume, self._ended = consume, ended
        self._taken_whole.call(whole, self._whole_failed)

    def advance(self, now_ns: int) -> None:
        """The capture's clock has come to this time, in packets that are not fed here."""
        self.now_ns = max(self.now_ns, now_ns)

    def feed(self, batch: PacketBatch, clock: npt.NDArray[np.int64] | None = None) -> None:
        """Take one batch; calls `consume` for every flow in it.

        clock: latest time in the capture up to each packet, where packets of other flows are not in the batch.
        """
        if len(batch) == 0:
            return
        self._flows.grow(int(batch.pair.max()) + 1)
        if self._taken_whole.aside:
            for part in self._taken_whole.late(np.unique(batch.pair).tolist()):
                self._feed_part(part)
        copies = self._copies.mark(batch, self._packets_before)
        self.delays.feed(batch, self._packets_before)
        columns = BatchColumns(batch, self._file_index, copies, self.now_ns, clock)
        now_ns, order = int(columns.now_ns[-1]), by_pair(batch)
        self._find_signs(batch, columns, order, copies)
        left = None
        if self._taken_whole.reader is not None:
            busy = [*self._half_open.pairs, *self._signs.pairs]
            left = self._taken_whole.take(batch, columns, order, copies, busy, self._may_set_aside)
        if left is not None:
            batch, copies = batch.chosen(left), copies[left]
            columns = BatchColumns(batch, self._file_index, copies, self.now_ns, columns.now_ns[left])
            order = by_pair(batch) if len(left) else left
        if len(batch):
            self._take_stretches(batch, columns, stretches(batch, copies, order), copies)
        self.now_ns = now_ns
        self._end_aside(now_ns - LINGER_NS)
        self._forget_closed()
        self._keep_within_limits()
        if self._endpoints.known >= self._forget_pairs_at:
            self._forget_pairs()

    def put_away(self, flows: Iterable[Flow]) -> None:
        """Between two batches: those of these flows that are over need little memory from here on."""
        for flow in flows:
            self._flows.put_away(flow)

    def finish(self) -> None:
        """No packets follow: flush and end every flow."""
        self._give_up(*self._half_open.take_all())
        self._end_aside()
        self._taken_whole.end()
        for flow in self._flows.all():
            self._finish(flow)

    def all_flows(self) -> Iterator[Flow]:
        """Flows that have not ended, those that wait for late packets too."""
        return self._flows.all()

    def end(self, flows: Iterable[Flow]) -> None:
        """No packets of these follow."""
        for flow in flows:
            self._finish(flow)

    def exchange(self, others: Mapping[int, Flow]) -> None:
        """Flows that another table has of the same packets take the places of its own. others: by first packet."""
        self._flows.exchange(others)

    def remarks(self) -> list[Note]:
        """What is to be said of no single flow. Complete after `finish`."""
        found = [*self._faults]
        if self._half_open.uncounted_rows:
            found.append(Note("half_open_flows", self._half_open.summary(), 0, self.now_ns, None, "warn", "limit"))
        if self._ended_early:
            early = count(self._ended_early, "connection")
            text = f"so much was held that {early} ended with their resets; what followed within a minute is read anew"
            found.append(Note("held_bytes", text, 0, self.now_ns, None, "warn", "limit"))
        if self.delays.left_out:
            text = "so many connections were captured at two points that latencies between the points are left out"
            found.append(Note("compared_pairs", text, 0, self.now_ns, None, "note", "limit"))
        return found

    def _find_signs(self, batch: PacketBatch, columns: BatchColumns, order: Places, copies: Flags) -> None:
        try:
            self._signs.find(batch, columns, order, copies)
        except Exception as error:
            self.now_ns = int(columns.now_ns[0])
            self._faults.append(self._fault(error, "what finds waits", "no more of them are found"))

    def _feed_part(self, part: Part) -> None:
        """Take packets that were set aside one by one."""
        self._signs.forget()
        batch, columns = part.opened()
        copies = np.zeros(len(batch), bool)
        self._take_stretches(batch, columns, stretches(batch, copies, by_pair(batch)), copies)

    def _end_aside(self, before_ns: int | None = None) -> None:
        """Nothing came late for what was set aside before this time."""
        for part in self._taken_whole.old(before_ns):
            self._feed_part(part)

    @property
    def _may_set_aside(self) -> bool:
        """Not where rows are wanted soon, or where a reset may not be remarked on."""
        return not self.forgets_ended and self._limits.max_tcp_remarks > 0 and self.budget.is_ample

    def _whole_failed(self, error: Exception) -> None:
        self._faults.append(self._fault(error, "what takes connections whole", "they are taken one by one"))

    def _take_stretches(self, batch: PacketBatch, columns: BatchColumns, cut: Stretches, copies: Flags) -> None:
        """Take the packets of a batch, flow by flow."""
        said = said_by_side(batch, copies, cut)
        ready, alone = columns.runs(cut), columns.each(cut.order[cut.alone])
        pair, flow = -1, None
        for number, stretch in enumerate(cut.all):
            if stretch.pair != pair:
                self._leave(flow)
                pair, flow = stretch.pair, self._flows.of_pair(stretch.pair)
            rows = cut.order[stretch.first : stretch.last]
            row = next(alone) if stretch.alone else None
            try:
                if row is not None and stretch.only_syns and flow is None:
                    self._give_up(*self._half_open.seen(pair, row))
                elif row is not None:
                    flow = self._careful(flow, pair, [row])
                else:
                    runs = ready.get(number, NO_RUNS)
                    by_side = (said[0].get(number), said[1].get(number))
                    now_ns = int(columns.now_ns[rows[-1]])
                    if flow is not None and continues(flow, runs, now_ns) and confirm_alike(flow, by_side):
                        take_together(flow, stretch, rows, runs, columns, by_side)
                    else:
                        flow = self._until_continued(flow, stretch, rows, runs, columns, by_side)
            except Exception as error:
                flow = None
                self._given_up(pair, error)
        self._leave(flow)

    def _finish(self, flow: Flow) -> None:
        try:
            self._read_rest(flow)
        except Exception as error:
            flow.decoder, flow.waits, flow.finished = None, None, True
            self._faults.append(self._fault(error, "what ends connections", "one is not wholly told"))
        if flow.claims is not None:
            self._give_up(*flow.claims.undecided)
        self._flows.remove(flow)
        self._ended(flow)

    def _read_rest(self, flow: Flow) -> None:
        """Nothing more comes of this flow."""
        if any(half.queue for half in flow.halves):
            # What came in time is read before what is given up now, whether or not both are in one batch.
            self._consume(flow)
        start_unseen(flow)
        for half in flow.halves:
            half.flush(flow.last_packet, flow.ts_last_ns)
        ignore_claims(flow)
        settle(flow, self._limits)
        flow.finished = True
        self._consume(flow)

    def _fault(self, error: Exception, what: str, rest: str) -> Note:
        return Note(CODE, told(error, what, rest), 0, self.now_ns, None, "error", "undecoded")

    def _given_up(self, pair: int, error: Exception) -> None:
        """A fault of our own came up at the pair's flow: it ends here, and what follows is read as another."""
        note = self._fault(error, "what follows connections", "this one is read anew from here on")
        flow = self._flows.of_pair(pair)
        if flow is None:
            self._faults.append(note)
            return
        add_note(flow, note._replace(packet=flow.last_packet, ts_ns=flow.ts_last_ns))
        self._finish(flow)
        self._flows.forget(pair)

    def _leave(self, flow: Flow | None) -> None:
        """No more packets of this flow in the batch."""
        if flow is None:
            return
        try:
            self._signs.watch(flow)
            self._pass_on(flow)
        except Exception as error:
            self._given_up(flow.pair, error)
            return
        self._flows.put_away(flow)
        if self.budget.is_exceeded:
            self._let_go()

    def _pass_on(self, flow: Flow) -> None:
        self._consume(flow)
        self._flows.count(flow)

    def recount(self, flows: Iterable[Flow]) -> None:
        """What these hold has changed since they were passed on."""
        for flow in flows:
            self._flows.count(flow)
        if self.budget.is_exceeded:
            self._let_go()

    def _forget_closed(self) -> None:
        """End flows that closed long ago; whatever their pair sends later is told by `OpenFlows.begins`."""
        self._taken_whole.end(self.now_ns)
        for flow in self._flows.long_closed(self.now_ns):
            self._finish(flow)

    def _forget_pairs(self) -> None:
        """Forget endpoints that never had a flow and on which nobody waits: those of a flood of attempts."""
        used = (self._half_open.pairs, self._copies.pairs, self.delays.pairs, self._taken_whole.aside.pairs)
        ended = self.forgets_ended and not self._endpoints.has_encapsulations
        self._endpoints.forget(self._flows.forget_pairs(len(self._endpoints), used, ended=ended))
        self._forget_pairs_at = max(_FORGET_PAIRS_AT, 2 * self._endpoints.known)

    def _keep_within_limits(self) -> None:
        limits = self._limits
        if self.kept > limits.max_open_flows or self.budget.is_exceeded:
            self._ended_early += len(self._taken_whole.aside)
            self._end_aside()
        if self.kept > limits.max_open_flows:
            text = f"more than {limits.max_open_flows} flows were open; this one was idle long and is taken as ended"
            for flow in self._flows.idle(self.kept - limits.max_open_flows * 9 // 10):
                self._end_early(flow, "open_flows", text)
        if self.budget.is_exceeded:
            self._let_go()

    def _let_go(self) -> None:
        """The budget is used up: those that wait with most let go; where that is not enough, idle flows end."""
        text = f"all flows together held more than {self._limits.max_held_bytes} bytes; this one"
        for flow in sorted(self._flows.open.values(), key=waiting_bytes, reverse=True):
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
        for flow in self._flows.idle(self.kept):
            self._end_early(flow, "held_bytes", f"{text} was idle long and is taken as ended")
            if self.budget.is_ample:
                return

    def _end_early(self, flow: Flow, code: str, text: str) -> None:
        """It may go on, so nobody knows what became of what waits."""
        limit_note(flow, code, text)
        flow.let_go = True
        if flow.observed_until_ns is None:
            flow.observed_until_ns = flow.ts_last_ns
        self._finish(flow)

    def _give_up(self, *attempts: Attempt) -> None:
        """Attempts that nobody answered: flows of their own, or only counted."""
        for attempt in attempts:
            if self._half_open_rows < self._limits.max_half_open:
                self._half_open_rows += 1
                self._finish(self._flows.from_attempt(attempt))
            else:
                self._half_open.count(attempt, self._endpoints[attempt.pair])

    def _until_continued(
        self,
        flow: Flow | None,
        stretch: Stretch,
        rows: Places,
        runs: Runs,
        columns: BatchColumns,
        said: tuple[Said | None, Said | None],
    ) -> Flow | None:
        """A stretch that does not simply continue the streams: together what only leaves gaps or comes while some are
        open, one packet after the other what does not, until the rest can be taken together. said: in all of it."""
        now_ns = int(columns.now_ns[rows[-1]])
        taken, more, count = 0, _CAREFUL_PACKETS, len(rows)
        while taken < count:
            if taken and flow is not None and flow.settled:
                rest, left = columns.part(stretch, runs, rows, taken, count)
                if continues(flow, left, now_ns) and confirm_alike(flow, told := columns.said(rows[taken:])):
                    take_together(flow, rest, rows[taken:], left, columns, told)
                    return flow
            until = min(taken + MOST, count)
            if flow is not None and until - taken >= LEAST:
                part, own, told = stretch, runs, said
                if until - taken < count:
                    part, own = columns.part(stretch, runs, rows, taken, until)
                    told = columns.said(rows[taken:until])
                if goes_on(flow, own, self._limits) and take_with_gaps(
                    flow, part, rows[taken:until], own, columns, told, self._limits
                ):
                    taken = until
                    continue
            flow = self._careful(flow, stretch.pair, columns.rows(rows[taken : taken + more]))
            taken, more = taken + more, 2 * more
        return flow

    def _careful(self, flow: Flow | None, pair: int, rows: list[PacketRow]) -> Flow | None:
        """Packets of one pair, one by one in capture order. flow: the pair's flow so far; the result: after them."""
        if flow is None and pair in self._half_open:
            first, *others = self._half_open.pop(pair)
            flow = self._flows.from_attempt(first)
            flow.claims = Claims(others) if others else None
        for row in rows:
            if flow is not None and claims(flow, row):
                self._claim(flow, row)
                continue
            if flow is not None and is_past(flow, row):
                flow = self._follow(flow, row)
            if flow is None and not self._flows.begins(row, pair):
                self.stray_packets += 1
                continue
            if flow is None:
                flow = self._flows.start(pair, row.packet, row.ts_ns)
            self._signs.watch(flow, row.packet)
            was_closed = flow.closed_ts_ns is not None
            if flow.claims is not None:
                flow.claims.went_on(row)
            take(flow, row, self._limits)
            if flow.closed_ts_ns is not None and not was_closed:
                self._flows.closed(flow)
        return flow

    def _claim(self, flow: Flow, row: PacketRow) -> None:
        """The SYN of another connection, of which nobody knows yet whether there is one."""
        if flow.claims is None:
            flow.claims = Claims()
        unanswered = flow.claims.add(flow.pair, row)
        if unanswered is not None:
            self._give_up(unanswered)
            self._flows.stays(flow)

    def _follow(self, flow: Flow, row: PacketRow) -> Flow | None:
        """The flow ends with a packet that is not of it. The result: that of the SYN which the packet confirms."""
        confirmed = follower(flow, row)
        self._signs.watch(flow, row.packet, ends=True)
        self._finish(flow)
        return None if confirmed is None else self._flows.from_attempt(confirmed)
