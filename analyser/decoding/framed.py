"""Bytes that a framer has cut become frames, with the packets they came in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np

from wirewitness.analyser.tcp.chunks import Run, Segments, together
from wirewitness.dissectors.core.lockstep.cut_frames import MANY, CutFrames
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import STUCK, Cut, Framer

# Is a frame that says it is very large damaged? What comes while it is awaited may tell.
#
# In: segments, one by one, and the decoder's judgement. Out: the messages that prove it. The bytes of a large frame
# fill segments to the full, whatever is in them. Where segments that are shorter than others end with a message, many
# times in a row, each message was sent for itself; also a frame that carries recorded messages does not look so.

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


def framed(direction: int, data: bytes, offset: int, cut: Cut, segments: Segments) -> Sequence[Frame]:
    """The frames of a cut; `data` begins at this stream offset. A frame's last packet is the newest of its segments.

    A list, or columns of many.
    """
    if len(cut.starts) >= MANY:
        columns = _in_columns(direction, data, offset, cut, segments)
        if columns is not None:
            return columns
    return _one_by_one(direction, data, offset, cut, segments)


def _in_columns(direction: int, data: bytes, offset: int, cut: Cut, segments: Segments) -> CutFrames | None:
    """The frames as columns; None where packets came in another order than their bytes."""
    positions, packets, ts_ns, order = (np.array(column, np.int64) for column in segments)
    if (packets[1:] < packets[:-1]).any():
        return None
    start, end = np.array(cut.starts, np.int64), np.array(cut.ends, np.int64)
    first = np.maximum(np.searchsorted(positions, start, "right") - 1, 0)
    last = np.maximum(np.searchsorted(positions, end, "left") - 1, first)
    numbers = np.empty((10, len(start)), np.int64)
    numbers[:] = (
        order[last],
        np.full(len(start), direction),
        np.zeros(len(start), np.int64),
        start,
        end,
        offset + start,
        packets[first],
        packets[last],
        ts_ns[last],
        np.ones(len(start), np.int64),
    )
    return CutFrames([data], numbers)


def _one_by_one(direction: int, data: bytes, offset: int, cut: Cut, segments: Segments) -> list[Frame]:
    frames: list[Frame] = []
    add, new_frame = frames.append, tuple.__new__  # half the time of Frame(...), and there is one for each message
    positions, packets, ts_ns, order = segments
    at, last_segment = 0, len(positions) - 1
    for start, end in zip(cut.starts, cut.ends, strict=True):
        while at < last_segment and positions[at + 1] <= start:
            at += 1
        first = newest = at
        while at < last_segment and positions[at + 1] < end:
            at += 1
            if packets[at] > packets[newest]:
                newest = at
        add(
            new_frame(
                Frame,
                (
                    order[at],
                    direction,
                    data,
                    start,
                    end,
                    offset + start,
                    packets[first],
                    packets[newest],
                    ts_ns[newest],
                    True,
                ),
            )
        )
    return frames


def cut_frame(direction: int, held: Run, offset: int, order: int | None) -> Frame:
    """The frame whose first bytes these are and whose others do not come. order: None for that of its last segment."""
    segments = held.segments
    return Frame(
        order=segments.order[-1] if order is None else order,
        direction=direction,
        data=b"".join(held.pieces),
        start=0,
        end=held.size,
        stream_offset=offset,
        packet_first=segments.packets[0],
        packet_last=max(segments.packets),
        ts_ns=segments.ts_ns[-1],
        complete=False,
    )
