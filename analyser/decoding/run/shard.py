"""Flows shared out among processes. In: batches of packets. Out: those of the endpoint pairs that fall to one shard.

Which shard a pair falls to depends on its addresses and ports only, so both directions of a connection, every
connection on the same ports and copies of it in other encapsulations end in one process, however packets are batched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import EndpointTable, PacketBatch

Ints = npt.NDArray[np.int64]


class ShardFailed(RuntimeError):
    """A process that read a shard ended without a result: a fault of ours, or the system stopped it."""


class Own(NamedTuple):
    """What a process decodes itself. clock: the latest time in the capture up to each packet, None where no packets of
    the capture are left out."""

    batch: PacketBatch
    clock: Ints | None


class Dealing(Protocol):
    """Who decodes which segments. In: all segments of all captures, in their order. Out: those for this process."""

    def next_file(self, index: int, packets_before: int) -> None:
        """Packets that follow come from the capture with this index; so many packets are in those before it."""

    def keys(self, entries: Mapping[bytes, tuple[bytes, ...]]) -> None:
        """Secrets for the packets that follow."""

    def packed(self, packed_bytes: int) -> None:
        """Packets that follow are of a compressed input; so much of all compressed ones is read by now."""

    def take(self, batch: PacketBatch) -> Iterator[Own]:
        """The next batch, whose data is valid until all was taken that this gives. Raises ShardFailed."""

    def rest(self) -> Iterator[Own]:
        """What was held back; nothing more comes of this file. Raises ShardFailed."""

    def end(self) -> None:
        """No more files follow."""


MakeDealing = Callable[[EndpointTable], Dealing]


@dataclass(frozen=True, slots=True)
class Shard:
    """Share `number` (from 0) of `of` shards."""

    number: int = 0
    of: int = 1


class CaptureClock:
    """The latest time in the captures so far."""

    def __init__(self) -> None:
        self.now_ns = -(1 << 62)

    def watch(self, batch: PacketBatch) -> Ints:
        """The latest time up to each packet of the next batch, which must not be empty."""
        clock: Ints = np.maximum(np.maximum.accumulate(batch.ts_ns), self.now_ns)
        self.now_ns = int(clock[-1])
        return clock


class ShardFilter:
    """Decodes the segments of one shard, and nobody the others: a `Dealing`."""

    def __init__(self, shard: Shard, endpoints: EndpointTable) -> None:
        self._shard = shard
        self._endpoints = endpoints
        self._clock = CaptureClock()

    def next_file(self, index: int, packets_before: int) -> None:
        """See `Dealing`."""

    def keys(self, entries: Mapping[bytes, tuple[bytes, ...]]) -> None:
        """See `Dealing`."""

    def packed(self, packed_bytes: int) -> None:
        """See `Dealing`."""

    def take(self, batch: PacketBatch) -> Iterator[Own]:
        """See `Dealing`; the batch's `data` stays the same."""
        if self._shard.of == 1:
            yield Own(batch, None)
            return
        clock = self._clock.watch(batch)
        # Numbers of rows, not flags: picking a column takes a tenth of the time then.
        mine = np.flatnonzero(self._endpoints.shards(batch.pair, self._shard.of) == self._shard.number)
        yield Own(batch.chosen(mine), clock[mine])

    def rest(self) -> Iterator[Own]:
        """See `Dealing`."""
        return iter(())

    def end(self) -> None:
        """See `Dealing`."""


# Everything is decoded here.
ALONE = partial(ShardFilter, Shard())
