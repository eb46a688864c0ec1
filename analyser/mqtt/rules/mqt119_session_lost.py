"""MQT119 session-lost: a client came back without the session that held its messages.

Finds
    Clients that come back and do not get what was published for them meanwhile: their session was gone, the messages
    had expired in it, or it kept none of them, since they or the subscription have QoS 0.

Why it matters
    QoS 1 and 2 promise delivery only as long as there is a session, and QoS 0 promises none. Publisher and server did
    all that they had to; the messages of that time are lost, and no log says so.

How it decides
    A client id with subscriptions of QoS 1 or 2 leaves and comes back with session present 0, and messages of QoS 1 or
    2 that match these subscriptions were published meanwhile (lost_least). Why is read from the connections: clean
    session or clean start, no session expiry interval, one that was shorter than the absence, or else a server that
    forgot the session. A client that asks for a clean session and takes its leave with DISCONNECT each time wants it
    so: info. With session present 1, what the server did not send counts where it need not: the message expiry interval
    was over, or messages of QoS 1 or 2 met a subscription of QoS 0 (asked for, or granted so), or messages of QoS 0 one
    of QoS 1 or 2 (info). What came all the same is not counted, nor is a retained message that came when the client
    subscribed again. Bytes missing from either connection make it inconclusive, and silent.

False alarms
    A client that asks for a clean session on purpose, and whose connection breaks. A display that wants only what is
    current, and subscribes with QoS 0.

References
    MQTT 3.1.1: section 3.1.2.4 (clean session; QoS 0 need not be stored), 3.2.2.2, 3.8.4 (the lower QoS). 5.0:
    section 3.1.2.4, 3.1.2.11.2 (session expiry), 3.2.2.1.1, 3.3.2.3.3 (message expiry), 4.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text, seconds_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

NEVER = 0xFFFFFFFF


class _Why(NamedTuple):
    """said: what is said of the cause; next_step: what to do; wanted: the client asks for it. lost: column that counts
    them."""

    said: str
    next_step: str
    wanted: bool = False
    lost: str = "messages"
    what: str = "of QoS 1 or 2"


_CLEAN_BEFORE = _Why(
    "it asks for a clean session, so the server keeps nothing once the connection is gone",
    "If these messages matter, connect with clean session off (5.0: a session expiry interval) and a fixed client id.",
    wanted=True,
)
_CLEAN_AFTER = _Why(
    "it came back with clean start, which throws the kept session and its messages away",
    "Look at the reconnect code of the client: clean session (clean start) has to be off when it comes back.",
)
_NO_EXPIRY = _Why(
    "it sets no session expiry interval, so the session ended with the connection",
    "Set a session expiry interval in CONNECT that is longer than the client may be away.",
)
_TOO_SHORT = _Why(
    "its session expiry interval of {expiry} s was shorter than that",
    "Set a session expiry interval that is longer than the client may be away.",
)
_FORGOT = _Why(
    "the server forgot the session, although the client had asked it to keep it",
    "Look at the server: it may have been restarted without persistence, end sessions by itself, or be another node.",
)
_EXPIRED = _Why(
    "their message expiry interval was over",
    "Set a message expiry interval at the publisher that is longer than subscribers may be away.",
    lost="expired",
)
_SUBSCRIBED_0 = _Why(
    "its subscription has QoS 0, for which a session keeps nothing",
    "If these messages matter, let the client subscribe with QoS 1 or 2.",
    lost="qos_0_subscription",
)
_LOWERED_0 = _Why(
    "the server granted QoS 0 where it had asked for more, and for QoS 0 a session keeps nothing",
    "Raise the server's limit or its access rules for QoS; until then the client gets nothing of the time it is away.",
    lost="qos_0_subscription",
)
_PUBLISHED_0 = _Why(
    "they were published with QoS 0, which a session does not keep",
    "If these messages matter, publish them with QoS 1 or 2.",
    wanted=True,
    lost="qos_0_publish",
    what="of QoS 0",
)


def detect(frames: Frames, *, lost_least: int = 1) -> Iterator[Finding]:
    """One finding for each reason for which this client id lost `lost_least` messages."""
    by_reason: dict[_Why, list[Row]] = {}
    lowered = bool(rows_of(frames["mqtt_subscriptions"]))
    for row in rows_of(frames["mqtt_offline_periods"]):
        for why in () if row["gap_bytes"] else _why(row, lowered):
            if row[why.lost]:
                by_reason.setdefault(why, []).append(row)
    for why, rows in by_reason.items():
        if sum(row[why.lost] for row in rows) >= lost_least:
            yield _finding(why, rows)


def _why(row: Row, lowered: bool) -> tuple[_Why, ...]:
    """lowered: the server granted it less than it had asked for."""
    if row["session_present"]:
        return _EXPIRED, _LOWERED_0 if lowered else _SUBSCRIBED_0, _PUBLISHED_0
    expiry_s, is_five = row["session_expiry_s"], row["version"] == "5.0"
    if is_five and not expiry_s:
        return (_CLEAN_BEFORE if row["clean_start"] else _NO_EXPIRY,)
    if not is_five and row["clean_start"]:
        return (_CLEAN_BEFORE,)
    if is_five and expiry_s != NEVER and row["ts_back"] - row["ts"] >= expiry_s * NS_PER_S:
        return (_TOO_SHORT,)
    return (_CLEAN_AFTER if row["next_clean_start"] else _FORGOT,)


def _finding(why: _Why, rows: list[Row]) -> Finding:
    worst = max(rows, key=lambda row: int(row[why.lost]))
    lost = sum(row[why.lost] for row in rows)
    on_purpose = why is _PUBLISHED_0 or (why.wanted and all(row["disconnected_by"] == "client" for row in rows))
    often = f"{times(len(rows))}, the longest " if len(rows) > 1 else ""
    at_least = "" if all(row["complete"] for row in rows) else "At least "
    publisher = printable(worst["publisher_client_id"] or "(no client id)", 80)
    are = "expired in the session of" if why is _EXPIRED else "did not reach"
    topics = names_text([short(one) for one in _topics(worst)], 1)
    return RULE.finding(
        severity="info" if on_purpose else "warning",
        confidence="medium" if why is _FORGOT else "high",
        subject={"server": worst["server_address"], "client_id": worst["client_id"], "why": why.said},
        title=f"{at_least}{count(lost, 'message')} lost while {client_title(worst)} was away: {topics}",
        sentence=(
            f"{at_least}{count(lost, 'message')} {why.what} on {names_text(_topics(worst), 3)} {are} "
            f"{client_text(worst)} while it was away. "
            f"{sentence_start(why.said.format(expiry=worst['session_expiry_s']))}. "
            f"It was away {often}{period_text(worst['ts'], worst['ts_back'])}."
        ),
        next_step=why.next_step,
        proof=Proof(rows[0]["ts"], rows[-1]["ts_back"], _evidence(rows)),
        numbers={
            "client_id": worst["client_id"],
            "address": worst["next_client_address"],
            "server": server_of(worst),
            "flows": [row[name] for row in rows[:20] for name in ("flow_id", "next_flow_id")],
            "records_lost": lost,
            "returns": len(rows),
            "away_longest": seconds_text(max(row["ts_back"] - row["ts"] for row in rows)),
            "why": why.said,
            "session_expiry_s": worst["session_expiry_s"],
            "publisher": f"{publisher}@{worst['publisher_address'] or '?'}",
            "unacknowledged": sum(row["unacknowledged"] or 0 for row in rows),
            "topics": _topics(worst),
            "where": server_text(worst),
            "clients": [client_numbers(worst, lost=lost)],
        },
    )


def _topics(row: Row) -> list[str]:
    return [printable(topic, 60) for topic in json.loads(row["topics"] or "[]")]


def _evidence(rows: list[Row]) -> Iterator[Evidence]:
    """What was published first and last, and the CONNECT that came back."""
    for row in rows:
        yield Evidence(None, None, row["first_message_id"])
        yield Evidence(None, None, row["last_message_id"])
        yield Evidence(row["file"], row["packet"], row["next_exchange_id"])


RULE = Rule(
    code="MQT119",
    question="went back",
    name="session-lost",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_offline_periods": (
            "ts", "flow_id", "client_address", "client_port", "server_port", "version", "clean_start",
            "session_expiry_s", "disconnected_by", "gap_bytes", "next_flow_id", "ts_back", "next_client_address",
            "next_clean_start", "session_present", "messages", "expired", "qos_0_subscription", "qos_0_publish",
            "unacknowledged", "complete", "topics",
            "first_message_id", "last_message_id", "publisher_client_id", "publisher_address", "next_exchange_id",
            "file", "packet",
        ),
        "mqtt_subscriptions": ("ts", "topic_filter"),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={"mqtt_subscriptions": "event = 'subscribe' AND granted_qos = 0 AND requested_qos > 0"},
    suspects=AnyRow("mqtt_offline_periods", "NOT session_present OR expired + qos_0_subscription + qos_0_publish > 0"),
)  # fmt: skip
