"""What packets that are taken together say of their senders: how far they confirm the other's stream, and when last.

In: a batch cut into stretches. Out: `Said` for each stretch and side, without copies and without packets that are
looked at one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analyser.capture import PacketBatch
from analyser.flows.stretches import Stretches
from analyser.flows.tcp import ACK, MASK

_HALF = 1 << 31

# The furthest acknowledgement number (raw), and the time of the last packet.
Said = tuple[int, int]


def said_by_side(
    batch: PacketBatch, copies: npt.NDArray[np.bool_], cut: Stretches
) -> tuple[dict[int, Said], dict[int, Said]]:
    """What the high and the low endpoint said, by the number of the stretch."""
    rows = cut.order
    counts = ((batch.flags[rows] & ACK) != 0) & ~copies[rows] & ~cut.alone
    from_low, acks, ts_ns = batch.from_low[rows], batch.ack[rows], batch.ts_ns[rows]
    found: list[dict[int, Said]] = []
    for side in (False, True):
        own = np.flatnonzero(counts & (from_low == side))
        said: dict[int, Said] = {}
        if len(own):
            number, ack = cut.number[own], acks[own]
            firsts = np.flatnonzero(np.concatenate(([True], number[1:] != number[:-1])))
            base = np.repeat(ack[firsts], np.diff(np.append(firsts, len(own))))
            ahead = ((ack - base + _HALF) & MASK) - _HALF
            furthest = (ack[firsts] + np.maximum.reduceat(ahead, firsts)) & MASK
            last_ns = np.maximum.reduceat(ts_ns[own], firsts)
            said = dict(
                zip(number[firsts].tolist(), zip(furthest.tolist(), last_ns.tolist(), strict=True), strict=True)
            )
        found.append(said)
    return found[0], found[1]
