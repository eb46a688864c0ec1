"""What a stream delivers: runs of its bytes, with the segments they came in, and gaps between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, islice
from typing import NamedTuple


class Segments(NamedTuple):
    """The segments that contiguous bytes came in, column by column.

    positions: where each begins among the bytes; the first one may have begun before them. packets, ts_ns: the packet
    it came in. order: the packet at which it became readable (later than `packets` where an earlier gap had to close
    first).
    """

    positions: list[int]
    packets: list[int]
    ts_ns: list[int]
    order: list[int]

    def at(self, position: int) -> int:
        """Which segment holds the byte at this position."""
        return bisect_right(self.positions, position) - 1

    def part(self, first: int, until: int | None = None, start: int = 0) -> Segments:
        """Those from `first` to before `until`, as segments of the bytes from position `start` on."""
        positions = self.positions[first:until]
        if start:
            positions = [position - start for position in positions]
        return Segments(positions, self.packets[first:until], self.ts_ns[first:until], self.order[first:until])

    def extend(self, more: Segments, start: int) -> None:
        """Add those of bytes that begin at position `start`."""
        self.positions.extend([position + start for position in more.positions])
        self.packets.extend(more.packets)
        self.ts_ns.extend(more.ts_ns)
        self.order.extend(more.order)

    def add(self, position: int, packet: int, ts_ns: int, order: int) -> None:
        """Add one."""
        self.positions.append(position)
        self.packets.append(packet)
        self.ts_ns.append(ts_ns)
        self.order.append(order)


class Run(NamedTuple):
    """Contiguous stream bytes in pieces, and their segments."""

    pieces: list[bytes | memoryview]
    size: int
    segments: Segments

    def end_of(self, segment: int) -> int:
        """Position behind the last byte of a segment."""
        positions = self.segments.positions
        return positions[segment + 1] if segment + 1 < len(positions) else self.size


class Gap(NamedTuple):
    """Bytes that are missing from the capture. `order`, `ts_ns`: the packet at which that was decided."""

    size: int
    order: int
    ts_ns: int


def nothing() -> Run:
    """No bytes yet."""
    return Run([], 0, Segments([], [], [], []))


def together(runs: Iterable[Run]) -> Run:
    """One run of several that follow each other."""
    pieces: list[bytes | memoryview] = []
    size, segments = 0, Segments([], [], [], [])
    for run in runs:
        pieces += run.pieces
        segments.extend(run.segments, size)
        size += run.size
    return Run(pieces, size, segments)


def joined(queue: Sequence[Run | Gap]) -> Iterator[Run | Gap]:
    """Runs between gaps put together: who looks for a boundary in them then looks once, not once for each segment."""
    for is_gap, items in groupby(queue, lambda item: isinstance(item, Gap)):
        if is_gap:
            yield from items
        else:
            yield together(run for run in items if isinstance(run, Run))


# Segments that wait behind a gap. In: what waits. Out: those of them that follow each other, as a run.


class Pending(NamedTuple):
    """A segment, or the part of it that is new, that waits for earlier bytes."""

    seq: int
    packet: int
    ts_ns: int
    data: bytes

    @property
    def end(self) -> int:
        """The sequence number behind its last byte."""
        return self.seq + len(self.data)


def contiguous(pending: list[Pending], first: int) -> Iterator[Pending]:
    """The segments from this one on that follow each other without a gap."""
    end = pending[first].seq
    for held in islice(pending, first, None):
        if held.seq != end:
            return
        end = held.end
        yield held


def delivered(held: Sequence[Pending], known: int, order: int) -> Run:
    """A run of segments that follow each other, without the first `known` bytes.

    order: the packet at which they became readable.
    """
    pieces: list[bytes | memoryview] = [one.data for one in held]
    pieces[0] = memoryview(held[0].data)[known:]
    positions = list(accumulate(map(len, pieces), initial=0))
    size = positions.pop()
    packets, ts_ns = [one.packet for one in held], [one.ts_ns for one in held]
    return Run(pieces, size, Segments(positions, packets, ts_ns, [order] * len(held)))
