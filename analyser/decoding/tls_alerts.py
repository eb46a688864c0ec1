"""TLS alerts that are sent in the clear: why a handshake failed.

In: the bytes of one side of a TLS connection, from its first record on. Out: the first alert, by name. Behind the first
encrypted record nothing is looked at. Source: RFC 8446, 5.1 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wirewitness.dissectors.carriers.tls.alerts import LEVELS, alert_name

_CHANGE_CIPHER_SPEC, _ALERT, _APPLICATION_DATA = 20, 21, 23
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
            elif kind == _ALERT and (alert := _alert(held[at + _HEADER_BYTES :][:size], self._position + at)):
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
