"""How far each side of a connection has confirmed the other's stream, for packets that are taken together.

In: a batch cut into stretches. Out: the furthest acknowledgement of each stretch and side. Packets that are looked at
one by one, and copies, are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analyser.capture import PacketBatch
from analyser.flows.stretches import Stretches
from analyser.flows.tcp import ACK, MASK

_HALF = 1 << 31
NO_ACK = -1


def furthest_acks(batch: PacketBatch, copies: npt.NDArray[np.bool_], cut: Stretches) -> list[tuple[int, int]]:
    """Raw acknowledgement numbers that the high and the low endpoint sent in each stretch; NO_ACK without any."""
    rows = cut.order
    counts = ((batch.flags[rows] & ACK) != 0) & ~copies[rows] & ~cut.alone
    from_low, acks = batch.from_low[rows], batch.ack[rows]
    found = np.full((len(cut.all), 2), NO_ACK, np.int64)
    for side in (0, 1):
        own = np.flatnonzero(counts & (from_low == side))
        if len(own):
            number, ack = cut.number[own], acks[own]
            firsts = np.flatnonzero(np.concatenate(([True], number[1:] != number[:-1])))
            base = np.repeat(ack[firsts], np.diff(np.append(firsts, len(own))))
            ahead = ((ack - base + _HALF) & MASK) - _HALF
            found[number[firsts], side] = (ack[firsts] + np.maximum.reduceat(ahead, firsts)) & MASK
    return [(high, low) for high, low in found.tolist()]
