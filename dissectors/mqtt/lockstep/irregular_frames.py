"""Which packets of many connections the decoders read by themselves, between those that are read together.

In: packets, some of which are odd, and what is known of their connections. Out: the odd ones, and all whose meaning may
depend on them: those with the same identifier, and pings. From a packet on that may change what any other one means the
decoder reads all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.mqtt import packet_types
from wirewitness.dissectors.mqtt.lockstep.handshakes import (
    Events,
    Open,
    events,
    in_flight,
    keys_of,
    of_senders,
    out_of_turn,
    side_of,
)
from wirewitness.dissectors.mqtt.lockstep.packets import ODD, PINGREQ, PUBLISH_0, Packets
from wirewitness.dissectors.mqtt.lockstep.pings import waiting
from wirewitness.dissectors.mqtt.packet_types import PINGRESP, PUBLISH, PUBREL, SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE
from wirewitness.dissectors.mqtt.subscriptions import Asked
from wirewitness.dissectors.mqtt.walk import remaining_length

_OF_MESSAGES = frozenset({PUBLISH, packet_types.PUBACK, packet_types.PUBREC, PUBREL, packet_types.PUBCOMP})
# With packet identifiers that no message may have meanwhile.
_ASKS = frozenset({SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK})
_IDENTIFIED = _OF_MESSAGES | _ASKS
_CONFINED = _IDENTIFIED | {packet_types.PINGREQ, PINGRESP}
_QOS = 6


class State(NamedTuple):
    """What is known of connections before their frames, by the number of each.

    five: is its level 5.0? packet_limit, receive_maximum: of client and server, see `Connection`. flights: messages in
    flight. pings: those that wait. other_pings: may pings answer or be answered by what is not here? special: (number,
    publisher, packet identifier) of whatever else waits.
    """

    five: Flags
    packet_limit: Ints
    receive_maximum: Ints
    flights: Sequence[Open]
    pings: Sequence[Sequence[Asked]]
    other_pings: Flags
    special: Sequence[tuple[int, int, int]]


class Apart(NamedTuple):
    """alone: packets that a decoder reads by itself between others. ends: behind the last packet of each
    connection before the one from which on the decoder reads all. steps: of handshakes. counts: see
    `handshakes.in_flight`, without the messages that are read alone."""

    alone: Flags
    ends: Ints
    steps: Events
    counts: Ints


class _Odd(NamedTuple):
    """Odd packets that touch nothing but what has their identifier, or pings.

    alone: all of them. of_messages: place, publisher and identifier. asks: connection, client and identifier. others:
    connections in which there are any that are not of messages: pings among them, or what may push out an early one.
    """

    alone: list[int]
    of_messages: list[tuple[int, int, int]]
    asks: list[tuple[int, int, int]]
    others: set[int]


def apart(frames: Frames, found: Packets, state: State, limits: Limits) -> Apart:
    """Of all connections."""
    kind = found.kind
    alone, ends = np.zeros(len(frames), bool), frames.ends.copy()
    odd = _odd(frames, kind, ends)
    alone[odd.alone] = True
    steps = events(frames, found, _rows(odd.of_messages), state.flights, state.five)
    doubtful = _doubtful(steps, keys_of(*_rows([*odd.asks, *state.special])))
    alone[steps.at[doubtful]] = True
    alone |= _pings(frames, kind, odd, state, limits)
    counts = in_flight(frames, np.where(alone, ODD, kind), state.flights)
    sides = np.bincount(side_of(np.unique(steps.key[doubtful])), minlength=2 * len(ends)).reshape(-1, 2)
    at_most = of_senders(counts, frames) + sides[frames.connection, frames.direction]
    most = np.where(alone, limits.max_outstanding, most_in_flight(frames, state, limits))
    acknowledged = (frames.octets[frames.start] >> 4 == PUBLISH) & (kind != PUBLISH_0)
    places = np.append(np.flatnonzero(acknowledged & (at_most > most)), len(frames))
    return Apart(alone, np.minimum(ends, places[np.searchsorted(places, frames.begins)]), steps, counts)


def _rows(numbers: Sequence[tuple[int, int, int]]) -> Ints:
    """The columns of these."""
    return np.array(numbers, np.int64).reshape(-1, 3).T


def _doubtful(steps: Events, special: Ints) -> Flags:
    """All packets with an identifier of which one is out of turn, or that something else has as well. special: keys."""
    number = np.cumsum(steps.first) - 1
    found: Flags = (np.bincount(number, out_of_turn(steps) | np.isin(steps.key, special)) > 0)[number]
    return found


def _pings(frames: Frames, kind: Ints, odd: _Odd, state: State, limits: Limits) -> Flags:
    """The pings of connections in which any is out of turn: they have nothing but their order."""
    of_connections = state.other_pings.copy()
    of_connections[[*odd.others]] = True
    of_connections[frames.connection[pings_out_of_turn(frames, kind, state, limits)]] = True
    found: Flags = is_ping(kind) & of_connections[frames.connection]
    return found


def is_ping(kind: Ints) -> Flags:
    """Which packets are PINGREQ or PINGRESP."""
    return (kind >= PINGREQ) & (kind < ODD)


def pings_out_of_turn(frames: Frames, kind: Ints, state: State, limits: Limits) -> Flags:
    """Pings that answer nothing, or of which too many wait."""
    waits = waiting(frames, kind, state.pings)
    return is_ping(kind) & ((waits < 0) | (waits > limits.max_unheard))


def most_in_flight(frames: Frames, state: State, limits: Limits) -> Ints:
    """So many messages of the sender of each packet may be in flight."""
    found: Ints = np.minimum(state.receive_maximum, limits.max_outstanding)[frames.connection, frames.direction]
    return found


def _odd(frames: Frames, kind: Ints, ends: Ints) -> _Odd:
    """The odd packets. ends: changed here, where a packet is more than odd."""
    places = np.flatnonzero(kind == ODD)
    owner = frames.connection[places]
    # Where so many are odd it costs more than it saves to look at each.
    crowded = 4 * np.bincount(owner, minlength=len(ends)) > frames.ends - frames.begins
    firsts = np.full(len(ends), len(frames))
    np.minimum.at(firsts, owner, places)
    ends[crowded] = firsts[crowded]
    places = places[~crowded[owner]]
    found, over = _Odd([], [], [], set()), set[int]()
    columns = (frames.connection, frames.direction, frames.start, frames.end, frames.complete)
    for at, number, direction, start, end, complete in zip(
        places.tolist(), *(column[places].tolist() for column in columns), strict=True
    ):
        if number in over:
            continue
        packet_type, identifier = _head(frames.data, start, end, complete)
        if packet_type not in _CONFINED:
            ends[number] = at
            over.add(number)
            continue
        found.alone.append(at)
        if packet_type not in _OF_MESSAGES:
            found.others.add(number)
            if identifier is not None:
                found.asks.append((number, CLIENT_TO_SERVER, identifier))
        elif identifier is not None:
            of_sender = packet_type in (PUBLISH, PUBREL)
            found.of_messages.append((at, direction if of_sender else 1 - direction, identifier))
    return found


def _head(data: bytes, start: int, end: int, complete: bool) -> tuple[int | None, int | None]:
    """Type and identifier of a packet, as far as `walk` would read them; no type where its length is impossible."""
    packet_type = data[start] >> 4
    try:
        size, at = remaining_length(data, start + 1, end)
    except DecodeError:
        return None, None
    if complete and at + size > end:
        return None, None
    until = min(end, at + size)
    if packet_type == PUBLISH:
        if not data[start] & _QOS:
            return packet_type, None
        at += 2 + int.from_bytes(data[at : at + 2])
    if packet_type not in _IDENTIFIED or at + 2 > until:
        return packet_type, None
    return packet_type, data[at] << 8 | data[at + 1]
