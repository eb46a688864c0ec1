"""Which acknowledgements belong to which PUBLISH, of many connections at once.

In: the kinds and identifiers of packets, and the messages that are in flight already. Out: which packets are out of
turn, and `Handshakes` of those that are not. A message of QoS 1 or 2 is told by its connection, who sent it, and its
packet identifier; so packets sorted by these stand in the order of the steps of each message, and whether one is in
turn is told by the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.mqtt.handshake import Flight
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
from wirewitness.dissectors.mqtt.publish_rows import NO_TAIL

# Messages in flight of one connection, the client's and the server's, by packet identifier.
Open = tuple[dict[int, Flight], dict[int, Flight]]
# Before the first packet of an identifier: nothing is in flight, or a message of which only the decoder knows all.
NOTHING, _SPECIAL = PUBCOMP + 1, PUBCOMP + 2
# Behind PUBREL whose PUBREC was held behind a gap and comes next; behind both of them it is PUBREL in any case.
_RELEASED_FIRST = ODD + 1
# [step before, kind] -> is it in turn? A step is the kind of a packet, or one of the above.
IN_TURN = np.zeros((_RELEASED_FIRST + 1, ODD + 1), bool)
for _before in (NOTHING, PUBACK, PUBCOMP):
    IN_TURN[_before, PUBLISH_1 : PUBLISH_2 + 1] = True
for _before, _kind in (
    (PUBLISH_1, PUBACK),
    (PUBLISH_2, PUBREC),
    (PUBREC, PUBREL),
    (PUBREL, PUBCOMP),
    (PUBLISH_2, PUBREL),
    (_RELEASED_FIRST, PUBREC),
):
    IN_TURN[_before, _kind] = True
# What a message waits for -> the step that it made last.
_LAST_STEP = {"puback": PUBLISH_1, "pubrec": PUBLISH_2, "pubrel": PUBREC, "pubcomp": PUBREL}
_IDENTIFIERS = 1 << 16


class Events(NamedTuple):
    """PUBLISH of QoS 1 and 2 and acknowledgements, sorted by key, then by place. at: their places among all frames.

    key: see `keys_of`. first: is it the first one of its key? previous: the step before it. before: at the first one of
    a key the message that was in flight already, by the place of the event.
    """

    at: Ints
    kind: Ints
    key: Ints
    first: Flags
    previous: Ints
    before: dict[int, Flight]


class Handshakes(NamedTuple):
    """Messages of QoS 1 and 2 with at least one packet here, by what packet it came; -1 where none did.

    publish to pubcomp: places among all frames. known: the message where it was in flight before, None for new ones.
    """

    publish: Ints
    puback: Ints
    pubrec: Ints
    pubrel: Ints
    pubcomp: Ints
    known: list[Flight | None]

    @property
    def last(self) -> Ints:
        """The packet that made the message complete; -1 where it is still in flight."""
        return np.maximum(self.puback, self.pubcomp)

    @property
    def latest(self) -> Ints:
        """The packet that brought each as far as it is."""
        latest = self.publish
        for step in (self.pubrec, self.pubrel, self.last):
            latest = np.where(step < 0, latest, step)
        return latest


def events(frames: Frames, packets: Packets, odd: Ints, open_flights: Sequence[Open], five: Flags) -> Events:
    """The steps of all messages. odd: place, publisher and identifier of packets that only the decoder can read."""
    at = np.flatnonzero((packets.kind >= PUBLISH_1) & (packets.kind <= PUBCOMP))
    kind = packets.kind[at]
    publisher = np.concatenate((publishers(frames.direction[at], kind), odd[1]))
    identifier = np.concatenate((packets.identifier[at], odd[2]))
    at, kind = np.concatenate((at, odd[0])), np.concatenate((kind, np.full(odd.shape[1], ODD)))
    key = keys_of(frames.connection[at], publisher, identifier)
    order = np.lexsort((at, key))
    at, kind, key = at[order], kind[order], key[order]
    return Events(at, kind, key, *steps_before(frames.connection[at], kind, key, open_flights, five))


def out_of_turn(found: Events) -> Flags:
    """Which of them do not follow the step before."""
    return ~IN_TURN[found.previous, found.kind]


def keys_of(connection: Ints, publisher: Ints, identifier: Ints) -> Ints:
    """What tells messages apart that may be in flight at the same time."""
    keys: Ints = (connection * 2 + publisher) * _IDENTIFIERS + identifier
    return keys


def side_of(key: Ints) -> Ints:
    """Twice the connection and the publisher of each key."""
    return key // _IDENTIFIERS


def steps_before(
    connection: Ints, kind: Ints, key: Ints, open_flights: Sequence[Open], five: Flags
) -> tuple[Flags, Ints, dict[int, Flight]]:
    """first, previous and before of `Events`. The step before each of these packets, which are sorted by key, is that
    of the packet before it, or what its message has behind it that was in flight already."""
    first = np.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    previous = np.empty_like(kind)
    previous[1:] = kind[:-1]
    firsts = np.flatnonzero(first)
    previous[firsts] = NOTHING
    before = _known(key[firsts], firsts, open_flights)
    for place, flight in before.items():
        plain = _is_plain(flight, bool(five[connection[place]]))
        previous[place] = _last_step(flight) if plain else _SPECIAL
    behind = np.flatnonzero((kind[:-1] == PUBREL) & (previous[:-1] == PUBLISH_2) & ~first[1:]) + 1
    previous[behind] = _RELEASED_FIRST
    behind = np.flatnonzero((kind[:-1] == PUBREC) & (previous[:-1] == _RELEASED_FIRST) & ~first[1:]) + 1
    previous[behind] = PUBREL
    return first, previous, before


def _known(keys: Ints, places: Ints, open_flights: Sequence[Open]) -> dict[int, Flight]:
    """Which of the identifiers with these keys, which rise, are in flight already: the message at the place of each."""
    known: list[tuple[int, Flight]] = []
    for side, flights in enumerate(chain.from_iterable(open_flights)):
        known += [(side * _IDENTIFIERS + identifier, flight) for identifier, flight in flights.items()]
    if not known or not len(keys):
        return {}
    wanted = np.array([key for key, _ in known], np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return {int(places[at[number]]): known[number][1] for number in np.flatnonzero(keys[at] == wanted).tolist()}


def publishers(direction: Ints, kind: Ints) -> Ints:
    """Who published what each packet of these kinds belongs to."""
    of_sender = (kind <= PUBLISH_2) | (kind == PUBREL)
    return np.where(of_sender, direction, 1 - direction)


def _last_step(flight: Flight) -> int:
    step = _LAST_STEP[flight.waits_for]
    return _RELEASED_FIRST if step == PUBREL and flight.ts_received is None else step


def _is_plain(flight: Flight, five: bool) -> bool:
    """Did it go so far as a message does that is read here?"""
    if flight.first_offset is not None or flight.reason_string is not None or flight.tail != NO_TAIL:
        return False
    if flight.code is not None and not five:
        return False
    step = _last_step(flight)
    released = step in (PUBREL, _RELEASED_FIRST)
    if (flight.ts_received is None) == (step in (PUBREC, PUBREL)) or (flight.ts_released is None) == released:
        return False
    if flight.ts_acknowledged is not None or flight.ts_completed is not None:
        return False
    return flight.head is None or (flight.head[1] is None and not flight.head[4] and None not in flight.head[6:])


def in_flight(frames: Frames, kind: Ints, open_flights: Sequence[Open]) -> Ints:
    """How many messages of each side (the client's, the server's) are in flight at each packet, itself included."""
    begins = (kind == PUBLISH_1) | (kind == PUBLISH_2)
    ends = (kind == PUBACK) | (kind == PUBCOMP)
    found = np.empty((2, len(frames)), np.int64)
    for sender in (0, 1):
        mine = frames.direction == sender
        change = (begins & mine).astype(np.int64) - (ends & ~mine)
        total = np.concatenate(([0], np.cumsum(change)))
        known = np.array([len(flights[sender]) for flights in open_flights], np.int64)
        found[sender] = total[1:] + (known - total[frames.begins])[frames.connection]
    return found


def of_senders(counts: Ints, frames: Frames) -> Ints:
    """Of what `in_flight` gives, at each packet that of its sender."""
    found: Ints = counts[frames.direction, np.arange(len(frames))]
    return found


def handshakes(found: Events, taken: Flags) -> Handshakes:
    """The messages of the packets that are taken: all of a message up to some packet of its connection, or none."""
    keep = taken[found.at]
    at, kind, begins = found.at[keep], found.kind[keep], found.kind <= PUBLISH_2
    begins[list(found.before)] = True
    begins = begins[keep]
    message = np.cumsum(begins) - 1
    count = int(message[-1]) + 1 if len(message) else 0

    def place(of_step: Flags) -> Ints:
        found = np.full(count, -1)
        found[message[of_step]] = at[of_step]
        return found

    known: list[Flight | None] = [None] * count
    numbers = np.cumsum(keep) - 1
    for first, flight in found.before.items():
        if keep[first]:
            known[int(message[numbers[first]])] = flight
    return Handshakes(
        place(kind <= PUBLISH_2),
        place(kind == PUBACK),
        place(kind == PUBREC),
        place(kind == PUBREL),
        place(kind == PUBCOMP),
        known,
    )
