"""MQT156 transfer-again: a client gets the same series of messages over and over, its likes once.

Finds
    Clients to which the same messages come again and again, an update or a file in pieces, while others of their kind
    get theirs once. Question: what is repeated without effect.

Why it matters
    The client finds the transfer broken each time, by its checksum or for want of space, or forgets that it has it, and
    asks again. Nothing fails on the way, so nobody sees it; link, server and sender do the work without an end.

How it decides
    By the fact `mqtt_repeated_transfers`: of topics of one shape at least `contents_least` different messages (topic
    and payload) came to the client `rounds_least` times or more each, in the middle; retained messages and those sent
    again by the server aside. At least `likes_least` other clients got as much of topics of this shape, and each
    message a quarter (share) as often at most. What the client published right before these rounds is named where it is
    one topic for most of them.

False alarms
    A client that is sent a set of states over and over on purpose, unlike its likes.

What it cannot tell
    Why the client asks again.

References
    MQTT 3.1.1 and 5.0: section 4.3 (delivery is between client and server; what the application makes of it is not).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

TRANSFERS = "mqtt_repeated_transfers"


def detect(
    frames: Frames, *, contents_least: int = 5, rounds_least: int = 4, likes_least: int = 2, share: float = 0.25
) -> Iterator[Finding]:
    """One finding for each client and kind of topics at this server."""
    for row in rows_of(frames[TRANSFERS]):
        is_often = row["contents"] >= contents_least and row["rounds"] >= rounds_least
        if is_often and row["likes"] >= likes_least and row["likes_rounds"] <= share * row["rounds"]:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    asks = ""
    if row["asked_topic"] is not None:
        same = ", always with the same payload" if row["asked_contents"] == 1 else ""
        asks = f" Before that it publishes on {printable(row['asked_topic'], 80)}, {times(row['asked'])}{same}."
    sender = f", published by {printable(row['sender'], 60)}" if row["sender"] else ""
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["topic"]},
        title=f"The same {row['contents']:,} messages {times(row['rounds'])}: {client_title(row)} on "
        f"{short(row['topic'])}",
        sentence=(
            f"{sentence_start(client_text(row))} got the same {row['contents']:,} messages on topics like {topic} "
            f"{times(row['rounds'])} from {server_text(row)}{sender}: {count(row['messages'], 'message')}, "
            f"{row['bytes']:,} bytes, {period_text(row['ts'], row['ts_last'])}.{asks} "
            f"{sentence_start(count(row['likes'], 'other client'))} got each message of that kind "
            f"{times(row['likes_rounds'])}{' at most' if row['likes_rounds'] > 1 else ''}."
        ),
        next_step=(
            "Look at what this client makes of them: a checksum that is wrong, no space, a restart before it is done. "
            "Let it give up after some attempts, or wait longer each time."
        ),
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("message_id", "asked_message_id", "last_message_id")),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "contents": row["contents"],
            "rounds": row["rounds"],
            "messages": row["messages"],
            "wasted_bytes": row["bytes"] * (row["rounds"] - 1) // row["rounds"],
            "asked": row["asked"],
            "likes": row["likes"],
            "sender": row["sender"],
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT156",
    question="repeated",
    name="transfer-again",
    severity="warning",
    confidence="medium",
    reads={
        TRANSFERS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic", "contents", "rounds",
            "messages", "bytes", "sender", "asked_topic", "asked", "asked_contents", "likes", "likes_rounds",
            "message_id", "last_message_id", "asked_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=f"SELECT server_address FROM r_{TRANSFERS} WHERE rounds >= 4 AND likes >= 2",
)  # fmt: skip
