"""Which frames of many connections are requests and the responses to them.

In: for each connection its frames in the order in which they are fed, and the ids of the requests that wait already.
Out: pairs, only of connections where it is certain that one frame after the other would give the same ones: the k-th
response answers the k-th request, ids are unique, and each request was read before its response.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from dissectors.core.limits import Limits
from dissectors.core.model import Frame
from dissectors.kafka.columns.blob import Flags, Ints

_ID_BITS, _ID_MASK = 32, (1 << 32) - 1


class Connection(NamedTuple):
    """The frames of one connection. waiting: ids of requests read before; heard: was any response read before?"""

    frames: Sequence[Frame]
    waiting: Sequence[int]
    heard: bool


class Pairs(NamedTuple):
    """connection: the number of each pair's connection. asked, answered: places among the frames of all."""

    connection: Ints
    asked: Ints
    answered: Ints


class _Frames(NamedTuple):
    """Frames of one direction: their places, their connections, and which of the connection's each one is."""

    place: Ints
    connection: Ints
    rank: Ints
    begins: Ints
    counts: Ints


def certain_pairs(
    from_client: Flags, ids: Ints, readable: Flags, connections: Sequence[Connection], limits: Limits
) -> Pairs:
    """The pairs of all connections. ids: of all frames; readable: those that have one and are no authentication."""
    sizes = np.array([len(connection.frames) for connection in connections])
    of_frame = np.repeat(np.arange(len(sizes)), sizes)
    begin = np.cumsum(sizes) - sizes
    requests = _frames(from_client, of_frame, len(sizes))
    responses = _frames(~from_client, of_frame, len(sizes))
    waiting = np.array([len(connection.waiting) for connection in connections])
    waiting_ids = np.fromiter(chain.from_iterable(one.waiting for one in connections), np.int64)
    pairs = responses.counts - waiting
    good = (pairs > 0) & (pairs <= requests.counts)
    good[of_frame[~readable]] = False
    good[_repeated(np.repeat(np.arange(len(sizes)), waiting), waiting_ids, requests, ids)] = False
    # What waits is answered first, then what is asked here.
    of_waiting = good[responses.connection] & (responses.rank < waiting[responses.connection])
    number, rank = responses.connection[of_waiting], responses.rank[of_waiting]
    wrong = waiting_ids[(np.cumsum(waiting) - waiting)[number] + rank] != ids[responses.place[of_waiting]]
    good[number[wrong]] = False
    paired = good[responses.connection] & ~of_waiting
    number = responses.connection[paired]
    asked = requests.place[requests.begins[number] + responses.rank[paired] - waiting[number]]
    answered = responses.place[paired]
    good[number[(ids[asked] != ids[answered]) | (asked > answered)]] = False
    # So many wait at each request, itself included.
    answered_before = requests.place - begin[requests.connection] - requests.rank
    outstanding = waiting[requests.connection] + requests.rank + 1 - answered_before
    unheard = min(limits.max_outstanding, limits.max_unheard)
    most = np.where([connection.heard for connection in connections], limits.max_outstanding, unheard)
    good[requests.connection[outstanding > most[requests.connection]]] = False
    kept = good[number]
    return Pairs(number[kept], asked[kept], answered[kept])


def _frames(chosen: Flags, of_frame: Ints, connections: int) -> _Frames:
    place = np.flatnonzero(chosen)
    connection = of_frame[place]
    count = np.bincount(connection, minlength=connections)
    begin = np.cumsum(count) - count
    return _Frames(place, connection, np.arange(len(place)) - begin[connection], begin, count)


def _repeated(of_waiting: Ints, waiting_ids: Ints, requests: _Frames, ids: Ints) -> Ints:
    """The connections in which two requests have the same id."""
    connection = np.concatenate((of_waiting, requests.connection))
    keys = connection << _ID_BITS | np.concatenate((waiting_ids, ids[requests.place])) & _ID_MASK
    keys.sort()
    found: Ints = keys[1:][keys[1:] == keys[:-1]] >> _ID_BITS
    return found
