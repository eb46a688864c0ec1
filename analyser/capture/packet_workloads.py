"""Who sends and who receives packets, where a capture says so. In: codes of owners for each packet. Out: what is known
of the ends of connections.

Captures without processes cost nothing here: their records have no such codes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wirewitness.analyser.capture.endpoints import EndpointTable
from wirewitness.analyser.capture.model import NOBODY, Ids, Ints, PacketBatch, PacketOwners
from wirewitness.analyser.capture.workloads.seen import End, OwnersSeen
from wirewitness.analyser.capture.workloads.workload import Owner


def note_owners(
    batch: PacketBatch, first_packet: int, told: PacketOwners, endpoints: EndpointTable, seen: OwnersSeen
) -> None:
    """Keep who is at the ends of the batch's connections. first_packet: the number of the first record."""
    rows = batch.packet - first_packet
    for codes, is_sender in ((told.sender, True), (told.receiver, False)):
        known = np.flatnonzero(codes[rows] != NOBODY)
        if len(known):
            is_low = batch.from_low[known] == is_sender
            _note(batch.pair[known], is_low, codes[rows[known]], batch.ts_ns[known], told.owners, endpoints, seen)


def _note(
    pair: Ids,
    is_low: Ids,
    code: Ids,
    ts_ns: Ints,
    owners: Sequence[Owner],
    endpoints: EndpointTable,
    seen: OwnersSeen,
) -> None:
    keys = (pair.astype(np.int64) * 2 + is_low) * len(owners) + code
    unique, place = np.unique(keys, return_inverse=True)
    first = np.full(len(unique), np.iinfo(np.int64).max)
    last = np.full(len(unique), np.iinfo(np.int64).min)
    np.minimum.at(first, place, ts_ns)
    np.maximum.at(last, place, ts_ns)
    ends, who = np.divmod(unique, len(owners))
    both = endpoints.many(ends >> 1)
    for one, low, number, begin, until in zip(
        both, (ends & 1).tolist(), who.tolist(), first.tolist(), last.tolist(), strict=True
    ):
        own, peer = (one[:2], one[2:4]) if low else (one[2:4], one[:2])
        seen.add(End(*own, *peer, one.encapsulation), owners[number], begin, until)
