"""What is kept beside a stream: remarks on it, and segments that wait. In: nothing. Out: the types."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """A remark on a stream: code and text of an expert info, the packet, first and last stream offset concerned."""

    code: str
    text: str
    packet: int
    ts_ns: int
    span: tuple[int, int] | None
    severity: str = "note"
    group: str = "tcp"


class Pending(NamedTuple):
    """A segment, or the part of it that is new, that waits for earlier bytes."""

    seq: int
    packet: int
    ts_ns: int
    data: bytes
