"""MQT130 reaches-nobody: the server acknowledges messages and sends them to none of their subscribers.

Finds
    Messages of QoS 1 or 2 of one client and topic that the server took, and sent to nobody, although subscriptions that
    match were in force. Question: what does not move although it should.

Why it matters
    The publisher has its acknowledgement and the subscriber its subscription; what is between says nothing. An access
    rule that refuses looks like this with MQTT 3.1.1, which has no code for it: servers acknowledge and drop.

How it decides
    By mqtt_deliveries: of one publisher and topic at least `missed_least` messages were acknowledged without an error
    and are missing at every subscriber whose filter matches; none came, and nothing on the subscribers' connections
    explains it. Their connections were open and without gaps: a PUBLISH to them would
    have been seen.

False alarms
    A bridge or a cluster whose nodes have several addresses.

What it cannot tell
    Whether it is the publisher that may not write or the subscribers that may not read, unless others differ.

References
    MQTT 3.1.1: section 3.3.5, [MQTT-3.3.5-2] (a server that does not authorise a PUBLISH acknowledges it or closes);
    5.0: 3.4.2.1 (0x87 Not authorized). Mosquitto: acl_file.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text, who_is
from wirewitness.analyser.base.times import NS_PER_MS, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import MAX_NAME, short

DELIVERIES = "mqtt_deliveries"


def detect(frames: Frames, *, missed_least: int = 5) -> Iterator[Finding]:
    """At most one finding for this publisher and topic."""
    rows = rows_of(frames[DELIVERIES])
    messages = {row["message_id"]: row for row in rows if row["status"] == "missing"}
    if len(messages) >= missed_least and all(row["status"] in ("missing", "unknown") for row in rows):
        yield _finding(rows, [*messages.values()])


def _finding(rows: list[Row], messages: list[Row]) -> Finding:
    first, last = messages[0], messages[-1]
    topic = printable(first["topic"], 80)
    publisher = who_is(first["client_id"], first["client_address"], most=MAX_NAME)
    whom = sorted(
        {
            f"{row['subscriber_client_id'] or row['subscriber_address'] or 'an unknown client'}"
            + (f" ({row['topic_filter']})" if row["topic_filter"] else "")
            for row in rows
        }
    )
    names = [printable(one, 60) for one in whom]
    at_least = "At least " if any(row["status"] == "unknown" for row in rows) else ""
    return RULE.finding(
        subject={"server": first["server_address"], "client_id": first["client_id"], "topic": first["topic"]},
        title=(
            f"{at_least}{count(len(messages), 'message')} acknowledged and sent to nobody: {short(first['topic'])} of "
            f"{short(first['client_id'] or first['client_address'])}"
        ),
        sentence=(
            f"{sentence_start(server_text(first))} acknowledged {at_least.lower()}{count(len(messages), 'message')} of "
            f"{publisher} on {topic} and sent none of them to {count(len(names), 'subscriber')} whose filter matches: "
            f"{names_text(names, 3)}. It was {period_text(first['ts'], last['ts'])}."
        ),
        next_step=(
            "Look at the server's access rules: may this client publish on the topic, and may the subscribers read it? "
            "Servers drop silently what is not allowed; their log may say so."
        ),
        proof=Proof(
            first["ts"], last["ts"], (Evidence(row["file"], row["packet"], row["message_id"]) for row in messages)
        ),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "records_lost": len(messages),
            "subscribers": names[:20],
            "stood_still_ms": round((last["ts"] - first["ts"]) / NS_PER_MS, 3),
            "topics": [topic],
            "where": topic,
            "clients": [{"address": first["client_address"], "client_id": first["client_id"]}],
        },
    )  # fmt: skip


# Publishers and topics of which nothing came, and nothing shows why.
_NOBODY = f"""
    SELECT server_address, client_id, topic FROM {DELIVERIES} WHERE qos > 0 GROUP BY ALL
    HAVING count(DISTINCT message_id) FILTER (status = 'missing') >= 5 AND bool_and(cause IS NULL)
        AND bool_and(status IN ('missing', 'unknown') AND NOT coalesce(queued, false))"""
RULE = Rule(
    code="MQT130",
    question="stalled",
    name="reaches-nobody",
    severity="warning",
    confidence="medium",
    reads={
        DELIVERIES: (
            "ts", "message_id", "client_address", "subscriber_client_id", "subscriber_address", "topic_filter",
            "status", "server_port", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id", "topic"),
    detect=detect,
    rows={
        DELIVERIES: f"""qos > 0 AND (server_address, coalesce(client_id, ''), topic) IN (
            SELECT (server_address, coalesce(client_id, ''), topic) FROM ({_NOBODY}))""",
    },
    suspects=AnyRow(DELIVERIES),
)  # fmt: skip
