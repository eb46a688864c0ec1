"""MQT128 subscribes-again: a client subscribes again and again to what it is subscribed to.

Finds
    Clients that send SUBSCRIBE for filters that they have on this connection already, or that give a filter up and ask
    for it again all the time. Question: what is repeated without effect.

Why it matters
    Each SUBSCRIBE makes the server look up its tables and send all retained messages that match once more. The client
    handles each of them as news.

How it decides
    By the fact `mqtt_client_subscribes`: at least `least` SUBSCRIBE packets, and at least `share` of all of that
    client, ask for filters that were granted before on the same connection, with the same options, or that it had just
    given up. A new connection may subscribe anew. A warning where these, their answers and the retained messages are
    half of what this client and the server sent each other, or the client sends one for each other message or nearly so
    (share), else info. Info, too, where they are half a keep-alive apart or more: there they stand for PINGREQ. What
    other clients of the server do is said beside.

False alarms
    A client that asks so for retained messages on purpose (retain handling 0).

References
    MQTT 3.1.1: [MQTT-3.8.4-3] (a filter again replaces the subscription, retained messages are sent again); 5.0:
    section 3.8.3.1 (Retain Handling), 3.8.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from statistics import median

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

SUBSCRIBES = "mqtt_client_subscribes"
_HALF = 0.5


def detect(frames: Frames, *, least: int = 10, share: float = 0.8) -> Iterator[Finding]:
    """One finding for each client of this server."""
    alive: dict[tuple[str | None, str | None], float] = {}
    packets: dict[tuple[str | None, str | None], int] = {}
    asked: dict[tuple[str | None, str | None], int] = {}
    for row in rows_of(frames["mqtt_connections"]):
        key = row["client_address"], row["client_id"]
        asked[key] = asked.get(key, 0) + (row["client_messages"] or 0)
        alive[key] = max(alive.get(key, 0), row["keep_alive_s"] or 0)
        packets[key] = packets.get(key, 0) + (row["client_messages"] or 0) + (row["server_messages"] or 0)
    rows = rows_of(frames[SUBSCRIBES])
    for row in rows:
        for kind in ("without_effect", "again"):
            if row[kind] >= max(least, share * row["subscribes"]):
                others = [one["subscribes"] / max(one["connections"], 1) for one in rows if one is not row]
                key = row["client_address"], row["client_id"]
                others_sent = asked.get(key, 0) - row["subscribes"] * (1 if kind == "without_effect" else 2)
                each = bool(asked.get(key)) and row[kind] >= share * others_sent
                often = (row["ts_last"] - row["ts"]) / NS_PER_S < _HALF * (alive.get(key) or inf) * row[kind]
                yield _finding(row, kind, others, packets.get(key, 0), each=each, often=often)


def _finding(row: Row, kind: str, others: list[float], packets: int, *, each: bool, often: bool) -> Finding:
    needless = row[kind]
    waste = 2 * needless + (row["retained"] if row["retained"] >= needless else 0)
    if kind == "again":
        waste *= 2
    name = printable(row["topic_filter"] or "?", 80)
    what = "that it had already, nothing changed" if kind == "without_effect" else "that it had just given up"
    usual = (
        f" {sentence_start(count(len(others), 'other client'))} of this server: {median(others):.1f} for each "
        "connection." if others else ""
    )  # fmt: skip
    retained = f" The server sent it {count(row['retained'], 'retained message')}." if row["retained"] else ""
    return RULE.finding(
        severity="warning" if often and (each or (packets and waste >= _HALF * packets)) else "info",
        provisional=True,
        subject={"server": row["server_address"], "client_id": row["client_id"], "address": row["client_address"],
                 "kind": kind},
        title=f"SUBSCRIBE sent {needless:,} times without need: {short(row['topic_filter'])} by {client_title(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} sent SUBSCRIBE {times(row['subscribes'])} to {server_text(row)} on "
            f"{count(row['connections'], 'connection')}, {period_text(row['ts'], row['ts_last'])}; {needless:,} of "
            f"them were for filters {what}, such as {name}.{retained}{usual}"
        ),
        next_step=(
            "Look for a subscribe call in the loop or handler of messages; subscribe once for each connection. In 5.0 "
            "Retain Handling 1 spares the retained messages."
        ),
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids((row["exchange_id"], row["last_exchange_id"])),
        ),
        numbers={
            "kind": kind,
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "subscribes": row["subscribes"],
            "records_again": needless,
            "connections": row["connections"],
            "retained": row["retained"],
            "packets": packets,
            "usual": round(median(others), 2) if others else None,
            "topic_filters": [name],
            "where": name,
            "clients": [client_numbers(row, subscribes=row["subscribes"])],
        },
    )  # fmt: skip


RULE = Rule(
    code="MQT128",
    question="repeated",
    name="subscribes-again",
    severity="warning",
    confidence="high",
    reads={
        SUBSCRIBES: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "subscribes", "without_effect",
            "again", "connections", "topic_filter", "retained", "exchange_id", "last_exchange_id", "server_port",
        ),
        "mqtt_connections": ("ts", "client_id", "client_address", "client_messages", "server_messages", "keep_alive_s"),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(SUBSCRIBES, "without_effect >= 10 OR again >= 10"),
)  # fmt: skip
