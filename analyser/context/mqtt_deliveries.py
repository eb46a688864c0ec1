"""Which published messages reached which subscribers.

In: what happened at the MQTT servers, in the order of time (a method of `Server` for each kind). Out: rows of
`mqtt_deliveries` and `mqtt_absences`, and counts for each publish.

A publish is expected at every subscription that is live when it is sent: granted in the capture, or carried over with
a session that the server says it has, and its connection still open. Of a shared subscription one member is expected.
The server's own PUBLISH is the same message when topic, payload size and payload checksum agree; the earliest one not
delivered yet is taken, since servers keep the order of a topic [MQTT-4.6.0-5]. Servers are told apart by address; two
ports of one address count as one server once a message passed between them. When a client comes back, what was
published meanwhile for its subscriptions of QoS 1 and 2 is expected on the new connection if its session went on, and
lost if it did not (`mqtt_absences.py`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from analyser.context.mqtt_absences import MOST_TOPICS, Absence, Recent
from analyser.context.mqtt_told import Counts, Delivery, Message
from analyser.context.mqtt_topics import FilterTrie
from dissectors.mqtt.filters import matches

# After this time a message is not waited for any more.
WINDOW_NS = 60_000_000_000
MAX_WAITING = 50_000
_REMEMBERED_TOPICS = 1000


@dataclass(slots=True)
class _Subscription:
    topic_filter: str
    share_name: str | None
    no_local: bool
    retain_as_published: bool
    qos: int = 0


# Who is waited for: a flow, or the group of a shared subscription.
_Target = str | tuple[str, str]


@dataclass(slots=True)
class _Waiting:
    """A publish, those who have not got it yet with the filter that matched, and what was counted.

    since_ns: later than the publish where it waited for a client that came back; such a one is not counted again.
    """

    message: Message
    number: int
    targets: dict[_Target, str]
    expected: int
    since_ns: int
    again: bool = False
    delivered: int = 0


@dataclass(slots=True)
class _Same:
    """Publishes of the same content, by number, and how far each subscriber's flow has come."""

    first: int = 0
    after: int = 0
    publishes: dict[int, _Waiting] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Flow:
    """An open connection: its client, the server's port, and its subscriptions by (filter, share name)."""

    client: str | None
    port: int
    subscriptions: dict[tuple[str, str | None], _Subscription] = field(default_factory=dict)
    by_topic: dict[str, list[_Subscription]] = field(default_factory=dict)

    def matching(self, topic: str) -> list[_Subscription]:
        """Its subscriptions whose filter matches the topic."""
        found = self.by_topic.get(topic)
        if found is None:
            if len(self.by_topic) >= _REMEMBERED_TOPICS:
                self.by_topic.clear()
            found = [s for s in self.subscriptions.values() if matches(s.topic_filter, topic)]
            self.by_topic[topic] = found
        return found


class _Away(NamedTuple):
    """A client without a connection: its last flow, since when, and what it was subscribed to."""

    flow: str
    since_ns: int
    subscriptions: dict[tuple[str, str | None], _Subscription]


class Server:
    """The sessions, live subscriptions and waiting messages of one server address."""

    def __init__(self, window_ns: int = WINDOW_NS, max_waiting: int = MAX_WAITING) -> None:
        self._window_ns = window_ns
        self._max_waiting = max_waiting
        self._trie: FilterTrie[tuple[str, str | None]] = FilterTrie()
        self._flows: dict[str, _Flow] = {}
        self._flow_of_client: dict[str, str] = {}
        self._members: dict[tuple[str, str], dict[str, None]] = {}
        self._sessions: dict[str, _Away] = {}
        self._recent: Recent[Message] = Recent()
        self._same: dict[tuple[str, int | None, int | None], _Same] = {}
        self._order: deque[_Waiting] = deque()
        self._of_target: dict[_Target, dict[int, _Waiting]] = {}
        self._numbers = 0
        self.joined_ports: set[tuple[int, int]] = set()
        self.rows: list[Delivery] = []
        self.counts: list[Counts] = []
        self.absences: list[Absence] = []

    def connected(self, flow: str, port: int, client: str | None, session_present: bool | None, now_ns: int) -> None:
        """A CONNACK that accepts, or the first message of a connection that was open before the capture."""
        if client is not None:
            earlier = self._flow_of_client.get(client, flow)
            if earlier != flow:
                self.ended(earlier, now_ns)
            self._flow_of_client[client] = flow
        self._flows.setdefault(flow, _Flow(client, port))
        away = None if client is None else self._sessions.pop(client, None)
        if away is None or away.flow == flow:
            return
        for subscription in away.subscriptions.values() if session_present else ():
            self._subscribe(flow, subscription)
        if session_present is not None:
            self._came_back(away, flow, client or "", session_present, now_ns)

    def subscribed(
        self,
        flow: str,
        topic_filter: str,
        share_name: str | None,
        no_local: bool,
        retain_as_published: bool,
        qos: int = 0,
    ) -> None:
        """A filter was granted with that QoS."""
        self._subscribe(flow, _Subscription(topic_filter, share_name, no_local, retain_as_published, qos))

    def unsubscribed(self, flow: str, topic_filter: str, share_name: str | None, now_ns: int) -> None:
        """A filter is being given up: nothing more is sure to come."""
        known = self._flows.get(flow)
        if known is not None and known.subscriptions.pop((topic_filter, share_name), None) is not None:
            known.by_topic.clear()
            self._leave(flow, topic_filter, share_name, now_ns)

    def ended(self, flow: str, now_ns: int) -> None:
        """The connection was closed; its session may go on."""
        known = self._flows.pop(flow, None)
        if known is None:
            return
        for topic_filter, share_name in known.subscriptions:
            self._leave(flow, topic_filter, share_name, now_ns)
        if known.client is not None and self._flow_of_client.get(known.client) == flow:
            del self._flow_of_client[known.client]
            self._sessions[known.client] = _Away(flow, now_ns, known.subscriptions)

    def published(self, message: Message) -> None:
        """A client sent a message to the server."""
        self._forget(message.ts_ns)
        targets: dict[_Target, str] = {}
        for topic_filter, (flow, share_name) in self._trie.match(message.topic):
            if share_name is not None:
                targets[(share_name, topic_filter)] = topic_filter
            elif flow != message.flow or not self._flows[flow].subscriptions[(topic_filter, None)].no_local:
                targets.setdefault(flow, topic_filter)
        if message.qos:
            self._recent.add(message)
        self._numbers += 1
        self._await(_Waiting(message, self._numbers, targets, len(targets), message.ts_ns))

    def delivered(self, message: Message) -> None:
        """The server sent a message to a client."""
        self._forget(message.ts_ns)
        same = self._same.get(message.content)
        if same is None or message.dup:
            return
        known = self._flows.get(message.flow)
        subscriptions = known.matching(message.topic) if known is not None else []
        # The answer to a subscription, not to a publish: what was kept.
        if message.retain and not any(subscription.retain_as_published for subscription in subscriptions):
            return
        targets: list[_Target] = [
            message.flow if s.share_name is None else (s.share_name, s.topic_filter) for s in subscriptions
        ]
        found = self._earliest(same, message.flow, targets) if targets else self._newest(same, message.flow)
        if found is not None:
            self._reached(found, message, targets)

    def finish(self, now_ns: int) -> None:
        """The capture ends here."""
        while self._order:
            self._close(self._order.popleft(), now_ns, "missing")

    def _await(self, waiting: _Waiting) -> None:
        for target in waiting.targets:
            self._of_target.setdefault(target, {})[waiting.number] = waiting
        self._order.append(waiting)
        same = self._same.setdefault(waiting.message.content, _Same())
        same.publishes[same.after] = waiting
        same.after += 1

    def _came_back(self, away: _Away, flow: str, client: str, session_present: bool, now_ns: int) -> None:
        """Await what its session kept for it, or say what is lost."""
        wanted = [s for s in away.subscriptions.values() if s.qos and s.share_name is None]
        if not wanted:
            return
        own = {away.flow, flow}
        found, complete = self._recent.matching(
            away.since_ns,
            lambda topic: next((s.topic_filter for s in wanted if matches(s.topic_filter, topic)), None),
        )
        missed = [(message, name) for message, name in found if message.flow not in own]
        if not missed:
            return
        expired = 0
        for message, topic_filter in missed:
            over = message.expiry_ns is not None and now_ns - message.ts_ns > message.expiry_ns
            expired += over
            if session_present and not over:
                self._forget(now_ns)
                self._numbers += 1
                self._await(_Waiting(message, self._numbers, {flow: topic_filter}, 0, now_ns, again=True))
                continue
            status = "lost" if not session_present else "expired"
            waiting = _Waiting(message, 0, {}, 0, message.ts_ns)
            self._missing(waiting, away.flow, topic_filter, now_ns, status)
        self.absences.append(
            Absence(
                flow_id=away.flow,
                next_flow_id=flow,
                client_id=client,
                ts=away.since_ns,
                ts_back=now_ns,
                session_present=session_present,
                messages=len(missed),
                expired=expired if session_present else 0,
                complete=complete,
                first_message_id=missed[0][0].message_id,
                last_message_id=missed[-1][0].message_id,
                topics=tuple(dict.fromkeys(message.topic for message, _ in missed))[:MOST_TOPICS],
            )
        )

    def _subscribe(self, flow: str, subscription: _Subscription) -> None:
        known = self._flows.get(flow)
        if known is None:
            return
        topic_filter, share_name = subscription.topic_filter, subscription.share_name
        if not self._trie.add(topic_filter, (flow, share_name)):
            return
        if share_name is not None:
            self._members.setdefault((share_name, topic_filter), {})[flow] = None
        known.subscriptions[(topic_filter, share_name)] = subscription
        known.by_topic.clear()

    def _leave(self, flow: str, topic_filter: str, share_name: str | None, now_ns: int) -> None:
        """Drop this connection's subscription; what waits for a shared one is given up with its last member."""
        self._trie.remove(topic_filter, (flow, share_name))
        if share_name is None:
            self._give_up(flow, topic_filter, now_ns)
            return
        group = (share_name, topic_filter)
        members = self._members.get(group, {})
        members.pop(flow, None)
        if not members:
            self._members.pop(group, None)
            self._give_up(group, topic_filter, now_ns)

    def _earliest(self, same: _Same, flow: str, targets: list[_Target]) -> _Waiting | None:
        """The oldest publish that still waits for one of these targets."""
        place = max(same.reached.get(flow, 0), same.first)
        while place < same.after:
            waiting = same.publishes[place]
            place += 1
            if any(target in waiting.targets for target in targets):
                same.reached[flow] = place
                return waiting
        same.reached[flow] = same.after
        return None

    def _newest(self, same: _Same, flow: str) -> _Waiting | None:
        """Nothing is known of the client's subscriptions: the last publish, unless it was delivered already."""
        if same.reached.get(flow, 0) >= same.after:
            return None
        same.reached[flow] = same.after
        return same.publishes[same.after - 1]

    def _reached(self, waiting: _Waiting, message: Message, targets: list[_Target]) -> None:
        sent = waiting.message
        topic_filter, share_name = None, None
        for target in targets:
            if (matched := waiting.targets.pop(target, None)) is None:
                continue
            topic_filter, share_name = matched, None if isinstance(target, str) else target[0]
            self._settled(target, waiting)
        waiting.delivered += 1
        ports = None if sent.port == message.port else (sent.port, message.port)
        if ports is not None:
            self.joined_ports.add(ports)
        self.rows.append(
            Delivery(
                *_told(sent),
                subscriber_flow_id=message.flow,
                share_name=share_name,
                topic_filter=topic_filter,
                status="delivered",
                delivered_message_id=message.message_id,
                ts_delivered=message.ts_ns,
                waited_ns=message.ts_ns - sent.ts_ns,
                ports=ports,
            )
        )

    def _settled(self, target: _Target, waiting: _Waiting) -> None:
        held = self._of_target[target]
        held.pop(waiting.number, None)
        if not held:
            del self._of_target[target]

    def _give_up(self, target: _Target, topic_filter: str, now_ns: int) -> None:
        held = self._of_target.get(target, {})
        for number, waiting in list(held.items()):
            if waiting.targets[target] == topic_filter:
                del held[number]
                self._missing(waiting, target, waiting.targets.pop(target), now_ns, "left")
        if not held:
            self._of_target.pop(target, None)

    def _missing(self, waiting: _Waiting, target: _Target, topic_filter: str, now_ns: int, status: str) -> None:
        sent = waiting.message
        flow, share_name = (target, None) if isinstance(target, str) else (None, target[0])
        there = self._flows.get(target) if isinstance(target, str) else None
        self.rows.append(
            Delivery(
                *_told(sent),
                subscriber_flow_id=flow,
                share_name=share_name,
                topic_filter=topic_filter,
                status=status,
                delivered_message_id=None,
                ts_delivered=None,
                waited_ns=now_ns - sent.ts_ns,
                ports=None if there is None or there.port == sent.port else (sent.port, there.port),
                members=tuple(self._members.get(target, ())) or None if isinstance(target, tuple) else None,
            )
        )

    def _forget(self, now_ns: int) -> None:
        """Let go of messages that waited long enough, and of the oldest where too many wait."""
        order = self._order
        while order and order[0].since_ns < now_ns - self._window_ns:
            self._close(order.popleft(), now_ns, "missing")
        while len(order) >= self._max_waiting:
            self._close(order.popleft(), now_ns, "unknown")

    def _close(self, waiting: _Waiting, now_ns: int, status: str) -> None:
        for target, topic_filter in waiting.targets.items():
            self._settled(target, waiting)
            self._missing(waiting, target, topic_filter, now_ns, status)
        if not waiting.again:
            self.counts.append(Counts(waiting.message.message_id, waiting.expected, waiting.delivered))
        same = self._same[waiting.message.content]
        del same.publishes[same.first]
        same.first += 1
        if not same.publishes:
            del self._same[waiting.message.content]


def _told(sent: Message) -> tuple[str, str, int, str]:
    return sent.message_id, sent.flow, sent.ts_ns, sent.topic
