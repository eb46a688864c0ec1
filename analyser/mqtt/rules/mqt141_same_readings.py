"""MQT141 same-readings: two clients publish the same messages on the same topic.

Finds
    Two client ids that are there at the same time and publish the same payloads on the same topics, as two copies of
    one program do, or two bridges for the same topics. Question: who acts on one thing at the same time.

Why it matters
    Every subscriber gets each reading twice, counts it twice, and nothing fails. It begins when an old version goes on
    beside the new one.

How it decides
    By the fact `mqtt_twin_publishers`: at least `common_least` payloads came from both on the same topic, each within
    five of the longer of their usual gaps there. They are half (half) of what either of them published on these
    topics while both did. Payloads that return are no sign: nine tenths (apart) of the messages of each differ from all
    its others. Neither of them gets these topics from the server, so none copies what it gets. Two programs that
    count for themselves and began at about the same time look so, too: so one of them had published `ahead_least`
    messages or more before the other one began, or both publish at the same moment, a fiftieth (together) of the usual
    gap from each other in the median.

False alarms
    Two programs that publish the same on purpose, so that one may fail.

What it cannot tell
    Which of the two should not be there.

References
    MQTT 3.1.1 and 5.0: section 4.3 (each PUBLISH is a message of its own; the server compares no contents).
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
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, short

TWINS = "mqtt_twin_publishers"


def detect(
    frames: Frames,
    *,
    common_least: int = 10,
    half: float = 0.5,
    apart: float = 0.9,
    ahead_least: int = 5,
    together: float = 0.02,
) -> Iterator[Finding]:
    """One finding for each pair of clients of this server."""
    for row in rows_of(frames[TWINS]):
        differ = min(row["contents"] / row["messages"], row["other_contents"] / row["other_messages"]) >= apart
        one_source = abs(row["ahead"]) >= ahead_least or row["apart_ms"] <= together * row["gap_ms"]
        often = row["common"] >= max(common_least, half * max(row["messages"], row["other_messages"]))
        if differ and one_source and often:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    on = topic if row["topics"] == 1 else f"{topic} and {count(row['topics'] - 1, 'more topic')}"
    other = {
        "client_id": row["other_client_id"],
        "client_address": row["other_client_address"],
        "client_port": row["other_client_port"],
        "version": None,
    }
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["topic"]},
        title=f"Two clients publish the same on {short(row['topic'])}: {short(row['client_id'])} and "
        f"{short(row['other_client_id'])}",
        sentence=(
            f"{sentence_start(client_text(row))} and {client_text(other)} both publish on {on} at {server_text(row)}, "
            f"and {count(row['common'], 'payload')} came from both ({row['messages']:,} and "
            f"{row['other_messages']:,} messages meanwhile), {ms_text(row['apart_ms'])} apart in the median, "
            f"{period_text(row['ts'], row['ts_last'])}. Subscribers get each of them twice."
        ),
        next_step="Look for an old copy of the program, or a second bridge, that was not stopped; stop one of the two.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("message_id", "other_message_id", "last_message_id")),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "common": row["common"],
            "records_again": row["common"],
            "apart_ms": round(row["apart_ms"], 3),
            "topics": [topic],
            "where": topic,
            "clients": [
                client_numbers(row, published=row["messages"]),
                client_numbers(other, published=row["other_messages"]),
            ],
        },
    )


RULE = Rule(
    code="MQT141",
    question="concurrent",
    name="same-readings",
    severity="warning",
    confidence="medium",
    reads={
        TWINS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "other_client_id",
            "other_client_address", "other_client_port", "topic", "topics", "common", "messages", "contents",
            "other_messages", "other_contents", "apart_ms", "gap_ms", "ahead", "message_id",
            "other_message_id", "last_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(TWINS, "common >= 10"),
)  # fmt: skip
