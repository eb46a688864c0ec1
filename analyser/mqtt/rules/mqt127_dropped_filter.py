"""MQT127 dropped-filter: a client came back and does not subscribe to what it had before.

Finds
    Clients that had a subscription on one connection and none on the next, while the messages that it was for go on.
    Question: what does not move although it should.

Why it matters
    Subscriptions belong to the session. With a clean session, or where the server has lost the session, they are gone
    with the connection, and a program that subscribes once at its start gets nothing after the first reconnect. It is
    connected, its pings are answered, and no log says anything.

How it decides
    By the fact `mqtt_dropped_filters`: the filter had been granted and not given up, the next connection of the client
    id said session present 0, and no SUBSCRIBE on it names the filter or covers it, for 3 s and five times as long as
    it took before. After that time others published messages (missed_least) that match it. info where the client
    subscribes to something else instead.

False alarms
    A program that no longer wants these messages. Two programs that use one client id in turn.

What it cannot tell
    What the client would have done after the capture.

References
    MQTT 3.1.1: section 3.1.2.4, 3.2.2.2 (session present); 5.0: section 3.1.2.4, 3.2.2.1.1, 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

FILTERS = "mqtt_dropped_filters"


def detect(frames: Frames, *, missed_least: int = 5) -> Iterator[Finding]:
    """One finding for this client: the connection on which it missed most."""
    flows: dict[str, list[Row]] = {}
    for row in rows_of(frames[FILTERS]):
        if row["messages_late"] >= missed_least:
            flows.setdefault(row["flow_id"], []).append(row)
    if flows:
        rows = max(flows.values(), key=lambda own: (not own[0]["filters_new"], sum(one["messages"] for one in own)))
        yield _finding(rows, len(flows))


def _finding(rows: list[Row], connections: int) -> Finding:
    row = rows[0]
    missed = sum(one["messages"] for one in rows)
    names = [printable(one["topic_filter"], 60) for one in rows]
    other = bool(row["filters_new"])
    on = f", and so it is on {count(connections, 'connection')}" if connections > 1 else ""
    now = (
        f"subscribes to {count(row['filters_now'], 'filter')} now, but not to {names_text(names, 3)}"
        if row["filters_now"]
        else f"subscribes to nothing now; before it had {names_text(names, 3)}"
    )
    asked = "" if row["clean_start"] is not False else ", although the client had asked for the one before"
    return RULE.finding(
        severity="info" if other else "warning",
        confidence="medium" if other else "high",
        subject={"server": row["server_address"], "client_id": row["client_id"]},
        title=f"Not subscribed again after a reconnect: {client_title(row)}, {names_text([short(names[0])], 1)}",
        sentence=(
            f"{sentence_start(client_text(row))} came back to {server_text(row)} and {now}{on}. The server has no "
            f"session of it (session present 0{asked}), so it gets none of the {count(missed, 'message')} that others "
            f"published for that, {period_text(row['ts'], row['ts_until'])}."
        ),
        next_step=(
            "Let the program subscribe each time that it is connected (in the library's on-connect callback), or where "
            "session present is 0; or keep the session: clean session off (5.0: a session expiry interval)."
        ),
        proof=Proof(
            row["ts"],
            row["ts_until"],
            [
                Evidence(None, None, row["exchange_id"]),
                Evidence(row["file"], row["packet"], None),
                *(Evidence(None, None, one) for each in rows[:5] for one in (
                    each["first_message_id"], each["last_message_id"])),
            ],
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "flows": [row["flow_before"], row["flow_id"]],
            "records_lost": missed,
            "connections": connections,
            "topic_filters": names[:20],
            "filters_now": row["filters_now"],
            "stood_still_ms": round((row["ts_until"] - row["ts"]) / NS_PER_MS, 3),
            "topics": [] if row["topic"] is None else [printable(row["topic"], 80)],
            "where": names[0],
            "clients": [client_numbers(row, missed=missed)],
        },
    )  # fmt: skip


RULE = Rule(
    code="MQT127",
    question="stalled",
    name="dropped-filter",
    severity="warning",
    confidence="high",
    reads={
        FILTERS: (
            "ts", "ts_until", "flow_id", "client_address", "client_port", "version", "clean_start", "flow_before",
            "topic_filter", "filters_now", "filters_new", "messages", "messages_late", "topic", "first_message_id",
            "last_message_id", "exchange_id", "server_port", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    suspects=AnyRow(FILTERS, "messages_late > 0"),
)  # fmt: skip
