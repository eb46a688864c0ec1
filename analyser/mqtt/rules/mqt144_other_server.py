"""MQT144 other-server: a subscriber waits at a server where nothing passes, while its messages pass at another one.

Finds
    Clients that are alone at a server of the capture (address and port) on which no message passes, with a filter of
    which others get messages at another server meanwhile. Question: what does not move although it should.

Why it matters
    The server accepts the client and grants its filter; pings are answered. It gets nothing because it is at the wrong
    server: a test instance, an old address, another port.

How it decides
    By the fact `mqtt_lone_subscribers`: nobody else is at that server, no PUBLISH passed there, and of the same filter
    another client got at least `messages_least` messages at another server while this one was subscribed, for wait_s at
    least. No other client of its address has that filter at the other server, as a program that reads from all servers
    has. Its connection was seen from its beginning, without gaps.

False alarms
    A test instance with one subscriber that nobody feeds.

What it cannot tell
    Which server the client is meant to use.

References
    MQTT 3.1.1 and 5.0: section 4.7 (a filter matches topics of its server only).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

LONE = "mqtt_lone_subscribers"


def detect(frames: Frames, *, messages_least: int = 10, wait_s: float = 10.0) -> Iterator[Finding]:
    """One finding for each client and filter at this server."""
    for row in rows_of(frames[LONE]):
        if row["messages"] >= messages_least and row["ts_last"] - row["ts"] >= wait_s * NS_PER_S:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    wanted = printable(row["topic_filter"], 80)
    there = {
        "client_id": row["other_client_id"],
        "client_address": row["other_client_address"],
        "client_port": None,
        "server_address": row["other_server_address"],
        "server_port": row["other_server_port"],
    }
    waited = row["ts_last"] - row["ts"]
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "filter": wanted},
        title=f"{client_title(row)} waits for {short(wanted)} at a server where nothing passes",
        sentence=(
            f"{sentence_start(client_text(row))} subscribed to {wanted} at {server_text(row)}, is the only client "
            f"there, and got nothing for {seconds_text(waited)}. Meanwhile {count(row['messages'], 'message')} of this "
            f"filter passed at another server, {server_text(there)}, where {client_text(there)} got them."
        ),
        next_step="Look at the address and port that this client connects to: it may be a test or an old server.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("exchange_id", "message_id", "last_message_id")),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "other_server": server_text(there),
            "messages": row["messages"],
            "stood_still_ms": round(waited / NS_PER_MS, 3),
            "topics": [printable(row["topic"], 80)],
            "topic_filters": [wanted],
            "where": wanted,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT144",
    question="stalled",
    name="other-server",
    severity="warning",
    confidence="medium",
    reads={
        LONE: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic_filter", "topic",
            "other_server_address", "other_server_port", "other_client_id", "other_client_address", "messages",
            "message_id", "last_message_id", "exchange_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=f"SELECT server_address FROM r_{LONE}",
)  # fmt: skip
