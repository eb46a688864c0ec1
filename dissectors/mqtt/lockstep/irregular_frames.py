"""Which packets of many connections the decoders read by themselves, between those that are read together.

In: packets, some of which are odd. Out: the odd ones, and all whose meaning depends on them: those of the same message,
and pings. From a packet on that may change what any other one means the decoder reads all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.mqtt import packet_types
from wirewitness.dissectors.mqtt.gaps import Loss
from wirewitness.dissectors.mqtt.lockstep.ambiguous import Keyed, in_doubt
from wirewitness.dissectors.mqtt.lockstep.handshakes import in_flight, keys_of, of_senders, side_of
from wirewitness.dissectors.mqtt.lockstep.packets import ODD, PINGREQ
from wirewitness.dissectors.mqtt.lockstep.regular_state import Course, State
from wirewitness.dissectors.mqtt.lockstep.reordered import Turned
from wirewitness.dissectors.mqtt.packet_types import PINGRESP, PUBLISH, PUBREL, SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE
from wirewitness.dissectors.mqtt.unmatched_acks import Early
from wirewitness.dissectors.mqtt.walk import remaining_length

_OF_MESSAGES = frozenset({PUBLISH, packet_types.PUBACK, packet_types.PUBREC, PUBREL, packet_types.PUBCOMP})
# With packet identifiers that no message may have meanwhile.
_ASKS = frozenset({SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK})
_IDENTIFIED = _OF_MESSAGES | _ASKS
_CONFINED = _IDENTIFIED | {packet_types.PINGREQ, PINGRESP}
_QOS = 6


class Before(NamedTuple):
    """What is known of connections beside `State`, by the number of each.

    losses: where bytes are missing. early: acknowledgements that came before their PUBLISH.
    asked: identifiers of SUBSCRIBE and UNSUBSCRIBE that wait. released: see `Flights.beside_flights`.
    """

    losses: Sequence[Sequence[Loss]]
    early: Sequence[Early]
    asked: Sequence[set[int]]
    released: Sequence[Sequence[tuple[int, int]]]


class Apart(NamedTuple):
    """alone: packets that a decoder reads by itself between others. ends: behind the last packet of each
    connection before the one from which on the decoder reads all. counts: as in `Course`, without the messages
    that are read alone. turned: see `Doubts`."""

    alone: Flags
    ends: Ints
    counts: Ints
    turned: Turned


class _Odd(NamedTuple):
    """Odd packets that touch nothing but what has their identifier, or pings.

    alone: all of them. of_messages: place, publisher and identifier. asks: connection and identifier. others:
    connections in which there are any that are not of messages: pings among them, or what may push out an early one.
    """

    alone: list[int]
    of_messages: list[tuple[int, int, int]]
    asks: list[tuple[int, int]]
    others: set[int]


def apart(frames: Frames, found: Course, state: State, before: Before, limits: Limits) -> Apart:
    """Of all connections."""
    kind = found.packets.kind
    alone, ends = np.zeros(len(frames), bool), frames.ends.copy()
    if not (found.odd.any() or any(map(any, (before.losses, before.early, before.asked, before.released)))):
        return Apart(alone, ends, found.counts, Turned.none())
    odd = _odd(frames, kind, ends)
    alone[odd.alone] = True
    keyed, special = _keyed(frames, odd), np.concatenate((_asked(odd, before), _released(before)))
    doubtful, turned = in_doubt(frames, found.packets, state, keyed, special, before.early, limits)
    alone[doubtful.at] = True
    pings = np.zeros(len(ends), bool)
    pings[[*odd.others, *(number for number, losses in enumerate(before.losses) if losses)]] = True
    is_ping = (kind >= PINGREQ) & (kind < ODD)
    pings[frames.connection[is_ping & found.odd]] = True
    alone |= is_ping & pings[frames.connection]
    counted = np.where(alone, ODD, kind)
    counted[turned.answer[turned.at_once]] = ODD
    counts = in_flight(frames, counted, state.flights, turned.publish[turned.at_once])
    at_most = of_senders(counts, frames) + _keys_in_doubt(doubtful, len(ends))[frames.connection, frames.direction]
    most = np.minimum(state.receive_maximum, limits.max_outstanding)[frames.connection, frames.direction]
    most[alone] = limits.max_outstanding
    is_publish = frames.octets[frames.start] >> 4 == PUBLISH
    places = np.append(np.flatnonzero(is_publish & (kind != 0) & (at_most > most)), len(frames))
    ends = _between(np.minimum(ends, places[np.searchsorted(places, frames.begins)]), turned, len(frames))
    return Apart(alone, ends, counts, turned.which(turned.last < ends[frames.connection[turned.last]]))


def _between(ends: Ints, turned: Turned, packets: int) -> Ints:
    """The last places up to each of these that lie within no message which is told in another order."""
    change = np.zeros(packets + 2, np.int64)
    change[turned.first + 1] += 1
    change[turned.last + 1] -= 1
    places = np.arange(packets + 1)
    found: Ints = np.maximum.accumulate(np.where(np.cumsum(change)[:-1] == 0, places, 0))[ends]
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
                found.asks.append((number, identifier))
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


def _keyed(frames: Frames, odd: _Odd) -> Keyed:
    """The odd packets of messages."""
    at, publisher, identifier = np.array(odd.of_messages, np.int64).reshape(-1, 3).T
    return Keyed(at, keys_of(frames.connection[at], publisher, identifier))


def _asked(odd: _Odd, before: Before) -> Ints:
    """The keys of SUBSCRIBE, UNSUBSCRIBE and their answers, here and of those that wait."""
    waiting = chain.from_iterable(((number, one) for one in asked) for number, asked in enumerate(before.asked))
    connection, identifier = np.array([*odd.asks, *waiting], np.int64).reshape(-1, 2).T
    return keys_of(connection, np.full(len(connection), CLIENT_TO_SERVER), identifier)


def _released(before: Before) -> Ints:
    """The keys of what waits for PUBREL or PUBCOMP without being in flight."""
    waiting = [(number, *one) for number, held in enumerate(before.released) for one in held]
    return keys_of(*np.array(waiting, np.int64).reshape(-1, 3).T)


def _keys_in_doubt(doubtful: Keyed, connections: int) -> Ints:
    """So many messages, of each connection and side, may be in flight beside those that are read together."""
    sides = np.bincount(side_of(np.unique(doubtful.key)), minlength=2 * connections)
    found: Ints = sides.reshape(-1, 2)
    return found
