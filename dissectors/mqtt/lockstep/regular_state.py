"""Which packets of many connections are in the ordinary course, and which are those of which a decoder says more.

In: frames, and what is known of their connections. Out: what the packets say, the steps of handshakes, which packets
are odd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.mqtt.lockstep.handshakes import Events, Open, events, in_flight, of_senders
from wirewitness.dissectors.mqtt.lockstep.packets import ODD, PINGREQ, PUBLISH_1, PUBLISH_2, Packets, packets
from wirewitness.dissectors.mqtt.lockstep.pings import waiting
from wirewitness.dissectors.mqtt.subscriptions import Asked


class State(NamedTuple):
    """What is known of connections before their frames, by the number of each.

    five: is its level 5.0? packet_limit, receive_maximum: of client and server, see `Connection`. flights: messages in
    flight. pings: those that wait. has_early: was an answer read whose request may come later?
    """

    five: Flags
    packet_limit: Ints
    receive_maximum: Ints
    flights: Sequence[Open]
    pings: Sequence[Sequence[Asked]]
    has_early: Flags


class Course(NamedTuple):
    """packets: what each frame is. steps: of the handshakes. counts: see `handshakes.in_flight`.

    odd: packets of which the decoder has to say more: what they are, or because too much waits.
    """

    packets: Packets
    steps: Events
    counts: Ints
    odd: Flags

    def in_flight(self, frames: Frames) -> Ints:
        """At each packet how many messages of its sender are in flight, itself included."""
        return of_senders(self.counts, frames)


def course(frames: Frames, state: State, limits: Limits) -> Course:
    """What these frames are."""
    found = packets(frames, state.five, state.packet_limit)
    steps, out_of_turn = events(frames, found, state.flights, state.five)
    counts = in_flight(frames, found.kind, state.flights)
    of_sender = of_senders(counts, frames)
    kind = found.kind
    odd: Flags = kind == ODD
    odd[out_of_turn] = True
    most = np.minimum(state.receive_maximum, limits.max_outstanding)[frames.connection, frames.direction]
    odd |= ((kind == PUBLISH_1) | (kind == PUBLISH_2)) & (of_sender > most)
    pings = (kind >= PINGREQ) & (kind < ODD)
    if pings.any():
        waits = waiting(frames, kind, state.pings)
        odd |= pings & ((waits < 0) | (waits > limits.max_unheard) | state.has_early[frames.connection])
    return Course(found, steps, counts, odd)
