"""Frames of many connections in columns. In: for each connection its frames in the order in which they are fed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dissectors.core.model import Frame

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
    _, direction, data, start, end, offset, first, last, ts_ns, complete = zip(
        *chain.from_iterable(connections), strict=True
    )
    starts, stops = np.array(start, np.int64), np.array(end, np.int64)
    joined, moved = _joined(data, starts, stops)
    return Frames(
        joined,
        np.frombuffer(joined, np.uint8),
        ends - counts,
        ends,
        np.repeat(np.arange(len(connections)), counts),
        np.array(direction, np.int64),
        starts + moved,
        stops + moved,
        np.array(offset, np.int64),
        np.array(first, np.int64),
        np.array(last, np.int64),
        np.array(ts_ns, np.int64),
        np.array(complete, bool),
    )


def _joined(data: Sequence[bytes], starts: Ints, stops: Ints) -> tuple[bytes, Ints]:
    """The bytes between the first and the last frame of each buffer, joined, and how far each frame moved.

    Frames of a direction that were cut at once share their buffer and follow each other in it.
    """
    keys = np.fromiter(map(id, data), np.int64, len(data))
    _, one_of_each, number = np.unique(keys, return_index=True, return_inverse=True)
    least = np.full(len(one_of_each), np.iinfo(np.int64).max)
    most = np.zeros(len(one_of_each), np.int64)
    np.minimum.at(least, number, starts)
    np.maximum.at(most, number, stops)
    buffers = [data[place] for place in one_of_each.tolist()]
    parts = [buffer[a:z] for buffer, a, z in zip(buffers, least.tolist(), most.tolist(), strict=True)]
    sizes = most - least
    moved = np.cumsum(sizes) - sizes - least
    return b"".join((*parts, bytes(SLACK))), moved[number]
