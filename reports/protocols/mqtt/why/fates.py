"""What became of each message on a topic for one client. In: client and topic. Out: messages by their fate.

Each message that was published on the topic at a server of that client gets one fate. It was delivered, or a row of
`mqtt_deliveries` says what became of it; of those that the server owed to nobody, what was in force at their time says
why: subscriptions (`mqtt_active_subscriptions`, filters matched as MQTT has it), sessions, open connections. The fate
that most of them share is told first. What was sent to the client and is none of these is a retained message, a will,
or of somebody who is not in the capture.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import severity_rank
from wirewitness.analyser.tables.queries import literal
from wirewitness.dissectors.mqtt.filters import matches
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.why.asking import Asking, where, who
from wirewitness.reports.protocols.mqtt.why.causes import DELIVERY_ROWS

# More messages of one topic are not looked at one by one; more filters of one client are not told.
MOST_MESSAGES, _MOST_ROWS, _FILTERS_TOLD = 20_000, 5_000, 3
# So many intervals before a time are looked at for those that hold then.
_MOST_AT_ONCE = 50

_CONNECTIONS = f"""
    select *, epoch_ns(coalesce(ts_response, ts)) as at_ns, epoch_ns(coalesce(ts_closed, ts_disconnect)) as until_ns,
           epoch_ns(coalesce(ts_closed, observed_until, ts_end, ts)) as seen_ns
    from mqtt_connections where client_id = {{client}} order by ts limit {_MOST_ROWS}"""
_IN_FORCE = f"""
    select *, epoch_ns(ts) as at_ns, epoch_ns(ts_until) as until_ns from mqtt_active_subscriptions
    where {{which}} order by ts limit {_MOST_ROWS}"""
_SESSIONS = f"""
    select *, epoch_ns(ts) as at_ns, epoch_ns(ts_until) as until_ns, epoch_ns(ts_offline) as offline_ns
    from mqtt_sessions where {{which}} order by ts limit {_MOST_ROWS}"""
_NOT_GRANTED = f"""
    select *, epoch_ns(ts) as at_ns from mqtt_subscriptions
    where {{which}} and event = 'subscribe' and granted_qos is null order by ts limit {_MOST_ROWS}"""
_MESSAGES = """
    select message_id, flow_id, client_id, client_address, server_address, qos, retain, dup, payload_bytes,
           payload_crc32, reason_code, reason_name, handshake, file, packet, epoch_ns(ts) as at_ns
    from mqtt_publishes where {which} order by ts limit {most}"""
_SHARED = """
    select message_id, subscriber_client_id from mqtt_deliveries
    where {which} and share_name in ({names}) and status in ('delivered', 'sent') limit {most}"""


class Fate(NamedTuple):
    """A kind of what became of messages. words: of how many, to whom, as part of a sentence.

    is_failure: somebody expected to get them.
    """

    words: str
    is_failure: bool = False


FATES: Mapping[str, Fate] = {
    "missing": Fate("not sent by the server", True),
    "packet_too_large": Fate("larger than it takes, so the server dropped what it got", True),
    "zero_window": Fate("not sent by the server while its TCP window was shut", True),
    "unfinished_qos2": Fate("not sent by the server while it had not finished a QoS 2 message before", True),
    "unacknowledged": Fate("not sent by the server while it acknowledged nothing more", True),
    "slow": Fate("not sent by the server while it took a second or more for each acknowledgement", True),
    "dead_path": Fate("not sent, or sent in vain, since its path was dead", True),
    "lost": Fate("lost, since its session was gone when it came back", True),
    "expired": Fate("over their message expiry interval before it could have them", True),
    "refused": Fate("refused by the server, or never taken by it", True),
    "left": Fate("not sent before its connection ended", True),
    "sent": Fate("sent to it and not acknowledged", True),
    "away_qos0": Fate("published with QoS 0 while it was away", True),
    "away_sub0": Fate("published while it was away, and its subscription has QoS 0", True),
    "unknown": Fate("not seen to reach it, where the capture does not show more", True),
    "unexplained": Fate("not seen to reach it", True),
    "not_granted": Fate("published while the server had not granted its subscription", True),
    "not_subscribed": Fate("not matched by any filter that it subscribed to", True),
    "earlier": Fate("published while only subscriptions from before this capture could match", True),
    "absent": Fate("published while it was not connected and had no session"),
    "own": Fate("its own"),
    "before": Fate("published before it subscribed"),
    "after": Fate("published after its subscription had ended"),
    "queued": Fate("waiting in its session when the capture ends"),
    "shared": Fate("sent to another member of its shared subscription"),
    "no_local": Fate("its own, which its subscription leaves out (no local)"),
}
# A subscriber's rows of one message: what counts, the best first.
_STATUSES = ("delivered", "sent", "not_kept", "missing", "lost", "expired", "refused", "unknown", "left")


@dataclass
class Known:
    """What is known of a client and a topic: rows of tables, times as `at_ns` and `until_ns`."""

    client: str
    topic: str
    connections: list[dict[str, Any]]
    subscriptions: list[dict[str, Any]] = field(default_factory=list)
    not_granted: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)
    deliveries: dict[str, dict[str, Any]] = field(default_factory=dict)
    sent: list[dict[str, Any]] = field(default_factory=list)
    shared: dict[str, Any] = field(default_factory=dict)
    filters: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    more: bool = False

    @property
    def is_accused(self) -> bool:
        """A finding above info names the client and the topic."""
        about = (one for one in self.findings if self.topic in (one.numbers.get("topics") or ()))
        return any(severity_rank(one.severity) > severity_rank("info") for one in about)

    @cached_property
    def accepted(self) -> list[dict[str, Any]]:
        """Connections that the server did not refuse."""
        return [one for one in self.connections if not one["error_code"]]

    @cached_property
    def flows(self) -> set[str]:
        """Ids of its connections."""
        return {one["flow_id"] for one in self.connections}

    @property
    def refused_only(self) -> bool:
        """The server took none of its connections."""
        return not self.accepted

    @cached_property
    def who(self) -> str:
        """The client, with the address of its last connection."""
        return who(self.client, (self.accepted or self.connections)[-1]["client_address"])


def known(ask: Asking, client: str, topic: str) -> Known | None:
    """All that is known; None for a client that is not there."""
    connections = ask.rows(_CONNECTIONS.format(client=literal(client)))
    if not connections:
        return None
    found = Known(client, topic, connections)
    which, on_topic = where(client_id=client), where(topic=topic)
    in_force = ask.rows(_IN_FORCE.format(which=which))
    found.filters = list(dict.fromkeys(str(one["topic_filter"]) for one in in_force))
    found.subscriptions = [one for one in in_force if _matches(one, topic)]
    found.not_granted = [one for one in ask.rows(_NOT_GRANTED.format(which=which)) if _matches(one, topic)]
    found.findings = [one for one in ask.findings() if any(each.get("client_id") == client for each in one.everybody)]
    found.sessions = ask.rows(_SESSIONS.format(which=which))
    servers = ", ".join({literal(one["server_address"]) for one in connections})
    flows = ", ".join(literal(one["flow_id"]) for one in connections)
    first = f"{on_topic} and direction = 'client_to_server' and first_message_id is null"
    found.published = ask.rows(
        _MESSAGES.format(which=f"{first} and server_address in ({servers})", most=MOST_MESSAGES + 1)
    )
    found.more = len(found.published) > MOST_MESSAGES
    del found.published[MOST_MESSAGES:]
    found.sent = ask.rows(
        _MESSAGES.format(which=f"{on_topic} and direction = 'server_to_client' and flow_id in ({flows})",
                         most=MOST_MESSAGES)
    )  # fmt: skip
    for rows in (found.connections, found.subscriptions, found.sessions, found.not_granted):
        rows.sort(key=lambda one: int(one["at_ns"]))
    own = f"{where(subscriber_client_id=client)} and {on_topic}"
    for one in ask.rows(DELIVERY_ROWS.format(which=own, most=2 * MOST_MESSAGES)):
        before = found.deliveries.get(one["message_id"])
        if before is None or _rank(one) < _rank(before):
            found.deliveries[one["message_id"]] = one
    names = ", ".join({literal(one["share_name"]) for one in found.subscriptions if one["share_name"]})
    if names:
        rows = ask.rows(_SHARED.format(which=on_topic, names=names, most=MOST_MESSAGES))
        found.shared = {one["message_id"]: one["subscriber_client_id"] for one in rows}
    return found


def is_known(ask: Asking, found: Known) -> bool:
    """Somebody published on the topic, got it, subscribed to it by name, or has it as the topic of a will."""
    if found.published or found.sent:
        return True
    named = f"select 1 from mqtt_subscriptions where {where(matching_filter=found.topic)} limit 1"
    asked = f"select 1 from mqtt_publishes where {where(topic=found.topic)} limit 1"
    wills = f"select 1 from mqtt_connections where {where(will_topic=found.topic)} limit 1"
    return any(ask.rows(query) for query in (named, asked, wills))


def _matches(subscription: Mapping[str, Any], topic: str) -> bool:
    return subscription["matching_filter"] is not None and matches(subscription["matching_filter"], topic)


def _rank(delivery: Mapping[str, Any]) -> int:
    return _STATUSES.index(delivery["status"]) if delivery["status"] in _STATUSES else len(_STATUSES)


def _at(rows: Sequence[Mapping[str, Any]], at_ns: int, server: object) -> list[Mapping[str, Any]]:
    """Those that hold at that time, at that server."""
    first = bisect_right(rows, at_ns, key=lambda one: int(one["at_ns"]))
    return [
        one for one in rows[max(first - _MOST_AT_ONCE, 0) : first]
        if one["server_address"] == server and (one["until_ns"] is None or at_ns < one["until_ns"])
    ]  # fmt: skip


def fate_of(found: Known, message: Mapping[str, Any]) -> str:
    """What became of a message: delivered, or a key of FATES."""
    told = found.deliveries.get(message["message_id"])
    if told is not None and told["status"] != "not_kept":
        return _of_delivery(told)
    at_ns, server = message["at_ns"], message["server_address"]
    active = _at(found.subscriptions, at_ns, server)
    if not active:
        kind = _without_subscription(found, at_ns, server)
        return "own" if kind == "not_subscribed" and message["flow_id"] in found.flows else kind
    own = [one for one in active if not (one["no_local"] and message["flow_id"] in found.flows)]
    if not own:
        return "no_local"
    if (message["reason_code"] or 0) >= 128 or message["handshake"] in ("no_pubrec", "no_pubrel"):
        return "refused"
    if all(one["share_name"] for one in own):
        return "shared" if message["message_id"] in found.shared else "unexplained"
    if is_connected(found, message) and told is None:
        return "unexplained"
    if message["qos"] == 0:
        return "away_qos0"
    if max(one["qos"] or 0 for one in own) == 0:
        return "away_sub0"
    later = [one for one in found.accepted if one["server_address"] == server and one["at_ns"] > at_ns]
    return "unexplained" if later else "queued"


def is_connected(found: Known, message: Mapping[str, Any]) -> bool:
    """Did the client have a connection when the message was published?"""
    return bool(_at(found.accepted, message["at_ns"], message["server_address"]))


def _of_delivery(told: Mapping[str, Any]) -> str:
    if told["status"] == "missing":
        cause = "expired" if told["cause"] == "expired" else told["cause"] or told["blocked_by"]
        return str(cause) if cause in FATES else "missing"
    return str(told["status"]) if told["status"] in _STATUSES else "unknown"


def _without_subscription(found: Known, at_ns: int, server: object) -> str:
    """Why no subscription of the client matched at that time."""
    sessions = _at(found.sessions, at_ns, server)
    if any(one["at_ns"] <= at_ns and one["server_address"] == server for one in found.not_granted) and sessions:
        return "not_granted"
    here = [one for one in found.subscriptions if one["server_address"] == server]
    if not sessions and here:
        return "absent"
    if any(one["until_ns"] is not None and one["until_ns"] <= at_ns for one in here):
        return "after"
    if any(one["started_by"] != "connect" for one in sessions):
        return "earlier"
    return "before" if here else "not_subscribed"


def fates(found: Known) -> dict[str, list[dict[str, Any]]]:
    """The messages by what became of them, in their order, the failures that are most first.

    What the server sent and no publish is known for counts for a message of the same content before it: servers may
    keep messages of QoS 0.
    """
    told: dict[str, list[dict[str, Any]]] = {}
    spare: dict[tuple[Any, ...], deque[int]] = {}
    for one in others_sent(found):
        if not one["retain"]:
            spare.setdefault(content(one), deque()).append(one["at_ns"])
    for message in found.published:
        kind = fate_of(found, message)
        if kind not in ("delivered", "sent") and _came(spare.get(content(message)), message):
            kind = "delivered"
        told.setdefault(kind, []).append(message)
    order = sorted(told, key=lambda kind: (kind == "delivered", not is_failure(kind), -len(told[kind])))
    return {kind: told[kind] for kind in order}


def others_sent(found: Known) -> list[dict[str, Any]]:
    """What the server sent on the topic that is the delivery of no publish in the capture."""
    known_ones = {one["delivered_message_id"] for one in found.deliveries.values()}
    return [one for one in found.sent if one["message_id"] not in known_ones and not one["dup"]]


def content(message: Mapping[str, Any]) -> tuple[Any, ...]:
    return message["payload_bytes"], message["payload_crc32"]


def _came(times_ns: deque[int] | None, message: Mapping[str, Any]) -> bool:
    """Was the same content sent after the message? It is counted once."""
    while times_ns and message["payload_crc32"] is not None:
        if times_ns.popleft() >= message["at_ns"]:
            return True
    return False


def is_failure(kind: str) -> bool:
    return kind in FATES and FATES[kind].is_failure
