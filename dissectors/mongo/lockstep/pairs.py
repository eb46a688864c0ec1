"""Which frames of many connections are requests and the replies to them.

In: frames in columns, and what waits already. Out: pairs of which it is certain that one frame after the other would
give the same ones: their id stands nowhere else in the connection, the request was read before its reply, and no limit
is reached. All else, such as replies whose request is behind a gap that was given up later, is read one by one; it has
other ids, so neither touches the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.opcodes import HEADER_BYTES

_ID_BITS, _ID_MASK = 32, (1 << 32) - 1


class Waits(NamedTuple):
    """What waits in a connection. requests, early: ids of requests, and of those whose reply came before them.

    heard: was any reply read?
    """

    requests: Sequence[int]
    early: Sequence[int]
    heard: bool


class Pairs(NamedTuple):
    """asked, answered: places among the frames of all; the latter rise."""

    asked: Ints
    answered: Ints


def certain_pairs(frames: Frames, buffer: Buffer, waits: Sequence[Waits], limits: Limits) -> Pairs:
    """The pairs of all connections."""
    count = len(waits)
    to_server, has_id = frames.direction == CLIENT_TO_SERVER, frames.size >= HEADER_BYTES
    asked, answered = np.flatnonzero(to_server & has_id), np.flatnonzero(~to_server & has_id)
    if not len(asked):
        return Pairs(asked, asked)
    request_keys = _keys(frames.connection[asked], buffer.int32(frames.start[asked] + 4))
    reply_keys = _keys(frames.connection[answered], buffer.int32(frames.start[answered] + 8))
    apart = [_twice(request_keys), _twice(reply_keys)]
    for known in ([one.requests for one in waits], [one.early for one in waits]):
        ids = np.fromiter(chain.from_iterable(known), np.int64)
        apart.append(_keys(np.repeat(np.arange(count), [len(of_one) for of_one in known]), ids))
    order = np.argsort(request_keys)
    place = np.minimum(np.searchsorted(request_keys[order], reply_keys), len(asked) - 1)
    request = order[place]
    paired = (request_keys[request] == reply_keys) & ~np.isin(reply_keys, np.concatenate(apart))
    asked, answered = asked[request[paired]], answered[paired]
    in_turn = asked < answered
    asked, answered = asked[in_turn], answered[in_turn]
    good = np.ones(count, bool)
    good[_too_many(frames, to_server, answered, waits, limits)] = False
    kept = good[frames.connection[asked]]
    return Pairs(asked[kept], answered[kept])


def _keys(connection: Ints, ids: Ints) -> Ints:
    keys: Ints = connection << _ID_BITS | ids & _ID_MASK
    return keys


def _twice(keys: Ints) -> Ints:
    """Those that stand twice."""
    ordered = np.sort(keys)
    found: Ints = ordered[1:][ordered[1:] == ordered[:-1]]
    return found


def _too_many(frames: Frames, to_server: Flags, answered: Ints, waits: Sequence[Waits], limits: Limits) -> Ints:
    """The connections in which more may wait at some request than a limit allows."""
    change = to_server.astype(np.int64)
    change[answered] -= 1
    total = np.concatenate(([0], np.cumsum(change)))
    before = np.array([len(one.requests) for one in waits], np.int64)
    waiting = total[1:] + (before - total[frames.begins])[frames.connection]
    unheard = min(limits.max_outstanding, limits.max_unheard)
    most = np.where([one.heard for one in waits], limits.max_outstanding, unheard)
    found: Ints = frames.connection[waiting > most[frames.connection]]
    return found
