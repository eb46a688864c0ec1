"""Answers that were read before what they answer.

Bytes behind a gap are readable only when the gap is given up, and several receive queues put packets out of order; so
an answer may come first. In: answers without a request. Out: those that a request, read later, was sent before.
"""

from __future__ import annotations

from typing import NamedTuple

from dissectors.core.model import Frame
from dissectors.mqtt.walk import Walked

MAX_EARLY = 64

# Who asked (0: the client), type of the answer, packet identifier (0 where there is none).
Key = tuple[int, int, int]


class EarlyAnswer(NamedTuple):
    """An answer as it was read; found: None for the shortest acknowledgement."""

    key: Key
    frame: Frame
    found: Walked | None
    error: str | None


class Early:
    """The answers that wait. Falsy while there are none."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[EarlyAnswer] = []

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, key: Key, frame: Frame, found: Walked | None, error: str | None) -> EarlyAnswer | None:
        """Keep an answer; the oldest one when there are too many, which answers nothing that was captured."""
        order, direction, data, start, end, *rest = frame
        copy: Frame = (order, direction, data[start:end], 0, end - start, *rest)  # type: ignore[assignment]
        self._held.append(EarlyAnswer(key, copy, found, error))
        return self._held.pop(0) if len(self._held) > MAX_EARLY else None

    def take(self, asker: int, types: frozenset[int], identifier: int, ts_ns: int, most: int = 3) -> list[EarlyAnswer]:
        """At most so many answers of these types to what was sent at this time."""
        mine = [
            one
            for one in self._held
            if one.key[0] == asker and one.key[1] in types and one.key[2] == identifier and one.frame[8] >= ts_ns
        ][:most]
        if mine:
            self._held = [one for one in self._held if one not in mine]
        return mine

    def rest(self) -> list[EarlyAnswer]:
        """All that is left."""
        held, self._held = self._held, []
        return held
