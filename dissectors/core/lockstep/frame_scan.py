"""Whole streams of many connections cut into frames, all at once. In: `Streams`. Out: `Frames`, and which connections
are not frames from the first byte to the last."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.lockstep.streams import Streams

# (streams, a position in each) -> the sizes of the frames that begin there; 0 or less where none may.
Sizes = Callable[[Ints, Ints], Ints]
# The k-th frames of all streams are found together, while so many streams have a k-th one: those that have more are cut
# one by one. A few steps are always worth it.
_STREAMS_A_STEP = 16
_FEW_STEPS = 16


def frames_of(streams: Streams, sizes: Sizes) -> tuple[Frames, Flags]:
    """The frames of all connections in the order in which they are fed; connections that are not cut have none."""
    stream, start, end, odd = _chased(streams, sizes)
    is_odd = odd[0::2] | odd[1::2]
    good = ~is_odd[stream >> 1]
    stream, start, end = stream[good], start[good], end[good]
    first = np.searchsorted(streams.segment_at, start, "right") - 1
    last = np.searchsorted(streams.segment_at, end, "left") - 1
    # A frame is fed when its last packet was readable; of one packet the client's first.
    order = np.lexsort((start, stream & 1, streams.packet[last], stream >> 1))
    stream, start, end, first, last = (column[order] for column in (stream, start, end, first, last))
    connection = stream >> 1
    ends = np.cumsum(np.bincount(connection, minlength=len(streams)))
    found = Frames(
        data=streams.data,
        octets=streams.octets,
        begins=np.concatenate(([0], ends[:-1])),
        ends=ends,
        connection=connection,
        direction=stream & 1,
        start=start,
        end=end,
        offset=start - streams.begin[stream],
        packet_first=streams.packet[first],
        packet_last=streams.packet[last],
        ts_ns=streams.ts_ns[last],
        complete=np.ones(len(start), bool),
    )
    return found, is_odd


def _chased(streams: Streams, sizes: Sizes) -> tuple[Ints, Ints, Ints, Flags]:
    """Stream, first byte and end of each frame; which streams are not cut."""
    at = streams.begin.copy()
    odd = np.zeros(len(at), bool)
    parts: list[tuple[Ints, Ints, Ints]] = []
    left = np.flatnonzero(at < streams.end)
    while len(left) and (len(parts) < _FEW_STEPS or len(left) >= _STREAMS_A_STEP):
        start = at[left]
        size = sizes(left, start)
        end = start + size
        good = (size > 0) & (end <= streams.end[left])
        odd[left[~good]] = True
        left, start, end = left[good], start[good], end[good]
        parts.append((left, start, end))
        at[left] = end
        left = left[end < streams.end[left]]
    odd[left] = True
    if not parts:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing, nothing, odd
    stream, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    return stream, start, end, odd
