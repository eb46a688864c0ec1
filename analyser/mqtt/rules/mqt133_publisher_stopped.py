"""MQT133 publisher-stopped: a client that published regularly stays connected and publishes no more.

Finds
    Clients whose messages on a topic came at regular times, then no more, while the client goes on pinging and its
    likes go on publishing. Question: what does not move although it should.

Why it matters
    The connection is alive, so no will is sent and no alarm rings. The last value looks like the present one.

How it decides
    By the fact `mqtt_publisher_habits`: the client sent `messages_least` or more on the topic, none of which came later
    than three times its usual gap, nothing at all on it for `steps` times its longest gap and 3 s, and other packets
    meanwhile to the end of that time. At least `likes_least` other clients whose topic has the same shape and that
    publish about as often (half to twice) went on in that time, all of them. It is the only one that stopped. Info
    where about then it said something on a topic of which it has fewer than five messages, or was told something: it
    may have been stopped.

False alarms
    A device that has nothing to report any more and says so in another way.

What it cannot tell
    Whether it would have published after the capture.

References
    MQTT 3.1.1 and 5.0: section 3.1.2.10 (a keep-alive says that the client is there, not that it works).
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, moment_text, ms_text, seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

HABITS = "mqtt_publisher_habits"
_REGULAR = 3
_FLOOR_NS = 3 * NS_PER_S


def detect(frames: Frames, *, messages_least: int = 20, steps: float = 5.0, likes_least: int = 3) -> Iterator[Finding]:
    """One finding for each topic that its client left, among its likes of this server."""
    shapes: dict[str, list[Row]] = {}
    rows = rows_of(frames[HABITS])
    for row in rows:
        if row["messages"] >= messages_least and row["longest_gap_ms"] <= _REGULAR * row["gap_ms"]:
            shapes.setdefault(row["shape"], []).append(row)
    for own in shapes.values():
        if len({row["client_id"] for row in own}) <= likes_least:
            continue
        latest = max(row["ts_last"] for row in own)
        stopped = [row for row in own if _has_stopped(row, steps, latest)]
        if len(stopped) != 1:
            continue
        row = stopped[0]
        likes = [one for one in own if one["client_id"] != row["client_id"]]
        going = [
            one for one in likes
            if 0.5 <= one["gap_ms"] / row["gap_ms"] <= 2
            and one["ts_last"] - row["ts_last"] >= max(steps * _longest_ns(row), _FLOOR_NS)
        ]  # fmt: skip
        if len(going) == len(likes) >= likes_least:
            yield _finding(row, going)


def _longest_ns(row: Row) -> float:
    return float(row["longest_gap_ms"]) * NS_PER_MS


def _has_stopped(row: Row, steps: float, latest: int) -> bool:
    """While the last of its likes went on, and it was heard of."""
    if row["ts_heard"] is None or not row["whole"]:
        return False
    return bool(min(row["ts_heard"], latest) - row["ts_last"] >= max(steps * _longest_ns(row), _FLOOR_NS))


def _finding(row: Row, likes: list[Row]) -> Finding:
    silent_ns = row["ts_heard"] - row["ts_last"]
    topic = printable(row["topic"], 80)
    aside = row["aside_message_id"]
    said = "" if aside is None else " About then it sent or got a message on a topic that it seldom has."
    return RULE.finding(
        severity="warning" if aside is None else "info",
        provisional=True,
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["topic"]},
        title=f"{client_title(row)} is connected and publishes no more on {short(row['topic'])}",
        sentence=(
            f"{sentence_start(client_text(row))} published {count(row['messages'], 'message')} on {topic} to "
            f"{server_text(row)}, one each {ms_text(row['gap_ms'])}, the last at {moment_text(row['ts_last'])}. Since "
            f"then it has been connected and heard of for {seconds_text(silent_ns)} without one, while "
            f"{count(len(likes), 'other client')} like it went on.{said}"
        ),
        next_step=(
            "Look at the program behind the connection: its sensor, its loop or its queue stands still."
            if aside is None
            else "Look at whether that message stopped it, or told that it stops."
        ),
        proof=Proof(
            row["ts"],
            row["ts_heard"],
            evidence_of_ids((row["message_id"], row["last_message_id"], aside)),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "flow_id": row["flow_id"],
            "published": row["messages"],
            "gap_ms": round(row["gap_ms"], 3),
            "stood_still_ms": round(silent_ns / NS_PER_MS, 3),
            "likes": len(likes),
            "usual_gap_ms": round(median(one["gap_ms"] for one in likes), 3),
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT133",
    question="stalled",
    name="publisher-stopped",
    severity="warning",
    confidence="medium",
    reads={
        HABITS: (
            "ts", "ts_last", "ts_heard", "client_id", "client_address", "client_port", "version", "topic", "shape",
            "likes", "messages", "gap_ms", "longest_gap_ms", "flow_id", "whole", "message_id", "last_message_id",
            "aside_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(HABITS, "likes >= 3"),
)  # fmt: skip
