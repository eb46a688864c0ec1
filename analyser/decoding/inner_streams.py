"""The bytes that a carrier carries, as if they were a stream of their own.

In: one direction's runs and gaps. Out: runs and gaps of the inner bytes, which keep the packets they came in, and a map
from inner offsets back to those of the outer stream, by which messages are named and found in packets.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import itemgetter, sub
from typing import NamedTuple

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.decoding.carried_chunks import parts_of
from wirewitness.analyser.decoding.faults import Fault, Place
from wirewitness.analyser.decoding.missing_bytes import gap_row
from wirewitness.analyser.decoding.outer_map import OuterMap, Watcher
from wirewitness.analyser.tcp.chunks import Gap, Run, nothing
from wirewitness.dissectors.core.carrier import Carried, Carrier, Interrupted, Item, Told, Unwrapper
from wirewitness.dissectors.core.protocol import Sink


class _Segment(NamedTuple):
    offset: int
    packet: int
    ts_ns: int


class _Search(NamedTuple):
    """since: the first byte that belongs to no frame; place: the same, in the stream of TCP."""

    since: int
    place: int
    segment: _Segment


_offset = itemgetter(0)
# A frame's header is named when what it holds was given out already.
_KEPT_BYTES = 64
# For fewer segments it takes as long to take them together as one after the other.
_TOGETHER_SEGMENTS = 8


class CarriedStream:
    """One direction. before: outer bytes in front of the carried ones, told: a remark on them.

    within: where the bytes that are fed lie themselves, if something else carries them; None for those of TCP.
    fault: why nothing is carried from some packet on; what came before it was given.
    """

    def __init__(
        self,
        direction: int,
        unwrapper: Unwrapper,
        before: int = 0,
        told: Told | None = None,
        within: OuterMap | None = None,
    ) -> None:
        self.places = OuterMap()
        self._within = within
        self._compressed_from: int | None = None
        self._direction = direction
        self._unwrapper = unwrapper
        self._before = before
        self._told = told
        self._offset = 0
        self._inner = 0
        self._recent: list[_Segment] = []
        self._search: _Search | None = None
        self._items: list[Run | Gap] = []
        self.fault: Fault | None = None

    @property
    def held_bytes(self) -> int:
        """Outer bytes that wait for what follows."""
        return 0 if self.fault is not None else self._unwrapper.held_bytes

    @property
    def over(self) -> bool:
        """Nothing more comes of it."""
        return self.fault is not None or self._unwrapper.over

    def again(self, carrier: Carrier) -> None:
        """Give the unwrapper what is not kept of it."""
        if carrier.again is not None:
            carrier.again(self._unwrapper)

    def take(self, item: Run | Gap, out: Sink) -> list[Run | Gap]:
        """What one item of the outer stream gives."""
        if self.fault is not None:
            return []
        order = packet = ts_ns = 0
        try:
            if isinstance(item, Gap):
                order, packet, ts_ns = item.order, item.order, item.ts_ns
                self._gap(item, out)
            else:
                data, at, until = b"".join(item.pieces), 0, len(item.segments.positions)
                done = next_try = 0
                while at < until:
                    start, packet, ts_ns, order = (column[at] for column in item.segments)
                    start = max(start, done)
                    if at >= next_try and until - at >= _TOGETHER_SEGMENTS and self._may_take_many:
                        done = start + self._many(item, data[start:], start, at)
                        at = until if done == item.size else bisect_right(item.segments.positions, done) - 1
                        next_try = max(2 * next_try, at + _TOGETHER_SEGMENTS)
                        continue
                    self._segment(data[start : item.end_of(at)], packet, ts_ns, order, out)
                    at += 1
        except Exception as error:  # what the unwrapper gave before is good
            self.fault = Fault(order, caught(error), Place(self._direction, packet, ts_ns))
        found, self._items = self._items, []
        return found

    def let_go(self, out: Sink) -> list[Run | Gap]:
        """Keep nothing that waits for what follows."""
        if self.held_bytes and self._recent:
            last = self._recent[-1]
            try:
                self._add(self._unwrapper.gap(0, self._offset), last.packet, out)
            except Exception as error:  # as above
                self.fault = Fault(last.packet, caught(error), Place(self._direction, last.packet, last.ts_ns))
        found, self._items = self._items, []
        return found

    def _segment(self, data: bytes, packet: int, ts_ns: int, order: int, out: Sink) -> None:
        skip = min(max(self._before - self._offset, 0), len(data))
        start, data = self._offset + skip, data[skip:]
        self._offset = start + len(data)
        self._recent.append(_Segment(start, packet, ts_ns))
        if self._told is not None and start >= self._before:
            self._remark(self._told, out)
            self._told = None
        if not data:
            return
        self._add(self._unwrapper.feed(data, start), order, out)
        self._note_search(self._unwrapper.searched_from)
        held = self._unwrapper.held_bytes
        keep = bisect_right(self._recent, self._offset - held, key=_offset) - 1 if held else len(self._recent) - 1
        del self._recent[: max(keep, 0)]

    @property
    def _may_take_many(self) -> bool:
        return self._told is None and self._offset >= self._before and self.places.watcher is None

    def _many(self, run: Run, data: bytes, start: int, at: int) -> int:
        """Take what can be taken at once of the bytes that begin at position `start` of a run, in its segment `at`. How
        many that were."""
        pieces = self._unwrapper.feed_many(data, self._offset)
        if pieces is None or not pieces.used:
            return 0
        positions, recent = run.segments.positions, self._recent
        until = bisect_left(positions, start + pieces.used)
        offsets = [segment.offset for segment in recent]
        offsets += [self._offset + max(position - start, 0) for position in positions[at:until]]
        packets = [segment.packet for segment in recent] + run.segments.packets[at:until]
        ts_ns = [segment.ts_ns for segment in recent] + run.segments.ts_ns[at:until]
        self._offset += pieces.used
        if pieces.data:
            parts, earlier = parts_of(pieces, offsets), len(recent) - at
            order = run.segments.order
            sizes = list(map(sub, parts.ends, parts.starts))
            starts = list(accumulate(sizes, initial=self._inner))
            self._inner = starts.pop()
            came_in = [packets[segment] for segment in parts.segments]
            completed = [(packets[segment], ts_ns[segment]) for segment in parts.completed]
            self.places.add_many(starts, sizes, parts, came_in, completed)
            last = self._last_run()
            first = last.size - starts[0]
            last.pieces.extend(pieces.data)
            last.segments.positions.extend([first + position for position in starts])
            last.segments.packets.extend(came_in)
            last.segments.ts_ns.extend([ts_ns[segment] for segment in parts.segments])
            last.segments.order.extend([order[segment - earlier] for segment in parts.completed])
            self._items[-1] = last._replace(size=first + self._inner)
        self._search = None
        kept = range(self._first_kept(offsets), len(offsets))
        self._recent = [_Segment(offsets[one], packets[one], ts_ns[one]) for one in kept]
        return pieces.used

    def _first_kept(self, offsets: Sequence[int]) -> int:
        """Which segment, of those that begin at these offsets, has the first byte that may still be given out."""
        held = self._unwrapper.held_bytes
        return max((bisect_right(offsets, self._offset - held) if held else len(offsets)) - 1, 0)

    def _note_search(self, since: int | None) -> None:
        """Remember the packet of the first byte that belongs to no frame, until it is told or found to be none."""
        if since is None:
            self._search = None
        elif since < self._offset and (self._search is None or self._search.since != since):
            self._search = _Search(since, self._outer(since), self._segment_of(since))

    def _gap(self, gap: Gap, out: Sink) -> None:
        if self._within is None:
            out.expert(gap_row(self._direction, gap, self._offset))
        self._recent = [_Segment(self._offset, gap.order, gap.ts_ns)]
        self._add(self._unwrapper.gap(gap.size, self._offset), gap.order, out)
        self._offset += gap.size

    def watch(self, watcher: Watcher | None) -> None:
        """Tell this one; before any bytes."""
        self.places.watcher = watcher
        if watcher is not None and self._within is None:
            self._unwrapper.headers = []

    def forget(self) -> None:
        """Of what lies around this, nothing is asked that is done with."""
        if self._within is not None:
            done = self._offset - self._unwrapper.held_bytes - _KEPT_BYTES
            self._within.forget(done if self._compressed_from is None else min(done, self._compressed_from))

    def _add(self, found: Sequence[Item], order: int, out: Sink) -> None:
        if self.places.watcher is not None and self._unwrapper.headers:
            for start, end in self._unwrapper.headers:
                self.places.watcher.own(self._direction, start, end)
            self._unwrapper.headers.clear()
        for item in found:
            if isinstance(item, Carried):
                self._carried(item, order)
            elif isinstance(item, Interrupted):
                if self.places.watcher is not None and self._within is None:
                    self.places.watcher.lost(self._direction, item.size)
                self._items.append(Gap(item.size, order, self._recent[-1].ts_ns))
                self._inner += item.size
            else:
                self._remark(item, out)

    def _carried(self, piece: Carried, order: int) -> None:
        for part in self._by_segment(piece):
            self._add_piece(part, order)

    def _by_segment(self, piece: Carried) -> list[Carried]:
        """A piece that came in several segments, cut where these begin, as far as inner bytes are outer ones."""
        data, start, end, behind = piece
        first, until = bisect_right(self._recent, start, key=_offset), bisect_left(self._recent, end, key=_offset)
        if first >= until or len(data) != end - start:
            return [piece]
        bounds = [start, *(segment.offset for segment in self._recent[first:until]), end]
        return [Carried(data[a - start : b - start], a, b, behind or end) for a, b in pairwise(bounds) if a < b]

    def _add_piece(self, piece: Carried, order: int) -> None:
        segment = self._segment_of(piece.end - 1)
        whole = self._segment_of((piece.behind or piece.end) - 1)
        completed = whole.packet, whole.ts_ns
        size = len(piece.data)
        if self._within is not None:
            completed = self._within.completed((piece.behind or piece.end) - 1)
            self._compressed_from = piece.start if size != piece.end - piece.start else None
            piece = self._within.around(piece)
        elif self.places.watcher is not None:
            self.places.watcher.piece(self._direction, piece, segment.packet, order)
        self.places.add(self._inner, piece, segment.packet, completed)
        self._inner += size
        last = self._last_run()
        last.pieces.append(piece.data)
        last.segments.add(last.size, segment.packet, segment.ts_ns, order)
        self._items[-1] = last._replace(size=last.size + size)

    def _last_run(self) -> Run:
        """What pieces are added to."""
        last = self._items[-1] if self._items else None
        if not isinstance(last, Run):
            last = nothing()
            self._items.append(last)
        return last

    def _outer(self, offset: int) -> int:
        return offset if self._within is None else self._within.outer(offset)

    def _segment_of(self, offset: int) -> _Segment:
        if offset >= self._recent[-1].offset:
            return self._recent[-1]
        return self._recent[max(bisect_right(self._recent, offset, key=_offset) - 1, 0)]

    def _remark(self, told: Told, out: Sink) -> None:
        if self._search is not None and self._search.since == told.start:
            place, segment = self._search.place, self._search.segment
        else:
            place, segment = self._outer(told.start), self._segment_of(told.end - 1)
        span = f"{place}-{max(self._outer(told.end - 1), place)}"
        remark = (told.severity, told.group, told.code, told.text)
        out.expert((self._direction, None, segment.packet, segment.ts_ns, *remark, span))
