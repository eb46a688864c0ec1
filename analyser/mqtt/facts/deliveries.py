"""Which published messages reached which subscribers.

In: what happened at the MQTT servers, in the order of time (a method of `Server` for each kind). Out: rows of
`mqtt_deliveries` and `mqtt_offline_periods`, and counts for each publish; those of sessions and of subscriptions in
force (`sessions.py`).

A publish is expected at every subscription that is live when it is sent: granted in the capture, or carried over with
a session that the server says it has, and its connection still open. Of a shared subscription one member is expected.
The server's own PUBLISH is the same message when topic, payload size and payload checksum agree; the earliest one not
delivered yet is taken, since servers keep the order of a topic [MQTT-4.6.0-5]. Servers are told apart by address; two
ports of one address count as one server once a message passed between them. When a client comes back, what was
published meanwhile for its subscriptions of QoS 1 and 2 is expected on the new connection if its session went on, and
lost if it did not (`offline_periods.py`). Work has a limit (ALLOWED_STEPS): beyond it nobody is expected to get a
message, and how many should have is not known. Memory has one, too, for all servers (`memory.py`): beyond it
nothing that waits is waited for any more, and filters that find no room leave the number of those who should get a
message unknown.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.mqtt.facts.filters import Filters
from wirewitness.analyser.mqtt.facts.memory import AWAY_BYTES, Memory
from wirewitness.analyser.mqtt.facts.messages import Counts, Integers, Message, Told
from wirewitness.analyser.mqtt.facts.offline_periods import MAX_LOOKED_AT, Returns
from wirewitness.analyser.mqtt.facts.pending_publishes import Kept, Target, Waiting, Waits
from wirewitness.analyser.mqtt.facts.publishes_without_subscriber import Unheard
from wirewitness.analyser.mqtt.facts.sessions import Away, Connect, History, OpenFlow, Subscription

Booleans = npt.NDArray[np.bool_]

# After this time a message is not waited for any more.
WINDOW_NS = 60_000_000_000
MAX_WAITING = 50_000
# Work on who should get what, in nodes of filters: so much at once, and so much more with each message; at once also
# for all servers together (MOST_STEPS). Somebody who waits for a message counts as several: a row is made of each who
# waits in vain.
ALLOWED_STEPS, STEPS_OF_A_MESSAGE, STEPS_OF_A_TARGET = 1_000_000, 100, 10


class Server:
    """The sessions, live subscriptions and waiting messages of one server address. memory: shared with others."""

    def __init__(
        self, window_ns: int = WINDOW_NS, max_waiting: int = MAX_WAITING, memory: Memory | None = None
    ) -> None:
        self._memory = Memory() if memory is None else memory
        self._memory.join(self)
        self._flows: dict[int, OpenFlow] = {}
        self._flow_of_client: dict[str, int] = {}
        self.told = Told()
        self._history = History(self.told)
        self._filters = Filters(self._memory)
        self._waits = Waits(self.told, self._filters, self._flows, self._hold, window_ns, max_waiting)
        self._sessions: dict[str, Away] = {}
        self._returns = Returns(self.told, self._waits, self._hold)
        self._numbers = 0
        self._steps, self._steps_left = 0, ALLOWED_STEPS
        self.now_ns = 0
        self._waiting_bytes = 0
        self.limited = 0  # publishes of which it is not known who should get them

    @property
    def joined_ports(self) -> set[tuple[int, int]]:
        """Pairs of its ports between which a message passed."""
        return self._waits.joined_ports

    def connected(self, flow: int, port: int, client: str | None, connect: Connect, now_ns: int) -> None:
        """A CONNACK that accepts, or the first message of a connection that was open before the capture."""
        session_present = connect.present
        if client is not None:
            earlier = self._flow_of_client.get(client, flow)
            if earlier != flow:
                self.ended(earlier, now_ns)
            self._flow_of_client[client] = flow
        away = None if client is None else self._sessions.pop(client, None)
        if away is not None:
            self._hold(-_away_bytes(away))
        if flow not in self._flows:
            self._flows[flow] = OpenFlow(flow, client, port, self._history.begin(flow, away, connect, now_ns))
        if away is None or away.flow == flow:
            return
        for subscription in away.subscriptions.values() if session_present else ():
            self._subscribe(flow, subscription)
        if session_present is not None:
            self._came_back(away, flow, client or "", session_present, now_ns)

    def subscribed(
        self,
        flow: int,
        topic_filter: str,
        share_name: str | None,
        no_local: bool,
        retain_as_published: bool,
        qos: int = 0,
        row: int | None = None,
        now_ns: int = 0,
    ) -> None:
        """A filter was granted with that QoS. row: number of the subscription."""
        subscription = Subscription(topic_filter, share_name, no_local, retain_as_published, qos, row)
        known = self._flows.get(flow)
        before = None if known is None else known.subscriptions.get((topic_filter, share_name))
        if before is not None and before.is_like(subscription):
            return
        if known is not None and before is not None:
            self._history.dropped(before, known.session, now_ns, "replaced")
        self._subscribe(flow, subscription)

    def subscribed_unknown(self) -> None:
        """A filter was granted, but not all of it is known."""
        self._filters.lacks = True

    def unsubscribed(self, flow: int, topic_filter: str, share_name: str | None, now_ns: int) -> None:
        """A filter is being given up: nothing more is sure to come."""
        known = self._flows.get(flow)
        given_up = None if known is None else known.drop((topic_filter, share_name))
        if known is not None and given_up is not None:
            self._history.dropped(given_up, known.session, now_ns, "unsubscribe")
            self._leave(flow, topic_filter, share_name, now_ns)

    def ended(self, flow: int, now_ns: int) -> None:
        """The connection was closed; its session may go on."""
        known = self._flows.pop(flow, None)
        if known is None:
            return
        client = known.client
        if client is not None and self._flow_of_client.get(client) != flow:
            client = None
        kept: list[Kept] = []
        for (topic_filter, share_name), subscription in known.subscriptions.items():
            lasts = client is not None and subscription.qos > 0
            self._leave(flow, topic_filter, share_name, now_ns, kept if lasts else None)
        known.session.left_ns = now_ns
        away = Away(flow, now_ns, known.subscriptions, known.session)
        if client is not None:
            del self._flow_of_client[client]
            self._keep(client, away)
            self._returns.left(flow, client, known.subscriptions.values(), kept, now_ns)
        else:
            self._returns.ended(flow, now_ns)
            self._history.over(away, None)

    def published(self, message: Message) -> None:
        """A client sent a message to the server."""
        self._forget(message.ts_ns)
        if self._may_ask:
            self._returns.published(message)
        self._numbers += 1
        self._steps = min(self._steps + STEPS_OF_A_MESSAGE, ALLOWED_STEPS)
        if not self._may_work(1) or self._filters.lacks_members:
            self.limited += 1
            if message.content is not None:
                self._hold(self._waits.add(Waiting(message, self._numbers, {}, 0, message.ts_ns, again=True)))
            return
        targets: dict[Target, str] = {}
        matched, steps = self._filters.match(message.topic)
        self._steps -= steps
        for topic_filter, (flow, share_name) in matched:
            if share_name is not None:
                targets[(share_name, topic_filter)] = topic_filter
            elif flow != message.flow or not self._flows[flow].subscriptions[(topic_filter, None)].no_local:
                targets.setdefault(flow, topic_filter)
        if targets or message.content is not None:
            self._steps -= STEPS_OF_A_TARGET * len(targets)
            self._hold(self._waits.add(Waiting(message, self._numbers, targets, len(targets), message.ts_ns)))
        elif not self._filters.lacks:  # nothing is left to wait for
            self.told.counts.append(Counts(message.row, 0, 0))

    def published_unheard(self, messages: Unheard) -> None:
        """The same for many, of which the server sent none on: those that nobody has to get are over at once."""
        times_ns, awaited = messages.ts_ns, self._awaited(messages)
        places, behind = np.flatnonzero(awaited), 0
        counted = ~awaited
        for place, message in zip(places.tolist(), messages.messages(places), strict=True):
            self._pass(times_ns[behind:place], counted[behind:place])
            self.published(message)
            behind = place + 1
        self._pass(times_ns[behind:], counted[behind:])
        if counted.any():
            self.told.unheard.append(messages.rows[counted])

    def delivered(self, message: Message) -> None:
        """The server sent a message to a client, and not for the second time."""
        self._forget(message.ts_ns)
        self._steps = min(self._steps + STEPS_OF_A_MESSAGE, ALLOWED_STEPS)
        same = self._waits.same(message.content)
        known = self._flows.get(message.flow)
        # The answer to a subscription, not to a publish: what was kept.
        as_retained = message.retain and (known is None or not known.retains_as_published(message.topic))
        if (
            as_retained
            or same is None
            or not self._waits.sent(same, message, [] if known is None else known.matching(message.topic).targets)
        ):
            self._returns.sent(message.flow, message, as_retained=as_retained)

    @property
    def waiting_bytes(self) -> int:
        """See `Holder`."""
        return self._waiting_bytes

    def let_go(self) -> None:
        """See `Holder`. Who comes back is not known any more, either."""
        self._waits.let_go(self.now_ns, "unknown")
        self._filters.lacks |= bool(self._sessions)
        for away in self._sessions.values():
            self._history.over(away, None)
        self._sessions.clear()
        self._returns.let_go(self.now_ns, at_end=False)
        self._filters.forget_matches()
        self._hold(-self._waiting_bytes)

    def finish(self, now_ns: int) -> None:
        """The capture ends here."""
        self._waits.let_go(now_ns, "missing")
        self._returns.let_go(now_ns, at_end=True)
        for away in self._sessions.values():
            self._history.over(away, now_ns)
        for one in self._flows.values():
            self._history.over(Away(one.flow, now_ns, one.subscriptions, one.session), now_ns)

    @property
    def _may_ask(self) -> bool:
        """May anybody come back and ask for what is published now? Who subscribes later gets what comes later."""
        return self._filters.count > 0 or bool(self._sessions)

    def _awaited(self, messages: Unheard) -> Booleans:
        """Which of these somebody has to get, now or when he comes back; all of them where that is not known."""
        if not self._may_work(1) or self._filters.lacks_members:
            return np.ones(len(messages.rows), np.bool_)
        if not self._may_ask:
            return np.zeros(len(messages.rows), np.bool_)
        topics, codes = messages.topics()
        matched = np.ones(len(topics), np.bool_)
        for code, topic in enumerate(topics):
            if self._may_work(1):
                found, steps = self._filters.match(topic)
                self._steps -= steps
                matched[code] = bool(found) or self._returns.asked_for(topic)
        awaited: Booleans = matched[codes] | (messages.qos > 0)
        return awaited

    def _pass(self, times_ns: Integers, counted: Booleans) -> None:
        """Messages of these times were over at once. counted: cleared where who should get them is not known by then:
        memory may let go of that between any two."""
        if len(times_ns):
            self._steps = min(self._steps + STEPS_OF_A_MESSAGE * len(times_ns), ALLOWED_STEPS)
            self.now_ns = int(times_ns[0])
            self._memory.keep_within()
            self._waits.forget_along(times_ns)
            self.now_ns = int(times_ns[-1])
            counted &= not self._filters.lacks

    def _may_work(self, steps: int) -> bool:
        """Is any work allowed? So many steps are, where they are left."""
        if self._steps < steps:
            taken = self._memory.take_steps(min(steps - self._steps, self._steps_left))
            self._steps_left -= taken
            self._steps += taken
        return self._steps > 0

    def _hold(self, more_bytes: int) -> None:
        self._waiting_bytes += more_bytes
        self._memory.change(more_bytes)

    def _keep(self, client: str, away: Away) -> None:
        before = self._sessions.pop(client, None)
        if before is not None:
            self._hold(-_away_bytes(before))
            self._history.over(before, None)
        self._hold(_away_bytes(away))
        self._sessions[client] = away

    def _came_back(self, away: Away, flow: int, client: str, session_present: bool, now_ns: int) -> None:
        """Await what its session kept for it, or say what is lost."""
        self._may_work(STEPS_OF_A_TARGET * MAX_LOOKED_AT)
        most = max(self._steps // STEPS_OF_A_TARGET, 0)
        queued, steps = self._returns.came_back(away, flow, client, session_present, now_ns, most)
        self._steps -= steps
        for message, topic_filter in queued:
            self._forget(now_ns)
            self._numbers += 1
            waiting = Waiting(message, self._numbers, {flow: topic_filter}, 0, now_ns, again=True)
            self._hold(self._waits.add(waiting))

    def _subscribe(self, flow: int, subscription: Subscription) -> None:
        known = self._flows.get(flow)
        topic_filter, share_name = subscription.topic_filter, subscription.share_name
        again = known is not None and (topic_filter, share_name) in known.subscriptions
        if known is not None and self._filters.add(flow, topic_filter, share_name, again):
            known.add(subscription)
        else:
            self._history.dropped(subscription, None if known is None else known.session, None, "unknown")

    def _leave(
        self, flow: int, topic_filter: str, share_name: str | None, now_ns: int, kept: list[Kept] | None = None
    ) -> None:
        """Drop this connection's subscription; what waits for a shared one is given up with its last member."""
        if self._filters.remove(flow, topic_filter, share_name):
            target = flow if share_name is None else (share_name, topic_filter)
            self._waits.give_up(target, topic_filter, now_ns, kept if share_name is None else None)

    def _forget(self, now_ns: int) -> None:
        """Let go of messages that waited long enough, and of what memory has no room for."""
        self.now_ns = now_ns
        self._memory.keep_within()
        self._waits.forget(now_ns)


def _away_bytes(away: Away) -> int:
    return AWAY_BYTES * (1 + len(away.subscriptions))
