"""Connections of which all packets are taken at once, and those that wait for that.

In: batches, and what open flows know. Out: what is left to be taken packet by packet. A connection that a reset ends is
set aside (`reset_flows.py`); it is given back, to be taken packet by packet, when something comes late for it, or when
nobody reads it whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.batches import BatchColumns
from wirewitness.analyser.tcp.complete_connections import WholeReader, reset_flows, whole_flows
from wirewitness.analyser.tcp.open_flows import OpenFlows
from wirewitness.analyser.tcp.reset_flows import Part, SetAside
from wirewitness.analyser.tcp.segment_runs import Flags, Places


class TakenWhole:
    """reader: reads connections; None where nobody does, then all are left. aside: those that a reset ended lately.

    failed: called with whatever the reader raises; the connections are left then. What is set aside counts as held by
    the flows.
    """

    def __init__(self, flows: OpenFlows, reader: WholeReader | None, failed: Callable[[Exception], None]) -> None:
        self.aside = SetAside()
        self._flows = flows
        self.call(reader, failed)

    def call(self, reader: WholeReader | None, failed: Callable[[Exception], None]) -> None:
        """Call these from now on. Without a reader nobody is called, and what is here can be kept as data."""
        self.reader = reader
        self._failed = None if reader is None else failed

    def take(
        self,
        batch: PacketBatch,
        columns: BatchColumns,
        order: Places,
        copies: Flags,
        busy: Sequence[int],
        may_set_aside: bool,
    ) -> Places | None:
        """Take the connections that lie wholly in the batch; the packets that are left, None for all of them.
        There must be a reader.

        order: see `by_pair`. copies: packets captured twice. busy: pairs with something going on beside open flows.
        """
        assert self.reader is not None
        known = order, copies, columns.now_ns, self._flows.is_free, busy
        try:
            resets = reset_flows(batch, *known) if may_set_aside else None
            found = whole_flows(batch, columns.packet, *known)
            read = None if found is None else self.reader.read(found)
        except Exception as error:
            self._fail(error)
            return None
        left = np.ones(len(batch), bool)
        if found is not None and read is not None and len(read.taken):
            self._flows.put_whole(found, read)
            left &= found.packets.left(read.taken, len(batch))
        if resets is not None:
            before = self.aside.held_bytes
            self.aside.put(Part.of(batch, columns.file_index, columns.now_ns, resets.rows))
            self._flows.budget.change(before, self.aside.held_bytes)
            left[resets.rows] = False
        return None if left.all() else np.flatnonzero(left)

    def late(self, pairs: Iterable[int]) -> Iterator[Part]:
        """Something comes for these pairs: what was set aside of them, to be taken before it."""
        before = self.aside.held_bytes
        yield from self.aside.take(pairs)
        self._flows.budget.change(before, self.aside.held_bytes)

    def old(self, before_ns: int | None = None) -> Iterator[Part]:
        """Nothing came for what was set aside before this time, None for all: it is read; what is left of it."""
        before = self.aside.held_bytes
        for part in self.aside.take_old(before_ns):
            left = self._read(part)
            if left is not None:
                yield left
        self._flows.budget.change(before, self.aside.held_bytes)

    def end(self, now_ns: int | None = None) -> None:
        """What was taken and is over by this time, None for all, leaves memory."""
        for flows in self._flows.take_whole(now_ns):
            if self.reader is not None:
                self.reader.ended(flows)

    def _read(self, part: Part) -> Part | None:
        """Take these connections; those that are left."""
        if self.reader is None:
            return part
        try:
            found = part.whole()
            read = self.reader.read(found)
        except Exception as error:
            self._fail(error)
            return part
        if len(read.taken):
            self.reader.ended(self._flows.ended_whole(found, read))
        return part.only(np.flatnonzero(found.packets.left(read.taken, len(part))))

    def _fail(self, error: Exception) -> None:
        if self._failed is not None:
            self._failed(error)
