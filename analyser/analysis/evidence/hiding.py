"""Which bytes of a stream are overwritten. In: what was looked into, and credentials in it. Out: spans of a segment.

A stranger gets what was looked into and found clean, nothing else: in what no dissector decodes anything may stand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from wirewitness.analyser.analysis.evidence.index import Index
from wirewitness.analyser.analysis.evidence.inner_messages import follow
from wirewitness.analyser.analysis.evidence.rows import FlowRow
from wirewitness.analyser.decoding.outer_map import Span
from wirewitness.dissectors.carriers.tls.hello import Hellos
from wirewitness.dissectors.carriers.tls.keylog import lines_of
from wirewitness.dissectors.core.carrier import Carried, Opening
from wirewitness.dissectors.core.model import Frame

# The secrets of chosen connections, and of no other. In: flows and keys. Out: lines of a key log.


class _Hellos:
    """Keeps the hellos of one flow."""

    def __init__(self) -> None:
        self.found: Hellos | None = None

    def opened(self, opening: Opening) -> None:
        if isinstance(opening.agreed, Hellos):
            self.found = opening.agreed

    def own(self, direction: int, start: int, end: int) -> None: ...

    def piece(self, direction: int, piece: Carried, packet: int, order: int) -> None: ...

    def lost(self, direction: int, size: int) -> None: ...

    def frame(self, frame: Frame, spans: Sequence[Span]) -> None: ...


def secret_lines(index: Index, flows: Iterable[FlowRow]) -> tuple[bytes, int]:
    """A key log of these flows, and of how many of them there is a secret. Raises CaptureError."""
    lines: dict[bytes, None] = {}
    known = 0
    for flow in flows:
        hellos = _Hellos()
        ring = follow(flow, index.sources, index.places, index.end_of(flow), hellos, index.keylogs)
        own = [] if hellos.found is None or ring is None else lines_of(ring, hellos.found)
        lines.update(dict.fromkeys(own))
        known += bool(own)
    return b"".join(lines), known


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
