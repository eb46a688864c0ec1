"""Answers that were read before what they answer, see `dissectors/core/unmatched_responses.py`.

Identifiers of MQTT are used again at once and by both sides, so several answers may wait under one key, and a request
takes those that were sent after it. In: answers without a request. Out: those of a request that is read later.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.core.budget import FRAME_BYTES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.unmatched_responses import own_bytes
from wirewitness.dissectors.mqtt.handshake import Flight
from wirewitness.dissectors.mqtt.walk import Walked

# Messages of QoS 2 whose PUBCOMP was read before their PUBREL, which a gap may hold back.
#
# In: messages that are complete but for PUBREL. Out: the same when PUBREL was read, or when nobody waits for it any
# more: their identifier is used again, too many wait, or the connection ends. The row of one whose PUBREL is lost
# comes late.


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


# Who asked (0: the client), type of the answer, packet identifier (0 where there is none).
Key = tuple[int, int, int]
_NEVER_NS = -(1 << 63)


class EarlyAnswer(NamedTuple):
    """An answer as it was read; found: None for the shortest acknowledgement."""

    key: Key
    frame: Frame
    found: Walked | None
    error: str | None


class Early:
    """The answers that wait. Falsy while there are none.

    latest_ns: nothing that was sent after this is answered by any of them.
    """

    __slots__ = ("_bytes", "_held", "_limits", "latest_ns")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: list[EarlyAnswer] = []
        self._bytes = 0
        self.latest_ns = _NEVER_NS

    def __len__(self) -> int:
        return len(self._held)

    @property
    def held_bytes(self) -> int:
        """Memory of what waits, roughly."""
        return self._bytes + 2 * FRAME_BYTES * len(self._held)

    def hold(self, key: Key, frame: Frame, found: Walked | None, error: str | None) -> list[EarlyAnswer]:
        """Keep an answer. Gives the oldest ones when there are too many: they answer nothing that was captured."""
        self._held.append(EarlyAnswer(key, own_bytes(frame), found, error))
        self.latest_ns = max(self.latest_ns, frame.ts_ns)
        self._bytes += frame.size
        gone: list[EarlyAnswer] = []
        while len(self._held) > self._limits.max_early or self._bytes > self._limits.max_early_bytes:
            gone.append(self._held.pop(0))
            self._bytes -= gone[-1].frame.size
        if gone:
            self._look_again()
        return gone

    def take(self, asker: int, types: frozenset[int], identifier: int, ts_ns: int, most: int = 3) -> list[EarlyAnswer]:
        """At most so many answers of these types to what was sent at this time."""
        mine = [
            one
            for one in self._held
            if one.key[0] == asker and one.key[1] in types and one.key[2] == identifier and one.frame.ts_ns >= ts_ns
        ][:most]
        if mine:
            self._held = [one for one in self._held if one not in mine]
            self._bytes -= sum(one.frame.size for one in mine)
            self._look_again()
        return mine

    def _look_again(self) -> None:
        self.latest_ns = max((one.frame.ts_ns for one in self._held), default=_NEVER_NS)

    def rest(self) -> list[EarlyAnswer]:
        """All that is left."""
        held, self._held, self._bytes = self._held, [], 0
        self.latest_ns = _NEVER_NS
        return held

    def waiting(self) -> list[tuple[int, int]]:
        """Of each that waits: who asked, packet identifier."""
        return [(one.key[0], one.key[2]) for one in self._held]
