"""MQT149 subscribes-late: a client subscribes after the answer that it waits for has come.

Finds
    Clients that publish something, and subscribe to the topic of the answer only when that has come, connection after
    connection. Question: what does not move although it should.

Why it matters
    The server sends a message to those who are subscribed when it comes. The answer goes to nobody, the client waits
    for it and begins anew, and each side sees that the other one did its part.

How it decides
    By the fact `mqtt_late_subscribes`: on at least `missed_least` connections, four fifths (share) of those on which
    the client asked for the filter, it had published something, then another client published on a topic that is
    exactly this filter, without RETAIN and to nobody, and only after that the server granted the filter. By this
    filter fewer came to it than it missed so. With a session from before, the subscription may have been in force:
    such connections do not count.

False alarms
    A message on that topic that has nothing to do with what the client sent.

References
    MQTT 3.1.1 and 5.0: section 3.8.4 (a subscription is in force from its SUBACK on); 5.0: section 4.10 (request and
    response).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import ms_text, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

LATE = "mqtt_late_subscribes"


def detect(frames: Frames, *, missed_least: int = 3, share: float = 0.8) -> Iterator[Finding]:
    """One finding for each client and filter at this server."""
    for row in rows_of(frames[LATE]):
        if row["missed"] >= max(missed_least, share * row["connections"]) and row["got"] < row["missed"]:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    wanted = printable(row["topic_filter"], 80)
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "filter": wanted},
        title=f"{client_title(row)} subscribes to {short(row['topic_filter'])} after the answer has come",
        sentence=(
            f"{sentence_start(client_text(row))} subscribed too late to {wanted} at {server_text(row)} on "
            f"{row['missed']:,} of {count(row['connections'], 'connection')}: it had published before, and a message "
            f"on that topic, from client {printable(row['publisher'] or '?', 60)}, went to nobody, "
            f"{ms_text(row['late_ms'])} before the filter was granted in the median, "
            f"{period_text(row['ts'], row['ts_last'])}. By this filter {row['got']:,} reached it."
        ),
        next_step="Let the client subscribe and wait for SUBACK first, and publish its request then.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("message_id", "exchange_id", "last_message_id")),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "missed": row["missed"],
            "records_lost": row["missed"],
            "got": row["got"],
            "late_ms": round(row["late_ms"], 3),
            "topics": [wanted],
            "topic_filters": [wanted],
            "where": wanted,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT149",
    question="stalled",
    name="subscribes-late",
    severity="warning",
    confidence="high",
    reads={
        LATE: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic_filter", "missed",
            "connections", "got", "publisher", "late_ms", "message_id", "last_message_id", "exchange_id",
            "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(LATE),
)  # fmt: skip
