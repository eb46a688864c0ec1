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
    and got at most two messages (messages_most) and was closed by the client itself; or 10 (again_least), four fifths
    of its connections, with less time from one to the next, in the median, than a third of the keep-alive that it asks
    for. The same where one address has a new client id for each connection, and all of them publish on the same topic:
    one program, not many devices. Or 20 client ids at one address
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
from itertools import pairwise
from operator import itemgetter
from statistics import median

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import most_within
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

_SHARE = 0.8
_OF_A_KEEP_ALIVE = 3
_PROOF = ("file", "packet", "exchange_id")


def detect(
    frames: Frames,
    *,
    connects_least: int = 20,
    window_s: float = 60.0,
    messages_most: int = 2,
    again_least: int = 10,
    sessions_least: int = 20,
) -> Iterator[Finding]:
    """One finding for each client id that connects all the time, one for each kind of client id left behind."""
    by_id: dict[str, list[Row]] = {}
    nameless: list[Row] = []
    for row in rows_of(frames["mqtt_connections"]):
        (by_id.setdefault(row["client_id"], []) if row["client_id"] else nameless).append(row)
    for rows in by_id.values():
        brief = [row for row in rows if _is_short(row, messages_most)]
        most = most_within(brief, int(window_s * NS_PER_S), itemgetter("ts"))
        often = 2 * len(brief) >= len(rows) and len(most) >= connects_least
        if often or (len(brief) >= _SHARE * len(rows) and _sooner_than_needed(brief, again_least)):
            yield _churn(brief)
    alone = [*nameless, *(rows[0] for rows in by_id.values() if len(rows) == 1)]
    once = [row for row in alone if _is_short(row, messages_most)]
    topics = {row["flow_id"]: row["topic"] for row in rows_of(frames["mqtt_publishes"])}
    same: dict[str, list[Row]] = {}
    for row in once:
        if (topic := topics.get(row["flow_id"])) is not None and not (row["client_id"] and row["client_id"] in topic):
            same.setdefault(topic, []).append(row)
    for brief in same.values():
        ordered = sorted(brief, key=lambda row: (row["ts"], row["flow_id"]))
        if _sooner_than_needed(ordered, again_least) and not _overlap(ordered):
            yield _churn(ordered)
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


def _sooner_than_needed(rows: list[Row], least: int) -> bool:
    """So many, and far sooner one after the other than the keep-alive for which they ask."""
    if len(rows) < least:
        return False
    gap_ns = median(after["ts"] - before["ts"] for before, after in pairwise(rows))
    keep_alive_s = median(row["keep_alive_s"] or 0 for row in rows)
    return bool(_OF_A_KEEP_ALIVE * gap_ns < keep_alive_s * NS_PER_S)


def _overlap(rows: list[Row]) -> bool:
    """Are two of them open at once? Then it is not one program that connects for each message."""
    ends = [row["ts_closed"] or row["ts"] for row in rows]
    return any(after["ts"] < end for end, after in zip(ends, rows[1:], strict=False))


def _is_left(row: Row) -> bool:
    """A session that was new, outlives its connection and was never resumed."""
    is_own = row["started_by"] != "earlier" and row["connections"] == 1
    return is_own and row["ts_offline"] is not None and row["ended_by"] not in ("connection", "unknown")


def _begins(client_id: str) -> str:
    """What is left of a client id without the number or random part at its end."""
    return re.sub(r"[-_./:]?[0-9a-fA-F-]{3,}$|[0-9]+$", "", client_id)


def _churn(rows: list[Row]) -> Finding:
    last = rows[-1]
    sent = sum(row["publishes_from_client"] or 0 for row in rows)
    ids = len({row["client_id"] for row in rows})
    anew = " with a new client id each time" if ids > 1 else ""
    got = sum(bool(row["publishes_from_server"] and row["publishes_from_client"]) for row in rows)
    is_check = 2 * got > len(rows)
    return RULE.finding(
        severity="info" if is_check else "warning",
        subject={"server": last["server_address"], "client_id": last["client_id"], "address": last["client_address"]},
        title=f"{len(rows):,} connections for {count(sent, 'message')}: {client_title(last)} at {server_text(last)}",
        sentence=(
            f"{sentence_start(client_text(last))} connected {times(len(rows))} to {server_text(last)}{anew} "
            f"{period_text(rows[0]['ts'], last['ts'])}, and published {sent:,} messages in total: "
            f"a connection for each message or two{', and one that comes back to it' if is_check else ''}."
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
            "ts", "exchange_id", "flow_id", "client_id", "client_port", "server_port", "version", "keep_alive_s",
            "publishes_from_client", "publishes_from_server", "disconnected_by", "closed_by", "ts_closed", "file",
            "packet",
        ),
        "mqtt_publishes": ("ts", "flow_id", "topic"),
        "mqtt_sessions": (
            "ts", "ts_offline", "exchange_id", "client_id", "client_port", "server_port", "version", "started_by",
            "ended_by", "connections", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_address"),
    detect=detect,
    rows={
        "mqtt_connections": "connect_seen AND error_code = 0",
        "mqtt_sessions": "client_id <> ''",
        "mqtt_publishes": """direction = 'client_to_server' AND topic IS NOT NULL AND flow_id IN (
            SELECT flow_id FROM mqtt_connections WHERE publishes_from_client BETWEEN 1 AND 2
                AND 'client' IN (disconnected_by, closed_by))""",
    },
    suspects="SELECT server_address, client_address FROM r_mqtt_connections GROUP BY ALL HAVING count(*) >= 10",
)  # fmt: skip
