"""Framing by a length field, shared by protocols whose frames state their size up front."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from itertools import chain
from struct import Struct
from typing import Literal, NamedTuple

from wirewitness.dissectors.core.protocol import STUCK, Cut, Plausible, Skipped

# (data, position, end) -> size of the frame at position; 0: more bytes needed to tell; -1: no frame starts here.
Measure = Callable[[bytes, int, int], int]
# (data, position, end) -> positions worth asking about, rising.
Candidates = Callable[[bytes, int, int], Iterable[int]]

# A position that could be a boundary "if only more bytes were there" is waited for this long, then given up.
MAX_WAIT_BYTES = 1 << 20
# Up to here what comes next is looked at as it comes. Beyond, nobody looks until there is twice as much.
MAX_EAGER_BYTES = 1 << 16
# Frames that say they are larger are awaited segment by segment, since they may be damaged.
LARGE_FRAME_BYTES = 1 << 23
# What comes next is looked at together with this much before it: a header may lie across segments.
_OVERLAP_BYTES = 64
_SIZE_AT = {order: Struct(f"{order}i").unpack_from for order in (">", "<")}
# So many of the positions that more bytes may make a boundary are asked about whenever some come.
MAX_WAITING = 32


class Ordinary(NamedTuple):
    """Frames that begin with their size as an int32. `measure` is asked about others only, which is nearly nobody.

    order: of its bytes, as `struct` writes it. beside: bytes of a frame that its size does not count.
    smallest, largest: sizes of whole frames.
    """

    order: Literal[">", "<"]
    beside: int
    smallest: int
    largest: int


class LengthFramer:
    """Cuts frames whose size `measure` tells; after a loss, finds the next boundary that the decoder accepts.

    ordinary: frames of which `measure` would say the same; asking it costs a call for each of them.
    Bytes that wait are looked through again when they have doubled, and when a boundary is found in them.
    """

    __slots__ = ("_candidates", "_measure", "_ordinary", "_searched", "_seen", "_synchronised", "_waiting")

    def __init__(
        self, measure: Measure, candidates: Candidates, synchronised: bool, ordinary: Ordinary | None = None
    ) -> None:
        self._measure = measure
        self._candidates = candidates
        self._ordinary = ordinary
        self._synchronised = synchronised
        self._seen = self._searched = 0
        self._waiting: list[int] = []

    @property
    def synchronised(self) -> bool:
        """True while the next byte is known to start a frame."""
        return self._synchronised

    def lost(self) -> None:
        """The stream has a gap before the next data, or all that waits is to be looked through once more."""
        self._synchronised = False
        self._seen = self._searched = 0

    def feed(self, data: bytes, hints: Sequence[int], plausible: Plausible | None) -> Cut:
        """Cut `data` into frames; see `Framer.feed`."""
        starts: list[int] = []
        ends: list[int] = []
        skipped: list[Skipped] = []
        measure = self._measure
        position = 0
        end = len(data)
        while True:
            if not self._synchronised and plausible is not None:
                boundary, found = self._search(data, position, hints, plausible)
                if boundary > position:
                    skipped.append(Skipped(position, boundary, "no frame boundary"))
                position = boundary
                if not found:
                    waiting = end - position
                    return Cut(starts, ends, position, 2 * waiting if waiting > MAX_EAGER_BYTES else 0, skipped)
                self._synchronised = True
            if self._ordinary is not None:
                position = _cut_ordinary(self._ordinary, data, position, starts, ends)
            size = measure(data, position, end)
            while size > 0:
                after = position + size
                if size > LARGE_FRAME_BYTES and plausible is None:
                    return Cut(starts, ends, position, STUCK, skipped)
                if after > end:
                    return Cut(starts, ends, position, size, skipped)
                starts.append(position)
                ends.append(after)
                position = after
                size = measure(data, position, end)
            if size == 0:
                return Cut(starts, ends, position, 0, skipped)
            if plausible is None:
                return Cut(starts, ends, position, STUCK, skipped)
            self.lost()
            skipped.append(Skipped(position, position + 1, "impossible frame length"))
            position += 1

    def _search(self, data: bytes, position: int, hints: Sequence[int], plausible: Plausible) -> tuple[int, bool]:
        """Where the next frame plausibly starts, and whether that is certain enough to go on.

        When nothing fits, the position returned is the first one that may yet fit when more bytes come, else the end.
        """
        end = len(data)
        if position == 0 and self._seen and end < 2 * self._searched:
            fresh = max(self._seen - _OVERLAP_BYTES, 0)
            self._seen = end
            waiting = [candidate for candidate in self._waiting if candidate < fresh]
            found, self._waiting = _look(chain(waiting, self._places(data, fresh, hints)), 0, plausible)
            if found is None:
                return 0, False
        found, waiting = _look(self._places(data, position, hints), end - MAX_WAIT_BYTES, plausible)
        if found is not None:
            self._seen = self._searched = 0
            return self._leading_to(found, waiting, data), True
        first = waiting[0] if waiting else end
        self._waiting = [candidate - first for candidate in waiting]
        self._seen = self._searched = end - first
        return first, False

    def _leading_to(self, found: int, waiting: Sequence[int], data: bytes) -> int:
        """The first of the places that wait from which frames lead right to the boundary found, else that boundary."""
        places, end = set(waiting), len(data)
        for first in waiting:
            at, size = first, 1
            while at in places and size > 0:
                size = self._measure(data, at, end)
                at += size
            if at == found:
                return first
        return found

    def _places(self, data: bytes, position: int, hints: Sequence[int]) -> Iterable[int]:
        """Where a frame may start, from `position` on: where segments do, and where the protocol says so."""
        end = len(data)
        segments = hints[bisect_left(hints, position) : bisect_left(hints, end)]
        return merge(segments, self._candidates(data, position, end))


def _cut_ordinary(ordinary: Ordinary, data: bytes, position: int, starts: list[int], ends: list[int]) -> int:
    """Add the whole ordinary frames that follow each other from `position` on; where they end."""
    order, beside, smallest, largest = ordinary
    size_at, end = _SIZE_AT[order], len(data)
    largest = min(largest, LARGE_FRAME_BYTES)
    last = end - 4
    while position <= last:
        size = size_at(data, position)[0] + beside
        after = position + size
        if after > end or not smallest <= size <= largest:
            break
        starts.append(position)
        ends.append(after)
        position = after
    return position


def _look(places: Iterable[int], since: int, plausible: Plausible) -> tuple[int | None, list[int]]:
    """The first of these rising places that is a boundary; from `since` on, those that may be one with more bytes."""
    waiting: list[int] = []
    last = -1
    for place in places:
        if place == last:
            continue
        last = place
        verdict = plausible(place)
        if verdict:
            return place, waiting
        if verdict is None and place >= since and len(waiting) < MAX_WAITING:
            waiting.append(place)
    return None, waiting
