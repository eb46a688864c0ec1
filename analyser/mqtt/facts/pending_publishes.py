"""Publishes that wait for those who must get them.

In: publishes with their subscribers, what the server sent. Out: rows of deliveries, of those that did not come, counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wirewitness.analyser.mqtt.facts.filters import Filters
from wirewitness.analyser.mqtt.facts.memory import waiting_bytes
from wirewitness.analyser.mqtt.facts.messages import Copy, Counts, Delivery, Integers, Message, Told
from wirewitness.analyser.mqtt.facts.sessions import OpenFlow

# Who is waited for: a flow, or the group of a shared subscription.
Target = int | tuple[str, str]


@dataclass(slots=True)
class Waiting:
    """A publish, those who have not got it yet with the filter that matched, and what was counted.

    since_ns: later than the publish where it waited for a client that came back; such a one is not counted again.
    held_bytes: memory, roughly.
    """

    message: Message
    number: int
    targets: dict[Target, str]
    expected: int
    since_ns: int
    again: bool = False
    delivered: int = 0
    held_bytes: int = 0


@dataclass(slots=True)
class Same:
    """Publishes of the same content, by number, and how far each subscriber's flow has come.

    last: the publish that a flow with overlapping filters got last.
    """

    first: int = 0
    after: int = 0
    publishes: dict[int, Waiting] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)


class Kept(NamedTuple):
    """What a client had not got when it left, and how long it had waited for it."""

    message: Message
    topic_filter: str
    waited_ns: int


class Waits:
    """All that waits at one server.

    flows: its open connections. hold: told how many more bytes are held. A message is let go after window_ns, the
    oldest where more than max_waiting wait.
    """

    def __init__(
        self,
        told: Told,
        filters: Filters,
        flows: Mapping[int, OpenFlow],
        hold: Callable[[int], None],
        window_ns: int,
        max_waiting: int,
    ) -> None:
        self._told = told
        self._filters = filters
        self._flows = flows
        self._hold = hold
        self._window_ns = window_ns
        self._max_waiting = max_waiting
        self._same: dict[int, Same] = {}
        self._order: deque[Waiting] = deque()
        self._of_target: dict[Target, dict[int, Waiting]] = {}
        self.joined_ports: set[tuple[int, int]] = set()

    @property
    def is_empty(self) -> bool:
        """Nothing is held of what waited."""
        return not (self._order or self._same or self._of_target)

    def same(self, content: int | None) -> Same | None:
        """Publishes of this content that somebody may still get."""
        return None if content is None else self._same.get(content)

    def add(self, waiting: Waiting) -> int:
        """Wait for those who must get it. How much more memory that takes."""
        waiting.held_bytes = waiting_bytes(waiting.message.topic, waiting.targets)
        for target in waiting.targets:
            self._of_target.setdefault(target, {})[waiting.number] = waiting
        self._order.append(waiting)
        content = waiting.message.content
        if content is not None:  # somebody gets it
            same = self._same.get(content)
            if same is None:
                same = self._same[content] = Same()
            same.publishes[same.after] = waiting
            same.after += 1
        return waiting.held_bytes

    def sent(self, same: Same, message: Message, targets: list[Target]) -> bool:
        """The server sent a message of this content to a client. targets: by its subscriptions that match.

        False where nobody waited for it.
        """
        if targets:
            found = self._earliest(same, message.flow, targets)
        else:  # DUP: maybe an earlier one of that content
            found = None if message.dup else self._newest(same, message.flow)
        overlapping = targets.count(message.flow) > 1
        if found is not None:
            self._reached(found, message, targets)
            if overlapping:
                same.last[message.flow] = found.message.row
            return True
        if overlapping and message.flow in same.last:
            self._told.copies.append(Copy(same.last[message.flow], message.flow))
            return True
        return False

    def give_up(self, target: Target, topic_filter: str, now_ns: int, kept: list[Kept] | None = None) -> None:
        """This one left: nothing more comes to it by that filter, but what goes into `kept`: QoS 1 and 2."""
        held = self._of_target.get(target, {})
        for number, waiting in list(held.items()):
            if waiting.targets[target] == topic_filter:
                del held[number]
                del waiting.targets[target]
                if kept is not None and waiting.message.qos:
                    kept.append(Kept(waiting.message, topic_filter, now_ns - waiting.since_ns))
                else:
                    self.missing(waiting, target, topic_filter, now_ns, "left")
        if not held:
            self._of_target.pop(target, None)

    def missing(self, waiting: Waiting, target: Target, topic_filter: str, now_ns: int, status: str) -> None:
        """A row of one who did not get it."""
        sent = waiting.message
        flow, share_name = (None, target[0]) if isinstance(target, tuple) else (target, None)
        there = None if flow is None else self._flows.get(flow)
        near, far = (None, None) if there is None or there.port == sent.port else (sent.port, there.port)
        members = tuple(self._filters.members.get(target, ())) or None if isinstance(target, tuple) else None
        waited_ns = now_ns - waiting.since_ns
        self._told.rows.append(
            Delivery(sent.row, flow, share_name, topic_filter, status, None, None, waited_ns, near, far, members)
        )

    def forget(self, now_ns: int) -> None:
        """Let go of messages that waited long enough, and of the oldest where too many wait."""
        order = self._order
        while order and order[0].since_ns < now_ns - self._window_ns:
            self._close(order.popleft(), now_ns, "missing")
        while len(order) >= self._max_waiting:
            self._close(order.popleft(), now_ns, "unknown")

    def forget_along(self, times_ns: Integers) -> None:
        """The same at each of these times, which rise."""
        self.forget(int(times_ns[0]))
        last_ns = int(times_ns[-1])
        while self._order and (due_ns := self._order[0].since_ns + self._window_ns) < last_ns:
            self.forget(int(times_ns[np.searchsorted(times_ns, due_ns, "right")]))

    def let_go(self, now_ns: int, status: str) -> None:
        """Nothing is waited for any more. status: of what did not come."""
        while self._order:
            self._close(self._order.popleft(), now_ns, status)

    def _earliest(self, same: Same, flow: int, targets: list[Target]) -> Waiting | None:
        """The oldest publish that still waits for one of these targets."""
        place = max(same.reached.get(flow, 0), same.first)
        while place < same.after:
            waiting = same.publishes[place]
            place += 1
            for target in targets:
                if target in waiting.targets:
                    same.reached[flow] = place
                    return waiting
        same.reached[flow] = same.after
        return None

    def _newest(self, same: Same, flow: int) -> Waiting | None:
        """Nothing is known of the client's subscriptions: the last publish, unless it was delivered already."""
        if same.reached.get(flow, 0) >= same.after:
            return None
        same.reached[flow] = same.after
        return same.publishes[same.after - 1]

    def _reached(self, waiting: Waiting, message: Message, targets: list[Target]) -> None:
        sent = waiting.message
        topic_filter, share_name = None, None
        for target in targets if waiting.targets else ():
            if (matched := waiting.targets.pop(target, None)) is None:
                continue
            topic_filter, share_name = matched, target[0] if isinstance(target, tuple) else None
            self._settled(target, waiting)
        if not waiting.targets:  # a dictionary takes most of what a message takes, as long as it had any
            waiting.targets = {}
        waiting.delivered += 1
        near, far = (None, None) if sent.port == message.port else (sent.port, message.port)
        if near is not None and far is not None:
            self.joined_ports.add((near, far))
        waited_ns = message.ts_ns - sent.ts_ns
        self._told.rows.append(
            Delivery(
                sent.row, message.flow, share_name, topic_filter, "delivered", message.row, message.ts_ns, waited_ns,
                near, far,
            )
        )  # fmt: skip

    def _settled(self, target: Target, waiting: Waiting) -> None:
        held = self._of_target[target]
        held.pop(waiting.number, None)
        if not held:
            del self._of_target[target]

    def _close(self, waiting: Waiting, now_ns: int, status: str) -> None:
        for target, topic_filter in waiting.targets.items():
            self._settled(target, waiting)
            self.missing(waiting, target, topic_filter, now_ns, status)
        self._hold(-waiting.held_bytes)
        if not waiting.again and not self._filters.lacks:
            self._told.counts.append(Counts(waiting.message.row, waiting.expected, waiting.delivered))
        content = waiting.message.content
        if content is None:
            return
        same = self._same[content]
        del same.publishes[same.first]
        same.first += 1
        if not same.publishes:
            del self._same[content]
