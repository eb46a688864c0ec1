"""Messages of QoS 1 and 2 of which a decoder has to see every packet, of many connections at once.

In: packets, odd ones among them. Out: the packets of messages that are in doubt. Packets with one identifier make
stretches, each from a PUBLISH to the last acknowledgement. A stretch where every packet is in turn, and which begins
when nothing with its identifier is in flight, depends on no other one. All others are in doubt.

Nor does one whose packets a gap put in another order, see `reordered.py`, if there is room for all that waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.mqtt.lockstep.handshakes import (
    IN_TURN,
    NOTHING,
    Open,
    keys_of,
    publishers,
    side_of,
    steps_before,
)
from wirewitness.dissectors.mqtt.lockstep.packets import (
    ODD,
    PUBACK,
    PUBCOMP,
    PUBLISH_1,
    PUBLISH_2,
    PUBREC,
    PUBREL,
    Packets,
)
from wirewitness.dissectors.mqtt.lockstep.regular_state import State
from wirewitness.dissectors.mqtt.lockstep.reordered import Turned, turned
from wirewitness.dissectors.mqtt.unmatched_acks import Early

_NEVER_NS = -(1 << 63)


class Keyed(NamedTuple):
    """Packets of messages: their places among all frames, and the key of each, see `handshakes.keys_of`."""

    at: Ints
    key: Ints


class Doubts(NamedTuple):
    """doubtful: packets that are in doubt. turned: messages that are not, though in another order, by their places."""

    doubtful: Keyed
    turned: Turned


class _Held(NamedTuple):
    """Acknowledgements that came before their PUBLISH, by connection."""

    connection: Ints
    key: Ints
    ts_ns: Ints

    @classmethod
    def of(cls, early: Sequence[Early]) -> _Held:
        waiting = [(number, *one) for number, held in enumerate(early) for one in held.waiting()]
        columns = np.array(waiting, np.int64).reshape(-1, 4).T
        return cls(columns[0], keys_of(columns[0], columns[1], columns[2]), columns[3])


class _Events(NamedTuple):
    """Packets sorted by key, then by place. first: is it the first one of its key? number: of its key. previous: see
    `steps_before`. known: firsts whose message was in flight before."""

    at: Ints
    kind: Ints
    key: Ints
    first: Flags
    number: Ints
    previous: Ints
    known: Ints


def in_doubt(
    frames: Frames,
    packets: Packets,
    state: State,
    odd: Keyed,
    special: Ints,
    early: Sequence[Early],
    limits: Limits,
) -> Doubts:
    """Which packets are in doubt. special: keys that something else has as well. early: acknowledgements that came
    before their PUBLISH, by the number of the connection."""
    events = _events(frames, packets, state, odd)
    found = Turned.none()
    if not len(events.at):
        return Doubts(Keyed(events.at, events.at), found)
    held = _Held.of(early)
    bad, clean = _out_of_turn(events, found)
    if bad.any() or len(held.key):
        ts_ns = frames.ts_ns[events.at]
        latest_ns = _latest(events, ts_ns, held)
        may_wait = _may_wait(events, state.flights, special, limits)
        late = (events.kind <= PUBLISH_2) & (ts_ns <= latest_ns)
        lone = (events.kind == PUBREL) & ~_unbroken(events, bad | late)
        found = turned(events.kind, events.key, ts_ns, latest_ns, clean, may_wait, _so_far(events, lone) > 0)
        bad, clean = _out_of_turn(events, found)
        late[found.publish] = False
        bad |= late
    bad |= np.isin(events.key, special)
    doubtful = _spread(events, bad, clean, found)
    doubtful |= _let_go(events, frames, doubtful, clean, found, held, early)
    found = found.which(~doubtful[found.first])
    return Doubts(Keyed(events.at[doubtful], events.key[doubtful]), found.at(events.at))


def _events(frames: Frames, packets: Packets, state: State, odd: Keyed) -> _Events:
    at = np.flatnonzero((packets.kind >= PUBLISH_1) & (packets.kind <= PUBCOMP))
    kind = packets.kind[at]
    key = keys_of(frames.connection[at], publishers(frames.direction[at], kind), packets.identifier[at])
    at, key = np.concatenate((at, odd.at)), np.concatenate((key, odd.key))
    kind = np.concatenate((kind, np.full(len(odd.at), ODD)))
    order = np.lexsort((at, key))
    at, kind, key = at[order], kind[order], key[order]
    previous, first, before = steps_before(frames.connection[at], kind, key, state.flights, state.five)
    return _Events(at, kind, key, first, np.cumsum(first) - 1, previous, np.array([*before], np.int64))


def _out_of_turn(events: _Events, turned: Turned) -> tuple[Flags, Flags]:
    """The packets that are out of turn, and those in front of which surely nothing with their identifier is in flight.

    A PUBLISH and all its acknowledgements in turn leave nothing in flight, whatever was before. No acknowledgement puts
    anything in flight. turned: messages that are whole in another order.
    """
    _, kind, _, first, _, previous, _ = events
    publish = kind <= PUBLISH_2
    inside = turned.rows()
    if len(inside):
        behind = turned.last[turned.last + 1 < len(kind)] + 1
        previous = previous.copy()
        previous[behind[~first[behind]]] = PUBCOMP
    broken = ~publish & ~IN_TURN[previous, kind]
    broken[inside] = False
    ended = ((kind == PUBACK) | (kind == PUBCOMP)) & _unbroken(events, broken)
    ended[inside] = False
    ended[turned.last] = True
    tells = publish | (kind == ODD) | ended | first
    nothing = ended | (first & (previous == NOTHING) & ~publish & (kind != ODD))
    behind = nothing[np.maximum.accumulate(np.where(tells, np.arange(len(kind)), 0))]
    clean = np.append(True, behind[:-1])
    clean[first] = previous[first] == NOTHING
    return broken | (publish & ~clean), clean


def _unbroken(events: _Events, broken: Flags) -> Flags:
    """Is nothing broken from the PUBLISH before each packet on, or from the first one of its key?"""
    begins = (events.kind <= PUBLISH_2) | events.first
    begin = np.maximum.accumulate(np.where(begins, np.arange(len(broken)), 0))
    count = np.cumsum(broken)
    found: Flags = count - count[begin] + broken[begin] == 0
    return found


def _latest(events: _Events, ts_ns: Ints, held: _Held) -> Ints:
    """The latest time of the packets of the same key that are read before each, and of its acknowledgements that wait
    since before. A PUBLISH that was sent no later may find one of them waiting that is not its own."""
    firsts = np.flatnonzero(events.first)
    before = np.append(_NEVER_NS, ts_ns[:-1])
    before[firsts] = _NEVER_NS
    keys = events.key[firsts]
    number = np.minimum(np.searchsorted(keys, held.key), len(keys) - 1)
    there = keys[number] == held.key
    np.maximum.at(before, firsts[number[there]], held.ts_ns[there])
    different, ranks = np.unique(before, return_inverse=True)
    base = events.number * len(different)
    latest: Ints = different[np.maximum.accumulate(ranks + base) - base]
    return latest


def _may_wait(events: _Events, flights: Sequence[Open], special: Ints, limits: Limits) -> Flags:
    """Is there room for all messages of the same side of the same connection that might wait for PUBREL?"""
    sides = side_of(events.key)
    might = np.concatenate((sides[(events.kind == PUBLISH_2) | (events.kind == ODD)], side_of(special)))
    count = np.bincount(might, minlength=2 * len(flights))
    count += [len(of_side) for of_connection in flights for of_side in of_connection]
    found: Flags = (count <= limits.max_outstanding)[sides]
    return found


def _so_far(events: _Events, counted: Flags) -> Ints:
    """How many packets of the same key up to each are counted."""
    total = np.append(0, np.cumsum(counted))
    found: Ints = total[1:] - total[np.flatnonzero(events.first)][events.number]
    return found


def _spread(events: _Events, bad: Flags, clean: Flags, turned: Turned) -> Flags:
    """All packets of the stretches in which any is bad, and of those that these follow before they are over."""
    _, kind, _, first, number, _, known = events
    begins = first | (kind <= PUBLISH_2) | (kind == ODD) | (bad & clean)
    begins[turned.publish] = False
    begins[turned.first] = True
    stretch = np.cumsum(begins) - 1
    doubtful = np.bincount(stretch, bad) > 0
    doubtful[stretch[begins & ~first & ~clean] - 1] = True
    # What was in flight before stays where the decoder sees it until all is read.
    of_key = np.bincount(number, bad) > 0
    doubtful[stretch[known[of_key[number[known]]]]] = True
    found: Flags = doubtful[stretch]
    return found


def _let_go(
    events: _Events, frames: Frames, doubtful: Flags, clean: Flags, turned: Turned, held: _Held, early: Sequence[Early]
) -> Flags:
    """All packets with the identifiers of acknowledgements that may be let go of, which may then be taken for those of
    whatever is in flight: those that wait while more may than there is room for."""
    waits = doubtful & (events.kind > PUBLISH_2) & (events.kind != PUBREL)
    waits[turned.early[0]] = True
    at, until = events.at[waits], _until(events, frames, clean, turned, held)[waits]
    owner = frames.connection[at]
    comes = np.zeros(len(frames) + 1, bool)
    comes[at] = True
    total = np.cumsum(comes - np.bincount(until, minlength=len(comes)))[:-1]
    room = np.array([one.room for one in early], np.int64)
    size = np.bincount(owner, frames.size[at], minlength=len(early))
    room[size > [one.room_bytes for one in early]] = -1
    full = comes[:-1] & (total > room[frames.connection])
    count = np.append(0, np.cumsum(full))
    mine = events.key[waits][count[until] > count[at]]
    of_held = (count[frames.ends] > count[frames.begins])[held.connection]
    found: Flags = np.isin(events.key, np.concatenate((mine, held.key[of_held])))
    return found


def _until(events: _Events, frames: Frames, clean: Flags, turned: Turned, held: _Held) -> Ints:
    """How long each acknowledgement waits if it does: to its PUBLISH if that follows, else to the end."""
    at, kind, key, first, *_ = events
    alone = first & ~np.isin(key, held.key)  # no other one of the same identifier waits
    until = frames.ends[frames.connection[at]]
    early, publish = turned.early
    until[early] = at[publish]
    # PUBREC, or PUBREC and PUBCOMP, in front of a PUBLISH that is read one by one and finds these first.
    for steps in ((PUBREC,), (PUBREC, PUBCOMP)):
        rows = np.arange(len(at) - len(steps))
        publish = rows + len(steps)
        found = (kind[publish] == PUBLISH_2) & clean[rows] & alone[rows] & (key[rows] == key[publish])
        for place, step in enumerate(steps):
            row = rows + place
            found &= (kind[row] == step) & (frames.ts_ns[at[row]] >= frames.ts_ns[at[publish]])
        for place in range(len(steps)):
            until[rows[found] + place] = at[publish[found]]
    return until
