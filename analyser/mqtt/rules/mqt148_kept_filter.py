"""MQT148 kept-filter: a client gets messages by a filter of its session that it does not ask for any more.

Finds
    Clients that come back to their session, ask for another filter than before, and go on getting messages by the old
    one. Question: what does not move although it should.

Why it matters
    Subscriptions belong to the session. A new release that subscribes to other topics and keeps its client id and
    session gets both, the old ones for as long as the session lives: it handles messages that it was not made for, or
    each of them twice.

How it decides
    By the fact `mqtt_kept_filters`: on a connection with session present the client subscribed to filters, the old one
    not among them, sent no UNSUBSCRIBE for it, and got at least `messages_least` messages by it that were published
    after it was back. A warning where another client did what is usual there: it gave the old filter up and subscribed
    to the new one; else info, since a client may add one filter after the other.

False alarms
    A client that wants both, and asks for each once only.

References
    MQTT 3.1.1 and 5.0: section 4.1 (the session holds the subscriptions), 3.10 (UNSUBSCRIBE).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import moment_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

KEPT = "mqtt_kept_filters"

_PROVES = ("exchange_id", "old_exchange_id", "message_id", "last_message_id", "like_exchange_id")


def detect(frames: Frames, *, messages_least: int = 10) -> Iterator[Finding]:
    """One finding for each connection and old filter at this server."""
    for row in rows_of(frames[KEPT]):
        if row["messages"] >= messages_least:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    old, new = printable(row["topic_filter"], 80), printable(row["new_filter"], 80)
    likes = ""
    if row["likes"]:
        like = printable(row["like_client_id"] or "?", 60)
        likes = (
            f" {sentence_start(count(row['likes'], 'other client'))}, such as {like}, "
            "gave the old filter up with UNSUBSCRIBE and subscribed to the new one."
        )
    return RULE.finding(
        severity="warning" if row["likes"] else "info",
        confidence="high" if row["likes"] else "medium",
        subject={"server": row["server_address"], "client_id": row["client_id"], "filter": old},
        title=f"{client_title(row)} still gets {short(row['topic_filter'])} by its session and asks for {short(new)}",
        sentence=(
            f"{sentence_start(client_text(row))} subscribed to {old} at {server_text(row)} on an earlier connection, "
            f"and since {moment_text(row['ts'])}, when it came back to its session, only to {new}. It did not "
            f"unsubscribe: {count(row['messages'], 'message')} came by the old filter since, the first on "
            f"{printable(row['topic'], 60)}.{likes}"
        ),
        next_step="Let the client unsubscribe from the old filter once, or begin with a clean session after a change.",
        proof=Proof(
            row["ts_asked"],
            row["ts_last"],
            evidence_of_ids(
                row[one]
                for one in ("exchange_id", "old_exchange_id", "message_id", "last_message_id", "like_exchange_id")
            ),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "flow_id": row["flow_id"],
            "got": row["messages"],
            "records_again": row["messages"],
            "likes": row["likes"],
            "topics": [printable(row["topic"], 60)],
            "topic_filters": [old, new],
            "where": old,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT148",
    question="stalled",
    name="kept-filter",
    severity="warning",
    confidence="high",
    reads={
        KEPT: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "flow_id", "topic_filter",
            "new_filter", "ts_asked", "topic", "messages", "likes", "like_client_id", "exchange_id",
            "old_exchange_id", "like_exchange_id", "message_id", "last_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(KEPT),
)  # fmt: skip
