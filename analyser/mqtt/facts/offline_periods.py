"""What was published while a client was away.

In: publishes of QoS 1 and 2 at one server, in the order of time. Out: those since a client left, by its filters, and
rows of `mqtt_offline_periods`. The last 50,000 are known, and 20,000 are looked through at each return: beyond, counts
are at least so many.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from wirewitness.analyser.mqtt.facts.memory import MESSAGE_BYTES

MAX_RECENT = 50_000
MAX_LOOKED_AT = 20_000
MOST_TOPICS = 20


class Absence(NamedTuple):
    """A client that came back and for whose subscriptions messages of QoS 1 and 2 were published meanwhile.

    flow, next_flow: its connections before and after. ts, ts_back: Unix ns. messages: published for it meanwhile;
    session_present false: lost. expired: of them, those whose message expiry interval was over when it came.
    complete: all of that time was looked through. first_message, last_message: rows.
    """

    flow: int
    next_flow: int
    client_id: str
    ts: int
    ts_back: int
    session_present: bool
    messages: int
    expired: int
    complete: bool
    first_message: int
    last_message: int
    topics: tuple[str, ...]


class _Published(Protocol):
    @property
    def ts_ns(self) -> int: ...

    @property
    def topic(self) -> str: ...


One = TypeVar("One", bound=_Published)


class Recent(Generic[One]):
    """The last publishes of QoS 1 and 2."""

    def __init__(self, most: int = MAX_RECENT) -> None:
        self._held: list[One] = []
        self._most = most
        self._all = True

    def add(self, message: One) -> int:
        """Remember it; the oldest are forgotten. How much more memory that takes."""
        self._held.append(message)
        more_bytes = MESSAGE_BYTES + len(message.topic)
        if len(self._held) >= 2 * self._most:
            more_bytes -= sum(MESSAGE_BYTES + len(one.topic) for one in self._held[: self._most])
            del self._held[: self._most]
            self._all = False
        return more_bytes

    def forget(self) -> None:
        """Nothing is known any more."""
        self._all &= not self._held
        self._held = []

    def matching(
        self, since_ns: int, filter_of: Callable[[str], str | None], most: int = MAX_LOOKED_AT
    ) -> tuple[list[tuple[One, str]], bool]:
        """Messages since then, of the first `most`, with the filter that `filter_of` has for their topic.

        And whether that is all of them.
        """
        most = min(most, MAX_LOOKED_AT)
        first = bisect_left(self._held, since_ns, key=lambda message: message.ts_ns)
        looked = self._held[first : first + most]
        filters = {topic: filter_of(topic) for topic in {message.topic for message in looked}}
        found = [(message, name) for message in looked if (name := filters[message.topic]) is not None]
        return found, (self._all or first > 0) and first + most >= len(self._held)
