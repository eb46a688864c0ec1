"""Is a frame that says it is very large damaged? What comes while it is awaited may tell.

In: segments, one by one, and the conversation's judgement. Out: the messages that prove it. The bytes of a large frame
fill segments to the full, whatever is in them. Where segments that are shorter than others end with a message, many
times in a row, each message was sent for itself; also a frame that carries recorded messages does not look so.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from wirewitness.analyser.tcp.chunks import Run, together
from wirewitness.dissectors.core.protocol import STUCK, Framer

# So many times in a row a message must end where a short segment does.
IN_A_ROW = 8
# A message that is to prove anything is shorter, and so is a row.
MAX_PART_BYTES = 1 << 16
MAX_ROW_BYTES = 1 << 20
# Of many small ones together, ends meet by chance.
MAX_TOGETHER = 4
# No sender cuts what it has to send into segments as short as this (Linux: TCP_MIN_MSS).
SMALLEST_FULL_BYTES = 88

# Bytes -> do they begin with a frame? As `Conversation.boundary` at a segment's start.
Begins = Callable[[bytes], bool | None]


class Doubt:
    """Watches one direction while the rest of a large frame is awaited or lost."""

    def __init__(self, framer: Framer, largest_bytes: int) -> None:
        """framer: as it is in front of a frame; it stays as it is. largest_bytes: of a segment so far."""
        self._framer = deepcopy(framer)
        self._full_bytes = max(largest_bytes, SMALLEST_FULL_BYTES)
        self._forget()

    def _forget(self) -> None:
        self._row: list[Run] = []
        self._row_bytes = 0
        self._part = b""
        self._count = 0

    def gap(self) -> None:
        """Bytes are missing before the next segment."""
        self._forget()

    def segment(self, segment: Run, begins: Begins) -> Run | None:
        """The segments of the row when it is long enough: then the large frame is none."""
        piece = b"".join(segment.pieces)
        self._full_bytes = max(self._full_bytes, len(piece))
        if not self._goes_on(segment, piece, begins):
            went_on = bool(self._row)
            self._forget()
            if not went_on or not self._goes_on(segment, piece, begins):
                self._forget()
        return together(self._row) if self._count == IN_A_ROW else None

    def _goes_on(self, segment: Run, piece: bytes, begins: Begins) -> bool:
        """Add a segment to the row, if messages follow each other in it and end where a short one does."""
        part = self._part + piece
        begun_before = not self._row and segment.segments.positions[0]
        if begun_before or len(part) > MAX_PART_BYTES or self._row_bytes > MAX_ROW_BYTES:
            return False
        verdict = begins(part)
        if verdict is False:
            return False
        cut = self._framer.feed(part, [0], None)
        ends, short = cut.position == len(part), len(piece) < self._full_bytes
        if cut.need == STUCK or len(cut.starts) > MAX_TOGETHER or (ends and verdict is None) or (short and not ends):
            return False
        self._row.append(segment._replace(pieces=[piece]))
        self._row_bytes += len(piece)
        self._part = b"" if ends else part
        self._count += ends and short
        return True
