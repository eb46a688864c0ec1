"""MQT137 growing: what one client sends or keeps at the server grows and grows.

Finds
    Clients whose messages on a topic get larger all the time, by their payload or by their properties, that use a new
    topic for each retained message, and that subscribe to a new filter again and again without giving the old ones up.
    Question: what grows or is wasted.

Why it matters
    A list that is never emptied fills every message, every queue and every subscriber. Each retained topic and each
    filter stays at the server until somebody clears it or gives it up: memory grows until something breaks, and whoever
    subscribes to a wildcard gets all of it at once.

How it decides
    Payload, by mqtt_publisher_habits: of 40 messages or more the size rises with their number (correlation of rising
    or more), its middle in the last quarter is twice (times) that of the first and 100 bytes more, and no like of the
    client does that. Properties (5.0): likewise of all that the packet has besides its payload, which on one topic only
    properties can change: user properties that gather, trace numbers. Names, by mqtt_names_used: a client used 20
    filters or 40 retained topics or more (names_least, topics_least), four fifths of them (share) once, and gave up a
    fifth at most; they came one after the other, not in a list at the start: their number rises with time (rising), for
    half of the rest of the capture.

False alarms
    A gateway that meets its devices one by one, and has a topic for each of them.

References
    MQTT 3.1.1 and 5.0: section 3.3.1.3 (an empty retained message removes it), 3.10 (UNSUBSCRIBE); 5.0: 3.3.2.3.3
    (message expiry), 3.3.2.3.7 (user properties: a server forwards them as they are).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

HABITS, NAMES = "mqtt_publisher_habits", "mqtt_names_used"
_LEAST_BYTES = 100.0


class _Part(NamedTuple):
    """A part of messages that may grow. rising, began, ended: its columns of HABITS."""

    kind: str
    rising: str
    began: str
    ended: str
    title: str
    what: str
    measured: str
    next_step: str


_PARTS = (
    _Part(
        "payload", "rising", "began_bytes", "ended_bytes", "Payload grows", "messages", "",
        "Look for a list in this client that is sent whole and never emptied.",
    ),
    _Part(
        "properties", "around_rising", "began_around_bytes", "ended_around_bytes", "Properties grow",
        "properties with its messages", " besides the payload",
        "Look for an object of properties in this client that is used again for each message and added to, such as "
        "user properties: make a new one each time.",
    ),
)  # fmt: skip


def detect(
    frames: Frames,
    *,
    rising: float = 0.8,
    times: float = 2.0,
    names_least: int = 20,
    topics_least: int = 40,
    share: float = 0.8,
) -> Iterator[Finding]:
    """One finding for each client, topic and part of its messages, and for each client and kind of name."""
    rows = rows_of(frames[HABITS])
    for part in _PARTS:
        growing = [row for row in rows if _grows(row, part, rising, times)]
        shapes = Counter(row["shape"] for row in growing)
        yield from (_larger(row, part) for row in growing if shapes[row["shape"]] == 1)
    for row in rows_of(frames[NAMES]):
        once = row["used_once"] >= share * row["names"] and row["given_up"] <= (1 - share) * row["names"]
        least = names_least if row["kind"] == "filter" else topics_least
        if row["names"] >= least and once and (row["steady"] or 0.0) >= rising:
            yield _names(row)


def _grows(row: Row, part: _Part, rising: float, times: float) -> bool:
    began, ended = row[part.began], row[part.ended]
    if began is None or ended is None or (row[part.rising] or 0.0) < rising:
        return False
    return bool(ended >= max(times * began, began + _LEAST_BYTES))


def _larger(row: Row, part: _Part) -> Finding:
    topic = printable(row["topic"], 80)
    began, ended = row[part.began], row[part.ended]
    return _finding(
        row,
        part.kind,
        f"{part.title}: {short(row['topic'])} of {client_title(row)}, {began:,.0f} to {ended:,.0f} bytes",
        f"{sentence_start(client_text(row))} publishes larger and larger {part.what} on {topic} to {server_text(row)}: "
        f"{began:,.0f} bytes{part.measured} in the first quarter of {count(row['messages'], 'message')}, "
        f"{ended:,.0f} in the last, {period_text(row['ts'], row['ts_last'])}.",
        part.next_step,
        topic,
        (row["message_id"], row["last_message_id"]),
        {"bytes": round((ended - began) * row["messages"] / 2)},
    )


def _names(row: Row) -> Finding:
    first, last = (printable(row[name], 60) for name in ("first_name", "last_name"))
    what = "retained messages, each on a new topic" if row["kind"] != "filter" else "SUBSCRIBE, each for a new filter"
    stay = "cleared" if row["kind"] != "filter" else "unsubscribed from"
    return _finding(
        row,
        printable(row["kind"], 20),
        f"{row['names']:,} {'filters' if row['kind'] == 'filter' else 'retained topics'}, a new one each time: "
        f"{client_title(row)}",
        f"{sentence_start(client_text(row))} sent {what}: {row['names']:,} so far, {row['used_once']:,} of them once "
        f"each, from {first} to {last}; it {stay} {row['given_up']:,}. Their number at {server_text(row)} grows, "
        f"{period_text(row['ts'], row['ts_last'])}.",
        "Publish such messages without RETAIN or with a message expiry (5.0), and clear those that are there."
        if row["kind"] != "filter"
        else "Use one filter with a wildcard, or unsubscribe when the answer has come.",
        first,
        (row["first_id"], row["last_id"]),
        {"left_behind": row["names"] - row["given_up"]},
    )


def _finding(
    row: Row,
    kind: str,
    title: str,
    sentence: str,
    next_step: str,
    where: str,
    ids: tuple[str | None, str | None],
    cost: Row,
) -> Finding:
    return RULE.finding(
        provisional=True,
        subject={"server": row["server_address"], "client_id": row["client_id"], "kind": kind, "where": where},
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=Proof(row["ts"], row["ts_last"], evidence_of_ids(ids)),
        numbers={
            "kind": kind,
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            **cost,
            "topics": [where],
            "where": where,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT137",
    question="growing",
    name="growing",
    severity="warning",
    confidence="medium",
    reads={
        HABITS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic", "shape", "messages",
            "rising", "began_bytes", "ended_bytes", "around_rising", "began_around_bytes", "ended_around_bytes",
            "message_id", "last_message_id", "server_port",
        ),
        NAMES: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "kind", "names", "used_once",
            "given_up", "first_name", "last_name", "steady", "first_id", "last_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=f"""
        SELECT server_address FROM r_{HABITS}
        WHERE (rising >= 0.8 AND ended_bytes >= 2 * began_bytes)
            OR (around_rising >= 0.8 AND ended_around_bytes >= 2 * began_around_bytes)
        UNION SELECT server_address FROM r_{NAMES} WHERE steady >= 0.8""",
)  # fmt: skip
