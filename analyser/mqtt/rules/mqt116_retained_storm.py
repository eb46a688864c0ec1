"""MQT116 retained-storm: a subscription set off masses of retained messages.

Finds
    SUBSCRIBE packets after which the server sent more than a thousand retained messages, and clients that get the same
    retained messages at each reconnect.

Why it matters
    A wide filter over a server that keeps much is a burst at every reconnect: slow start, full queues, disconnects.

How it decides
    Messages with the RETAIN flag from the server, from one SUBSCRIBE to the next one on the same connection, more
    than 1000 (retained_above). At each reconnect: a client got the same retained messages (topic and content) on
    connects_least connections or more, 100 of them at least were no news (again_least), and four fifths (share) of all
    retained ones it got. A warning where these are half of all messages that the server sent to it, and it gets
    contents_least of them or more on a connection, else info: a device that sleeps asks for its settings when it wakes.

False alarms
    A client that wants exactly this. In 5.0 with Retain As Published the flag also stands on live messages.

References
    MQTT 3.1.1: [MQTT-3.3.1-6], [MQTT-3.3.1-8]; 5.0: section 3.3.1.3, 3.8.3.1 (Retain Handling).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, ms_between, short


def detect(
    frames: Frames,
    *,
    retained_above: int = 1000,
    connects_least: int = 5,
    again_least: int = 100,
    share: float = 0.8,
    contents_least: int = 50,
) -> Iterator[Finding]:
    """One finding for each SUBSCRIBE of this client with more than `retained_above` retained messages; else one for all
    of its reconnects."""
    flows: dict[str, tuple[list[Row], list[tuple[int, int]]]] = {}
    for row in rows_of(frames["mqtt_subscriptions"]):
        flows.setdefault(row["flow_id"], ([], []))[0].append(row)
    publishes = frames["mqtt_publishes"]
    for flow, at_ns, size in zip(*map(publishes.__getitem__, ("flow_id", "ts", "payload_bytes")), strict=True):
        flows.setdefault(flow, ([], []))[1].append((at_ns, size or 0))
    storms = [one for subscribed, retained in flows.values() for one in _storms(subscribed, retained, retained_above)]
    yield from storms
    got: dict[str, list[Row]] = {flow: [] for flow, (_, retained) in flows.items() if retained}
    if not storms and len(got) >= connects_least:
        for row in rows_of(publishes):
            got[row["flow_id"]].append(row)
        yield from _again(rows_of(frames["mqtt_connections"]), got, again_least, share, contents_least)


def _again(
    connections: Sequence[Row],
    got: Mapping[str, Sequence[Row]],
    again_least: int,
    share: float,
    contents_least: int,
) -> Iterator[Finding]:
    """The same retained messages on one connection after the other."""
    rows = [row for own in got.values() for row in own]
    contents = {(row["topic"], row["payload_crc32"], row["payload_bytes"]) for row in rows}
    again = len(rows) - len(contents)
    if again < max(again_least, share * len(rows)):
        return
    sent = sum(row["publishes_from_server"] or 0 for row in connections)
    first, last = rows[0], rows[-1]
    size = sum(row["payload_bytes"] or 0 for row in rows)
    yield RULE.finding(
        severity="warning" if 2 * again >= sent and len(rows) >= contents_least * len(got) else "info",
        subject={"server": first["server_address"], "client_id": first["client_id"],
                 "address": first["client_address"]},
        title=f"The same {len(contents):,} retained messages at each of {len(got)} connections: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} got {count(len(rows), 'retained message')} from "
            f"{server_text(first)} on {count(len(got), 'connection')}, {size:,} bytes of payload; {again:,} of them it "
            f"had got before with the same content. In all the server sent it {sent:,} messages, "
            f"{period_text(first['ts'], last['ts'])}."
        ),
        next_step=(
            "Look why it connects so often, or keep its session and subscribe once; in 5.0 Retain Handling 1 sends "
            "them only for a new subscription."
        ),
        proof=Proof(first["ts"], last["ts"], evidence_of([own[0] for own in got.values()])),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "retained": len(rows),
            "records_again": again,
            "contents": len(contents),
            "connections": len(got),
            "bytes": size,
            "sent": sent,
            "topics": sorted({printable(row["topic"] or "?", 60) for row in rows})[:20],
            "where": server_text(first),
            "clients": [client_numbers(first, retained=len(rows))],
        },
    )  # fmt: skip


def _storms(subscribed: Sequence[Row], got: Sequence[tuple[int, int]], retained_above: int) -> Iterator[Finding]:
    """On one connection. got: times and sizes of retained messages."""
    filters: dict[str, list[Row]] = {}
    for row in subscribed:
        filters.setdefault(row["exchange_id"], []).append(row)
    subscribes = sorted((rows[0] for rows in filters.values()), key=lambda row: (row["ts"], row["exchange_id"]))
    sent = [row["ts"] for row in subscribes]
    counts: Counter[int] = Counter()
    payload: Counter[int] = Counter()
    last: dict[int, int] = {}
    for at_ns, size in got:
        place = bisect_right(sent, at_ns) - 1
        if place >= 0:
            counts[place] += 1
            payload[place] += size
            last[place] = at_ns
    for place, retained in sorted(counts.items()):
        if retained <= retained_above:
            continue
        row = subscribes[place]
        names = [printable(r["topic_filter"] or "?", 60) for r in filters[row["exchange_id"]]]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        took_ms = ms_between(row["ts"], last[place])
        yield RULE.finding(
            subject={"flow": row["flow_id"], "exchange": row["exchange_id"]},
            title=f"{retained:,} retained messages at once: {short(names[0])}{more} to {client_title(row)}",
            sentence=(
                f"A SUBSCRIBE of {client_text(row)} to {names_text(names, 4)} made the server {server_text(row)} send "
                f"{retained:,} retained messages within {ms_text(took_ms)}."
            ),
            next_step="Subscribe to less, ask for them only once (5.0: Retain Handling 1), or clear old ones.",
            proof=Proof(row["ts"], last[place], (Evidence(row["file"], row["request_packet"], row["exchange_id"]),)),
            numbers={
                "flow_id": row["flow_id"],
                "retained": retained,
                "took_ms": took_ms,
                "bytes": payload[place],
                "topic_filters": names[:20],
                "where": names[0],
                "clients": [client_numbers(row, retained=retained)],
            },
        )


RULE = Rule(
    code="MQT116",
    question="repeated",
    name="retained-storm",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_subscriptions": (
            "ts", "exchange_id", "flow_id", "client_port", "server_port", "version", "topic_filter", "file",
            "request_packet",
        ),
        "mqtt_publishes": (
            "ts", "flow_id", "client_port", "server_port", "version", "topic", "payload_bytes", "payload_crc32",
            "message_id", "file", "packet",
        ),
        "mqtt_connections": ("ts", "publishes_from_server"),
    },
    partition_by=("server_address", "client_id", "client_address"),
    detect=detect,
    rows={
        "mqtt_subscriptions": "event = 'subscribe'",
        "mqtt_publishes": "retain AND direction = 'server_to_client'",
    },
    suspects="""
        SELECT server_address, client_id, client_address FROM r_mqtt_publishes
        GROUP BY ALL HAVING count(*) > 1000 OR (count(*) >= 100 AND count(DISTINCT flow_id) >= 5)""",
)  # fmt: skip
