"""Remarks of one decoder, as many as the limits allow.

In: what to tell of which bytes. Out: rows of `expert_infos`; at the end one that counts what was left out. That a limit
was reached is told once, however many other remarks there are.
"""

from __future__ import annotations

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import expert_row

# Something to tell about a message: severity, group, code, text.
Remark = tuple[str, str, str, str]
# direction, offset, length, packet and time of what is remarked on
Place = tuple[int, int, int, int, int]


def place_of(frame: Frame) -> Place:
    """The whole frame; its last packet."""
    return frame.direction, frame.stream_offset, frame.size, frame.packet_last, frame.ts_ns


class Remarks:
    """Counts what was remarked on one flow. Picklable."""

    __slots__ = ("_count", "_last", "_limits_told", "_most")

    def __init__(self, limits: Limits) -> None:
        self._most = limits.max_expert_infos
        self._count = 0
        self._last: Place | None = None
        self._limits_told: frozenset[str] = frozenset()

    def add(self, place: Place, out: Sink, remark: Remark) -> None:
        """Remark on bytes, as long as the flow has not too many remarks."""
        self._count += 1
        if self._count > self._most:
            self._last = place
        else:
            _tell(place, out, remark)

    def limit(self, place: Place, out: Sink, code: str, text: str) -> None:
        """Say once that a limit was reached."""
        if code not in self._limits_told:
            self._limits_told |= {code}
            _tell(place, out, ("note", "limit", code, text))

    def finish(self, out: Sink) -> None:
        """Say how many remarks were left out."""
        if self._last is not None:
            direction, _, _, packet, ts_ns = self._last
            text = f"{self._count - self._most} further remarks on this connection were not kept"
            told = ("note", "limit", "expert_infos", text)
            out.expert(expert_row(direction=direction, packet=packet, ts=ts_ns, remark=told))
            self._last = None


def _tell(place: Place, out: Sink, remark: Remark) -> None:
    direction, offset, length, packet, ts_ns = place
    span = f"{offset}-{offset + length - 1}" if length else None  # a line of a log has no bytes in a stream
    out.expert(expert_row(direction=direction, stream_offset=offset, packet=packet, ts=ts_ns, remark=remark, span=span))
