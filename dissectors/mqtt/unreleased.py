"""Messages of QoS 2 whose PUBCOMP was read before their PUBREL, which a hole may hold back.

In: messages that are complete but for PUBREL. Out: the same when PUBREL was read, or when nobody waits for it any more:
their identifier is used again, too many wait, or the connection ends. The row of one whose PUBREL is lost comes late.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.unmatched_responses import own_bytes
from wirewitness.dissectors.mqtt.handshake import Flight


class Completed(NamedTuple):
    """A message and what ended it."""

    flight: Flight
    pubcomp: Frame


class Unreleased:
    """of: the messages by packet identifier, the client's and the server's; as many as may be in flight. Picklable."""

    __slots__ = ("_most", "of")

    def __init__(self, limits: Limits) -> None:
        self._most = limits.max_outstanding
        self.of: tuple[dict[int, Completed], dict[int, Completed]] = ({}, {})

    def hold(self, publisher: int, identifier: int, flight: Flight, pubcomp: Frame) -> list[tuple[int, Completed]]:
        """Keep a message whose identifier no other one here has. Gives the oldest ones for which there is no room."""
        mine = self.of[publisher]
        mine[identifier] = Completed(flight, own_bytes(pubcomp))
        gone: list[tuple[int, Completed]] = []
        while len(mine) > self._most:
            oldest = next(iter(mine))
            gone.append((oldest, mine.pop(oldest)))
        return gone

    def take(self, publisher: int, identifier: int) -> Completed | None:
        """The message with this identifier, which waits no longer."""
        return self.of[publisher].pop(identifier, None)

    def rest(self) -> list[tuple[int, int, Completed]]:
        """All that is left: publisher, identifier, message."""
        left = [(side, identifier, one) for side in (0, 1) for identifier, one in self.of[side].items()]
        for mine in self.of:
            mine.clear()
        return left
