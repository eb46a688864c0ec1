"""MQT152 retained-not-asked: a client starts anew and asks for no retained messages, so it has no state at first.

Finds
    Clients of 5.0 that begin each connection with a clean start, subscribe with Retain Handling 2 and get nothing,
    while another client with the same filter is sent the retained messages. Question: what does not move although it
    should.

Why it matters
    Retained messages are the state that a new subscriber begins with. Who asks for none of them shows nothing, or an
    old state, until somebody publishes next, which may be in hours.

How it decides
    On at least `starts_least` connections with a clean start the client subscribed to a filter with Retain Handling 2
    each time; each time messages were retained that match (mqtt_retained), and no message that matches was sent to it
    on any of them. Another client, which subscribed to the same filter otherwise, was sent retained messages for it.
    Bytes missing from one of these connections make it silent.

False alarms
    A program that wants events only, beside one that shows states, where no event came while it was connected.

What it cannot tell
    Whether the client has the state from elsewhere.

References
    MQTT 5.0: section 3.8.3.1 (Retain Handling), 3.3.1.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text, who_is
from wirewitness.analyser.base.times import NS_PER_MS, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.counted_matches import Matches
from wirewitness.analyser.mqtt.rules.rows import MAX_NAME, client_numbers, client_text, client_title, short

DO_NOT_SEND = 2
MOST_TOPICS, MOST_FILTERS = 2000, 100


def detect(frames: Frames, *, starts_least: int = 3) -> Iterator[Finding]:
    """At most one finding for each client and filter at this server."""
    clean = {row["flow_id"] for row in rows_of(frames["mqtt_connections"]) if not row["gap_bytes"]}
    got: dict[str, list[Row]] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        got.setdefault(row["flow_id"], []).append(row)
    by_filter: dict[str, dict[str, list[Row]]] = {}
    for row in rows_of(frames["mqtt_active_subscriptions"]):
        by_filter.setdefault(row["matching_filter"], {}).setdefault(row["client_id"], []).append(row)
    retained = rows_of(frames["mqtt_retained"])[:MOST_TOPICS]
    known = Matches()
    for wanted, clients in list(by_filter.items())[:MOST_FILTERS]:
        kept = [row for row in retained if known.match(wanted, row["topic"])]
        served = [rows for rows in clients.values() if _is_served(known, wanted, rows, got)]
        for rows in clients.values():
            starts = {row["flow_id"] for row in rows}
            if len(starts) < starts_least or not served or not starts <= clean:
                continue
            if all(_had_state(row, kept) for row in rows) and not _any_got(known, wanted, rows, got):
                yield _finding(rows, served[0][0], kept)


def _is_served(known: Matches, wanted: str, rows: Sequence[Row], got: dict[str, list[Row]]) -> bool:
    """A client that asks otherwise got what is retained."""
    return all(row["retain_handling"] != DO_NOT_SEND for row in rows) and any(
        one["retain"] and known.match(wanted, one["topic"]) for row in rows for one in got.get(row["flow_id"], ())
    )


def _any_got(known: Matches, wanted: str, rows: Sequence[Row], got: dict[str, list[Row]]) -> bool:
    return any(known.match(wanted, one["topic"]) for row in rows for one in got.get(row["flow_id"], ()))


def _had_state(row: Row, kept: Sequence[Row]) -> bool:
    """It asked for nothing retained while there was something."""
    return row["retain_handling"] == DO_NOT_SEND and any(
        one["ts"] < row["ts"] and (one["ts_until"] is None or one["ts_until"] > row["ts"]) for one in kept
    )


def _finding(rows: list[Row], other: Row, kept: list[Row]) -> Finding:
    first, last = rows[0], rows[-1]
    wanted = printable(first["matching_filter"], 80)
    topics = list(dict.fromkeys(printable(row["topic"], 80) for row in kept))
    peer = who_is(other["client_id"], other["client_address"], most=MAX_NAME)
    return RULE.finding(
        subject={"server": first["server_address"], "client_id": first["client_id"], "filter": wanted},
        title=f"{client_title(first)} asks for no retained messages of {short(first['matching_filter'])}",
        sentence=(
            f"{sentence_start(client_text(last))} subscribed {count(len(rows), 'time')} to {wanted} at "
            f"{server_text(first)} with Retain Handling 2 and got nothing by it, "
            f"{period_text(first['ts'], last['ts'])}. Each was after a clean start, while messages on "
            f"{count(len(topics), 'topic')} were retained. {sentence_start(peer)}, with the same filter and another "
            f"option, was sent them."
        ),
        next_step=(
            "If the client needs the present state, let it subscribe with Retain Handling 0 (or 1, with a session that "
            "goes on)."
        ),
        proof=Proof(
            first["ts"],
            last["ts"],
            (
                *(Evidence(row["file"], row["packet"], row["exchange_id"]) for row in rows),
                Evidence(other["file"], other["packet"], other["exchange_id"]),
            ),
        ),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "subscribes": len(rows),
            "stood_still_ms": round((last["ts"] - first["ts"]) / NS_PER_MS, 3),
            "topics": topics[:20],
            "topic_filters": [wanted],
            "where": wanted,
            "clients": [client_numbers(last)],
        },
    )


_FILTERS = f"SELECT matching_filter FROM mqtt_active_subscriptions WHERE retain_handling = {DO_NOT_SEND}"
_FLOWS = f"SELECT flow_id FROM mqtt_active_subscriptions WHERE matching_filter IN ({_FILTERS})"
RULE = Rule(
    code="MQT152",
    question="stalled",
    name="retained-not-asked",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_connections": ("ts", "flow_id", "gap_bytes"),
        "mqtt_active_subscriptions": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "matching_filter",
            "retain_handling", "exchange_id", "file", "packet",
        ),
        "mqtt_retained": ("ts", "ts_until", "topic"),
        "mqtt_publishes": ("ts", "flow_id", "topic", "retain"),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={
        "mqtt_connections": f"clean_start AND connect_seen AND flow_id IN ({_FLOWS})",
        "mqtt_active_subscriptions": f"share_name IS NULL AND client_id <> '' AND matching_filter IN ({_FILTERS})",
        "mqtt_publishes": f"""
            direction = 'server_to_client' AND topic IS NOT NULL AND message_id IN (
                SELECT arg_min(message_id, ts) FROM mqtt_publishes
                WHERE direction = 'server_to_client' AND flow_id IN ({_FLOWS}) GROUP BY flow_id, topic, retain)""",
    },
    suspects=f"""
        SELECT server_address FROM r_mqtt_active_subscriptions WHERE retain_handling = {DO_NOT_SEND}
        GROUP BY server_address, client_id, matching_filter HAVING count(DISTINCT flow_id) >= 3""",
)  # fmt: skip
