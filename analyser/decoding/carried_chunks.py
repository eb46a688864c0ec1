"""Many pieces of what a carrier carries at once: where they lie in the segments of TCP.

In: pieces as an unwrapper gives them, and the segments that they came in. Out: columns, one value for each part of a
piece that lies in one segment; the same as piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.carrier import Pieces


class Parts(NamedTuple):
    """Column by column: outer bytes `starts` to before `ends`; the index of the segment that a part lies in, and of
    the one that completed its frame."""

    starts: list[int]
    ends: list[int]
    segments: list[int]
    completed: list[int]


def parts_of(pieces: Pieces, segments: Sequence[int]) -> Parts:
    """Pieces cut where segments begin. segments: the outer offsets at which these begin, in order."""
    offsets = np.array(segments, np.int64)
    starts, behind = np.array(pieces.starts, np.int64), np.array(pieces.behind, np.int64)
    ends = starts + np.fromiter(map(len, pieces.data), np.int64, len(starts))
    first, last, completed = (np.searchsorted(offsets, at, "right") - 1 for at in (starts, ends - 1, behind - 1))
    if np.array_equal(first, last):
        return Parts(*(column.tolist() for column in (starts, ends, first, completed)))
    many = last - first + 1
    piece = np.repeat(np.arange(len(starts)), many)
    segment = np.arange(len(piece)) - np.repeat(np.cumsum(many) - many - first, many)
    part_starts = np.maximum(starts[piece], offsets[segment])
    part_ends = np.minimum(ends[piece], np.append(offsets, ends[-1])[segment + 1])
    real = part_starts < part_ends  # a segment without bytes holds none
    columns = (part_starts, part_ends, segment, completed[piece])
    return Parts(*(column[real].tolist() for column in columns))
