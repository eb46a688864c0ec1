"""What the conversation of one connection reads by itself, between what was read together.

In: the packets that are read alone, and where bytes are missing. Out: stretches of them. How many messages are in
flight is told by both, so it is counted on here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.mqtt.gaps import Loss
from wirewitness.dissectors.mqtt.output import Output


class Reads(Protocol):
    """What a conversation does by itself."""

    def stretch(self, frames: Sequence[Frame], beside: tuple[int, int], out: Output) -> None:
        """Decode frames; so many more messages of client and server are in flight than it knows of."""

    def miss(self, direction: int, out: Output) -> None:
        """Bytes of this direction are missing here."""


class Alone(NamedTuple):
    """Frames, by their numbers in the connection, in front of which bytes of directions are missing. beside: messages
    of client and server in flight there that are read together, more than there were before all frames."""

    first: int
    until: int
    missing: Sequence[int]
    beside: tuple[int, int]


def stretches(alone: Flags, losses: Sequence[Loss]) -> list[tuple[int, int, list[int]]]:
    """First frame, end, and the directions that miss bytes in front of the first one, in order. alone: of the frames of
    one connection that are read together or alone."""
    missing: dict[int, list[int]] = {}
    for at, direction in losses:
        if at < len(alone):
            missing.setdefault(at, []).append(direction)
    cut = np.zeros(len(alone) + 1, bool)
    cut[[0, *missing, len(alone)]] = True
    before, behind = np.append(False, alone[:-1]), np.append(alone[1:], False)
    firsts = np.flatnonzero(alone & (~before | cut[:-1])).tolist()
    untils = (np.flatnonzero(alone & (~behind | cut[1:])) + 1).tolist()
    nothing = [(at, at) for at in missing if not alone[at]]
    return [(*span, missing.get(span[0], [])) for span in sorted([*zip(firsts, untils, strict=True), *nothing])]


class InFlight(NamedTuple):
    """How many messages are in flight, of all connections.

    counts: at each packet those of its sender, itself included. direction: of each packet. own: PUBLISH packets of QoS
    1 and 2 that are read together.
    """

    counts: Ints
    direction: Ints
    own: Flags

    def more(self, first: int, until: int, by: Sequence[int]) -> None:
        """At these packets so many more of client and server are."""
        self.counts[first:until] += np.where(self.direction[first:until], by[1], by[0])

    def most(self, first: int, until: int) -> list[int]:
        """The most of client and server at these packets."""
        own, direction = self.own[first:until], self.direction[first:until]
        return [int(self.counts[first:until][own & (direction == side)].max(initial=0)) for side in (0, 1)]
