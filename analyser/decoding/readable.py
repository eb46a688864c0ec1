"""Frames of both directions of a flow, few as objects or many as columns, by the packets at which they became readable.

In: frames of each direction, in their order. Out: those of both, and places among them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from operator import attrgetter

import numpy as np

from wirewitness.dissectors.core.lockstep.cut_frames import DIRECTION, OFFSET, ORDER, CutFrames, in_one
from wirewitness.dissectors.core.model import Frame

_BY_ORDER = attrgetter("order")
# So many times as many columns as come behind them are copied at most.
_COPIED = 16


def behind(held: Sequence[Frame], more: Sequence[Frame]) -> Sequence[Frame]:
    """Frames of one direction and those that were cut after them; a list grows, also one that few columns become part
    of: columns are copied for not much fewer, so that single frames behind many do not copy all of them each."""
    if not held or not more:
        return held or more
    if isinstance(held, CutFrames) and _COPIED * len(more) >= len(held):
        return in_one([held, CutFrames.of(more)])
    if isinstance(more, CutFrames) and len(more) >= len(held):
        return in_one([CutFrames.of(held), more])
    frames: list[Frame] = held if isinstance(held, list) else list(held)
    frames.extend(more)
    return frames


def readable_before(frames: Sequence[Frame], order: int) -> int:
    """How many of these frames of one direction were readable before this packet."""
    if isinstance(frames, CutFrames):
        return int(np.searchsorted(frames.numbers[ORDER], order))
    return bisect_left(frames, order, key=_BY_ORDER)


def as_readable(client: Sequence[Frame], server: Sequence[Frame]) -> Sequence[Frame]:
    """The frames of both as they became readable; of one packet the client's first."""
    if not client or not server:
        return client or server
    if isinstance(client, CutFrames) or isinstance(server, CutFrames):
        return in_one([CutFrames.of(client), CutFrames.of(server)]).in_order()
    return sorted([*client, *server], key=_BY_ORDER)


def begun_at(frames: Sequence[Frame], offsets: Sequence[Collection[int]]) -> list[tuple[int, int, int]]:
    """Place, direction and stream offset of the first frame at each of these offsets. offsets: of each direction."""
    found: dict[tuple[int, int], int] = {}
    if isinstance(frames, CutFrames):
        direction, offset = frames.numbers[[DIRECTION, OFFSET]]
        for side, wanted in enumerate(offsets):
            there = np.flatnonzero(np.isin(offset, list(wanted)) & (direction == side))
            for at, one in zip(there.tolist(), offset[there].tolist(), strict=True):
                found.setdefault((side, one), at)
    else:
        for at, frame in enumerate(frames):
            if frame.stream_offset in offsets[frame.direction]:
                found.setdefault((frame.direction, frame.stream_offset), at)
    return sorted((at, *where) for where, at in found.items())
