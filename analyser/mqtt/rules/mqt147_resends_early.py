"""MQT147 resends-early: a client sends its messages again before the acknowledgement can be there.

Finds
    Clients that send many messages of QoS 1 or 2 again with DUP on one connection, although the server acknowledges
    them. Question: what is repeated without effect.

Why it matters
    The timer of the client is shorter than the way there and back, so each message goes two or three times over a line
    that is slow anyway, and with QoS 1 each copy is delivered again.

How it decides
    By the fact `mqtt_early_resends`: on one connection at least `again_least` PUBLISH packets with DUP repeat packet
    identifier, topic and content of one before them, at least half (half) as many as it has messages there, and at most
    a tenth (open_share) of the messages were left without an acknowledgement: the server took them. MQTT 5.0 forbids
    it, which MQT107 tells; before it, it is allowed and of no use. The connection has no gaps.

False alarms
    A line on which PUBACK packets came so late now and then only.

References
    MQTT 3.1.1: section 4.4 (a client must send again after a reconnect), 4.3.2; 5.0: [MQTT-4.4.0-1].
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title

RESENDS = "mqtt_early_resends"


def detect(frames: Frames, *, again_least: int = 10, half: float = 0.5, open_share: float = 0.1) -> Iterator[Finding]:
    """One finding for each connection to this server."""
    for row in rows_of(frames[RESENDS]):
        if row["version"] == "5.0" or row["unfinished"] > max(open_share * row["messages"], 1):
            continue
        if row["sent_again"] >= max(again_least, half * row["messages"]):
            yield _finding(row)


def _finding(row: Row) -> Finding:
    topic = printable(row["topic"] or "?", 80)
    return RULE.finding(
        subject={"flow": row["flow_id"], "server": row["server_address"], "client_id": row["client_id"]},
        title=f"{client_title(row)} sends its messages again on a live connection, {times(row['sent_again'])}",
        sentence=(
            f"{sentence_start(client_text(row))} sent {count(row['messages'], 'message')} to {server_text(row)} on one "
            f"connection and {count(row['sent_again'], 'copy', 'copies')} of them with DUP, first on {topic}, "
            f"{period_text(row['ts'], row['ts_last'])}. The server acknowledged them: the client does not wait long "
            "enough."
        ),
        next_step="Let the client wait longer than the way there and back, or send again only after a reconnect.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("message_id", "last_message_id")),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "flow_id": row["flow_id"],
            "sent_again": row["sent_again"],
            "published": row["messages"],
            "records_again": row["sent_again"],
            "topics": [topic],
            "where": server_text(row),
            "clients": [client_numbers(row, sent_again=row["sent_again"])],
        },
    )


RULE = Rule(
    code="MQT147",
    question="repeated",
    name="resends-early",
    severity="warning",
    confidence="high",
    reads={
        RESENDS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "flow_id", "topic", "messages",
            "sent_again", "unfinished", "message_id", "last_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(RESENDS, "sent_again >= 10"),
)  # fmt: skip
