"""What packets that are taken together say of their senders: how far they confirm the other's stream, when last, and
from how far they come.

In: a batch cut into stretches. Out: `Said` for each stretch and side, without copies and without packets that are
looked at one by one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.segment_runs import Stretches
from wirewitness.analyser.tcp.tcp import MASK

_HALF = 1 << 31

# The furthest acknowledgement number (raw), the time of the last packet, the lowest hop limit (TTL), that of the last,
# how many packets, the IP id of the last.
Said = tuple[int, int, int, int, int, int]


def said_in(
    batch: PacketBatch, copies: npt.NDArray[np.bool_], rows: npt.NDArray[np.intp]
) -> tuple[Said | None, Said | None]:
    """What the high and the low endpoint said in these packets, which are of one stretch."""
    counts = ~copies[rows]
    from_low = batch.from_low[rows]
    return _said(batch, rows[counts & ~from_low]), _said(batch, rows[counts & from_low])


def _said(batch: PacketBatch, rows: npt.NDArray[np.intp]) -> Said | None:
    if not len(rows):
        return None
    ack, ttl = batch.ack[rows], batch.ttl[rows]
    furthest = (ack[0] + (((ack - ack[0] + _HALF) & MASK) - _HALF).max()) & MASK
    last = int(batch.ts_ns[rows].max())
    return int(furthest), last, int(ttl.min()), int(ttl[-1]), len(rows), int(batch.ip_id[rows[-1]])


def said_by_side(
    batch: PacketBatch, copies: npt.NDArray[np.bool_], cut: Stretches
) -> tuple[dict[int, Said], dict[int, Said]]:
    """What the high and the low endpoint said, by the number of the stretch."""
    rows = cut.order
    counts = ~copies[rows] & ~cut.alone
    from_low, acks, ts_ns, ttl = batch.from_low[rows], batch.ack[rows], batch.ts_ns[rows], batch.ttl[rows]
    found: list[dict[int, Said]] = []
    for side in (False, True):
        own = np.flatnonzero(counts & (from_low == side))
        said: dict[int, Said] = {}
        if len(own):
            number, ack = cut.number[own], acks[own]
            firsts = np.flatnonzero(np.concatenate(([True], number[1:] != number[:-1])))
            ends = np.append(firsts[1:], len(own))
            base = np.repeat(ack[firsts], ends - firsts)
            ahead = ((ack - base + _HALF) & MASK) - _HALF
            furthest = (ack[firsts] + np.maximum.reduceat(ahead, firsts)) & MASK
            last_ns = np.maximum.reduceat(ts_ns[own], firsts)
            hops = ttl[own]
            lowest, last = np.minimum.reduceat(hops, firsts), hops[ends - 1]
            columns = (furthest, last_ns, lowest, last, ends - firsts, batch.ip_id[rows[own[ends - 1]]])
            told = zip(*(column.tolist() for column in columns), strict=True)
            said = dict(zip(number[firsts].tolist(), told, strict=True))
        found.append(said)
    return found[0], found[1]
