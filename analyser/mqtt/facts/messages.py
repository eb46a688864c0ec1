"""What goes into the search for deliveries and what comes out (`mqtt_deliveries.py`): a message, a delivery, counts.

Messages are told by the numbers of their rows in `mqtt_publishes`, flows by numbers of `events.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


class Delivery(NamedTuple):
    """A publish and one subscriber that got it or should have.

    message: the publish. subscriber: its flow; null for a group of a shared subscription that nobody of got it.
    share_name, topic_filter: the subscription, null where the capture does not hold it.
    status: delivered; missing (waited for until WINDOW_NS or the capture's end); left (the subscriber left before);
    lost, expired, not_kept (see `Absence`); unknown (too many messages wait, or the capture ends too early).
    got, got_ns: what the server sent. waited_ns: from the publish to its delivery, or as long as it was waited for:
    from the return of a client that had been away. near_port, far_port: server ports of the publish and of the delivery
    where they differ. members: flows of the group of a shared subscription that nobody of got it.
    """

    message: int
    subscriber: int | None
    share_name: str | None
    topic_filter: str | None
    status: str
    got: int | None
    got_ns: int | None
    waited_ns: int
    near_port: int | None
    far_port: int | None
    members: tuple[int, ...] | None = None


class Message(NamedTuple):
    """A PUBLISH of either direction. expiry_ns: message expiry interval.

    content: two that have the same carry the same; of a client's, None where the server sent no such one to anybody.
    """

    row: int
    flow: int
    port: int
    ts_ns: int
    topic: str
    content: int | None
    retain: bool
    dup: bool
    qos: int = 0
    expiry_ns: int | None = None


class Counts(NamedTuple):
    """Of one publish: subscribers that had to get it, and those that the server sent it to."""

    message: int
    expected: int
    delivered: int


class Copy(NamedTuple):
    """A publish that the server sent once more to a subscriber, two of whose filters match it."""

    message: int
    subscriber: int


class SessionSpan(NamedTuple):
    """A row of mqtt_sessions. flow, last_flow: its first and last connection; times: Unix ns."""

    flow: int
    last_flow: int
    from_ns: int
    until_ns: int | None
    left_ns: int | None
    started_by: str | None
    ended_by: str | None
    connections: int
    resumed: int


class ActiveSubscription(NamedTuple):
    """A row of mqtt_active_subscriptions. subscription: its number. session: first connection of its session."""

    subscription: int
    session: int | None
    until_ns: int | None
    ended_by: str | None


class Absence(NamedTuple):
    """A client that came back, and what was published for its subscriptions meanwhile.

    flow, next_flow: its connections before and after. ts, ts_back: Unix ns. messages: of QoS 1 and 2 for subscriptions
    of QoS 1 and 2; session_present false: lost, but for retained ones that came as such. expired: of them, those whose
    message expiry interval was over by then, and that did not come either. qos_0_subscription: of QoS 1 and 2 for a
    subscription of QoS 0, qos_0_publish: the other way round; a session need not keep them, and they did not come.
    complete: all of that time was looked through. first_message, last_message: rows of what did not come, or of all.
    """

    flow: int
    next_flow: int
    client_id: str
    ts: int
    ts_back: int
    session_present: bool
    messages: int
    expired: int
    qos_0_subscription: int
    qos_0_publish: int
    complete: bool
    first_message: int
    last_message: int
    topics: tuple[str, ...]


@dataclass(slots=True)
class Told:
    """What came out so far, until somebody takes it. unheard: publishes that nobody had to get and nobody got."""

    rows: list[Delivery] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    unheard: list[Integers] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    sessions: list[SessionSpan] = field(default_factory=list)
    subscriptions: list[ActiveSubscription] = field(default_factory=list)

    def __len__(self) -> int:
        some = len(self.rows) + len(self.counts) + len(self.copies)
        return some + len(self.sessions) + len(self.subscriptions) + sum(map(len, self.unheard))

    def clear(self) -> None:
        """It was taken."""
        some = (self.rows, self.counts, self.unheard, self.absences, self.copies, self.sessions, self.subscriptions)
        for held in some:
            held.clear()
