"""What was published while a client was away, and what became of it when it came back.

In: publishes at one server, in the order of time; clients that leave and come back. Out: what a session that went on
still owes its client, rows of deliveries that never came, rows of `mqtt_offline_periods`. The last 50,000 publishes are
known, and 20,000 are looked through at each return: beyond, counts are at least so many. Of QoS 0 those are known that
somebody who is away subscribed to with QoS 1 or 2.

A session keeps messages of QoS 1 and 2 for subscriptions of QoS 1 and 2, and may keep those of QoS 0 (MQTT 3.1.1 and
5.0, section 4.1); it deletes what is over its message expiry interval before it is sent on (5.0, [MQTT-3.3.2-5]). What
it need not send counts as sent where it was sent all the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from wirewitness.analyser.mqtt.facts.memory import MESSAGE_BYTES, filter_bytes, waiting_bytes
from wirewitness.analyser.mqtt.facts.messages import Absence, Delivery, Message, Told
from wirewitness.analyser.mqtt.facts.pending_publishes import Kept, Waiting, Waits
from wirewitness.analyser.mqtt.facts.sessions import Away, Subscription
from wirewitness.analyser.mqtt.facts.topics import FilterTrie

MAX_RECENT = 50_000
MAX_LOOKED_AT = 20_000
MOST_TOPICS = 20
_REMEMBERED_TOPICS = 1000
STEPS_OF_A_RETURNED = 10  # of work, for each message that somebody missed
# A server sends what it kept at once. That it did not is known after so long, or when the client left again after the
# other time.
_SEEN_NS, _SEEN_BY_LEAVER_NS = 1_000_000_000, 250_000_000
# A message that has expired for so long does not come: servers count its time from when they got it.
_EXPIRED_NS = 1_000_000_000

Queued = list[tuple[Message, str]]


class _Published(Protocol):
    @property
    def ts_ns(self) -> int: ...

    @property
    def topic(self) -> str: ...


One = TypeVar("One", bound=_Published)
Found = TypeVar("Found")


class Recent(Generic[One]):
    """The last publishes that somebody may come back and ask for."""

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
        self, since_ns: int, found_for: Callable[[str], Found | None], most: int = MAX_LOOKED_AT
    ) -> tuple[list[tuple[One, Found]], bool]:
        """Messages since then, of the first `most`, with what `found_for` has for their topic.

        And whether that is all of them.
        """
        most = min(most, MAX_LOOKED_AT)
        first = bisect_left(self._held, since_ns, key=lambda message: message.ts_ns)
        looked = self._held[first : first + most]
        known = {topic: found_for(topic) for topic in {message.topic for message in looked}}
        found = [(message, one) for message in looked if (one := known[message.topic]) is not None]
        return found, (self._all or first > 0) and first + most >= len(self._held)


class _Owed(NamedTuple):
    """A message that a client missed. status: what became of it unless it is sent after all."""

    message: Message
    topic_filter: str
    status: str


@dataclass(slots=True)
class _Back:
    """A client that came back. kept: messages that its session had to keep, unless it was lost. owed: see `_Owed`, by
    content where the server sent such a one; others never came."""

    away: Away
    client: str
    session_present: bool
    back_ns: int
    complete: bool
    kept: list[Message] = field(default_factory=list)
    owed: dict[int, deque[_Owed]] = field(default_factory=dict)
    never: list[_Owed] = field(default_factory=list)
    held_bytes: int = 0


class Returns:
    """Clients that are away, and those that came back until they leave again. hold: told how many more bytes are held.

    queued: what a client had not got when it left.
    """

    def __init__(self, told: Told, waits: Waits, hold: Callable[[int], None]) -> None:
        self._told, self._waits, self._hold = told, waits, hold
        self._recent: Recent[Message] = Recent()
        self._away: FilterTrie[str] = FilterTrie()
        self._asks: dict[str, list[str]] = {}
        self._is_asked_for: dict[str, bool] = {}
        self._backs: dict[int, _Back] = {}
        self._queued: dict[str, tuple[int, list[Kept]]] = {}

    def published(self, message: Message) -> None:
        """Somebody may come back and ask for it."""
        if message.qos or self.asked_for(message.topic):
            self._hold(self._recent.add(message))

    def asked_for(self, topic: str) -> bool:
        """Does a client that is away subscribe to it with QoS 1 or 2?"""
        found = self._is_asked_for.get(topic)
        if found is None:
            if len(self._is_asked_for) >= _REMEMBERED_TOPICS:
                self._is_asked_for.clear()
            found = self._is_asked_for[topic] = next(self._away.match(topic), None) is not None
        return found

    def left(self, flow: int, client: str, away: Iterable[Subscription], queued: list[Kept], now_ns: int) -> None:
        """A client left. queued: what waited for it and its session may keep."""
        self.ended(flow, now_ns)
        self._ask_no_more(client)
        filters = [one.topic_filter for one in away if one.qos and one.share_name is None]
        if filters:
            self._asks[client] = [one for one in filters if self._away.add(one, client)]
            self._hold(sum(map(filter_bytes, self._asks[client])))
        if queued:
            self._hold(sum(waiting_bytes(one.message.topic, ()) for one in queued))
            self._queued[client] = flow, [*self._queued.pop(client, (flow, []))[1], *queued]

    def ended(self, flow: int, now_ns: int, *, at_end: bool = False) -> None:
        """Nothing more comes on this connection, or in this capture."""
        back = self._backs.pop(flow, None)
        if back is None:
            return
        self._hold(-back.held_bytes)
        seen_ns = now_ns - back.back_ns
        is_seen = seen_ns >= (_SEEN_NS if at_end else _SEEN_BY_LEAVER_NS)
        missed: list[_Owed] = []
        for owed in sorted((one for each in (back.never, *back.owed.values()) for one in each), key=_in_order):
            known = is_seen or _is_certain(owed, back.back_ns)
            missed += [owed] if known else []
            waiting = Waiting(owed.message, 0, {}, 0, max(owed.message.ts_ns, back.away.since_ns))
            side = back.away.flow if owed.status == "lost" else flow
            self._waits.missing(waiting, side, owed.topic_filter, back.back_ns, owed.status if known else "unknown")
        self._tell(back, flow, missed)

    def came_back(
        self, away: Away, flow: int, client: str, session_present: bool, now_ns: int, most: int
    ) -> tuple[Queued, int]:
        """What its session owes it, and the steps of work that it took; `most` messages are looked at."""
        self._ask_no_more(client)
        queued = self._taken(client, session_present, most)
        filters: FilterTrie[int] = FilterTrie()
        wanted = [one for one in away.subscriptions.values() if one.share_name is None]
        for number, subscription in enumerate(wanted):
            filters.add(subscription.topic_filter, number)

        def best(topic: str) -> Subscription | None:
            return max((wanted[number] for _, number in filters.match(topic)), key=lambda one: one.qos, default=None)

        found, complete = self._recent.matching(away.since_ns, best, most - len(queued))
        back = _Back(away, client, session_present, now_ns, complete)
        own = {away.flow, flow}
        for message, subscription in found:
            if message.flow not in own and not self._is_lost(back, message, subscription):
                queued.append((message, subscription.topic_filter))
        if back.kept or back.owed or back.never:
            self._backs[flow] = back
            self._hold(back.held_bytes)
        return queued, STEPS_OF_A_RETURNED * (len(queued) + len(found)) + filters.visited

    def sent(self, flow: int, message: Message, *, as_retained: bool) -> bool:
        """The server sent this to a client that came back: was it one of those that it missed? Of what it got as
        retained the newest counts."""
        back = self._backs.get(flow)
        owed = None if back is None or message.content is None else back.owed.get(message.content)
        if not owed or (as_retained and not owed[-1].message.retain):
            return False
        one = owed.pop() if as_retained else owed.popleft()
        waited_ns = message.ts_ns - one.message.ts_ns
        self._told.rows.append(
            Delivery(
                one.message.row, flow, None, one.topic_filter, "delivered", message.row, message.ts_ns, waited_ns, None,
                None,
            )
        )  # fmt: skip
        return True

    def let_go(self, now_ns: int, *, at_end: bool) -> None:
        """Nothing is known of what comes later."""
        for flow in [*self._backs]:
            self.ended(flow, now_ns, at_end=True)
        for client in [*self._queued]:
            self._taken(client, False, 0)
        if not at_end:
            self._recent.forget()
            for client in [*self._asks]:
                self._ask_no_more(client)

    def _ask_no_more(self, client: str) -> None:
        for topic_filter in (filters := self._asks.pop(client, [])):
            self._away.remove(topic_filter, client)
        self._hold(-sum(map(filter_bytes, filters)))
        self._is_asked_for.clear()

    def _taken(self, client: str, session_present: bool, most: int) -> Queued:
        """What waited for a client when it left: it is owed, or its session did not go on."""
        flow, kept = self._queued.pop(client, (0, []))
        self._hold(-sum(waiting_bytes(one.message.topic, ()) for one in kept))
        owed = kept[:most] if session_present else []
        for one in kept[len(owed) :]:
            sent = one.message
            waiting = Waiting(sent, 0, {}, 0, sent.ts_ns)
            status = "unknown" if session_present else "left"
            self._waits.missing(waiting, flow, one.topic_filter, sent.ts_ns + one.waited_ns, status)
        return [(one.message, one.topic_filter) for one in owed]

    def _is_lost(self, back: _Back, message: Message, subscription: Subscription) -> bool:
        """Note what its session need not send; of other messages False, and what is nobody's business is True."""
        status = "not_kept"
        if message.qos and subscription.qos:
            back.kept.append(message)
            over = message.expiry_ns is not None and back.back_ns - message.ts_ns > message.expiry_ns
            if back.session_present and not over:
                return False
            status = "expired" if back.session_present else "lost"
        elif not back.session_present or not (message.qos or subscription.qos):
            return True
        owed = _Owed(message, subscription.topic_filter, status)
        back.held_bytes += waiting_bytes(message.topic, ())
        if message.content is None:
            back.never.append(owed)
        else:
            back.owed.setdefault(message.content, deque()).append(owed)
        return True

    def _tell(self, back: _Back, flow: int, missed: list[_Owed]) -> None:
        by_status = {name: [one for one in missed if one.status == name] for name in ("lost", "expired", "not_kept")}
        told = [one.message for one in missed] or back.kept
        if not told:
            return
        came = 0 if back.session_present else len(back.kept) - len(by_status["lost"])
        by_publish = sum(not one.message.qos for one in by_status["not_kept"])
        self._told.absences.append(
            Absence(
                flow=back.away.flow,
                next_flow=flow,
                client_id=back.client,
                ts=back.away.since_ns,
                ts_back=back.back_ns,
                session_present=back.session_present,
                messages=len(back.kept) - came,
                expired=len(by_status["expired"]),
                qos_0_subscription=len(by_status["not_kept"]) - by_publish,
                qos_0_publish=by_publish,
                complete=back.complete,
                first_message=told[0].row,
                last_message=told[-1].row,
                topics=tuple(dict.fromkeys(message.topic for message in told))[:MOST_TOPICS],
            )
        )


def _is_certain(owed: _Owed, back_ns: int) -> bool:
    """Whether it cannot come any more, however soon the capture ends."""
    sent = owed.message
    if owed.status == "expired":  # no server sends it then [MQTT-3.3.2-5]
        return back_ns - sent.ts_ns > (sent.expiry_ns or 0) + _EXPIRED_NS
    return owed.status == "lost" and not sent.retain


def _in_order(owed: _Owed) -> tuple[int, int]:
    return owed.message.ts_ns, owed.message.row
