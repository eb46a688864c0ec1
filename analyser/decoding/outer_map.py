"""Where the bytes that a carrier carries lie in the stream around it.

In: pieces as they are taken out. Out: outer offsets and packets of inner bytes, and of frames that were cut of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from wirewitness.analyser.decoding.carried_chunks import Parts
from wirewitness.dissectors.core.carrier import Carried, Opening
from wirewitness.dissectors.core.model import Frame

# A packet and its time.
Moment = tuple[int, int]


class Span(NamedTuple):
    """Bytes `start` to before `end` of a frame are the outer ones `outer_start` to before `outer_end`, in `packet`."""

    start: int
    end: int
    outer_start: int
    outer_end: int
    packet: int


class Watcher(Protocol):
    """Somebody who wants to know of a carried flow what the tables do not tell.

    Where a carrier lies in another, pieces and headers are those of the outer one, frames those of the inner one.
    """

    def opened(self, opening: Opening) -> None:
        """How the carrier was opened."""
        ...

    def own(self, direction: int, start: int, end: int) -> None:
        """Outer bytes `start` to before `end` are the carrier's own: headers of its frames."""
        ...

    def piece(self, direction: int, piece: Carried, packet: int, order: int) -> None:
        """Inner bytes, in the order of the stream. packet: their last one came in it. order: the packet at which they
        became readable, which is a later one where a gap had to close first."""
        ...

    def lost(self, direction: int, size: int) -> None:
        """Inner bytes are missing here: so many, 0 when nobody knows."""
        ...

    def frame(self, frame: Frame, spans: Sequence[Span]) -> None:
        """A frame, before it is decoded, and where its bytes lie."""
        ...


class OuterMap:
    """Where inner bytes lie in the outer stream. Compressed ones lie anywhere between their frame's first and last."""

    def __init__(self) -> None:
        self.watcher: Watcher | None = None
        self._starts: list[int] = []
        # Size, outer bytes from and to before, packet; packet and time of what completed the frame around it.
        self._pieces: list[tuple[int, int, int, int, Moment]] = []
        self._last = -1

    def add(self, inner_start: int, piece: Carried, packet: int, completed: Moment) -> None:
        """The piece's bytes begin at this inner offset. completed: when the frame that they came in was whole."""
        self._starts.append(inner_start)
        self._pieces.append((len(piece.data), piece.start, piece.end, packet, completed))

    def add_many(
        self,
        inner_starts: Sequence[int],
        sizes: Sequence[int],
        parts: Parts,
        packets: Sequence[int],
        completed: Sequence[Moment],
    ) -> None:
        """The same of many, none of them compressed, column by column."""
        self._starts += inner_starts
        self._pieces += zip(sizes, parts.starts, parts.ends, packets, completed, strict=True)

    def completed(self, inner: int) -> Moment:
        """Packet and time at which the frame around this inner byte was whole; zeros where nothing is known of it."""
        at = bisect_right(self._starts, inner) - 1
        return self._pieces[at][4] if at >= 0 else (0, 0)

    def outer(self, inner: int) -> int:
        """The outer offset of an inner one."""
        at = max(bisect_right(self._starts, inner) - 1, 0)
        if not self._starts:
            return inner
        size, start, end, *_ = self._pieces[at]
        into = max(inner - self._starts[at], 0)
        return start + (into if size == end - start else into * (end - start) // size)

    def around(self, piece: Carried) -> Carried:
        """A piece of what is carried here, with its place in the outer stream."""
        return piece._replace(start=self.outer(piece.start), end=self.outer(piece.end - 1) + 1)

    def renamed(self, frames: Sequence[Frame]) -> list[Frame]:
        """Frames with outer offsets: unique and rising, also where several begin in one compressed byte.

        Their last packet is the one that completes what carries their last byte: before it, nobody could read them.
        """
        found: list[Frame] = []
        for frame in frames:
            self._last = max(self.outer(frame.stream_offset), self._last + 1)
            packet, ts_ns = self.completed(frame.stream_offset + frame.size - 1)
            if packet > frame.packet_last:
                frame = frame._replace(packet_last=packet, ts_ns=ts_ns)
            found.append(frame._replace(stream_offset=self._last))
            if self.watcher is not None:
                self.watcher.frame(found[-1], self.spans(frame.stream_offset, frame.size))
        return found

    def spans(self, inner_start: int, size: int) -> list[Span]:
        """Where `size` inner bytes lie, piece by piece."""
        found: list[Span] = []
        end = inner_start + size
        at = max(bisect_right(self._starts, inner_start) - 1, 0)
        for first, (length, outer_start, outer_end, packet, _) in zip(
            self._starts[at:], self._pieces[at:], strict=True
        ):
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
