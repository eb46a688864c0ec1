"""Frames of many connections in columns. In: for each connection its frames in the order in which they are fed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames, in_one
from wirewitness.dissectors.core.model import Frame

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

# Zeros behind the last byte: a position beyond the data reads there, so does whatever is read at once, such as the
# longest keys that are compared and fields of fixed size that stand side by side.
SLACK = 256


class Frames(NamedTuple):
    """Frames, those of one connection one behind the other. begins, ends: of each connection's, among all of them.

    data: the bytes of all frames, and SLACK zeros; octets: the same as an array. start, end: in the data.
    connection: the number of each one's connection. The other columns: see `Frame`.
    """

    data: bytes
    octets: Bytes
    begins: Ints
    ends: Ints
    connection: Ints
    direction: Ints
    start: Ints
    end: Ints
    offset: Ints
    packet_first: Ints
    packet_last: Ints
    ts_ns: Ints
    complete: Flags

    def __len__(self) -> int:
        return len(self.start)

    @property
    def size(self) -> Ints:
        """Bytes of each."""
        return self.end - self.start

    def octets_at(self, position: Ints) -> Ints:
        """The byte at each position (0 or more); 0 beyond the data."""
        return self.octets[np.minimum(position, len(self.octets) - 1)].astype(np.int64)


def in_columns(connections: Sequence[Sequence[Frame]]) -> Frames:
    """The frames of all connections, of which there is at least one."""
    counts = np.array([len(frames) for frames in connections], np.int64)
    ends = np.cumsum(counts)
    if any(isinstance(frames, CutFrames) for frames in connections):
        cut = in_one([CutFrames.of(frames) for frames in connections if frames])
    else:
        cut = CutFrames.of(list(chain.from_iterable(connections)))
    _, direction, buffer, starts, stops, offset, first, last, ts_ns, complete = cut.numbers
    data, moved = _joined(cut.buffers, buffer, starts, stops)
    return Frames(
        data,
        np.frombuffer(data, np.uint8),
        ends - counts,
        ends,
        np.repeat(np.arange(len(connections)), counts),
        direction,
        starts + moved,
        stops + moved,
        offset,
        first,
        last,
        ts_ns,
        complete.astype(bool),
    )


def _joined(buffers: Sequence[bytes], buffer: Ints, starts: Ints, stops: Ints) -> tuple[bytes, Ints]:
    """The bytes between the first and the last frame of each buffer, joined, and how far each frame moved.

    Frames of a direction that were cut at once share their buffer and follow each other in it.
    """
    least = np.array([len(one) for one in buffers], np.int64)
    most = np.zeros(len(buffers), np.int64)
    np.minimum.at(least, buffer, starts)
    np.maximum.at(most, buffer, stops)
    sizes = np.maximum(most - least, 0)  # of some buffers all frames may have been decoded before
    parts = [one[a : a + size] for one, a, size in zip(buffers, least.tolist(), sizes.tolist(), strict=True)]
    moved = np.cumsum(sizes) - sizes - least
    return b"".join((*parts, bytes(SLACK))), moved[buffer]
