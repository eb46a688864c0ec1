"""How both sides of a connection begin, whatever the protocol is taken for: TLS or HTTP, TLS records and alerts.

In: the runs that a flow has queued. Out: `opening`, `tls_alert` (in the clear) and `tls_records` of the flow's halves,
and a remark on a fatal alert.
Only streams that were seen from their first byte on are looked at; nothing is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from wirewitness.analyser.tcp.chunks import Gap, Run
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.streams import Half
from wirewitness.analyser.tcp.tls_records import RecordReader
from wirewitness.dissectors.carriers.tls.alerts import LEVELS, alert_name

# TLS alerts that are sent in the clear: why a handshake failed.
#
# In: the bytes of one side of a TLS connection, from its first record on. Out: the first alert, by name. Behind the
# first encrypted record nothing is looked at. Source: RFC 8446, 5.1 and 6.

_CHANGE_CIPHER_SPEC, _ALERT_RECORD, _APPLICATION_DATA = 20, 21, 23
_HEADER_BYTES, _ALERT_BYTES = 5, 2
# A certificate chain is far smaller.
_MOST_BYTES = 1 << 18


class Alert(NamedTuple):
    """An alert. code: its description. position: of its record in the stream."""

    fatal: bool
    code: int
    position: int

    @property
    def name(self) -> str:
        """The name in the RFCs."""
        return alert_name(self.code)

    @property
    def level(self) -> str:
        """fatal or warning."""
        return LEVELS[2 if self.fatal else 1]


class AlertFinder:
    """Reads the records of one side. over: nothing more can be found."""

    __slots__ = ("_held", "_position", "over")

    def __init__(self) -> None:
        self._held = b""
        self._position = 0
        self.over = False

    def feed(self, pieces: Iterable[bytes | memoryview]) -> Alert | None:
        """The next bytes of the stream; the alert, once it is there."""
        if self.over:
            return None
        held = self._held + b"".join(pieces)
        at = 0
        while not self.over and at + _HEADER_BYTES <= len(held):
            kind, size = held[at], int.from_bytes(held[at + 3 : at + 5])
            if not _CHANGE_CIPHER_SPEC < kind < _APPLICATION_DATA or held[at + 1] != 3:
                self.over = True
            elif at + _HEADER_BYTES + size > len(held):
                break
            elif kind == _ALERT_RECORD and (alert := _alert(held[at + _HEADER_BYTES :][:size], self._position + at)):
                self.over = True
                return alert
            at += _HEADER_BYTES + size
        self._position += at
        self._held = held[at:]
        self.over = self.over or self._position + len(self._held) > _MOST_BYTES
        if self.over:
            self._held = b""
        return None


def _alert(content: bytes, position: int) -> Alert | None:
    """An alert in the clear is two bytes; one that is encrypted is longer."""
    if len(content) != _ALERT_BYTES or content[0] not in LEVELS:
        return None
    return Alert(content[0] == 2, content[1], position)


# What the first bytes of a side are where they are none of the protocols that are decoded: TLS, HTTP, or the header of
# the PROXY protocol, which a balancer puts before the bytes of a client.
#
# In: first bytes. Out: a word for them. Whoever speaks these to a port of something else is told from it.
# Sources: RFC 8446 (records), RFC 9112 (request and status line), HAProxy's proxy-protocol.txt (2.1, 2.2).

TLS, HTTP, PROXY = "tls", "http", "proxy"
_HTTP = re.compile(
    rb"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE) [\x21-\x7e]|HTTP/[0-9]\.[0-9] [1-5][0-9]{2}"
    rb"|PRI \* HTTP/2"
)
_HELLO = re.compile(rb"\x16\x03[\x00-\x04]..[\x01\x02]", re.DOTALL)
# Version 1 is a line of text, version 2 a signature and bytes.
_PROXY = re.compile(rb"PROXY (?:TCP4 |TCP6 |UNKNOWN)|\r\n\r\n\x00\r\nQUIT\n[\x20\x21]")
_ALERT = re.compile(rb"\x15\x03[\x00-\x04]\x00\x02[\x01\x02]", re.DOTALL)


def opening(head: bytes) -> str | None:
    """`tls`, `http` or `proxy`, as the first bytes of a stream tell; None for anything else."""
    if _HTTP.match(head):
        return HTTP
    if _HELLO.match(head) or _ALERT.match(head):
        return TLS
    return PROXY if _PROXY.match(head) else None


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
