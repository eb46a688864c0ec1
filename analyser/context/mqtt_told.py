"""What goes into the search for deliveries and what comes out (`mqtt_deliveries.py`): a message, a delivery, counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from analyser.context.mqtt_absences import Absence


class Delivery(NamedTuple):
    """A publish and one subscriber that got it or should have.

    message_id, flow_id, ts, topic: of the publish. subscriber_flow_id: null for a group of a shared subscription that
    nobody of got it. share_name, topic_filter: the subscription, null where the capture does not hold it.
    status: delivered; missing (waited for until WINDOW_NS or the capture's end); left (the subscriber left before);
    lost, expired (see `Absence`); unknown (too many messages wait). waited_ns: from the publish to its delivery, or as
    long as it was waited for. ports: server ports of the publish and of the delivery where they differ. members: flows
    of the group of a shared subscription that nobody of got it.
    """

    message_id: str
    flow_id: str
    ts: int
    topic: str
    subscriber_flow_id: str | None
    share_name: str | None
    topic_filter: str | None
    status: str
    delivered_message_id: str | None
    ts_delivered: int | None
    waited_ns: int
    ports: tuple[int, int] | None
    members: tuple[str, ...] | None = None


class Message(NamedTuple):
    """A PUBLISH of either direction. Two with the same `content` carry the same. expiry_ns: message expiry interval.

    sent_on: may the server have sent one of this content to anybody?
    """

    message_id: str
    flow: str
    port: int
    ts_ns: int
    topic: str
    content: tuple[str, int | None, int | None]
    retain: bool
    dup: bool
    qos: int = 0
    expiry_ns: int | None = None
    sent_on: bool = True


class Counts(NamedTuple):
    """Of one publish: subscribers that had to get it, and those that the server sent it to."""

    message_id: str
    expected: int
    delivered: int


class Copy(NamedTuple):
    """A publish that the server sent once more to a subscriber, two of whose filters match it."""

    message_id: str
    subscriber_flow_id: str


@dataclass(slots=True)
class Told:
    """What came out so far, until somebody takes it."""

    rows: list[Delivery] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows) + len(self.counts) + len(self.copies)

    def clear(self) -> None:
        """It was taken."""
        for held in (self.rows, self.counts, self.absences, self.copies):
            held.clear()
