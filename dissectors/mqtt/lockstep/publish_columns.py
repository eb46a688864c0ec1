"""Messages that are over: of QoS 0 at once, of QoS 1 and 2 with their last acknowledgement.

In: PUBLISH packets and the steps of handshakes. Out: `Landed`, in the order in which the decoder would tell them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.mqtt.handshake import Flight
from wirewitness.dissectors.mqtt.lockstep.handshakes import Handshakes
from wirewitness.dissectors.mqtt.lockstep.packets import PUBLISH_0, Packets


class Landed(NamedTuple):
    """Messages. due: the packet at which each is told: the last one that is read of it. answer: what ended it, -1 for
    none. publish: -1 where it was in flight before, then `known` has it by the place of the row. handshake: its number
    among the handshakes, -1 at QoS 0. direction to ts_ns: of the PUBLISH.
    """

    due: Ints
    answer: Ints
    publish: Ints
    known: dict[int, Flight]
    handshake: Ints
    connection: Ints
    direction: Ints
    offset: Ints
    length: Ints
    packet: Ints
    ts_ns: Ints

    def __len__(self) -> int:
        return len(self.due)

    @property
    def ended_by(self) -> Ints:
        """The acknowledgement that ended each, or its PUBLISH where none did."""
        return np.where(self.answer < 0, self.publish, self.answer)

    @property
    def answered(self) -> Flags:
        """Which ones an acknowledgement ended."""
        return self.answer >= 0

    def with_known(self, column: Ints, value: Callable[[Flight], Any]) -> Ints:
        """The column with the values of messages that were in flight before."""
        for row, flight in self.known.items():
            column[row] = value(flight)
        return column


def landed(frames: Frames, packets: Packets, taken: Flags, found: Handshakes) -> Landed:
    """What is over by the packets that are taken."""
    at_once = np.flatnonzero(taken & (packets.kind == PUBLISH_0))
    done = np.flatnonzero(found.last >= 0)
    none = np.full(len(at_once), -1)
    publish = np.concatenate((at_once, found.publish[done]))
    answer = np.concatenate((none, found.last[done]))
    handshake = np.concatenate((none, done))
    released = np.concatenate((none, found.pubrel[done]))
    due = np.maximum.reduce((publish, answer, released))
    order = np.argsort(due)
    publish, answer, handshake, due = publish[order], answer[order], handshake[order], due[order]
    known: dict[int, Flight] = {}
    for row in np.flatnonzero(publish < 0).tolist():
        flight = found.known[int(handshake[row])]
        assert flight is not None
        known[row] = flight
    made = Landed(
        due,
        answer,
        publish,
        known,
        handshake,
        frames.connection[due],
        np.where(answer < 0, frames.direction[publish], 1 - frames.direction[answer]),
        frames.offset[publish],
        frames.size[publish],
        frames.packet_last[publish],
        frames.ts_ns[publish],
    )
    made.with_known(made.offset, lambda flight: flight.offset)
    made.with_known(made.length, lambda flight: flight.length)
    made.with_known(made.packet, lambda flight: flight.packet)
    made.with_known(made.ts_ns, lambda flight: flight.ts_ns)
    return made
