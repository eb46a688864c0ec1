"""Segments that wait behind a hole. In: what waits. Out: those of them that follow each other, as a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from wirewitness.analyser.tcp.chunks import Run, Segments


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
    """The segments from this one on that follow each other without a hole."""
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
