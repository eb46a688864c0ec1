"""MQT119 session-lost: a client came back without the session that held its messages.

Finds
    Clients that come back and get nothing of what was published for them meanwhile: their session was gone, or the
    messages had expired in it.

Why it matters
    QoS 1 and 2 promise delivery only as long as there is a session. Publisher and server did all that they had to; the
    messages of that time are lost, and no log says so.

How it decides
    A client id with subscriptions of QoS 1 or 2 leaves and comes back with session present 0, and messages of QoS 1 or
    2 that match these subscriptions were published meanwhile (lost_least). Why is read from the connections: clean
    session or clean start, no session expiry interval, one that was shorter than the absence, or else a server that
    forgot the session. A client that asks for a clean session and takes its leave with DISCONNECT each time wants it
    so: info. With session present 1, messages whose message expiry interval was over count as lost. Bytes missing from
    either connection make it inconclusive, and silent.

False alarms
    A client that asks for a clean session on purpose, and whose connection breaks.

References
    MQTT 3.1.1: section 3.1.2.4 (clean session), 3.2.2.2; 5.0: section 3.1.2.4, 3.1.2.11.2 (session expiry), 3.2.2.1.1,
    3.3.2.3.3 (message expiry), 4.1.
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
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text

NEVER = 0xFFFFFFFF


class _Why(NamedTuple):
    """said: what is said of the cause; next_step: what to do; wanted: the client asks for it."""

    said: str
    next_step: str
    wanted: bool = False


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
    "their message expiry interval was over when it came back",
    "Set a message expiry interval at the publisher that is longer than subscribers may be away.",
)


def detect(frames: Frames, *, lost_least: int = 1) -> Iterator[Finding]:
    """One finding for each reason for which this client id lost `lost_least` messages."""
    by_reason: dict[_Why, list[Row]] = {}
    for row in rows_of(frames["mqtt_offline_periods"]):
        if _lost(row) and not row["gap_bytes"]:
            by_reason.setdefault(_why(row), []).append(row)
    for why, rows in by_reason.items():
        if sum(map(_lost, rows)) >= lost_least:
            yield _finding(why, rows)


def _lost(row: Row) -> int:
    return int(row["expired"] if row["session_present"] else row["messages"])


def _why(row: Row) -> _Why:
    if row["session_present"]:
        return _EXPIRED
    expiry_s, is_five = row["session_expiry_s"], row["version"] == "5.0"
    if is_five and not expiry_s:
        return _CLEAN_BEFORE if row["clean_start"] else _NO_EXPIRY
    if not is_five and row["clean_start"]:
        return _CLEAN_BEFORE
    if is_five and expiry_s != NEVER and row["ts_back"] - row["ts"] >= expiry_s * NS_PER_S:
        return _TOO_SHORT
    return _CLEAN_AFTER if row["next_clean_start"] else _FORGOT


def _finding(why: _Why, rows: list[Row]) -> Finding:
    worst = max(rows, key=_lost)
    lost = sum(map(_lost, rows))
    on_purpose = why.wanted and all(row["disconnected_by"] == "client" for row in rows)
    again = f" In all {times(len(rows))}, {lost:,} messages." if len(rows) > 1 else ""
    at_least = "" if worst["complete"] else "at least "
    publisher = printable(worst["publisher_client_id"] or "(no client id)", 80)
    what = "expired in its session" if why is _EXPIRED else "are lost"
    return RULE.finding(
        severity="info" if on_purpose else "warning",
        confidence="medium" if why is _FORGOT else "high",
        subject={"server": worst["server_address"], "client_id": worst["client_id"], "why": why.said},
        sentence=(
            f"{sentence_start(client_text(worst))} was away {period_text(worst['ts'], worst['ts_back'])}; "
            f"{at_least}{count(_lost(worst), 'message')} of QoS 1 or 2 on {names_text(_topics(worst), 3)} that came "
            f"for it meanwhile {what}: {why.said.format(expiry=worst['session_expiry_s'])}. Published by "
            f"{publisher}@{worst['publisher_address'] or '?'}.{again}"
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
            "next_clean_start", "session_present", "messages", "expired", "unacknowledged", "complete", "topics",
            "first_message_id", "last_message_id", "publisher_client_id", "publisher_address", "next_exchange_id",
            "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    suspects="SELECT server_address, client_id FROM r_mqtt_offline_periods WHERE NOT session_present OR expired > 0",
)  # fmt: skip
