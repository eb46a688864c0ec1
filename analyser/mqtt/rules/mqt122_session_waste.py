"""MQT122 session-waste: connections and sessions that are made and hardly used.

Finds
    A client id that connects for each message or two, and clients that leave a lasting session behind under a new
    client id each time.

Why it matters
    Each connection costs a TCP handshake, a CONNECT, a login and often TLS, at the client, the server and what checks
    passwords. A lasting session that nobody comes back to keeps its subscriptions and its queue at the server until it
    expires, some forever.

How it decides
    20 accepted CONNECTs of one client id in a minute (connects_least, window_s), each of whose connections published
    and got at most two messages (messages_most) and was closed by the client itself. Or 20 client ids at one address
    (sessions_least) that begin alike, each with one session (mqtt_sessions) that outlives its connection, that
    connected once, are gone, and did not come back; info, since it may be many devices behind one address.

False alarms
    Many devices of one kind behind one address, each of which wakes once in the time of the capture.

References
    MQTT 3.1.1: section 3.1.2.4 (clean session); 5.0: section 3.1.2.11.2 (session expiry interval).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

_PROOF = ("file", "packet", "exchange_id")


def detect(
    frames: Frames,
    *,
    connects_least: int = 20,
    window_s: float = 60.0,
    messages_most: int = 2,
    sessions_least: int = 20,
) -> Iterator[Finding]:
    """One finding for each client id that connects all the time, one for each kind of client id left behind."""
    by_id: dict[str, list[Row]] = {}
    for row in rows_of(frames["mqtt_connections"]):
        by_id.setdefault(row["client_id"], []).append(row)
    for rows in by_id.values():
        short = [row for row in rows if _is_short(row, messages_most)]
        if 2 * len(short) >= len(rows) and _most_within(short, int(window_s * NS_PER_S)) >= connects_least:
            yield _churn(short)
    sessions: dict[str, list[Row]] = {}
    for row in rows_of(frames["mqtt_sessions"]):
        sessions.setdefault(row["client_id"], []).append(row)
    left: dict[str, list[Row]] = {}
    for name, rows in sessions.items():
        if len(rows) == 1 and _is_left(rows[0]):
            left.setdefault(_begins(name), []).append(rows[0])
    for rows in left.values():
        if len(rows) >= sessions_least:
            yield _sessions(rows)


def _is_short(row: Row, most: int) -> bool:
    messages = (row["publishes_from_client"] or 0) + (row["publishes_from_server"] or 0)
    return messages <= most and "client" in (row["disconnected_by"], row["closed_by"])


def _is_left(row: Row) -> bool:
    """A session that was new, outlives its connection and was never resumed."""
    is_own = row["started_by"] != "earlier" and row["connections"] == 1
    return is_own and row["ts_offline"] is not None and row["ended_by"] not in ("connection", "unknown")


def _begins(client_id: str) -> str:
    """What is left of a client id without the number or random part at its end."""
    return re.sub(r"[-_./:]?[0-9a-fA-F-]{3,}$|[0-9]+$", "", client_id)


def _most_within(rows: list[Row], window_ns: int) -> int:
    most = first = 0
    for place, row in enumerate(rows):
        while row["ts"] - rows[first]["ts"] > window_ns:
            first += 1
        most = max(most, place - first + 1)
    return most


def _churn(rows: list[Row]) -> Finding:
    last = rows[-1]
    sent = sum(row["publishes_from_client"] or 0 for row in rows)
    return RULE.finding(
        subject={"server": last["server_address"], "client_id": last["client_id"], "address": last["client_address"]},
        title=f"{len(rows):,} connections for {count(sent, 'message')}: {client_title(last)} at {server_text(last)}",
        sentence=(
            f"{sentence_start(client_text(last))} connected {times(len(rows))} to {server_text(last)} "
            f"{period_text(rows[0]['ts'], last['ts'])}, and published {sent:,} messages in total: "
            "a connection for each message or two."
        ),
        next_step="Let the program connect once and keep the connection; a library's single-shot call is for scripts.",
        proof=Proof(rows[0]["ts"], last["ts"], evidence_of(rows, _PROOF)),
        numbers={
            "client_id": last["client_id"],
            "address": last["client_address"],
            "server": server_of(last),
            "connections": len(rows),
            "left_behind": len(rows),
            "published": sent,
            "where": server_text(last),
            "clients": [client_numbers(last, connections=len(rows))],
        },
    )


def _sessions(rows: list[Row]) -> Finding:
    first, last = rows[0], rows[-1]
    names = [printable(row["client_id"], 60) for row in rows]
    return RULE.finding(
        severity="info",
        confidence="medium",
        provisional=True,
        subject={"server": first["server_address"], "address": first["client_address"], "ids": _begins(names[0])},
        title=f"{len(rows):,} sessions left behind at {server_text(first)}: {short(names[0])} and others",
        sentence=(
            f"{len(rows):,} clients at {first['client_address'] or '(unknown address)'} ({names_text(names, 3)}) "
            f"each left a session at {server_text(first)} that outlives its connection. "
            f"They did not come back, {period_text(first['ts'], last['ts'])}."
        ),
        next_step=(
            "Look at who makes a new client id for each connection: give it a fixed one, or a clean session (5.0: no "
            "session expiry interval), and remove the sessions that are left at the server."
        ),
        proof=Proof(first["ts"], last["ts"], evidence_of(rows, _PROOF)),
        numbers={
            "address": first["client_address"],
            "server": server_of(first),
            "sessions": len(rows),
            "left_behind": len(rows),
            "where": server_text(first),
            "clients": [client_numbers(row) for row in rows[:20]],
        },
    )


RULE = Rule(
    code="MQT122",
    question="repeated",
    name="session-waste",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "exchange_id", "client_id", "client_port", "server_port", "version", "publishes_from_client",
            "publishes_from_server", "disconnected_by", "closed_by", "file", "packet",
        ),
        "mqtt_sessions": (
            "ts", "ts_offline", "exchange_id", "client_id", "client_port", "server_port", "version", "started_by",
            "ended_by", "connections", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_address"),
    detect=detect,
    rows={
        "mqtt_connections": "connect_seen AND error_code = 0 AND client_id <> ''", "mqtt_sessions": "client_id <> ''",
    },
    suspects="SELECT server_address, client_address FROM r_mqtt_connections GROUP BY ALL HAVING count(*) >= 20",
)  # fmt: skip
