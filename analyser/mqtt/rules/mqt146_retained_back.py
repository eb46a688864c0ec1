"""MQT146 retained-back: a server sends an earlier retained message in place of the last one.

Finds
    Topics of which a server gives out an old retained message although a client had set a newer one. Question: what
    went back.

Why it matters
    The server lost what it had acknowledged: it was killed and came back with its last saved copy, or a replica with an
    older state took over. Every client that subscribes acts on an old value, as if it were the present one.

How it decides
    By the fact `mqtt_retained_back`: at least `served_least` times the server sent, as retained, the payload of a step
    before the last one, five seconds or more after the last one was set. All steps of the topic differ, four at least,
    so nobody set that value again by chance, and nobody set any in between. Topics that a will or somebody unseen set
    are left out.

False alarms
    A client outside of the capture that sets an old value again.

What it cannot tell
    Why the server has the old one: look for connections that all ended at one time before it.

References
    MQTT 3.1.1 and 5.0: section 3.3.1.3 (the server keeps the last one and replaces it), [MQTT-3.3.1-5].
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, moment_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_text, short

BACK = "mqtt_retained_back"


def detect(frames: Frames, *, served_least: int = 1) -> Iterator[Finding]:
    """At most one finding for this topic."""
    for row in rows_of(frames[BACK]):
        if row["served"] >= served_least:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    server = server_text(row)
    return RULE.finding(
        subject={"server": row["server_address"], "topic": row["topic"]},
        title=f"Server {server} sends an old retained message on {short(row['topic'])}",
        sentence=(
            f"{sentence_start(server)} sent an old retained message on {topic} {times(row['served'])}, to "
            f"{count(row['subscribers'], 'client')}, first at {moment_text(row['ts'])}: the one of "
            f"{moment_text(row['ts_old'])}. {sentence_start(client_text(row))} had set a newer one at "
            f"{moment_text(row['ts_set'])}; nobody set any in between."
        ),
        next_step=(
            "Look at whether the server was restarted or failed over in between, how often it saves retained messages, "
            "and let the publisher set the value again."
        ),
        proof=Proof(
            row["ts_old"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("message_id", "set_message_id", "old_message_id")),
        ),
        numbers={
            "server": server_of(row),
            "served": row["served"],
            "records_again": row["served"],
            "subscribers": row["subscribers"],
            "back_ms": round((row["ts_set"] - row["ts_old"]) / NS_PER_MS, 3),
            "topics": [topic],
            "where": topic,
            "clients": [{"client_id": row["to_client_id"], "address": row["to_client_address"]}],
        },
    )


RULE = Rule(
    code="MQT146",
    question="went back",
    name="retained-back",
    severity="warning",
    confidence="high",
    reads={
        BACK: (
            "ts", "ts_last", "served", "subscribers", "ts_set", "client_id", "client_address", "client_port", "ts_old",
            "to_client_id", "to_client_address", "message_id", "set_message_id", "old_message_id", "server_port",
        ),
    },
    partition_by=("server_address", "topic"),
    detect=detect,
    suspects=AnyRow(BACK),
)  # fmt: skip
