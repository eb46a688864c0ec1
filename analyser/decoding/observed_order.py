"""Both directions of a flow to its decoder, in the order in which a listener could read them.

In: the runs and gaps of both directions. Out: rows in a `Sink`. As long as both directions are synchronised, whatever
is there is cut at once. A direction in which a boundary is looked for gets its segments one by one, each after all
frames that were readable before it: what is found is a matter of the order of the packets, never of how many of them
came together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeGuard

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.decoding.cutting import StreamCutter, Unusable
from wirewitness.analyser.decoding.faults import Fault, Place
from wirewitness.analyser.decoding.readable import as_readable, begun_at, behind, readable_before
from wirewitness.analyser.decoding.stream_portions import ALL, InParts
from wirewitness.analyser.tcp.chunks import Gap, Run
from wirewitness.dissectors.core.deferred import Leaves
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.protocol import Decoder, HoldsRequests, PairsByOrder, Sink

# So many segments are cut at once behind a boundary that was looked for, then so many times as many: of those that are
# cut in vain, since what seemed a frame was none, there are some eight times as many as of the others at most.
_FEW_SEGMENTS, _MORE = 8, 8
# So many frames are decoded before rows may leave: each gives some hundred bytes of them.
FED_FRAMES = 10_000
# Of what waits for an answer so much becomes a row: the smallest filter of a subscription counts as much.
_WAITING_ROW_BYTES = 80


def _pairs_by_order(decoder: Decoder) -> TypeGuard[PairsByOrder]:
    """As isinstance, which looks through a protocol's members each time."""
    return hasattr(decoder, "lost")


def _holds_requests(decoder: Decoder) -> TypeGuard[HoldsRequests]:
    """The same."""
    return hasattr(decoder, "let_go")


def _leaves(decoder: Decoder) -> TypeGuard[Leaves]:
    """The same."""
    return hasattr(decoder, "settle")


class _Queue:
    """What one direction delivered and its cutter has not taken yet.

    together: so many segments are cut at once; few behind a loss, since those that are cut in vain are cut again.
    """

    def __init__(self) -> None:
        self._items: deque[InParts | Gap | Fault] = deque()
        self.together = ALL

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def order(self) -> int:
        """The packet at which the next item became readable."""
        return self._items[0].order

    @property
    def fault(self) -> Fault | None:
        """What comes next, if it is that nothing can be read any more."""
        first = self._items[0] if self._items else None
        return first if isinstance(first, Fault) else None

    def add(self, items: Iterable[Run | Gap | Fault]) -> None:
        """Items behind all others."""
        self._items.extend(InParts(item) if isinstance(item, Run) else item for item in items)

    def put_back(self, item: Run | Gap) -> None:
        """What was taken and is to be taken again."""
        self._items.appendleft(InParts(item) if isinstance(item, Run) else item)

    def stop(self, fault: Fault) -> None:
        """The next item cannot be read."""
        self._items.appendleft(fault)

    def rest(self) -> Iterable[Run | Gap]:
        """All that is left, taken."""
        items, self._items = self._items, deque()
        return [_whole(item) for item in items if not isinstance(item, Fault)]

    def take(self, count: int) -> Run | Gap:
        """The next gap, or at most `count` segments in front of it. Not while there is a fault."""
        item = self._items[0]
        assert not isinstance(item, Fault)
        if isinstance(item, Gap):
            self._items.popleft()
            return item
        run, more = item.take(count)
        if not more:
            self._items.popleft()
        return run


def _whole(item: InParts | Gap) -> Run | Gap:
    return item if isinstance(item, Gap) else item.take(ALL)[0]


class Listener:
    """One flow whose protocol is known. cutters: of what the client and of what the server sends.

    ended: why nothing is decoded any more, None while it is. That is so from the packet on at which a framer, carrier
    or boundary failed, or from the frame at which the decoder did; gaps are told as ever.
    """

    def __init__(self, cutters: tuple[StreamCutter, StreamCutter], decoder: Decoder) -> None:
        self._cutters = cutters
        self._decoder = decoder
        self._queues = (_Queue(), _Queue())
        self._frames: list[Sequence[Frame]] = [[], []]
        self.ended: Fault | None = None
        self._fed = 0

    @property
    def held_bytes(self) -> int:
        """Memory of frames that are not complete and of messages that wait for answers, roughly."""
        return self._cutters[0].held_bytes + self._cutters[1].held_bytes + self._waiting_bytes

    @property
    def given(self) -> int:
        """How many frames were decoded, and how many rows would take the memory of messages that wait."""
        return self._fed + self._waiting_bytes // _WAITING_ROW_BYTES

    @property
    def _waiting_bytes(self) -> int:
        return self._decoder.held_bytes if _holds_requests(self._decoder) else 0

    def take(self, client: Iterable[Run | Gap | Fault], server: Iterable[Run | Gap | Fault], out: Sink) -> None:
        """What both directions delivered since the last call. A Fault: nothing more can come of this direction."""
        for queue, items in zip(self._queues, (client, server), strict=True):
            queue.add(items)
        if self.ended is None:
            self._guarded(self._read, out)
        if self.ended is not None:
            for queue, cutter in zip(self._queues, self._cutters, strict=True):
                for item in queue.rest():
                    cutter.pass_over(item, out)

    def drop(self, out: Sink) -> None:
        """Nothing that is held will be completed. Requests first: they tell their responses."""
        if self.ended is None:
            self._guarded(self._drop, out)

    def let_go(self, out: Sink) -> None:
        """Hold nothing; the flow goes on."""
        self.drop(out)
        if self.ended is None and _holds_requests(self._decoder):
            self._guarded(self._decoder.let_go, out)

    def settle(self, out: Sink) -> None:
        """Decode frames that the decoder left for later: they came before whatever ended it."""
        if _leaves(self._decoder):
            self._guarded(self._decoder.settle, out)

    def read_left(self, out: Sink) -> None:
        """The same, those of this flow together and without others."""
        if _leaves(self._decoder) and self.has_left(out):
            self._guarded(partial(self._decoder.read_together, (self._decoder,)), out)
            self.settle(out)

    def has_left(self, out: Sink) -> bool:
        """Has the decoder left frames for later?"""
        return out.later is not None and out.later.holds(self._decoder)

    def finish(self, out: Sink) -> None:
        """The flow ended."""
        if self.ended is None:
            self._guarded(self._decoder.finish, out)
        else:
            self.settle(out)

    def _guarded(self, act: Callable[[Sink], None], out: Sink) -> None:
        try:
            act(out)
        except Exception as error:  # the decoder's: what it gave before is good
            self._end(Fault(0, caught(error)))

    def _end(self, fault: Fault) -> None:
        self.ended = self.ended or fault
        for cutter in self._cutters:
            cutter.stop(cutter.end)
        self._frames = [[], []]

    def _read(self, out: Sink) -> None:
        self._cut_ahead(CLIENT_TO_SERVER, out)
        self._cut_ahead(SERVER_TO_CLIENT, out)
        while any(self._queues):
            direction = min((d for d in (CLIENT_TO_SERVER, SERVER_TO_CLIENT) if self._queues[d]), key=self._order)
            fault = self._queues[direction].fault
            if fault is not None:
                self._feed_before(fault.order, direction, out)
                self._end(fault)
                return
            self._search(direction, out)
            self._cut_ahead(direction, out)
        self._feed_all(out)

    def _drop(self, out: Sink) -> None:
        for direction, cutter in enumerate(self._cutters):
            self._add(direction, cutter.drop(self._decoder, out))
            if direction == CLIENT_TO_SERVER and not self._cutters[SERVER_TO_CLIENT].synchronised:
                self._feed_all(out)
        self._feed_all(out)

    def _order(self, direction: int) -> int:
        return self._queues[direction].order

    def _cut_ahead(self, direction: int, out: Sink) -> None:
        """Cut what is there, as long as no boundary has to be looked for."""
        cutter, queue = self._cutters[direction], self._queues[direction]
        while queue and not cutter.searches and queue.fault is None:
            item = queue.take(queue.together)
            if isinstance(item, Gap):
                self._add(direction, self._at(direction, item, out))
                continue
            try:
                self._add(direction, cutter.run(item, out))
            except Unusable as unusable:
                self._cut_fewer(direction, unusable)
                continue
            stuck = cutter.take_back()
            if stuck is not None:
                queue.put_back(stuck)
            elif queue.together < ALL:
                queue.together *= _MORE

    def _cut_fewer(self, direction: int, unusable: Unusable) -> None:
        """The framer failed: what can be cut before the segment at which it does is cut."""
        queue, run = self._queues[direction], unusable.run
        queue.put_back(run)
        queue.together = 1
        if len(run.segments.positions) == 1:
            _, (packet,), (ts_ns,), (order,) = run.segments
            queue.stop(Fault(order, caught(unusable.error), Place(direction, packet, ts_ns)))

    def _search(self, direction: int, out: Sink) -> None:
        """The next segment of a direction in which a boundary is looked for."""
        queue = self._queues[direction]
        queue.together = _FEW_SEGMENTS
        self._feed_before(queue.order, direction, out)
        item = queue.take(1)
        self._add(direction, self._at(direction, item, out))

    def _add(self, direction: int, frames: Sequence[Frame]) -> None:
        """These were cut, too."""
        self._frames[direction] = behind(self._frames[direction], frames)

    def _at(self, direction: int, item: Run | Gap, out: Sink) -> Sequence[Frame]:
        """Frames that a gap, or one segment of a search, completes. If it fails, a fault stands in front of it."""
        cutter, queue, decoder = self._cutters[direction], self._queues[direction], self._decoder
        end = cutter.end
        try:
            if isinstance(item, Gap):
                return cutter.gap(item, decoder, out)
            return cutter.search(item, decoder, out)
        except Exception as error:  # of a framer, or of the decoder that judges a boundary
            if isinstance(item, Gap):
                order, packet, ts_ns = item.order, item.order, item.ts_ns
            else:
                _, (packet, *_), (ts_ns, *_), (order, *_) = item.segments
            cutter.stop(end)
            queue.put_back(item)
            queue.stop(Fault(order, caught(error), Place(direction, packet, ts_ns)))
            return []

    def _feed_before(self, order: int, direction: int, out: Sink) -> None:
        """Feed what was readable before this packet, and of the packet itself what the client sent."""
        ready: list[Sequence[Frame]] = []
        for side, frames in enumerate(self._frames):
            until = readable_before(frames, order + (side <= direction)) if frames else 0
            ready.append(frames[:until])
            if until:
                self._frames[side] = frames[until:]
        if any(ready):
            self._hand_over(as_readable(*ready), out)

    def _feed_all(self, out: Sink) -> None:
        client, server = self._frames
        self._frames = [[], []]
        self._hand_over(as_readable(client, server), out)

    def _hand_over(self, frames: Sequence[Frame], out: Sink) -> None:
        """Feed frames; tell a decoder that pairs by order where bytes are missing, between the frames around."""
        decoder = self._decoder
        start = 0
        if not _pairs_by_order(decoder):
            for cutter in self._cutters:
                cutter.after_loss.clear()
        elif any(cutter.after_loss for cutter in self._cutters):
            for at, direction, offset in begun_at(frames, [cutter.after_loss for cutter in self._cutters]):
                self._cutters[direction].after_loss.remove(offset)
                self._feed_in_parts(frames[start:at], out)
                decoder.lost(direction, out)
                start = at
        self._feed_in_parts(frames[start:] if start else frames, out)

    def _feed_in_parts(self, frames: Sequence[Frame], out: Sink) -> None:
        """Rows leave before there are more than memory should hold."""
        self._fed += len(frames)
        for start in range(0, len(frames), FED_FRAMES):
            self._decoder.feed(frames[start : start + FED_FRAMES], out)
            out.relieve()
