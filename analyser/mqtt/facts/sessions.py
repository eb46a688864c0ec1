"""Sessions at an MQTT server and the subscriptions in force in them, from when until when.

In: what CONNECT and CONNACK said, what was granted and given up, ends of connections (`deliveries.py` calls). Out:
which subscriptions of one connection match a topic; rows of `mqtt_sessions` and `mqtt_active_subscriptions`. A session
begins with a CONNECT that finds none and goes on over all connections that find it. It ends with its connection where
it is a clean one (3.1.1: section 3.1.2.4) or its session expiry interval is 0, which is so where it is absent (5.0:
3.1.2.11.2); else when that interval is over, when a CONNECT asks for a new one, or when the server says that it has
none any more. A session expiry interval that DISCONNECT changes is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.mqtt.facts.messages import ActiveSubscription, SessionSpan, Told
from wirewitness.analyser.mqtt.facts.topics import FilterTrie

# How long a session outlives its connection: it never ends by itself.
NEVER = -1

_REMEMBERED_TOPICS = 1000


@dataclass(slots=True)
class Subscription:
    """A filter that was granted, with its options. row: its number in `context_subscriptions`."""

    topic_filter: str
    share_name: str | None
    no_local: bool
    retain_as_published: bool
    qos: int = 0
    row: int | None = None

    def is_like(self, other: Subscription) -> bool:
        """The same filter with the same options."""
        mine = self.qos, self.no_local, self.retain_as_published
        return mine == (other.qos, other.no_local, other.retain_as_published)


class Connect(NamedTuple):
    """What CONNECT and CONNACK say of a session.

    present: the server has one; None where it does not say so. clean: a new one was asked for. lasts_ns: how long it
    outlives its connection: 0 for not at all, NEVER for without an end; None where CONNECT was not seen.
    """

    present: bool | None = None
    clean: bool | None = None
    lasts_ns: int | None = None


@dataclass(slots=True)
class Session:
    """A session. flow: its last connection, `first_flow` the one it began with. left_ns: since when it has none."""

    first_flow: int
    flow: int
    from_ns: int
    started_by: str | None
    lasts_ns: int | None
    connections: int = 1
    resumed: int = 0
    left_ns: int | None = None


class Matching(NamedTuple):
    """By which of its filters a connection gets a topic.

    targets: who is waited for, see `pending_publishes.py`. retain_as_published: does any of them ask for that?
    """

    targets: list[int | tuple[str, str]]
    retain_as_published: bool


@dataclass(slots=True)
class OpenFlow:
    """An open connection: its client, the server's port, and its subscriptions by (filter, share name).

    as_published: any of them asked for RETAIN as it was published.
    """

    flow: int
    client: str | None
    port: int
    session: Session
    subscriptions: dict[tuple[str, str | None], Subscription] = field(default_factory=dict)
    by_topic: dict[str, Matching] = field(default_factory=dict)
    filters: FilterTrie[tuple[str, str | None]] = field(default_factory=FilterTrie)
    as_published: bool = False

    def retains_as_published(self, topic: str) -> bool:
        """Does it get RETAIN on this topic as it was published?"""
        return self.as_published and self.matching(topic).retain_as_published

    def matching(self, topic: str) -> Matching:
        """Its subscriptions whose filter matches the topic."""
        found = self.by_topic.get(topic)
        if found is None:
            if len(self.by_topic) >= _REMEMBERED_TOPICS:
                self.by_topic.clear()
            some = [self.subscriptions[key] for _, key in self.filters.match(topic)]
            found = self.by_topic[topic] = Matching(
                [self.flow if one.share_name is None else (one.share_name, one.topic_filter) for one in some],
                any(one.retain_as_published for one in some),
            )
        return found

    def add(self, subscription: Subscription) -> None:
        """One more, or the same filter with other options."""
        key = subscription.topic_filter, subscription.share_name
        self.subscriptions[key] = subscription
        self.filters.add(subscription.topic_filter, key)
        self.as_published |= subscription.retain_as_published
        self.by_topic.clear()

    def drop(self, key: tuple[str, str | None]) -> Subscription | None:
        """It is given up; None where there was none."""
        self.filters.remove(key[0], key)
        self.by_topic.clear()
        return self.subscriptions.pop(key, None)


class Away(NamedTuple):
    """A client without a connection: its last flow, since when, and what it was subscribed to."""

    flow: int
    since_ns: int
    subscriptions: dict[tuple[str, str | None], Subscription]
    session: Session


class History:
    """Puts rows of sessions and subscriptions that are over into `told`."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def begin(self, flow: int, away: Away | None, connect: Connect, now_ns: int) -> Session:
        """The session of a new connection: the one of before where the server says so."""
        if away is not None and connect.present:
            session = away.session
            session.flow, session.left_ns, session.lasts_ns = flow, None, connect.lasts_ns
            session.connections += 1
            session.resumed += 1
            return session
        if away is not None:
            self._end(away, *_replaced(away.session, connect, now_ns))
        started_by = None
        if connect.present or connect.lasts_ns is None:
            started_by = "earlier"
        elif connect.present is False or connect.clean:
            started_by = "connect"
        return Session(flow, flow, now_ns, started_by, connect.lasts_ns, resumed=int(bool(connect.present)))

    def over(self, away: Away, now_ns: int | None) -> None:
        """Nobody came back until then; None: nothing more will be known of it."""
        left_ns, lasts_ns = away.session.left_ns, away.session.lasts_ns
        if left_ns is not None and lasts_ns == 0:
            self._end(away, left_ns, "connection")
        elif left_ns is not None and lasts_ns is not None and now_ns is not None and 0 < lasts_ns <= now_ns - left_ns:
            self._end(away, left_ns + lasts_ns, "expiry")
        else:
            self._end(
                away, None, None if now_ns is not None and (left_ns is None or lasts_ns is not None) else "unknown"
            )

    def dropped(self, subscription: Subscription, session: Session | None, until_ns: int | None, by: str) -> None:
        """A subscription is over before its session is."""
        if subscription.row is not None:
            first_flow = None if session is None else session.first_flow
            self._told.subscriptions.append(ActiveSubscription(subscription.row, first_flow, until_ns, by))

    def _end(self, away: Away, until_ns: int | None, by: str | None) -> None:
        one = away.session
        self._told.sessions.append(
            SessionSpan(
                one.first_flow, one.flow, one.from_ns, until_ns, one.left_ns, one.started_by, by, one.connections,
                one.resumed,
            )
        )  # fmt: skip
        of_subscriptions = "session" if until_ns is not None else by
        for subscription in away.subscriptions.values():
            if subscription.row is not None:
                self._told.subscriptions.append(
                    ActiveSubscription(subscription.row, one.first_flow, until_ns, of_subscriptions)
                )


def _replaced(session: Session, connect: Connect, now_ns: int) -> tuple[int | None, str]:
    """When and why a session ended that a new connection of its client did not find."""
    left_ns = now_ns if session.left_ns is None else session.left_ns
    if session.lasts_ns == 0:
        return left_ns, "connection"
    if session.lasts_ns is not None and 0 < session.lasts_ns <= now_ns - left_ns:
        return left_ns + session.lasts_ns, "expiry"
    if connect.clean:
        return now_ns, "clean_start"
    if connect.present is False and session.lasts_ns is not None:
        return now_ns, "server"
    return None, "unknown"


# Numbers of flows and subscriptions become ids again; names of clients are those of connections.
SESSIONS = """
    SELECT first.flow_id, last.flow_id AS last_flow_id, make_timestamp_ns(made.from_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(made.until_ns)::TIMESTAMPTZ_NS AS ts_until,
           make_timestamp_ns(made.left_ns)::TIMESTAMPTZ_NS AS ts_offline,
           coalesce(last.client_id, first.client_id) AS client_id, last.client_address, last.client_port, last.version,
           first.clean_start, coalesce(last.server_session_expiry_s, last.session_expiry_s) AS session_expiry_s,
           made.started_by, made.ended_by, made.connections, made.resumed, first.server_address, first.server_port,
           first.exchange_id, first.file, first.packet
    FROM context_sessions AS made
    JOIN context_flows AS began ON began.flow = made.flow JOIN context_flows AS went ON went.flow = made.last_flow
    JOIN mqtt_connections AS first ON first.flow_id = began.flow_id
    JOIN mqtt_connections AS last ON last.flow_id = went.flow_id
    ORDER BY made.from_ns, client_id, first.flow_id"""
ACTIVE_SUBSCRIPTIONS = """
    SELECT granted.flow_id, began.flow_id AS session_flow_id, granted.ts_response AS ts,
           make_timestamp_ns(made.until_ns)::TIMESTAMPTZ_NS AS ts_until, granted.client_id, granted.client_address,
           granted.client_port, granted.version, granted.topic_filter, granted.share_name, granted.matching_filter,
           granted.granted_qos AS qos, granted.no_local, granted.retain_as_published, granted.retain_handling,
           made.ended_by, granted.server_address, granted.server_port, granted.exchange_id, granted.position,
           granted.file, granted.request_packet AS packet
    FROM context_active AS made JOIN context_subscriptions AS granted ON granted.number = made.subscription
    LEFT JOIN context_flows AS began ON began.flow = made.session
    ORDER BY granted.ts_response, granted.exchange_id, granted.position"""
