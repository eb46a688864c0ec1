"""Which PINGRESP answers which PINGREQ, of many connections at once: the k-th the k-th.

In: the kinds of packets, and the pings that wait already. Out: which packets are out of turn, and the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.mqtt.lockstep.packets import PINGREQ, PINGRESP
from wirewitness.dissectors.mqtt.subscriptions import Asked


class Pings(NamedTuple):
    """Pings that were answered. request: places among all frames, -1 for one of `known`, which waited before."""

    request: Ints
    response: Ints
    known: list[Asked | None]


def waiting(frames: Frames, kind: Ints, known: Sequence[Sequence[Asked]]) -> Ints:
    """How many pings of its connection wait behind each packet, if all are in turn."""
    change = (kind == PINGREQ).astype(np.int64) - (kind == PINGRESP)
    total = np.concatenate(([0], np.cumsum(change)))
    before = np.array([len(pings) for pings in known], np.int64)
    found: Ints = total[1:] + (before - total[frames.begins])[frames.connection]
    return found


def answered(frames: Frames, kind: Ints, taken: Flags, known: Sequence[Sequence[Asked]]) -> Pings:
    """The pairs among the packets that are taken."""
    requests = np.flatnonzero(taken & (kind == PINGREQ))
    responses = np.flatnonzero(taken & (kind == PINGRESP))
    if not len(responses):
        return Pings(responses, responses, [])
    answer = _numbered(frames.connection[responses])
    before = np.array([len(pings) for pings in known], np.int64)
    owner = frames.connection[responses]
    first_request = np.searchsorted(frames.connection[requests], owner)
    own = answer - before[owner]
    request = np.full(len(responses), -1)
    request[own >= 0] = requests[(first_request + own)[own >= 0]]
    waited = [
        known[c][n] if m < 0 else None for c, n, m in zip(owner.tolist(), answer.tolist(), own.tolist(), strict=True)
    ]
    return Pings(request, responses, waited)


def _numbered(connection: Ints) -> Ints:
    """The number of each within its connection, from 0; connections rise."""
    return np.arange(len(connection)) - np.searchsorted(connection, connection)
