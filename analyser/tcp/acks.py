"""What packets that are taken together say of their senders: how far they confirm the other's stream, when last, and
from how far they come.

In: a batch cut into stretches. Out: `Said` for each stretch and side, without copies and without packets that are
looked at one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.segment_runs import Stretches
from wirewitness.analyser.tcp.tcp import MASK

_HALF = 1 << 31


class Said(NamedTuple):
    """The furthest acknowledgement number (raw), and how far the others are behind it at most; the time of the last
    packet; the lowest hop limit (TTL), that of the last; how many packets; the IP id of the last."""

    ack: int
    ack_spread: int
    last_ns: int
    ttl_lowest: int
    ttl_last: int
    packets: int
    ip_id: int


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
    ahead = ((ack - ack[0] + _HALF) & MASK) - _HALF
    return Said(
        ack=int((ack[0] + ahead.max()) & MASK),
        ack_spread=int(ahead.max() - ahead.min()),
        last_ns=int(batch.ts_ns[rows].max()),
        ttl_lowest=int(ttl.min()),
        ttl_last=int(ttl[-1]),
        packets=len(rows),
        ip_id=int(batch.ip_id[rows[-1]]),
    )


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
            furthest = np.maximum.reduceat(ahead, firsts)
            spread = furthest - np.minimum.reduceat(ahead, firsts)
            last_ns = np.maximum.reduceat(ts_ns[own], firsts)
            hops = ttl[own]
            lowest, last = np.minimum.reduceat(hops, firsts), hops[ends - 1]
            acked = (ack[firsts] + furthest) & MASK
            columns = (acked, spread, last_ns, lowest, last, ends - firsts, batch.ip_id[rows[own[ends - 1]]])
            told = map(Said._make, zip(*(column.tolist() for column in columns), strict=True))
            said = dict(zip(number[firsts].tolist(), told, strict=True))
        found.append(said)
    return found[0], found[1]
