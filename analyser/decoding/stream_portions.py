"""What a flow delivered, in parts: what is made of bytes takes many times their size, and a block may be one flow's.

In: runs and gaps. Out: the same, a part after the other. The order of the packets decides where parts end, as it
decides what is made of them; so parts are like smaller blocks and change nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import count, takewhile

from wirewitness.analyser.tcp.chunks import Gap, Run

# Bytes of one direction that are decoded at once. MQTT packs a message into two bytes, and each message takes hundreds
# until its rows are packed.
PART_BYTES = 1 << 20
# Of compressed bytes, which may become a thousand times as many; and of what became of them, since after each slice a
# limit may refuse the rest.
COMPRESSED_BYTES, SLICE_BYTES = 1 << 16, 1 << 16

ALL = 1 << 62
# What the low endpoint (True) and the high one delivered.
Items = list[tuple[bool, Run | Gap]]


class InParts:
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

    def before(self, order: int) -> tuple[Run | None, bool]:
        """The next segments that became readable before this packet, None for none; are there more?"""
        size = bisect_left(self._run.segments.order, order, self._at) - self._at
        return self.take(size) if size else (None, True)


_Left = tuple[bool, InParts | Gap]


def in_parts(queued: Items, part_bytes: int | None = None) -> Iterator[Items]:
    """The items by the packets at which they became readable, about so many bytes of each direction in a part."""
    return _split_at(queued, {order for run in _runs(queued) for order in _ends(run, part_bytes or PART_BYTES)})


def in_slices(queued: Items, first: bool, slice_bytes: int | None = None) -> Iterator[Items]:
    """The same of what was compressed, where one packet may hold megabytes: these are cut, too. first: whose bytes are
    read first where one packet makes those of both readable."""
    most = slice_bytes or SLICE_BYTES
    orders = {order for run in _runs(queued) for order in _ends(run, most)}
    orders |= {order + behind for run in _runs(queued) for order in _large(run, most) for behind in (0, 1)}
    for part in _split_at(queued, orders):
        if any(_large(run, most) for run in _runs(part)):
            yield from _sliced(sorted(part, key=lambda one: one[0] != first), most)
        else:
            yield part


def size_of(items: Items) -> int:
    """Their bytes, gaps not counted."""
    return sum(run.size for run in _runs(items))


def first_ns(items: Items) -> int | None:
    """When the first packet of these came; None where there is none."""
    return min((run.segments.ts_ns[0] for run in _runs(items)), default=None)


def last_ns(items: Items) -> int | None:
    """When the last packet of these came; None where there is none."""
    return max((run.segments.ts_ns[-1] for run in _runs(items)), default=None)


def _runs(items: Items) -> Iterator[Run]:
    return (item for _, item in items if isinstance(item, Run))


def _large(run: Run, most: int) -> list[int]:
    """The packets at which segments of more bytes became readable."""
    positions, order = run.segments.positions, run.segments.order
    if run.size <= most:
        return []
    return [order[at] for at, start in enumerate(positions) if run.end_of(at) - max(start, 0) > most]


def _sliced(part: Items, most: int) -> Iterator[Items]:
    """What one packet made readable, one piece after the other."""
    for from_low, item in part:
        if isinstance(item, Gap):
            yield [(from_low, item)]
            continue
        data, segments = b"".join(item.pieces), item.segments
        for start in range(0, item.size, most):
            end = min(start + most, item.size)
            here = segments.part(segments.at(start), bisect_left(segments.positions, end), start)
            yield [(from_low, Run([data[start:end]], end - start, here))]


def _split_at(queued: Items, orders: set[int]) -> Iterator[Items]:
    """What became readable before each of these packets and not before the one in front of it; at last the rest."""
    left: list[_Left] = [(from_low, InParts(item) if isinstance(item, Run) else item) for from_low, item in queued]
    for order in sorted(orders):
        part, left = _split(left, order)
        if part:
            yield part
    yield [(from_low, item if isinstance(item, Gap) else item.take(ALL)[0]) for from_low, item in left]


def _split(left: list[_Left], order: int) -> tuple[Items, list[_Left]]:
    """What became readable before this packet, and the rest."""
    part: Items = []
    behind: list[_Left] = []
    for from_low, item in left:
        if isinstance(item, Gap):
            is_before = item.order < order
            if is_before:
                part.append((from_low, item))
        else:
            run, more = item.before(order)
            is_before = not more
            if run is not None:
                part.append((from_low, run))
        if not is_before:
            behind.append((from_low, item))
    return part, behind


def _ends(run: Run, part_bytes: int) -> Iterator[int]:
    """The packets at which parts of a run end."""
    positions, order = run.segments.positions, run.segments.order
    for edge in takewhile(lambda edge: edge < run.size, count(part_bytes, part_bytes)):
        yield order[min(bisect_left(positions, edge), len(order) - 1)]
