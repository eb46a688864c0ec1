"""MQT116 retained-storm: a subscription set off masses of retained messages.

Finds
    SUBSCRIBE packets after which the server sent more than a thousand retained messages.

Why it matters
    A wide filter over a server that keeps much is a burst at every reconnect: slow start, full queues, disconnects.

How it decides
    Messages with the RETAIN flag from the server, from one SUBSCRIBE to the next one on the same connection, more
    than 1000 (retained_above).

False alarms
    A client that wants exactly this. In 5.0 with Retain As Published the flag also stands on live messages.

References
    MQTT 3.1.1: [MQTT-3.3.1-6], [MQTT-3.3.1-8]; 5.0: section 3.3.1.3, 3.8.3.1 (Retain Handling).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import ms_text
from wirewitness.analyser.base.words import names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, ms_between, short


def detect(frames: Frames, *, retained_above: int = 1000) -> Iterator[Finding]:
    """One finding for each SUBSCRIBE on this flow with more than `retained_above` retained messages."""
    filters: dict[str, list[Row]] = {}
    for row in rows_of(frames["mqtt_subscriptions"]):
        filters.setdefault(row["exchange_id"], []).append(row)
    subscribes = sorted((rows[0] for rows in filters.values()), key=lambda row: (row["ts"], row["exchange_id"]))
    sent = [row["ts"] for row in subscribes]
    counts: Counter[int] = Counter()
    payload: Counter[int] = Counter()
    last: dict[int, int] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        place = bisect_right(sent, row["ts"]) - 1
        if place >= 0:
            counts[place] += 1
            payload[place] += row["payload_bytes"] or 0
            last[place] = row["ts"]
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
            "ts", "exchange_id", "client_id", "client_address", "client_port", "server_address", "server_port",
            "version", "topic_filter", "file", "request_packet",
        ),
        "mqtt_publishes": ("ts", "payload_bytes"),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        "mqtt_subscriptions": "event = 'subscribe'",
        "mqtt_publishes": "retain AND direction = 'server_to_client'",
    },
    suspects="SELECT flow_id FROM r_mqtt_publishes GROUP BY flow_id HAVING count(*) > 1000",
)  # fmt: skip
