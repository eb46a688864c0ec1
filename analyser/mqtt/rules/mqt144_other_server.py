"""MQT144 other-server: publishers or a subscriber are at one server, and who belongs to them at another one.

Finds
    Clients that are alone at a server of the capture (address and port) on which no message passes, with a filter of
    which others get messages at another server meanwhile. And clients that publish at a server where nobody subscribes,
    while the subscriber of such messages is at another server. Question: what does not move although it should.

Why it matters
    The server accepts the client and grants its filter; pings are answered. It gets nothing because it is at the wrong
    server: a test instance, an old address, another port. A balancer in front of servers that know nothing of each
    other parts publishers and subscribers so; the messages are acknowledged, and go to nobody.

How it decides
    By the fact `mqtt_lone_subscribers`: nobody else is at that server, no PUBLISH passed there, and of the same filter
    another client got at least `messages_least` messages at another server while this one was subscribed, for wait_s at
    least. No other client of its address has that filter at the other server, as a program that reads from all servers
    has. Its connection was seen from its beginning, without gaps. Publishers, by `mqtt_lone_publishers`: at their
    server no filter was granted and no message went to a client, and all its connections were seen whole; at least
    messages_least messages of theirs match a filter in force at another server, which has no message in common with
    this one and no connection with it; its subscriber got as many of others there. It is a warning where their address
    has clients at both servers, as a balancer has, else info.

False alarms
    A test instance with one subscriber that nobody feeds. A test instance that somebody feeds through the same address.

What it cannot tell
    Which server the client is meant to use. Servers of a cluster may pass messages on a way that is not captured: then
    the subscriber would have got them.

References
    MQTT 3.1.1 and 5.0: section 4.7 (a filter matches topics of its server only).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, seconds_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import MOST_CLIENTS, client_numbers, client_text, client_title, short

LONE, UNHEARD = "mqtt_lone_subscribers", "mqtt_lone_publishers"


def detect(frames: Frames, *, messages_least: int = 10, wait_s: float = 10.0) -> Iterator[Finding]:
    """One finding for each client and filter at this server, and one for all that publish there to nobody."""
    for row in rows_of(frames[LONE]):
        if row["messages"] >= messages_least and row["ts_last"] - row["ts"] >= wait_s * NS_PER_S:
            yield _finding(row)
    parted: dict[tuple[object, ...], list[Row]] = {}
    for row in rows_of(frames[UNHEARD]):
        if row["messages"] >= messages_least and row["got"] >= messages_least:
            key = row["server_port"], row["other_server_address"], row["other_server_port"], row["topic_filter"]
            parted.setdefault(key, []).append(row)
    for rows in parted.values():
        yield _unheard(rows)


def _there(row: Row) -> Row:
    """The client at the other server, and that server."""
    return {
        "client_id": row["other_client_id"],
        "client_address": row["other_client_address"],
        "client_port": None,
        "server_address": row["other_server_address"],
        "server_port": row["other_server_port"],
    }


def _finding(row: Row) -> Finding:
    wanted = printable(row["topic_filter"], 80)
    there = _there(row)
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


def _who(row: Row) -> str:
    return f"{printable(row['client_id'], 60)} at {row['client_address'] or '(unknown address)'}"


def _unheard(rows: Sequence[Row]) -> Finding:
    first, there, wanted = rows[0], _there(rows[0]), printable(rows[0]["topic_filter"], 80)
    both = sorted({row["client_address"] for row in rows if row["shares_address"] and row["client_address"]})
    severity: Severity = "warning" if both else "info"
    messages, since, until = sum(row["messages"] for row in rows), first["ts"], max(row["ts_last"] for row in rows)
    names = names_text([_who(row) for row in rows], 4)
    through = f" Clients of {names_text(both, 3)} are at both servers." if both else ""
    return RULE.finding(
        severity=severity,
        subject={"server": first["server_address"], "port": first["server_port"], "client_id": first["client_id"],
                 "filter": wanted},
        title=f"{count(messages, 'message')} at {server_text(first)}, where nobody subscribes: {client_title(first)}"
        + (f" and {len(rows) - 1} more" if len(rows) > 1 else ""),
        sentence=(
            f"{sentence_start(count(len(rows), 'client'))} ({names}) published {count(messages, 'message')} to "
            f"{server_text(first)}, where nobody subscribes, {period_text(since, until)}. The filter {wanted} is at "
            f"another server, {server_text(there)}: {client_text(there)} got {count(first['got'], 'message')} of "
            f"others there, and none of these.{through}"
        ),
        next_step=(
            "Look at what shares connections out between these servers, and at the address that these clients connect "
            "to: servers that are no cluster, and have no bridge, do not pass messages on to each other."
        ),
        proof=Proof(
            since,
            until,
            evidence_of_ids(row[one] for row in rows for one in ("exchange_id", "message_id", "last_message_id")),
        ),
        numbers={
            "client_id": first["client_id"],
            "server": server_of(first),
            "other_server": server_text(there),
            "messages": messages,
            "records_lost": messages,
            "topics": [printable(row["topic"], 80) for row in rows[:MOST_CLIENTS]],
            "topic_filters": [wanted],
            "where": server_text(first),
            "clients": [client_numbers(row, messages=row["messages"]) for row in rows[:MOST_CLIENTS]],
        },
    )  # fmt: skip


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
        UNHEARD: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic", "messages",
            "topic_filter", "other_server_address", "other_server_port", "other_client_id", "other_client_address",
            "got", "shares_address", "message_id", "last_message_id", "exchange_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=f"SELECT server_address FROM r_{LONE} UNION SELECT server_address FROM r_{UNHEARD}",
)  # fmt: skip
