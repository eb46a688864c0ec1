"""A packet batch cut into stretches: packets of one pair that follow each other and can be taken together.

In: a `PacketBatch`, and which of its packets are copies. Out: `Stretches`. A packet that may change a flow's state
(SYN, FIN, RST, closed window, D-SACK) is a stretch of its own, so that the data before and behind it need not be taken
packet by packet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from analyser.capture import PacketBatch
from analyser.flows.tcp import ACK, FIN, RST, SYN

_SPECIAL = FIN | SYN | RST

Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class Stretch(NamedTuple):
    """Rows `order[first:last]` of the batch, all of one pair.

    alone: one packet that must be looked at. only_syns: the pair sends nothing but SYNs in this batch. copies: how many
    of the packets were captured before.
    """

    pair: int
    first: int
    last: int
    alone: bool
    only_syns: bool
    copies: int
    ts_first_ns: int
    ts_last_ns: int


class Stretches(NamedTuple):
    """order: the batch's rows, pairs in the order of their first packets, each pair's rows in capture order.

    alone: True for the packets (in that order) that are stretches of their own. number: which stretch each belongs to.
    all: the stretches, in the same order.
    """

    order: Places
    alone: Flags
    number: Places
    all: list[Stretch]


def stretches(batch: PacketBatch, copies: Flags) -> Stretches:
    """Cut a batch, which must not be empty."""
    order = _by_pair(batch)
    pairs = batch.pair[order]
    flags = batch.flags[order]
    alone = ((flags & _SPECIAL) != 0) | (batch.window[order] == 0) | (batch.dsack_bytes[order] > 0)
    begins_pair = np.concatenate(([True], pairs[1:] != pairs[:-1]))
    begins = begins_pair | alone
    begins[1:] |= alone[:-1]
    firsts = np.flatnonzero(begins)
    syns = ((flags & (_SPECIAL | ACK)) == SYN) & (batch.wire_payload_bytes[order] == 0)
    only_syns = np.logical_and.reduceat(syns, np.flatnonzero(begins_pair))
    pair_number = np.cumsum(begins_pair) - 1
    ts_ns = batch.ts_ns[order]
    columns = (
        pairs[firsts].tolist(),
        firsts.tolist(),
        np.append(firsts[1:], len(order)).tolist(),
        alone[firsts].tolist(),
        only_syns[pair_number[firsts]].tolist(),
        np.add.reduceat(copies[order], firsts, dtype=np.int64).tolist(),
        np.minimum.reduceat(ts_ns, firsts).tolist(),
        np.maximum.reduceat(ts_ns, firsts).tolist(),
    )
    return Stretches(order, alone, np.cumsum(begins) - 1, list(map(Stretch._make, zip(*columns, strict=True))))


def _by_pair(batch: PacketBatch) -> Places:
    """Rows sorted by the first packet of their pair; ids tell nothing about time, they are used again."""
    order = np.argsort(batch.pair, kind="stable")
    pairs = batch.pair[order]
    firsts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    counts = np.diff(np.append(firsts, len(order)))
    result: Places = order[np.argsort(np.repeat(order[firsts], counts), kind="stable")]
    return result
