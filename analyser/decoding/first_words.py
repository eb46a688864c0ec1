"""How both sides of a connection begin, whatever the protocol is taken for: TLS or HTTP, TLS records and alerts.

In: the runs that a flow has queued. Out: `opening`, `tls_alert` (in the clear) and `tls_records` of the flow's halves,
and a remark on a fatal alert.
Only streams that were seen from their first byte on are looked at; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable

from wirewitness.analyser.decoding.tls_alerts import Alert, AlertFinder
from wirewitness.analyser.decoding.unknown_protocols import TLS, opening
from wirewitness.analyser.tcp.chunks import Gap, Run
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.streams import Half
from wirewitness.analyser.tcp.tls_records import RecordReader

# The longest beginning that tells is a request line's: its method and the first letter of its target.
_ENOUGH_BYTES = 16


class _Side:
    """One side: its first bytes while they tell nothing, and what finds an alert. over: nothing is left to see."""

    __slots__ = ("_alerts", "_at", "_head", "_records", "over")

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._alerts = AlertFinder()
        self._records = RecordReader()
        self._at = 0
        self.over = False

    def take(self, half: Half, item: Run | Gap) -> None:
        """The next bytes, or that some are missing."""
        if self.over:
            return
        if isinstance(item, Gap) or half.isn is None:
            self.over = True
            return
        alert = self._alerts.feed(item.pieces)
        self._records.feed(item)
        if self._head is not None:
            self._head += b"".join(bytes(piece[:_ENOUGH_BYTES]) for piece in item.pieces[:_ENOUGH_BYTES])
            half.opening = opening(self._head)
            if half.opening is not None or len(self._head) >= _ENOUGH_BYTES:
                self._head = None
        if half.opening == TLS:
            half.tls_records = self._records.records
            if alert is not None:
                _tell(half, alert, item, self._at)
        self._at += item.size
        self.over = self._head is None and (half.opening != TLS or (self._alerts.over and self._records.over))


class FirstWords:
    """Both sides of one flow. over: nothing more is to be seen."""

    __slots__ = ("_sides",)

    def __init__(self) -> None:
        self._sides = (_Side(), _Side())

    @property
    def over(self) -> bool:
        """Whether both sides have told what they can."""
        return all(side.over for side in self._sides)

    def take(self, flow: Flow, queued: Iterable[tuple[bool, Run | Gap]]) -> None:
        """What both sides sent next."""
        for from_low, item in queued:
            self._sides[from_low].take(flow.halves[from_low], item)


def _tell(half: Half, alert: Alert, run: Run, began: int) -> None:
    half.tls_alert = f"{alert.level} {alert.name}"
    if not alert.fatal:
        return
    segment = run.segments.at(max(alert.position - began, 0))
    text = f"the TLS handshake ended with an alert: {alert.name} ({alert.code})"
    span = (alert.position, alert.position + 6)
    place = run.segments.packets[segment], run.segments.ts_ns[segment]
    half.remark(Note("tls_alert", text, *place, span, "warn", "protocol"))
