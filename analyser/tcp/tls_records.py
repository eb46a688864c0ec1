"""The first TLS records of one side: what each is, how long, and when it came. Contents are not looked at.

In: runs of one direction, from its first byte on. Out: `TlsRecord`s, MOST_RECORDS at most: a handshake has fewer.
Source: RFC 8446, 5.1.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.analyser.tcp.chunks import Run

MOST_RECORDS = 32
_HEADER_BYTES = 5
_KINDS = range(20, 24)


class TlsRecord(NamedTuple):
    """kind: its content type. size: bytes behind its header. ts_ns: time of the packet that it begins in."""

    kind: int
    size: int
    ts_ns: int


class RecordReader:
    """Reads the headers of one side. over: nothing more is noted."""

    __slots__ = ("_header", "_skip", "_ts_ns", "over", "records")

    def __init__(self) -> None:
        self.records: list[TlsRecord] = []
        self.over = False
        self._header = b""
        self._skip = self._ts_ns = 0

    def feed(self, run: Run) -> None:
        """The next bytes of the stream."""
        began = 0
        for piece in run.pieces:
            at, size = 0, len(piece)
            while at < size and not self.over:
                if self._skip:
                    step = min(self._skip, size - at)
                    self._skip -= step
                    at += step
                    continue
                if not self._header:
                    self._ts_ns = run.segments.ts_ns[max(run.segments.at(began + at), 0)]
                part = bytes(piece[at : at + _HEADER_BYTES - len(self._header)])
                self._header += part
                at += len(part)
                if len(self._header) == _HEADER_BYTES:
                    self._note()
            began += size

    def _note(self) -> None:
        kind, major = self._header[0], self._header[1]
        self._skip, self._header = int.from_bytes(self._header[3:]), self._header[:0]
        if kind not in _KINDS or major != 3:
            self.over = True
            return
        self.records.append(TlsRecord(kind, self._skip, self._ts_ns))
        self.over = len(self.records) >= MOST_RECORDS
