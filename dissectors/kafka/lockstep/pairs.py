"""Which frames of many connections are requests and the responses to them.

In: for each connection its frames in the order in which they are fed, and what its decoder knows of those before.
Out: pairs, only of connections where it is certain that one frame after the other would give the same ones: ids are
unique and responses come in the order of the requests. Where a stream lost bytes requests may stay without response
between them. What a response does that is read before its request, or without one, the decoder does by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.outstanding import Outstanding

_ID_BITS, _ID_MASK = 32, (1 << 32) - 1


class Connection(NamedTuple):
    """The frames of one connection, and what is known from those before.

    waiting: ids of the requests that wait, the oldest first. apart: ids that mean something else than requests in
    their order. heard: was any response read? lost: did its streams lose bytes? held: bytes of records that wait.
    """

    frames: Sequence[Frame]
    waiting: Sequence[int]
    apart: Sequence[int]
    heard: bool
    lost: bool
    held: int

    @classmethod
    def of(cls, frames: Sequence[Frame], outstanding: Outstanding[Any, Any], held: int) -> Connection:
        """The frames that follow on these requests. held: bytes of their records."""
        waiting, apart = list(outstanding.requests), list(outstanding.apart)
        return cls(frames, waiting, apart, outstanding.heard, outstanding.lost, held)


class Known(NamedTuple):
    """What is known of connections, in columns; see `Connection`. sizes: how many frames each has.

    waiting_of, apart_of: the number of the connection that each of the ids is of.
    """

    sizes: Ints
    waiting_of: Ints
    waiting: Ints
    apart_of: Ints
    apart: Ints
    heard: Flags
    lost: Flags
    held: Ints

    @classmethod
    def of(cls, connections: Sequence[Connection]) -> Known:
        """Of these."""
        return cls(
            np.array([len(connection.frames) for connection in connections], np.int64),
            *_flat([connection.waiting for connection in connections]),
            *_flat([connection.apart for connection in connections]),
            np.array([connection.heard for connection in connections], bool),
            np.array([connection.lost for connection in connections], bool),
            np.array([connection.held for connection in connections], np.int64),
        )

    @classmethod
    def nothing(cls, sizes: Ints) -> Known:
        """Of connections that begin with these frames, so many each, and of which no byte is lost."""
        none, no, zero = np.zeros(0, np.int64), np.zeros(len(sizes), bool), np.zeros(len(sizes), np.int64)
        return cls(sizes, none, none, none, none, no, no, zero)


class Headers(NamedTuple):
    """What headers say of the frames of all connections.

    ids: correlation ids, of frames that have one (`has_id`). odd: frames with which nothing is certain. cut: frames
    that are not whole.
    """

    from_client: Flags
    ids: Ints
    has_id: Flags
    odd: Flags
    cut: Flags


class Pairs(NamedTuple):
    """connection: the number of each pair's connection. asked, answered: places among the frames of all.

    passed: at which responses (by place) the wait of older requests ends, and the ids of these.
    """

    connection: Ints
    asked: Ints
    answered: Ints
    passed: Mapping[int, list[int]]


class _Asked(NamedTuple):
    """The requests of all connections, each connection's in their order, those that waited before first.

    order: how many of the connection's are before each. place: that of its frame, -1 if it waited before. first: where
    each connection's begin.
    """

    connection: Ints
    order: Ints
    ids: Ints
    place: Ints
    first: Ints


class _Told(NamedTuple):
    """The responses whose request was read. at: the number of the request, in `_Asked`. before: how many of the
    connection's requests are older than it, but newer than those answered before; negative if it is none of these."""

    place: Ints
    connection: Ints
    at: Ints
    before: Ints


def certain_pairs(headers: Headers, connections: Known, limits: Limits) -> Pairs:
    """The pairs of all connections."""
    count, lost = len(connections.sizes), connections.lost
    of_frame = np.repeat(np.arange(count), connections.sizes)
    good = np.ones(count, bool)
    good[of_frame[headers.odd]] = False
    good[of_frame[(headers.cut | ~headers.has_id) & ~lost[of_frame]]] = False
    asked = _asked(headers, of_frame, connections)
    keys = _keys(asked.connection, asked.ids)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    good[asked.connection[order[1:][keys[1:] == keys[:-1]]]] = False
    apart = _apart(connections, asked, keys, order)
    told = _told(headers, of_frame, asked, keys, order, _answered_before(connections, asked, apart))
    good[told.connection[told.before < 0]] = False
    good[told.connection[(told.before > 0) & ~lost[told.connection]]] = False
    # Those that are answered as they should be; the last of these tells which requests wait no longer.
    sure = np.flatnonzero((asked.place[told.at] < told.place) & ~apart[told.at])
    connection, place, at = told.connection[sure], told.place[sure], told.at[sure]
    good[_crowded(asked, _Told(place, connection, at, told.before[sure]), connections, limits)] = False
    since = np.maximum(_over(connection, asked.order[at]), 0)
    kept = (asked.place[at] >= 0) & good[connection]
    passed = {
        int(place[number]): asked.ids[asked.first[connection[number]] + since[number] : at[number]].tolist()
        for number in np.flatnonzero(kept & (asked.order[at] > since)).tolist()
    }
    return Pairs(connection[kept], asked.place[at[kept]], place[kept], passed)


def _asked(headers: Headers, of_frame: Ints, connections: Known) -> _Asked:
    waits_of, waiting = connections.waiting_of, connections.waiting
    place = np.flatnonzero(headers.from_client & headers.has_id)
    connection = np.concatenate((waits_of, of_frame[place]))
    by_connection = np.argsort(connection, kind="stable")
    connection = connection[by_connection]
    ids = np.concatenate((waiting, headers.ids[place]))[by_connection]
    places = np.concatenate((np.full(len(waiting), -1), place))[by_connection]
    counts = np.bincount(connection, minlength=len(connections.sizes))
    first = np.cumsum(counts) - counts
    return _Asked(connection, np.arange(len(connection)) - first[connection], ids, places, first)


def _apart(connections: Known, asked: _Asked, keys: Ints, order: Ints) -> Flags:
    """The requests with an id that means something else. keys: of what was asked, sorted; order: as sorted."""
    apart = np.zeros(len(keys), bool)
    apart[order] = np.isin(keys, _keys(connections.apart_of, connections.apart))
    return apart


def _answered_before(connections: Known, asked: _Asked, apart: Flags) -> Ints:
    """How many of each connection's requests are no newer than one whose response was read before these frames."""
    before = np.zeros(len(connections.sizes), np.int64)
    np.maximum.at(before, asked.connection[apart], asked.order[apart] + 1)
    return before


def _told(headers: Headers, of_frame: Ints, asked: _Asked, keys: Ints, order: Ints, answered_before: Ints) -> _Told:
    """keys: of what was asked, sorted; order: where each of them stands in `asked`."""
    place = np.flatnonzero(~headers.from_client & headers.has_id)
    own = _keys(of_frame[place], headers.ids[place])
    found = np.searchsorted(keys, own)
    known = np.zeros(len(own), bool)
    there = found < len(keys)
    known[there] = keys[found[there]] == own[there]
    place, at = place[known], order[found[known]]
    connection = of_frame[place]
    over = _over(connection, asked.order[at])
    over = np.where(over < 0, answered_before[connection], over)
    return _Told(place, connection, at, asked.order[at] - over)


def _over(connection: Ints, order: Ints) -> Ints:
    """How many of the connection's requests the response before answered or passed over; -1 at its first one."""
    over = np.full(len(order), -1)
    same = connection[1:] == connection[:-1]
    over[1:][same] = order[:-1][same] + 1
    return over


def _crowded(asked: _Asked, told: _Told, connections: Known, limits: Limits) -> Ints:
    """The connections in which so many requests wait at once that a limit may be reached."""
    unheard = min(limits.max_outstanding, limits.max_unheard)
    most = np.where(connections.heard, limits.max_outstanding, unheard)
    here = asked.place >= 0
    connection, place = asked.connection[here], asked.place[here]
    last = np.searchsorted(told.place, place) - 1
    over = np.zeros(len(place), np.int64)
    before = last >= 0
    before[before] = told.connection[last[before]] == connection[before]
    over[before] = asked.order[told.at[last[before]]] + 1
    found: Ints = connection[asked.order[here] + 1 - over > most[connection]]
    return found


def _flat(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """The items of all lists, and the number of the list that each is of."""
    counts = [len(one) for one in lists]
    return np.repeat(np.arange(len(lists)), counts), np.fromiter(chain.from_iterable(lists), np.int64, sum(counts))


def _keys(connection: Ints, ids: Ints) -> Ints:
    keys: Ints = connection << _ID_BITS | ids & _ID_MASK
    return keys
