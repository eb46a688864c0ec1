"""Both directions of a flow to its conversation, in the order in which a listener could read them.

In: the runs and gaps of both directions. Out: rows in a `Sink`. As long as both directions are synchronised, whatever
is there is cut at once. A direction in which a boundary is looked for gets its segments one by one, each after all
frames that were readable before it: what is found is a matter of the order of the packets, never of how many of them
came together.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from operator import attrgetter

from analyser.decoding.cutting import StreamCutter
from analyser.flows.runs import Gap, Run
from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from dissectors.core.protocol import Conversation, PairsByOrder, Sink

_BY_ORDER = attrgetter("order")
_ALL = 1 << 62


class _InParts:
    """A run that is taken in parts."""

    __slots__ = ("_at", "_data", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._data = b""
        self._at = 0

    @property
    def order(self) -> int:
        """The packet at which its next segment became readable."""
        return self._run.segments.order[self._at]

    def take(self, count: int) -> tuple[Run, bool]:
        """The next segments, `count` at most; are there more?"""
        run, at = self._run, self._at
        segments = run.segments
        number = len(segments.positions)
        until = min(at + count, number)
        if at == 0 and until == number:
            return run, False
        if at == 0:
            self._data = b"".join(run.pieces)
        self._at = until
        # The first segment may have begun before the run.
        start, end = max(segments.positions[at], 0), run.end_of(until - 1)
        return Run([self._data[start:end]], end - start, segments.part(at, until, start)), until < number


class _Queue:
    """What one direction delivered and its cutter has not taken yet.

    together: so many segments are cut at once; few behind a loss, since those that are cut in vain are cut again.
    """

    def __init__(self) -> None:
        self._items: deque[_InParts | Gap] = deque()
        self.together = _ALL

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def order(self) -> int:
        """The packet at which the next item became readable."""
        return self._items[0].order

    def add(self, items: Iterable[Run | Gap]) -> None:
        """Items behind all others."""
        self._items.extend(_InParts(item) if isinstance(item, Run) else item for item in items)

    def put_back(self, run: Run) -> None:
        """Segments that were taken and are to be taken again."""
        self._items.appendleft(_InParts(run))

    def take(self, count: int) -> Run | Gap:
        """The next gap, or at most `count` segments in front of it."""
        item = self._items[0]
        if isinstance(item, Gap):
            self._items.popleft()
            return item
        run, more = item.take(count)
        if not more:
            self._items.popleft()
        return run


class Listener:
    """One flow whose protocol is known. cutters: of what the client and of what the server sends."""

    def __init__(self, cutters: tuple[StreamCutter, StreamCutter], conversation: Conversation) -> None:
        self._cutters = cutters
        self._conversation = conversation
        self._queues = (_Queue(), _Queue())
        self._frames: tuple[list[Frame], list[Frame]] = ([], [])

    @property
    def held_bytes(self) -> int:
        """Bytes kept for frames that are not complete."""
        return self._cutters[0].held_bytes + self._cutters[1].held_bytes

    def take(self, client: Iterable[Run | Gap], server: Iterable[Run | Gap], out: Sink) -> None:
        """What both directions delivered since the last call."""
        for queue, items in zip(self._queues, (client, server), strict=True):
            queue.add(items)
        self._cut_ahead(CLIENT_TO_SERVER, out)
        self._cut_ahead(SERVER_TO_CLIENT, out)
        while any(self._queues):
            direction = min((d for d in (CLIENT_TO_SERVER, SERVER_TO_CLIENT) if self._queues[d]), key=self._order)
            self._search(direction, out)
            self._cut_ahead(direction, out)
        self._feed_all(out)

    def drop(self, out: Sink) -> None:
        """Nothing that is held will be completed. Requests first: they tell their responses."""
        for direction, cutter in enumerate(self._cutters):
            self._frames[direction].extend(cutter.drop(self._conversation, out))
            if direction == CLIENT_TO_SERVER and not self._cutters[SERVER_TO_CLIENT].synchronised:
                self._feed_all(out)
        self._feed_all(out)

    def finish(self, out: Sink) -> None:
        """The flow ended."""
        self._conversation.finish(out)

    def _order(self, direction: int) -> int:
        return self._queues[direction].order

    def _cut_ahead(self, direction: int, out: Sink) -> None:
        """Cut what is there, as long as no boundary has to be looked for."""
        cutter, queue, frames = self._cutters[direction], self._queues[direction], self._frames[direction]
        while queue and not cutter.searches:
            item = queue.take(queue.together)
            if isinstance(item, Gap):
                frames += cutter.gap(item, self._conversation, out)
                continue
            frames += cutter.run(item, out)
            stuck = cutter.take_back()
            if stuck is not None:
                queue.put_back(stuck)
            elif queue.together < _ALL:
                queue.together *= 2

    def _search(self, direction: int, out: Sink) -> None:
        """The next segment of a direction in which a boundary is looked for."""
        cutter, queue = self._cutters[direction], self._queues[direction]
        queue.together = 1
        self._feed_before(queue.order, direction, out)
        item = queue.take(1)
        if isinstance(item, Gap):
            self._frames[direction].extend(cutter.gap(item, self._conversation, out))
        else:
            self._frames[direction].extend(cutter.search(item, self._conversation, out))

    def _feed_before(self, order: int, direction: int, out: Sink) -> None:
        """Feed what was readable before this packet, and of the packet itself what the client sent."""
        ready: list[Frame] = []
        for side, frames in enumerate(self._frames):
            until = (bisect_right if side <= direction else bisect_left)(frames, order, key=_BY_ORDER)
            ready += frames[:until]
            del frames[:until]
        self._feed(ready, out)

    def _feed_all(self, out: Sink) -> None:
        client, server = self._frames
        frames = client + server
        if client and server:
            frames.sort(key=_BY_ORDER)
        client.clear()
        server.clear()
        self._hand_over(frames, out)

    def _feed(self, frames: list[Frame], out: Sink) -> None:
        if frames:
            frames.sort(key=_BY_ORDER)
            self._hand_over(frames, out)

    def _hand_over(self, frames: list[Frame], out: Sink) -> None:
        """Feed frames; who pairs by order is told where bytes are missing, between the frames before and behind."""
        conversation = self._conversation
        if not isinstance(conversation, PairsByOrder):
            for cutter in self._cutters:
                cutter.after_loss.clear()
        elif any(cutter.after_loss for cutter in self._cutters):
            start = 0
            for at, frame in enumerate(frames):
                after_loss = self._cutters[frame.direction].after_loss
                if frame.stream_offset in after_loss:
                    after_loss.remove(frame.stream_offset)
                    conversation.feed(frames[start:at], out)
                    conversation.lost(frame.direction, out)
                    start = at
            frames = frames[start:]
        conversation.feed(frames, out)
