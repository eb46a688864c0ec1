"""Flows shared out among processes. In: batches of packets. Out: those of the endpoint pairs that fall to one share.

Which share a pair falls to depends on its addresses and ports only, so both directions of a connection, every
connection on the same ports and copies of it in other encapsulations end in one process, however packets are batched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyser.capture import EndpointTable, PacketBatch


@dataclass(frozen=True, slots=True)
class Share:
    """Share `number` (from 0) of `of` shares."""

    number: int = 0
    of: int = 1


class ShareFilter:
    """Picks the segments of one share."""

    def __init__(self, share: Share, endpoints: EndpointTable) -> None:
        self._share = share
        self._endpoints = endpoints

    def take(self, batch: PacketBatch) -> PacketBatch:
        """The batch without the segments of other shares; `data` stays the same."""
        if self._share.of == 1:
            return batch
        # Numbers of rows, not flags: picking a column takes a tenth of the time then.
        mine = np.flatnonzero(self._endpoints.shares(batch.pair, self._share.of) == self._share.number)
        return PacketBatch(batch.data, *(getattr(batch, name)[mine] for name in PacketBatch.__slots__[1:]))
