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
    gaps. Of what a session kept, later ones that came are enough, where the subscriber acknowledged all that it got.
    DUP does not matter: a server may set it the first time. Of a shared subscription no member got it; the member that
    stands still is named, if one does. One finding for each subscriber and filter (missing_least messages). The cause
    is one that the packets show: larger than the Maximum Packet Size of the subscriber; over its message expiry
    interval; a dead path (the server's TCP sends again, and nothing comes back); a receive window of zero for a
    second; an unfinished QoS 2 handshake; a message that it had not acknowledged for a second or more when the missing
    one was published, or never; a second or more for each acknowledgement in the median of five. Without one, none is
    told. "At least": of more it is not known, since the capture ends.

False alarms
    QoS 0 may be dropped by the server for a slow subscriber. A bridge or a cluster whose nodes have several
    addresses.

What it cannot tell
    Why a server drops a message: access rules and full queues look alike. Servers keep the order of a topic, so what
    was published before the last message that came is lost.

References
    MQTT 3.1.1 and 5.0: section 4.7 (filters), [MQTT-3.3.5-1] (3.1.1), 3.3.1.1 (DUP), 4.6 (order), 4.8.2 (shared, 5.0),
    [MQTT-3.3.2-5] (expiry, 5.0), [MQTT-3.1.2-25] (a packet that is too large is dropped, 5.0), 4.9 (flow control, 5.0).
    RFC 6298 (retransmission).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.times import moment_text, ms_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import short

LEAST_TOOK = 5  # a median needs so many


class _Why(NamedTuple):
    """What is said of a cause, and what to do; {open}: messages not acknowledged; {took}: for one; {since}: when it
    began; {lasted}: for how long."""

    said: str
    next_step: str


_WHY = {
    "packet_too_large": _Why(
        "the Maximum Packet Size of its CONNECT is smaller, so the server drops such messages",
        "Raise Maximum Packet Size at the subscriber, or publish smaller messages.",
    ),
    "dead_path": _Why(
        "the path to it is dead since {since}: what the server sent again and again was never ACKed",
        "Look at the network between server and subscriber, and at the subscriber's host: its TCP does not answer.",
    ),
    "zero_window": _Why(
        "the subscriber advertised a zero window: it does not read, and the server's queue fills",
        "Look at the subscriber's process: it is frozen, or its message handler blocks the thread that reads.",
    ),
    "unfinished_qos2": _Why(
        "the subscriber had left {open} unfinished in the QoS 2 handshake{lasted}, which fills the window of messages "
        "in flight",
        "Look at the subscriber: it sends PUBREC or PUBCOMP not, or too late; MQT105 says for which messages.",
    ),
    "unacknowledged": _Why(
        "the subscriber had left {open} unacknowledged{lasted}, which fills the window of messages in flight",
        "Look at the subscriber's handler: it acknowledges not, or too late; then at Receive Maximum and the server's "
        "limits of messages in flight and of queued messages.",
    ),
    "slow": _Why(
        "the subscriber takes {took} to acknowledge a message, so the server's queue for it fills",
        "Look at the subscriber's handler: let it hand over the message and acknowledge at once, or share the work "
        "among several; then at the server's limit of queued messages.",
    ),
}
_EXPIRED = "The message expiry interval was over before the server could send"
_AFTER_EXPIRY = "Look at what held the messages up, and at the message expiry interval of the publisher."
_SERVER_STEP = (
    "Look at the server's log for dropped messages, at its limits of queued messages, and at its access rules for "
    "publisher and subscriber."
)
_QUEUE_STEP = "Look at the server: its limit of queued messages, its store of sessions, and its log of that time."


def detect(frames: Frames, *, wait_s: float = 10.0, missing_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this subscriber and filter."""
    rows = rows_of(frames["mqtt_deliveries"])
    missing = [r for r in rows if r["status"] == "missing" and _is_over(r, wait_s)]
    if not missing or len(missing) < missing_least:
        return
    got = [r for r in rows if r["status"] in ("delivered", "sent")]
    cause, blocked_by = _most(r["cause"] for r in missing), _most(r["blocked_by"] for r in missing)
    overtaken = [r for r in missing if r["overtaken"]]
    topics = sorted({printable(r["topic"], 60) for r in missing})
    unknown = any(r["status"] == "unknown" for r in rows)
    yield RULE.finding(
        confidence="medium" if cause is None else "high",
        subject={
            "server": missing[0]["server_address"],
            "subscriber": missing[0]["subscriber"],
            "filter": missing[0]["topic_filter"],
        },
        title=(
            f"{'At least ' if unknown else ''}{count(len(missing), 'message')} not delivered: "
            f"{names_text([short(one) for one in topics], 1)} to {_who_title(missing[0])}"
        ),
        sentence=(
            f"{'At least ' if unknown else ''}{count(len(missing), 'message')} on {names_text(topics, 3)} did not "
            f"reach {_who(missing)}, {len(got):,} did.{_said(missing, got, cause, blocked_by)}"
            f"{_lost_for_good(missing, overtaken, cause)}"
        ),
        next_step=_next_step(missing, cause, blocked_by),
        proof=Proof(
            missing[0]["ts"],
            missing[-1]["ts"],
            (Evidence(r["file"], r["packet"], r["message_id"]) for r in overtaken or missing),
        ),
        numbers=_numbers(missing, got, overtaken, unknown) | {"cause": cause, "blocked_by": blocked_by},
    )


def _is_over(row: Row, wait_s: float) -> bool:
    """It was waited for long enough, or its session kept it and later ones came."""
    return (row["waited_ms"] or 0) >= wait_s * 1000 or bool(row["overtaken"] and row["queued"])


def _numbers(missing: list[Row], got: list[Row], overtaken: list[Row], unknown: bool) -> Row:
    first, took = missing[0], _took(got)
    publishers = sorted({f"{r['client_id'] or '(no client id)'}@{r['client_address'] or '?'}" for r in missing})
    topics = sorted({printable(r["topic"], 60) for r in missing})
    return {
        "missing": len(missing),
        "at_least": unknown,
        "overtaken": len(overtaken),
        "queued": sum(bool(r["queued"]) for r in missing),
        "acknowledged_ms": median(took) if took else None,
        "delivered": sum(r["status"] == "delivered" for r in got),
        "sent_not_acknowledged": sum(r["status"] == "sent" for r in got),
        "records_lost": len(missing),
        "expired": sum(r["cause"] == "expired" for r in missing),
        "open_messages": max((r["open_messages"] or 0 for r in missing), default=0),
        "blocked_ms": max((r["blocked_ms"] for r in missing if r["blocked_ms"] is not None), default=None),
        "waited": ms_text(max(r["waited_ms"] or 0 for r in missing)),
        "topic_filter": first["topic_filter"],
        "share_name": first["share_name"],
        "topics": topics[:20],
        "publishers": [printable(one, 160) for one in publishers[:20]],
        "where": topics[0],
        "clients": _clients(missing, got),
    }


def _took(got: list[Row]) -> list[float]:
    return [r["acknowledged_ms"] for r in got if r["acknowledged_ms"] is not None]


def _most(causes: Iterable[str | None]) -> str | None:
    """The one that most have, of those that are known."""
    counted = Counter(one for one in causes if one)
    return max(counted, key=lambda one: counted[one], default=None)


def _said(missing: list[Row], got: list[Row], cause: str | None, blocked_by: str | None) -> str:
    """Why, as far as the packets show: expiry before what held the messages up."""
    expired = sum(r["cause"] == "expired" for r in missing)
    of_them = f" {_EXPIRED}." if expired == len(missing) else f" {expired:,} expired meanwhile." if expired else ""
    if cause is None:
        return of_them
    held_by = blocked_by if cause == "expired" else cause
    if held_by is None:
        return of_them
    told = [r for r in missing if held_by in (r["cause"], r["blocked_by"])]
    since = [r["ts_blocked"] for r in told if r["ts_blocked"] is not None]
    lasted = max((r["blocked_ms"] for r in told if r["blocked_ms"] is not None), default=None)
    open_ones = max((r["open_messages"] or 0 for r in told), default=0)
    took = _took(got)
    why = _WHY[held_by].said.format(
        open=count(open_ones or 1, "message"),
        took=f"{ms_text(median(took))} in the median" if len(took) >= LEAST_TOOK else "a second or more",
        since=moment_text(min(since)) if since else "?",
        lasted="" if lasted is None else f" for {ms_text(lasted)}",
    )
    return f"{of_them} {sentence_start(why)}."


def _next_step(missing: list[Row], cause: str | None, blocked_by: str | None) -> str:
    if cause is None:
        return _QUEUE_STEP if all(r["queued"] for r in missing) else _SERVER_STEP
    if cause != "expired":
        return _WHY[cause].next_step
    if blocked_by is None:
        return _AFTER_EXPIRY
    return f"{_WHY[blocked_by].next_step} Messages expire meanwhile: then at the publisher's message expiry interval."


def _lost_for_good(missing: list[Row], overtaken: list[Row], cause: str | None) -> str:
    if not overtaken:
        return ""
    some = "They" if len(overtaken) == len(missing) else f"{len(overtaken):,} of them"
    are = "are" if some == "They" or len(overtaken) > 1 else "is"
    if cause is None and all(r["queued"] for r in overtaken):
        return f" {some} had waited in its session, which went on, and {are} lost: later ones were sent."
    return f" {some} {are} lost: later ones were sent."


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


def _who_title(row: Row) -> str:
    if row["share_name"] is not None:
        return f"group {short(row['share_name'])}"
    return short(row["subscriber_client_id"] or row["subscriber_address"])


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
            "subscriber_address", "share_name", "status", "cause", "blocked_by", "open_messages", "ts_blocked",
            "blocked_ms", "overtaken", "queued", "waited_ms", "acknowledged_ms", "file", "packet",
        ),
    },
    partition_by=("server_address", "subscriber", "topic_filter"),
    detect=detect,
    suspects=(
        AnyRow("mqtt_deliveries", "status = 'missing' AND (waited_ms >= 10000 OR (overtaken AND queued))")
    ),
)  # fmt: skip
