"""Bytes that a framer has cut become frames, with the packets they came in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirewitness.analyser.tcp.chunks import Run, Segments
from wirewitness.dissectors.core.lockstep.cut_frames import MANY, CutFrames
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Cut


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
