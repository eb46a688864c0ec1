"""MongoDB connections of which every byte is there, many at once. In: `Streams`. Out: `WholeRead`.

A connection is MongoDB for certain if the probe says so of the segment with the first request. Where all exchanges of
one were read together there is no decoder at all; else one decodes what is left, between the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.complete_connections import First, by_themselves, probed
from wirewitness.dissectors.core.lockstep.frame_scan import frames_of
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.lockstep.streams import Gives, Rows, Streams, WholeRead
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import DECIDES, Sink
from wirewitness.dissectors.mongo.framing import probe
from wirewitness.dissectors.mongo.lockstep.batch_decode import Read, Together, of_connections, read
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.hellos import Left
from wirewitness.dissectors.mongo.lockstep.pairs import Waits
from wirewitness.dissectors.mongo.opcodes import HEADER_BYTES

_NEW = Left((), Waits((), (), False), {}, frozenset())
# Where a message has its own id, which says nothing about what it is.
_ID = slice(4, 8)


class ReadsWhole(Protocol):
    """A decoder that has not begun."""

    def whole(self, frames: Sequence[Frame], together: Together | None, out: Sink) -> None:
        """All frames of its connection. together: what was read of them with those of others."""


def read_whole(
    streams: Streams, limits: Limits, begin: Callable[[], ReadsWhole], out: Sink, together: bool
) -> WholeRead:
    """See `Dissector.whole`. begin: makes the decoder of a connection that needs one. together: read what can be
    read together so; documents that are to be shown cannot."""
    buffer = Buffer(streams.data)
    frames, odd = frames_of(streams, partial(_sizes, buffer, limits))
    asked = First.of(streams, frames, limits)
    known = probed(streams, asked, ~odd & asked.comes_first, _is_known, _without_id)
    found = read(frames, buffer, [_NEW] * len(streams), limits, out) if together and len(frames) else None
    plain = known.copy() if found is not None else np.zeros(len(known), bool)
    if found is not None:
        plain[frames.connection[found.alone]] = False
    rows = [] if found is None else [*_rows(found, frames, plain)]
    return WholeRead(known, rows, [*_single(found, frames, known & ~plain, begin)])


def _sizes(buffer: Buffer, limits: Limits, streams: Ints, starts: Ints) -> Ints:
    """See `Sizes`."""
    size = buffer.int32(starts)
    return np.where((size >= HEADER_BYTES) & (size <= limits.max_frame_bytes), size, 0)


def _is_known(head: bytes) -> bool:
    return probe(head, b"", True) >= DECIDES


def _without_id(head: bytes) -> bytes:
    """Messages of one driver begin with the same bytes but for the id."""
    return head[: _ID.start] + head[_ID.stop :]


def _rows(found: Read, frames: Frames, plain: Flags) -> Iterator[Rows]:
    for table, placed in found.tables.items():
        connection = frames.connection[placed.due]
        row = np.flatnonzero(plain[connection])
        yield Rows(table, placed.block, row, connection[row])


def _single(found: Read | None, frames: Frames, own: Flags, begin: Callable[[], ReadsWhole]) -> Iterator[Gives]:
    """The connections in which not everything was read together."""
    if not own.any():
        return
    made = of_connections(found, frames, own)

    def give(number: int, mine: Callable[[], list[Frame]], out: Sink) -> None:
        begin().whole(mine(), made[number], out)

    yield from by_themselves(frames, own, give)
