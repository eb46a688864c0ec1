"""MQT156 transfer-again: a client gets the same series of messages over and over, its likes once.

Finds
    Clients to which the same messages come again and again, an update or a file in pieces, or one answer to the same
    question, while others of their kind get theirs once. Question: what is repeated without effect.

Why it matters
    The client finds the transfer broken each time, by its checksum or for want of space, or forgets that it has it, and
    asks again. Nothing fails on the way, so nobody sees it; link, server and sender do the work without an end.

How it decides
    By the fact `mqtt_repeated_transfers`: of topics of one shape at least `contents_least` different messages (topic
    and payload) came to the client `rounds_least` times or more each, in the middle, and in the same order (in_order);
    retained messages and those sent again by the server aside. The client's id is in the topic, or it asks: it
    publishes on one topic right before most rounds (within a quarter of the time of a round), about as often as there
    are rounds. Of fewer messages, down to one, it has to ask with the same payload each time, singles_least times or
    more. At least `likes_least` other clients got as much of topics of this shape, and each message a quarter (share)
    as often at most.

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
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

TRANSFERS = "mqtt_repeated_transfers"
_FEWER, _SOON = 0.8, 0.25


def detect(
    frames: Frames,
    *,
    contents_least: int = 5,
    rounds_least: int = 4,
    singles_least: int = 10,
    likes_least: int = 2,
    share: float = 0.25,
    in_order: float = 0.8,
) -> Iterator[Finding]:
    """One finding for each client and kind of topics at this server."""
    for row in rows_of(frames[TRANSFERS]):
        if row["contents"] >= contents_least:
            is_again = row["rounds"] >= rounds_least and ("<id>" in row["shape"] or _asks(row))
        else:
            is_again = row["rounds"] >= singles_least and row["asked_contents"] == 1 and _asks(row)
        is_again = is_again and (row["in_order"] or 0.0) >= in_order
        is_known = row["likes"] is not None and row["likes_rounds"] is not None
        if is_again and is_known and row["likes"] >= likes_least and row["likes_rounds"] <= share * row["rounds"]:
            yield _finding(row)


def _asks(row: Row) -> bool:
    """Each round comes right after a message of the client on one topic, which it publishes for that alone."""
    if any(row[name] is None for name in ("asked_topic", "asked", "after_ms", "each_ms")):
        return False
    is_for_that = _FEWER * row["rounds"] <= row["asked"] <= row["rounds"] / _FEWER
    return bool(is_for_that and row["after_ms"] <= _SOON * row["each_ms"])


def _finding(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    asks = ""
    if _asks(row):
        same = ", always with the same payload" if row["asked_contents"] == 1 else ""
        asks = f" Before that it publishes on {printable(row['asked_topic'], 80)}, {times(row['asked'])}{same}."
    what = "message" if row["contents"] == 1 else f"{row['contents']:,} messages"
    like = "" if row["contents"] == 1 else "topics like "
    sender = f", published by {printable(row['sender'], 60)}" if row["sender"] else ""
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["topic"]},
        title=f"The same {what} {times(row['rounds'])}: {client_title(row)} on {short(row['topic'])}",
        sentence=(
            f"{sentence_start(client_text(row))} got the same {what} on {like}{topic} "
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
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "shape", "topic", "contents",
            "rounds", "messages", "bytes", "sender", "asked_topic", "asked", "asked_contents", "after_ms", "each_ms",
            "in_order", "likes", "likes_rounds", "message_id", "last_message_id", "asked_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(TRANSFERS, "rounds >= 4 AND likes >= 2"),
)  # fmt: skip
