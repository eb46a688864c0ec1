"""Segments dealt out to this process and others. In: batches, as one process reads them. Out: this process's share of
them; parcels for the others.

Blocks of the capture are held back until they make about as much for each process as one block is for one: what is
decoded together is as much then. Their bytes are copied into an area of memory that all see; columns of headers go
along for those alone who decode them. An area is used again when all are done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from wirewitness.analyser.capture import CaptureLimits, EndpointTable, PacketBatch
from wirewitness.analyser.capture.model import joined
from wirewitness.analyser.decoding.run.child import Child, NewKeys, NextFile, NoMore
from wirewitness.analyser.decoding.run.load_balancing import Balance
from wirewitness.analyser.decoding.run.shard import CaptureClock, Ints, Own
from wirewitness.analyser.decoding.run.shared_memory import Area
from wirewitness.analyser.decoding.run.work_items import pack, packed_bytes

# So many blocks lie in an area at most, however many processes there are.
_MOST_BLOCKS = 4


class ShareDealing:
    """A `Dealing` that gives the other shares to children."""

    def __init__(
        self, children: Sequence[Child], areas: Sequence[Area], limits: CaptureLimits, endpoints: EndpointTable
    ) -> None:
        self._children, self._areas, self._endpoints = children, areas, endpoints
        blocks = min(1 + len(children), _MOST_BLOCKS)
        # There may be room for another block behind these bytes.
        self._enough = limits.block_bytes * (blocks - 1)
        self._balance = Balance(endpoints, 1 + len(children))
        self._clock = CaptureClock()
        self._parcels = 0
        self._held: list[PacketBatch] = []
        self._clocks: list[Ints] = []
        self._used = 0

    def next_file(self, index: int, packets_before: int) -> None:
        """See `Dealing`."""
        for child in self._children:
            child.tell(NextFile(index, packets_before))

    def keys(self, entries: Mapping[bytes, tuple[bytes, ...]]) -> None:
        """See `Dealing`."""
        for child in self._children:
            child.tell(NewKeys(entries))

    def take(self, batch: PacketBatch) -> Iterator[Own]:
        """See `Dealing`."""
        if not self._held:
            self._wait_for_area()
        first = int(batch.payload_start.min())
        last = int((batch.payload_start + batch.payload_bytes).max())
        memory = self._area.view(self._used + last - first)
        memory[self._used : self._used + last - first] = batch.data[first:last]
        self._held.append(batch.moved(memory, self._used - first))
        self._clocks.append(self._clock.watch(batch))
        self._used += last - first
        if self._used > self._enough:
            yield from self.rest()

    def rest(self) -> Iterator[Own]:
        """See `Dealing`."""
        if not self._held:
            return
        memory = self._area.view(self._used + len(self._children) * packed_bytes(0) + packed_bytes(self._rows))
        batch, clock = joined(memory, self._held), np.concatenate(self._clocks)
        shares, at = self._balance.shares(batch), self._used
        for number, child in enumerate(self._children, 1):
            theirs = np.flatnonzero(shares == number)
            own = Own(batch.chosen(theirs), clock[theirs])
            parcel = pack(memory, self._parcels % len(self._areas), at, own, self._endpoints)
            at = parcel.end
            child.hand(parcel)
        self._parcels += 1
        self._held, self._clocks, self._used = [], [], 0
        mine = np.flatnonzero(shares == 0)
        yield Own(batch.chosen(mine), clock[mine])

    def end(self) -> None:
        """See `Dealing`."""
        for child in self._children:
            child.tell(NoMore(self._clock.now_ns))

    def let_go(self) -> None:
        """All is decoded: the areas are not needed any more, however long somebody still knows of this dealing."""
        self._areas = ()

    @property
    def _area(self) -> Area:
        return self._areas[self._parcels % len(self._areas)]

    @property
    def _rows(self) -> int:
        return sum(map(len, self._held))

    def _wait_for_area(self) -> None:
        """Until all children are done with what lay in the next area."""
        for child in self._children:
            child.wait_for(self._parcels - len(self._areas) + 1)
