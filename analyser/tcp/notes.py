"""Remarks on a stream. In: nothing. Out: the type."""

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
