"""Remarks on stream bytes that no frame has: skipped ones, and those that are missing from the capture."""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.analyser.tcp.chunks import Gap
from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.core.protocol import Sink


class Skipped(NamedTuple):
    """Stream bytes `start` to before `end` that belong to no frame; their place in the outer stream, first packet."""

    start: int
    end: int
    reason: str
    outer: tuple[int, int]
    packet: int
    ts_ns: int


class SkippedBytes:
    """What one direction skipped. Bytes that follow each other are told together.

    last: what nobody was told yet.
    """

    def __init__(self, direction: int) -> None:
        self._direction = direction
        self.last: Skipped | None = None

    def add(self, fresh: Skipped, out: Sink) -> None:
        """More bytes, behind all others."""
        last = self.last
        if last is not None and last.end == fresh.start and last.reason == fresh.reason:
            self.last = last._replace(end=fresh.end, outer=(last.outer[0], fresh.outer[1]))
            return
        self.tell(out)
        self.last = fresh

    def tell(self, out: Sink) -> None:
        """No more follow."""
        if self.last is None:
            return
        start, end, reason, (first, last), packet, ts_ns = self.last
        self.last = None
        text = f"{end - start} bytes skipped: {reason}"
        kind = ("warn", "framing", "skipped_bytes")
        out.expert((self._direction, first, packet, ts_ns, *kind, text, f"{first}-{last}"))


def gap_row(direction: int, gap: Gap, offset: int) -> Row:
    """The remark on a gap that begins at this offset of the TCP stream."""
    text = f"{gap.size} stream bytes are missing from the capture"
    return (direction, None, gap.order, gap.ts_ns, "warn", "tcp", "gap", text, f"{offset}-{offset + gap.size - 1}")
