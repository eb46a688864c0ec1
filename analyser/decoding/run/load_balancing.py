"""Who decodes which endpoint pairs, so that all have about as much to do. In: batches. Out: the share of each segment.

Pairs lie in buckets by a digest of their addresses and ports (see `share.py`). The first segments of a bucket decide
who has it: the one with the least to do so far. Share 0 is that of the process that reads the capture, too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import EndpointTable, PacketBatch
from wirewitness.analyser.decoding.run.shard import Ints
from wirewitness.analyser.tcp.tcp import SYN

BUCKETS = 1024
# What a segment with payload, one without, and a new connection cost, in the time that goes into a byte of payload; and
# what reading a packet of the capture does beside its bytes: on small messages a tenth of what decoding it does. Bytes
# of large messages cost as much to read, for they are copied once more, as to decode.
_WITH_PAYLOAD, _WITHOUT, _OPENED, _READING = 4096, 512, 1 << 16, 512


class Balance:
    """Deals buckets to so many shares."""

    def __init__(self, endpoints: EndpointTable, shares: int) -> None:
        self._endpoints = endpoints
        self._share_of = np.full(BUCKETS, -1, np.int64)
        self._costs = np.zeros(shares)

    def shares(self, batch: PacketBatch) -> Ints:
        """The share of each segment of the next batch."""
        buckets = self._endpoints.shares(batch.pair, BUCKETS)
        costs = np.bincount(buckets, _costs(batch), BUCKETS)
        self._costs[0] += _READING * len(batch) + int(batch.payload_bytes.sum())
        known = np.flatnonzero((self._share_of >= 0) & (costs > 0))
        np.add.at(self._costs, self._share_of[known], costs[known])
        fresh = np.flatnonzero((self._share_of < 0) & (costs > 0))
        for bucket in fresh[np.argsort(-costs[fresh], kind="stable")].tolist():
            share = int(np.argmin(self._costs))
            self._share_of[bucket] = share
            self._costs[share] += costs[bucket]
        found: Ints = self._share_of[buckets]
        return found


def _costs(batch: PacketBatch) -> npt.NDArray[np.int64]:
    size = batch.payload_bytes.astype(np.int64)
    return np.where(size > 0, size + _WITH_PAYLOAD, _WITHOUT) + np.where(batch.flags & SYN, _OPENED, 0)
