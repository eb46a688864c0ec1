"""A packet batch cut into stretches: packets of one pair that follow each other and can be taken together.

In: a `PacketBatch`, and which of its packets are copies. Out: `Stretches`. A packet that may change a flow's state
(SYN, FIN, RST, closed window, D-SACK) is a stretch of its own, so that the data before and behind it need not be taken
packet by packet. So is a segment that begins before the end of the one before it, or that is cut: sending again costs
what is beside it, not all of its connection's packets in the batch. One that begins further on leaves a gap inside its
stretch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.tcp import ACK, FIN, MASK, RST, SYN

_SPECIAL = FIN | SYN | RST
# For so few packets beside such a segment it does not pay to take them together.
_LEAST_BESIDE_BREAKS = 8
# A segment that begins further on than this behind the end of the one before it is a break, not the end of a gap.
_LARGEST_GAP_BYTES = 1 << 28

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


def stretches(batch: PacketBatch, copies: Flags, order: Places) -> Stretches:
    """Cut a batch, which must not be empty. order: its rows, see `by_pair`."""
    pairs = batch.pair[order]
    flags = batch.flags[order]
    alone = ((flags & (_SPECIAL | ACK)) != ACK) | (batch.window[order] == 0) | (batch.dsack_bytes[order] > 0)
    begins_pair = np.concatenate(([True], pairs[1:] != pairs[:-1]))
    _single_out_breaks(alone, begins_pair, _breaks(batch, order, begins_pair, copies))
    firsts = np.flatnonzero(_begins(begins_pair, alone))
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
    number = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(order))))
    return Stretches(order, alone, number, list(map(Stretch._make, zip(*columns, strict=True))))


def _begins(begins_pair: Flags, alone: Flags) -> Flags:
    """Where a stretch begins."""
    begins = begins_pair | alone
    begins[1:] |= alone[:-1]
    return begins


def _breaks(batch: PacketBatch, order: Places, begins_pair: Flags, copies: Flags) -> Flags:
    """The segments (in that order) that begin before their side's last one ended, or that are cut."""
    broken = np.zeros(len(order), bool)
    data = np.flatnonzero((batch.wire_payload_bytes[order] > 0) & ~copies[order])
    if not len(data):
        return broken
    side = np.cumsum(begins_pair)[data] * 2 + batch.from_low[order[data]]
    by_side = np.argsort(side, kind="stable")
    data, side = data[by_side], side[by_side]
    rows = order[data]
    size = batch.payload_bytes[rows].astype(np.int64)
    ends = (batch.seq[rows] + size) & MASK
    found = size < batch.wire_payload_bytes[rows]
    ahead = (batch.seq[rows[1:]] - ends[:-1]) & MASK
    found[1:] |= (side[1:] == side[:-1]) & (ahead > _LARGEST_GAP_BYTES)
    broken[data[found]] = True
    return broken


def _single_out_breaks(alone: Flags, begins_pair: Flags, broken: Flags) -> None:
    """Make breaks stretches of their own, and the packets of short stretches beside them, too."""
    if not broken.any():
        return
    alone |= broken
    firsts = np.flatnonzero(_begins(begins_pair, alone))
    lasts = np.append(firsts[1:], len(alone)) - 1
    beside = broken[np.maximum(firsts - 1, 0)] | broken[np.minimum(lasts + 1, len(broken) - 1)]
    short = beside & (lasts - firsts + 1 < _LEAST_BESIDE_BREAKS)
    alone |= np.repeat(short, lasts - firsts + 1)


def by_pair(batch: PacketBatch) -> Places:
    """Rows sorted by the first packet of their pair; ids tell nothing about time, they are used again."""
    order = np.argsort(batch.pair, kind="stable")
    pairs = batch.pair[order]
    firsts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    counts = np.diff(np.append(firsts, len(order)))
    result: Places = order[np.argsort(np.repeat(order[firsts], counts), kind="stable")]
    return result
