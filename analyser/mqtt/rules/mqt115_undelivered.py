"""MQT115 undelivered: messages did not reach a live subscriber.

Finds
    Messages whose topic matches a subscription that was live, that the server took, and did not send to it.

Why it matters
    Publisher and subscriber both see a healthy connection; only between them something is missing: a subscriber that
    does not read or does not acknowledge, a packet that is too large for it, an access rule that drops silently.

How it decides
    Rows of mqtt_deliveries with status missing: the subscription was granted (or carried over with a session) in the
    capture, the server took the message (it was acknowledged, and no limit of the server forbids it), and no PUBLISH of
    the same topic and content went to that subscriber within 10 s (wait_s) while its connection was open and without
    gaps. Of a shared subscription no member got it; the member that stands still is named, if one does. One finding
    for each subscriber and filter (missing_least messages). Why is said in this order, as far as the capture shows:
    the message is larger than the Maximum Packet Size of the subscriber; its message expiry interval was over while it
    waited, so that the server deleted it. What held it up stands beside that, or is the cause: the subscriber's receive
    window was closed for a second; a QoS 2 handshake that it did not finish; messages that it did not acknowledge, or
    only after 10 s, so that the window of messages in flight is full; acknowledgements that take a second or more in
    the median, so that the server's queue fills. Only then access rules and queue limits are left. Servers keep the
    order of a topic, so what was published before the last message that came is lost for good.

False alarms
    QoS 0 may be dropped by the server for a slow subscriber. A bridge or a cluster whose nodes have several
    addresses.

References
    MQTT 3.1.1 and 5.0: section 4.7 (filters), [MQTT-3.3.5-1] (3.1.1), section 4.6 (order), 4.8.2 (shared, 5.0),
    [MQTT-3.3.2-5] (expiry, 5.0), [MQTT-3.1.2-25] (a packet that is too large is dropped, 5.0), 4.9 (flow control, 5.0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.times import ms_text, period_text
from wirewitness.analyser.base.words import count, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule


class _Why(NamedTuple):
    """What is said of a cause, and what to do; {open}: messages not acknowledged; {took}: for one."""

    said: str
    next_step: str


_WHY = {
    "packet_too_large": _Why(
        "They are larger than the Maximum Packet Size that the subscriber set in CONNECT, so the server drops them.",
        "Raise Maximum Packet Size at the subscriber, or publish smaller messages.",
    ),
    "zero_window": _Why(
        "The subscriber advertised a zero window: it does not read, and the server's queue fills.",
        "Look at the subscriber's process: it is frozen, or its message handler blocks the thread that reads.",
    ),
    "unfinished_qos2": _Why(
        "The subscriber had left {open} unfinished in the QoS 2 handshake: the window of messages in flight is full.",
        "Look at the subscriber: it sends PUBREC or PUBCOMP not, or too late; MQT105 says for which messages.",
    ),
    "unacknowledged": _Why(
        "The subscriber had not acknowledged {open} sent before, so the window of messages in flight is full.",
        "Look at the subscriber's handler: it acknowledges not, or too late; then at Receive Maximum and the server's "
        "limit of messages in flight.",
    ),
    "slow": _Why(
        "The subscriber takes {took} in the median to acknowledge a message, longer than they come apart: the server's "
        "queue for it is full.",
        "Look at the subscriber's handler: let it hand over the message and acknowledge at once, or share the work "
        "among several; then at the server's limit of queued messages.",
    ),
    None: _Why(
        "Nothing on the subscriber's connection explains it.",
        "Look at the server's access rules for the publisher and the subscriber, at its queue limits, and at its log "
        "for dropped messages.",
    ),
}


_EXPIRED = "Their message expiry interval was over before they could be sent, so the server deleted them."
_AFTER_EXPIRY = "Look at what held the messages up, and at the message expiry interval of the publisher."


def detect(frames: Frames, *, wait_s: float = 10.0, missing_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this subscriber and filter."""
    rows = rows_of(frames["mqtt_deliveries"])
    missing = [r for r in rows if r["status"] == "missing" and (r["waited_ms"] or 0) >= wait_s * 1000]
    if not missing or len(missing) < missing_least:
        return
    got = [r for r in rows if r["status"] in ("delivered", "sent")]
    causes = Counter(r["cause"] for r in missing)
    cause = _most(causes.elements())
    blocked_by = _most(r["blocked_by"] for r in missing)
    expired = causes["expired"]
    open_ones = max((r["open_messages"] or 0 for r in missing), default=0)
    first, last = missing[0], missing[-1]
    took = [r["acknowledged_ms"] for r in got if r["acknowledged_ms"] is not None]
    took_ms = median(took) if took else 0.0
    said = _said(cause, blocked_by, expired, len(missing))
    overtaken = _overtaken(missing, got)
    longest = ms_text(max(r["waited_ms"] for r in missing))
    topics = sorted({printable(r["topic"], 60) for r in missing})
    publishers = sorted({f"{r['client_id'] or '(no client id)'}@{r['client_address'] or '?'}" for r in missing})
    yield RULE.finding(
        confidence="medium" if cause is None else "high",
        subject={
            "server": first["server_address"],
            "subscriber": first["subscriber"],
            "filter": first["topic_filter"],
        },
        sentence=(
            f"{count(len(missing), 'message')} on {_some(topics)} did not reach {_who(missing)}, which subscribes to "
            f"{printable(first['topic_filter'] or '?', 60)}; {_others(got)}. "
            f"{said.format(open=count(open_ones, 'message'), took=ms_text(took_ms))}"
            f"{_lost_for_good(len(overtaken))} Published by {', '.join(publishers[:4])}"
            f" {period_text(first['ts'], last['ts'])}, and waited for {longest} at most."
        ),
        next_step=_next_step(cause, blocked_by),
        proof=Proof(
            first["ts"], last["ts"], (Evidence(r["file"], r["packet"], r["message_id"]) for r in overtaken or missing)
        ),
        numbers={
            "missing": len(missing),
            "overtaken": len(overtaken),
            "acknowledged_ms": took_ms or None,
            "delivered": sum(r["status"] == "delivered" for r in got),
            "sent_not_acknowledged": sum(r["status"] == "sent" for r in got),
            "records_lost": len(missing),
            "cause": cause,
            "blocked_by": blocked_by,
            "expired": expired,
            "open_messages": open_ones,
            "topic_filter": first["topic_filter"],
            "share_name": first["share_name"],
            "topics": topics[:20],
            "publishers": publishers[:20],
            "where": topics[0],
            "clients": _clients(missing, got),
        },
    )


def _most(causes: Iterable[str | None]) -> str | None:
    """The one that most have, of those that are known."""
    counted = Counter(one for one in causes if one)
    return max(counted, key=lambda one: counted[one], default=None)


def _said(cause: str | None, blocked_by: str | None, expired: int, missing: int) -> str:
    """Why, with {open} and {took} still to be filled in: expiry before what held the messages up."""
    if cause != "expired":
        some = f" {expired:,} of them expired meanwhile." if expired else ""
        return f"{_WHY[cause].said}{some}"
    all_of_them = _EXPIRED if expired == missing else f"Of {expired:,} of them the message expiry interval was over."
    return f"{all_of_them} {_WHY[blocked_by].said}" if blocked_by else all_of_them


def _next_step(cause: str | None, blocked_by: str | None) -> str:
    if cause != "expired":
        return _WHY[cause].next_step
    if blocked_by is None:
        return _AFTER_EXPIRY
    return f"{_WHY[blocked_by].next_step} Messages expire meanwhile: then at the publisher's message expiry interval."


def _overtaken(missing: list[Row], got: list[Row]) -> list[Row]:
    """What is missing although a later message of its topic came: servers keep the order of a topic."""
    last: dict[str, int] = {}
    for row in got:
        last[row["topic"]] = max(row["ts"], last.get(row["topic"], 0))
    return [row for row in missing if row["ts"] < last.get(row["topic"], 0)]


def _lost_for_good(overtaken: int) -> str:
    return f" {overtaken:,} of them are lost for good: later ones came." if overtaken else ""


def _some(topics: list[str]) -> str:
    more = f" and {len(topics) - 3} more topics" if len(topics) > 3 else ""
    return f"{', '.join(topics[:3])}{more}"


def _name(row: Row) -> str:
    name, address = row["subscriber_client_id"] or "(no client id)", row["subscriber_address"] or "(unknown address)"
    return f"client {printable(name, 80)} at {address}"


def _who(missing: list[Row]) -> str:
    """The subscriber; of a shared subscription the group, and the member that stands still."""
    share = missing[0]["share_name"]
    if share is None:
        return _name(missing[0])
    members = sorted({_name(row) for row in missing if row["subscriber_flow_id"] is not None})
    group = f"the group {printable(share, 60)} of a shared subscription"
    return f"{group} ({', '.join(members[:3])} is stalled)" if members else group


def _others(got: list[Row]) -> str:
    sent = sum(r["status"] == "sent" for r in got)
    unconfirmed = f", {sent:,} of them without acknowledgement" if sent else ""
    return f"{len(got):,} others did{unconfirmed}"


def _clients(missing: list[Row], got: list[Row]) -> list[Row]:
    """One element for each subscriber: those that stand still first, then members that got messages."""
    found: dict[tuple[str | None, str | None, str | None], Row] = {}
    for kind, rows in (("missing", missing), ("delivered", got)):
        for row in rows:
            who = (row["subscriber_flow_id"], row["subscriber_client_id"], row["subscriber_address"])
            if who[0] is None:
                continue
            one = found.setdefault(
                who, {"address": who[2], "client_id": who[1], "flow_id": who[0], "missing": 0, "delivered": 0}
            )
            one[kind] += 1
    standing = [one for one in found.values() if one["missing"]]
    return (standing or list(found.values()))[:20]


RULE = Rule(
    code="MQT115",
    question="stalled",
    name="undelivered",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_deliveries": (
            "ts", "message_id", "topic", "client_id", "client_address", "subscriber_flow_id", "subscriber_client_id",
            "subscriber_address", "share_name", "status", "cause", "blocked_by", "open_messages", "waited_ms",
            "acknowledged_ms", "file", "packet",
        ),
    },
    partition_by=("server_address", "subscriber", "topic_filter"),
    detect=detect,
    suspects=(
        "SELECT server_address, subscriber, topic_filter FROM r_mqtt_deliveries "
        "WHERE status = 'missing' AND waited_ms >= 10000"
    ),
)  # fmt: skip
