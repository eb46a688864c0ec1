"""Which bytes of a stream are overwritten. In: what was looked into, and credentials in it. Out: spans of a segment.

A stranger gets what was looked into and found clean, nothing else: in what no dissector decodes anything may stand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

# Sequence numbers start anew behind as many bytes.
CIRCLE = 1 << 32

Spans = Iterable[tuple[int, int]]


class Hidden:
    """Bytes of one direction that are overwritten: credentials, and what nobody looked into.

    Of streams longer than CIRCLE a byte is hidden where any byte of its sequence number is.
    """

    def __init__(self, first_seq: int | None, seen: Spans, secrets: Spans) -> None:
        """seen, secrets: stream offsets from and to before. first_seq: that of offset 0; None: nothing was seen."""
        self._first_seq = first_seq or 0
        unseen = _between(seen) if first_seq is not None else [(0, CIRCLE)]
        self._spans = _Circle([*secrets, *unseen])

    def of_segment(self, seq: int, size: int) -> list[tuple[int, int]]:
        """Of a segment's bytes, from and to before which are hidden."""
        return self._spans.within(seq - self._first_seq, size)


def _between(seen: Spans) -> Iterator[tuple[int, int]]:
    """What lies between and behind these spans, as far as sequence numbers tell."""
    end = 0
    for start, stop in sorted(span for span in seen if span[0] < span[1]):
        if start > end:
            yield end, start
        end = max(end, stop)
    if end < CIRCLE:
        yield end, CIRCLE


class _Circle:
    """Spans of offsets, of which the last 32 bits count."""

    def __init__(self, spans: Spans) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(part for span in spans for part in _parts(*span)):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def within(self, offset: int, size: int) -> list[tuple[int, int]]:
        """What of `size` bytes from this offset on lies in a span, counted from the offset."""
        found: list[tuple[int, int]] = []
        done = 0
        for first, last in _parts(offset, offset + size):
            at = max(bisect_right(self._starts, first) - 1, 0)
            while at < len(self._starts) and self._starts[at] < last:
                start, end = max(self._starts[at], first), min(self._ends[at], last)
                if start < end:
                    found.append((done + start - first, done + end - first))
                at += 1
            done += last - first
        return found


def _parts(start: int, end: int) -> list[tuple[int, int]]:
    """A span on the circle: one part, or two where it goes on at 0; all of it where it is as long."""
    if end - start >= CIRCLE:
        return [(0, CIRCLE)]
    if end <= start:
        return []
    first, last = start % CIRCLE, (end - 1) % CIRCLE + 1
    return [(first, last)] if first < last else [(first, CIRCLE), (0, last)]
