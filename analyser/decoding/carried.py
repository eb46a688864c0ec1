"""The bytes that a carrier carries, as if they were a stream of their own.

In: one direction's runs and gaps. Out: runs and gaps of the inner bytes, which keep the packets they came in, and a map
from inner offsets back to those of the outer stream, by which messages are named and found in packets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

from analyser.decoding.faults import Fault, Place
from analyser.decoding.missing import gap_row
from analyser.faults import caught
from analyser.flows.runs import Gap, Run, nothing
from dissectors.core.carrier import Carried, Interrupted, Item, Opening, Told, Unwrapper
from dissectors.core.model import Frame
from dissectors.core.protocol import Sink


class Span(NamedTuple):
    """Bytes `start` to before `end` of a frame are the outer ones `outer_start` to before `outer_end`, in `packet`."""

    start: int
    end: int
    outer_start: int
    outer_end: int
    packet: int


class Watcher(Protocol):
    """Somebody who wants to know of a carried flow what the tables do not tell."""

    def opened(self, opening: Opening) -> None:
        """How the carrier was opened."""
        ...

    def own(self, direction: int, start: int, end: int) -> None:
        """Outer bytes `start` to before `end` are the carrier's own: headers of its frames."""
        ...

    def piece(self, direction: int, piece: Carried) -> None:
        """Inner bytes, in the order of the stream."""
        ...

    def frame(self, frame: Frame, spans: Sequence[Span]) -> None:
        """A frame, before it is decoded, and where its bytes lie."""
        ...


class OuterMap:
    """Where inner bytes lie in the outer stream. Compressed ones lie anywhere between their frame's first and last."""

    def __init__(self) -> None:
        self.watcher: Watcher | None = None
        self._starts: list[int] = []
        self._pieces: list[tuple[int, int, int, int]] = []
        self._last = -1

    def add(self, inner_start: int, piece: Carried, packet: int) -> None:
        """The piece's bytes begin at this inner offset."""
        self._starts.append(inner_start)
        self._pieces.append((len(piece.data), piece.start, piece.end, packet))

    def outer(self, inner: int) -> int:
        """The outer offset of an inner one."""
        at = max(bisect_right(self._starts, inner) - 1, 0)
        if not self._starts:
            return inner
        size, start, end, _ = self._pieces[at]
        into = max(inner - self._starts[at], 0)
        return start + (into if size == end - start else into * (end - start) // size)

    def renamed(self, frames: Sequence[Frame]) -> list[Frame]:
        """Frames with outer offsets: unique and rising, also where several begin in one compressed byte."""
        found: list[Frame] = []
        for frame in frames:
            self._last = max(self.outer(frame.stream_offset), self._last + 1)
            found.append(frame._replace(stream_offset=self._last))
            if self.watcher is not None:
                self.watcher.frame(found[-1], self.spans(frame.stream_offset, frame.size))
        return found

    def spans(self, inner_start: int, size: int) -> list[Span]:
        """Where `size` inner bytes lie, piece by piece."""
        found: list[Span] = []
        end = inner_start + size
        at = max(bisect_right(self._starts, inner_start) - 1, 0)
        for first, (length, outer_start, outer_end, packet) in zip(self._starts[at:], self._pieces[at:], strict=True):
            start, stop = max(first, inner_start), min(first + length, end)
            if first >= end:
                break
            if start >= stop:
                continue
            if length == outer_end - outer_start:
                outer_start, outer_end = outer_start + start - first, outer_start + stop - first
            found.append(Span(start - inner_start, stop - inner_start, outer_start, outer_end, packet))
        return found

    def forget(self, inner: int) -> None:
        """Drop what lies before this inner offset; nobody asks for it later."""
        at = bisect_right(self._starts, inner) - 1
        if at > 0:
            del self._starts[:at], self._pieces[:at]


class _Segment(NamedTuple):
    offset: int
    packet: int
    ts_ns: int


_offset = itemgetter(0)


class CarriedStream:
    """One direction. before: outer bytes in front of the carried ones, told: a remark on them.

    fault: why nothing is carried from some packet on; what came before it was given.
    """

    def __init__(self, direction: int, unwrapper: Unwrapper, before: int = 0, told: Told | None = None) -> None:
        self.places = OuterMap()
        self._direction = direction
        self._unwrapper = unwrapper
        self._before = before
        self._told = told
        self._offset = 0
        self._inner = 0
        self._recent: list[_Segment] = []
        self._search: tuple[int, _Segment] | None = None
        self._items: list[Run | Gap] = []
        self.fault: Fault | None = None

    @property
    def held_bytes(self) -> int:
        """Outer bytes that wait for what follows."""
        return 0 if self.fault is not None else self._unwrapper.held_bytes

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
                data = b"".join(item.pieces)
                for at, (start, packet, ts_ns, order) in enumerate(zip(*item.segments, strict=True)):
                    self._segment(data[start : item.end_of(at)], packet, ts_ns, order, out)
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

    def _note_search(self, since: int | None) -> None:
        """Remember the packet of the first byte that belongs to no frame, until it is told or found to be none."""
        if since is None:
            self._search = None
        elif since < self._offset and (self._search is None or self._search[0] != since):
            self._search = since, self._segment_of(since)

    def _gap(self, gap: Gap, out: Sink) -> None:
        out.expert(gap_row(self._direction, gap, self._offset))
        self._recent = [_Segment(self._offset, gap.order, gap.ts_ns)]
        self._add(self._unwrapper.gap(gap.size, self._offset), gap.order, out)
        self._offset += gap.size

    def watch(self, watcher: Watcher | None) -> None:
        """Tell this one; before any bytes."""
        self.places.watcher = watcher
        if watcher is not None:
            self._unwrapper.headers = []

    def _add(self, found: Sequence[Item], order: int, out: Sink) -> None:
        if self.places.watcher is not None and self._unwrapper.headers:
            for start, end in self._unwrapper.headers:
                self.places.watcher.own(self._direction, start, end)
            self._unwrapper.headers.clear()
        for item in found:
            if isinstance(item, Carried):
                self._carried(item, order)
            elif isinstance(item, Interrupted):
                self._items.append(Gap(item.size, order, self._recent[-1].ts_ns))
                self._inner += item.size
            else:
                self._remark(item, out)

    def _carried(self, piece: Carried, order: int) -> None:
        segment = self._segment_of(piece.end - 1)
        size = len(piece.data)
        if self.places.watcher is not None:
            self.places.watcher.piece(self._direction, piece)
        self.places.add(self._inner, piece, segment.packet)
        self._inner += size
        last = self._items[-1] if self._items else None
        if not isinstance(last, Run):
            last = nothing()
            self._items.append(last)
        last.pieces.append(piece.data)
        last.segments.add(last.size, segment.packet, segment.ts_ns, order)
        self._items[-1] = last._replace(size=last.size + size)

    def _segment_of(self, offset: int) -> _Segment:
        if offset >= self._recent[-1].offset:
            return self._recent[-1]
        return self._recent[max(bisect_right(self._recent, offset, key=_offset) - 1, 0)]

    def _remark(self, told: Told, out: Sink) -> None:
        if self._search is not None and self._search[0] == told.start:
            segment = self._search[1]
        else:
            segment = self._segment_of(told.end - 1)
        span = f"{told.start}-{max(told.end - 1, told.start)}"
        remark = (told.severity, told.group, told.code, told.text)
        out.expert((self._direction, None, segment.packet, segment.ts_ns, *remark, span))
