"""MQT145 no-member: messages came while a shared subscription had no member, and are lost.

Finds
    Groups of shared subscriptions whose members were all gone for a time, and came back, while messages for them were
    published. Question: what does not move although it should.

Why it matters
    A shared subscription is not a queue: it ends with the session of its last member. What is published until the next
    one subscribes goes to nobody, and the publisher is told that all is well. It happens when all workers restart at
    once.

How it decides
    By the fact `mqtt_group_absences`: at least `messages_least` messages of QoS 1 or 2 that match the filter, in times
    that began when the last subscription of the group ended with its session, and ended when a member subscribed again.
    Members whose session is kept are members. Where clients may have subscribed before the capture, it is silent.

False alarms
    Messages that nobody needs any more when the workers are back.

What it cannot tell
    Whether the publisher sent them again later, or another program took care of them.

References
    MQTT 5.0: section 4.8.2 (shared subscriptions), 3.1.2.11.2 (session expiry). 3.1.1: 3.1.2.4 (clean session).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import ms_text, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import short

ABSENCES = "mqtt_group_absences"


def detect(frames: Frames, *, messages_least: int = 5) -> Iterator[Finding]:
    """At most one finding for this group and filter."""
    for row in rows_of(frames[ABSENCES]):
        if row["messages"] >= messages_least:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    group, wanted, topic = (printable(row[one], 80) for one in ("share_name", "topic_filter", "topic"))
    on = topic if row["topics"] == 1 else f"{topic} and {count(row['topics'] - 1, 'more topic')}"
    members = printable(row["member_ids"], 200)
    return RULE.finding(
        subject={"server": row["server_address"], "group": group, "filter": wanted},
        title=f"{count(row['messages'], 'message')} while the group {short(group)} had no member",
        sentence=(
            f"{sentence_start(count(row['messages'], 'message'))} on {on} were lost for the group {group} of the "
            f"shared subscription {wanted} at {server_text(row)}: all of its {count(row['members'], 'member')} "
            f"({members}) were away {times(row['absences'])}, up to {ms_text(row['longest_ms'])}, without a session "
            f"that keeps messages, {period_text(row['ts'], row['ts_last'])}."
        ),
        next_step=(
            "Restart workers one after the other, or let them keep their session (clean session 0; clean start 0 and a "
            "session expiry interval)."
        ),
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("message_id", "last_message_id")),
        ),
        numbers={
            "server": server_of(row),
            "group": group,
            "records_lost": row["messages"],
            "absences": row["absences"],
            "longest_ms": round(row["longest_ms"], 3),
            "publisher": row["publisher"],
            "topics": [topic],
            "topic_filters": [wanted],
            "where": wanted,
            "clients": [{"client_id": one} for one in members.split(", ")],
        },
    )


RULE = Rule(
    code="MQT145",
    question="stalled",
    name="no-member",
    severity="warning",
    confidence="high",
    reads={
        ABSENCES: (
            "ts", "ts_last", "members", "member_ids", "absences", "messages", "longest_ms", "topic", "topics",
            "publisher", "message_id", "last_message_id", "server_port",
        ),
    },
    partition_by=("server_address", "share_name", "topic_filter"),
    detect=detect,
    suspects=AnyRow(ABSENCES),
)  # fmt: skip
