"""Connections of which every byte is there, in columns. In: whoever reassembled them. Out: for protocols that read many
connections at once; see `Dissector.whole`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.lockstep.frames import Bytes, Flags, Ints

# So many of a stream's first bytes are looked at to tell which protocols it cannot be.
HEAD_BYTES = 16


class Streams(NamedTuple):
    """Both streams of connections, from their first byte to their last: stream 2n is what the client of the n-th one
    sent, 2n + 1 what its server did.

    data: the bytes of all streams, one behind the other, and SLACK zeros. begin, end: of each stream.
    segment_at: where each segment begins in the data; packet, ts_ns: of the packet it came in. first: each stream's
    first segment, or where it would be.
    """

    data: bytes
    begin: Ints
    end: Ints
    segment_at: Ints
    packet: Ints
    ts_ns: Ints
    first: Ints

    def __len__(self) -> int:
        """Connections."""
        return len(self.begin) // 2

    @property
    def octets(self) -> Bytes:
        """The data as an array."""
        return np.frombuffer(self.data, np.uint8)

    def first_segment_end(self, stream: Ints) -> Ints:
        """Where the first segments of these streams end, none of which is empty."""
        behind = np.append(self.segment_at, len(self.data))[self.first[stream] + 1]
        ends: Ints = np.minimum(behind, self.end[stream])
        return ends


class Gives(NamedTuple):
    """A connection that gives its rows by itself. connection: its number. give: is called with the `Sink`; what it gave
    before it raises, if it does, is good."""

    connection: int
    give: Callable[[Any], None]


class Rows(NamedTuple):
    """Rows of one table. connection: the number of each one's connection, rising; row: its number in the block."""

    table: str
    block: Block
    row: Ints
    connection: Ints


class WholeRead(NamedTuple):
    """What a protocol read.

    known: the connections that speak it for certain, whose rows these are: in columns, and of others one by one.
    """

    known: Flags
    rows: Sequence[Rows]
    single: Sequence[Gives]


# Beginnings of first segments, HEAD_BYTES each, zeros behind the last one -> may they begin this protocol? Where not,
# the probe says 0 of the segment, whatever follows in it, of a stream that is seen from its beginning.
Opens = Callable[[Bytes], Flags]
