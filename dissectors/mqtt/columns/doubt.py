"""Messages of QoS 1 and 2 of which a conversation has to see every packet, of many connections at once.

In: packets, odd ones among them. Out: the packets of messages that are in doubt. Packets with one identifier make
stretches, each from a PUBLISH to the last acknowledgement. A stretch where every packet is in turn, and which begins
when nothing with its identifier is in flight, depends on no other one. All others are in doubt.

What follows a hole is read when the hole is given up, so a PUBLISH of QoS 1 may come behind its PUBACK, which waits for
it then. Such a pair depends on no other packet either, if there is room for all that waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dissectors.core.columns.frames import Flags, Frames, Ints
from dissectors.mqtt.columns.course import State
from dissectors.mqtt.columns.handshakes import IN_TURN, NOTHING, keys_of, publishers, steps_before
from dissectors.mqtt.columns.packets import ODD, PUBACK, PUBCOMP, PUBLISH_1, PUBLISH_2, PUBREC, PUBREL, Packets
from dissectors.mqtt.early import Early

_NEVER_NS = -(1 << 63)


class Keyed(NamedTuple):
    """Packets of messages: their places among all frames, and the key of each, see `handshakes.keys_of`."""

    at: Ints
    key: Ints


class Doubts(NamedTuple):
    """doubtful: packets that are in doubt. puback, publish: places of those that come in this order."""

    doubtful: Keyed
    puback: Ints
    publish: Ints


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
    frames: Frames, packets: Packets, state: State, odd: Keyed, special: Ints, early: Sequence[Early]
) -> Doubts:
    """Which packets are in doubt. special: keys that something else has as well. early: acknowledgements that came
    before their PUBLISH, by the number of the connection."""
    events = _events(frames, packets, state, odd)
    none = events.at[:0]
    if not len(events.at):
        return Doubts(Keyed(none, none), none, none)
    held = _Held.of(early)
    turned = none
    bad, clean = _out_of_turn(events, turned)
    if bad.any() or len(held.key):
        late, by_several = _late(events, frames.ts_ns[events.at], held)
        turned = _turned(events, late & ~by_several, clean)
        bad, clean = _out_of_turn(events, turned)
        late[turned + 1] = False
        bad |= late
    bad |= np.isin(events.key, special)
    doubtful = _spread(events, bad, clean, turned)
    doubtful |= _let_go(events, frames, doubtful, clean, turned, held, early)
    turned = turned[~doubtful[turned]]
    return Doubts(Keyed(events.at[doubtful], events.key[doubtful]), events.at[turned], events.at[turned + 1])


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


def _out_of_turn(events: _Events, turned: Ints) -> tuple[Flags, Flags]:
    """The packets that are out of turn, and those in front of which surely nothing with their identifier is in flight.

    A PUBLISH and all its acknowledgements in turn leave nothing in flight, whatever was before. No acknowledgement puts
    anything in flight. turned: each PUBACK whose PUBLISH follows it.
    """
    _, kind, _, first, _, previous, _ = events
    rows = np.arange(len(kind))
    publish = kind <= PUBLISH_2
    if len(turned):
        behind_pair = turned[turned + 2 < len(kind)] + 2
        previous = previous.copy()
        previous[behind_pair[~first[behind_pair]]] = PUBACK
    broken = ~publish & ~IN_TURN[previous, kind]
    broken[turned] = False
    begin = np.maximum.accumulate(np.where(publish | first, rows, 0))
    count = np.cumsum(broken)
    unbroken = count - count[begin] + broken[begin] == 0
    ended = ((kind == PUBACK) | (kind == PUBCOMP)) & unbroken
    ended[turned] = False
    ended[turned + 1] = True
    tells = publish | (kind == ODD) | ended | first
    nothing = ended | (first & (previous == NOTHING) & ~publish & (kind != ODD))
    behind = nothing[np.maximum.accumulate(np.where(tells, rows, 0))]
    clean = np.append(True, behind[:-1])
    clean[first] = previous[first] == NOTHING
    return broken | (publish & ~clean), clean


def _turned(events: _Events, late: Flags, clean: Flags) -> Ints:
    """Each PUBACK that waits for the PUBLISH behind it. late: each PUBLISH that is late by the packet before."""
    _, kind, _, first, *_ = events
    pair = (kind[:-1] == PUBACK) & (kind[1:] == PUBLISH_1) & ~first[1:] & clean[:-1]
    return np.flatnonzero(pair & late[1:])


def _late(events: _Events, ts_ns: Ints, held: _Held) -> tuple[Flags, Flags]:
    """Each PUBLISH that was sent no later than an acknowledgement read before it, which may be its own; and which of
    them no later than another one than that just before it."""
    firsts = np.flatnonzero(events.first)
    before = np.append(_NEVER_NS, ts_ns[:-1])
    before[firsts] = _NEVER_NS
    keys = events.key[firsts]
    number = np.minimum(np.searchsorted(keys, held.key), len(keys) - 1)
    there = keys[number] == held.key
    np.maximum.at(before, firsts[number[there]], held.ts_ns[there])
    different, ranks = np.unique(np.concatenate((ts_ns, before)), return_inverse=True)
    own, earlier = ranks[: len(ts_ns)], ranks[len(ts_ns) :]
    base = events.number * len(different)
    latest = np.maximum.accumulate(earlier + base) - base
    late: Flags = (events.kind <= PUBLISH_2) & (own <= latest)
    return late, late & np.append(False, own[1:] <= latest[:-1])


def _spread(events: _Events, bad: Flags, clean: Flags, turned: Ints) -> Flags:
    """All packets of the stretches in which any is bad, and of those that these follow before they are over."""
    _, kind, _, first, number, _, known = events
    begins = first | (kind <= PUBLISH_2) | (kind == ODD) | (bad & clean)
    begins[turned], begins[turned + 1] = True, False
    stretch = np.cumsum(begins) - 1
    doubtful = np.bincount(stretch, bad) > 0
    doubtful[stretch[begins & ~first & ~clean] - 1] = True
    # What was in flight before stays where the conversation sees it until all is read.
    of_key = np.bincount(number, bad) > 0
    doubtful[stretch[known[of_key[number[known]]]]] = True
    found: Flags = doubtful[stretch]
    return found


def _let_go(
    events: _Events, frames: Frames, doubtful: Flags, clean: Flags, turned: Ints, held: _Held, early: Sequence[Early]
) -> Flags:
    """All packets with the identifiers of acknowledgements that may be let go of, which may then be taken for those of
    whatever is in flight: those that wait while more may than there is room for."""
    waits = doubtful & (events.kind > PUBLISH_2) & (events.kind != PUBREL)
    waits[turned] = True
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


def _until(events: _Events, frames: Frames, clean: Flags, turned: Ints, held: _Held) -> Ints:
    """How long each acknowledgement waits if it does: to its PUBLISH if that follows, else to the end."""
    at, kind, key, first, *_ = events
    alone = first & ~np.isin(key, held.key)  # no other one of the same identifier waits
    until = frames.ends[frames.connection[at]]
    until[turned] = at[turned + 1]
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
