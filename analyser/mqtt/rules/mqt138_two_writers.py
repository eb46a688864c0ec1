"""MQT138 two-writers: two clients set one retained topic in turn, each to its own value.

Finds
    Topics whose retained message one client sets, and another one sets to something else, back and forth. Question: who
    acts on one thing at the same time.

Why it matters
    The retained message is a state that one program owns. With two owners it flips, whoever subscribes acts on it each
    time, and each of the two thinks that the other side does not obey.

How it decides
    By the fact `mqtt_topic_writers`: messages with RETAIN on one topic, of which turns_least or more followed one of
    another client and had another payload, half (share) of all of them at least.

False alarms
    A state that several clients may set, such as a lamp with two switches; then it does not go on by itself.

References
    MQTT 3.1.1 and 5.0: section 3.3.1.3 (one retained message for each topic, the last one counts).
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
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, short

WRITERS = "mqtt_topic_writers"


def detect(frames: Frames, *, turns_least: int = 8, share: float = 0.5) -> Iterator[Finding]:
    """At most one finding for this topic."""
    for row in rows_of(frames[WRITERS]):
        if row["turns"] >= max(turns_least, share * row["sets"]) and row["other_client_id"] is not None:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    other = {
        "client_id": row["other_client_id"],
        "client_address": row["other_client_address"],
        "client_port": row["other_client_port"],
        "version": row["version"],
    }
    more = f" {count(row['writers'], 'client')} in all set it." if row["writers"] > 2 else ""
    return RULE.finding(
        subject={"server": row["server_address"], "topic": row["topic"]},
        title=f"Two writers of {short(row['topic'])}: {short(row['client_id'])} and {short(row['other_client_id'])}",
        sentence=(
            f"{sentence_start(client_text(row))} and {client_text(other)} set the retained message on {topic} at "
            f"{server_text(row)} in turn, each to another value: it changed hands {times(row['turns'])} in "
            f"{count(row['sets'], 'message')} ({row['own_sets']:,} and {row['other_sets']:,}), "
            f"{period_text(row['ts'], row['ts_last'])}.{more}"
        ),
        next_step="Let one program own this topic; two copies of one program, or an old one that still runs, do this.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids((row["message_id"], row["last_message_id"])),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "turns": row["turns"],
            "records_again": row["turns"],
            "sets": row["sets"],
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(row, sets=row["own_sets"]), client_numbers(other, sets=row["other_sets"])],
        },
    )


RULE = Rule(
    code="MQT138",
    question="concurrent",
    name="two-writers",
    severity="warning",
    confidence="high",
    reads={
        WRITERS: (
            "ts", "ts_last", "sets", "turns", "writers", "client_id", "client_address", "client_port", "version",
            "own_sets", "other_client_id", "other_client_address", "other_client_port", "other_sets", "message_id",
            "last_message_id", "server_port",
        ),
    },
    partition_by=("server_address", "topic"),
    detect=detect,
    suspects=AnyRow(WRITERS, "turns >= 8"),
)  # fmt: skip
