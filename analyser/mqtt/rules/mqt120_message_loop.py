"""MQT120 message-loop: a message goes round and round between the server and a client that publishes it back.

Finds
    Messages that the server sends to a client and that this client publishes again with the same topic and payload,
    each time that it gets them; and payloads that go round over several topics, copied from one to the next by one
    client or several.

Why it matters
    Two bridges in a circle, or a program that publishes to what it subscribes to, make one message an endless stream:
    servers and subscribers are busy with nothing, and each subscriber gets the same message many times.

How it decides
    One topic and payload that a client first got (not as a retained message) and then published itself, at most 0.25 s
    after it got it in the median (back_within_s), 20 times in 10 s (rounds_least, window_s), where it published about
    as often as it got it (0.7 to 1.5 times). Who gets everything two or three times (0.3 to 0.7 times) is judged only
    where the circle is closed: of all that anybody published of this message nine parts in ten (closed_share) came at
    most 0.1 s (circle_within_s) after their client had got it, so that nobody makes it anew. That is so of bridges in a
    circle, each of which gets what it published and what the others did; a device that repeats a value, and gets its
    own and that of a second one, publishes it before it gets it.
    Over several topics, by the fact `mqtt_topic_rounds`: at least 20 publishes on each of these topics, and four fifths
    of all there, are of a payload that the server had sent to that client on another of them, after it was published
    there; and the client took back_within_s at most in the median. Or each copy goes to a longer topic.

False alarms
    Two programs that answer each other with equal messages.

References
    MQTT 5.0: section 3.8.3.1 (No Local, made for bridges); Mosquitto: bridges, topic in, out, both.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text, period_text
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import most_within
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

ROUNDS = "mqtt_topic_rounds"
RATIO_LEAST, RATIO_MOST = 0.7, 1.5
CIRCLE_LEAST = 0.3  # published for each that it got, where a client in a circle gets all of it up to three times
ROWS_MOST = 5000  # of one client, message and direction: counts beyond are at least so many


class _Loop(NamedTuple):
    """back: the publishes of what the client got before. most: of them, in any window. gap_ms: from getting it. ratio:
    how many of them for each that it got. more: there are more than those looked at."""

    back: list[Row]
    most: int
    gap_ms: float
    ratio: float
    more: bool = False


def detect(
    frames: Frames,
    *,
    rounds_least: int = 20,
    window_s: float = 10.0,
    back_within_s: float = 0.25,
    circle_within_s: float = 0.1,
    closed_share: float = 0.9,
) -> Iterator[Finding]:
    """At most one finding of each kind for this topic."""
    rings = [row for row in rows_of(frames[ROUNDS]) if row["handled_ms"] <= back_within_s * 1000]
    if rings and len(rings) == len(rows_of(frames[ROUNDS])):
        yield _ring(rings)
    messages: dict[tuple[object, ...], dict[str, list[Row]]] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        clients = messages.setdefault((row["payload_crc32"], row["payload_bytes"]), {})
        clients.setdefault(row["flow_id"], []).append(row)
    found: list[_Loop] = []
    for every in messages.values():
        clients = _known(every)
        loops = [
            loop
            for rows in clients.values()
            if (loop := _loop(rows, int(window_s * NS_PER_S))) is not None and loop.gap_ms <= back_within_s * 1000
        ]
        closed = _closed(loops, clients, circle_within_s) >= closed_share
        found += [
            one._replace(more=clients is not every)
            for one in loops
            if one.most >= rounds_least and (one.ratio >= RATIO_LEAST or closed)
        ]
    if found:
        yield _finding(sorted(found, key=lambda loop: -len(loop.back)))


def _known(clients: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The rows of the time in which all rows of all clients are there."""
    ends = [
        own[-1]["ts"]
        for rows in clients.values()
        for way in ("server_to_client", "client_to_server")
        if len(own := [row for row in rows if row["direction"] == way]) >= ROWS_MOST
    ]
    if not ends:
        return clients
    kept = {flow: [row for row in rows if row["ts"] <= min(ends)] for flow, rows in clients.items()}
    return {flow: rows for flow, rows in kept.items() if rows}


def _closed(loops: list[_Loop], clients: dict[str, list[Row]], within_s: float) -> float:
    """Which part of all publishes of a message came just after their client had got it."""
    sent = sum(row["direction"] == "client_to_server" for rows in clients.values() for row in rows)
    at_once = sum(len(loop.back) for loop in loops if loop.gap_ms <= within_s * 1000)
    return float(at_once / max(sent, 1))


def _loop(rows: list[Row], window_ns: int) -> _Loop | None:
    """What one client does with one message; None where it began by itself."""
    if rows[0]["direction"] != "server_to_client":
        return None
    got = [row["ts"] for row in rows if row["direction"] == "server_to_client"]
    back = [row for row in rows if row["direction"] == "client_to_server"]
    if not back:
        return None
    ratio = len(back) / len(got)
    if not CIRCLE_LEAST <= ratio <= RATIO_MOST:
        return None
    times = [row["ts"] for row in back]
    return _Loop(back, len(most_within(times, window_ns, int)), _gap_ms(times, got), ratio)


def _gap_ms(times: list[int], got: list[int]) -> float:
    """From getting a message to publishing it, in the median: each publish belongs to its share of what was got."""
    each = max(len(got) / len(times), 1)
    gaps = [abs(time - got[min(int(place * each), len(got) - 1)]) for place, time in enumerate(times)]
    return median(gaps) / float(NS_PER_MS)


def _finding(loops: list[_Loop]) -> Finding:
    worst = loops[0]
    row = worst.back[0]
    rows = sorted((one for loop in loops for one in loop.back), key=lambda one: one["ts"])
    clients = {one["flow_id"]: one for one in rows}
    topic = printable(row["topic"], 80)
    more = " or more" if any(loop.more for loop in loops) else ""
    others = f" and {count(len(clients) - 1, 'other client')}" if len(clients) > 1 else ""
    return RULE.finding(
        subject={"server": row["server_address"], "topic": row["topic"]},
        title=(
            f"Message loop on {short(row['topic'])}: published back {len(rows):,} times by {client_title(row)}{others}"
        ),
        sentence=(
            f"A message on {topic} goes round: {client_text(row)}{others} published it back to {server_text(row)} "
            f"{count(len(rows), 'time')}{more}. It came back {ms_text(worst.gap_ms)} after the server had sent it, "
            f"up to {worst.most} times in 10 s, {period_text(rows[0]['ts'], rows[-1]['ts'])}."
        ),
        next_step=(
            "Look at this client: a bridge that forwards a topic both ways, or a program that publishes to what it "
            "subscribes to. Let the topic go one way, or subscribe with No Local (5.0)."
        ),
        proof=Proof(rows[0]["ts"], rows[-1]["ts"], evidence_of(rows)),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "records_again": len(rows),
            "most_in_window": worst.most,
            "gap_ms": round(worst.gap_ms, 3),
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(one) for one in clients.values()][:20],
        },
    )


def _ring(rows: list[Row]) -> Finding:
    """Over several topics."""
    first = max(rows, key=lambda row: int(row["copies_count"]))
    copies = sum(row["copies_count"] for row in rows)
    every = {row[name] for row in rows for name in ("to_topic", "from_topic")}
    topics = [printable(one, 60) for one in sorted(every)]
    ways = [
        f"{client_text(row)} publishes on {printable(row['to_topic'], 60)} what came on "
        f"{printable(row['from_topic'], 60)} ({count(row['copies_count'], 'time')}, {ms_text(row['handled_ms'])} later)"
        for row in rows[:3]
    ]
    over = count(max(row["topics"] for row in rows), "topic") if first["topics"] > 1 else count(len(topics), "topic")
    since, until = min(row["ts"] for row in rows), max(row["ts_last"] for row in rows)
    names = names_text([short(topic) for topic in topics], 2)
    return RULE.finding(
        subject={"server": first["server_address"], "topic": first["topic"]},
        title=f"Message loop over {over}, {names}: {copies:,} copies, {client_title(first)}",
        sentence=(
            f"{count(first['values_count'], 'payload')} of {server_text(first)} {_go(first)} round over {over}: "
            f"{'; '.join(ways)}. {count(copies, 'copy', 'copies')}, {period_text(since, until)}."
        ),
        next_step=(
            "Look at these clients: two rules or bridges that copy topics into each other. Let the topics go one way, "
            "or mark what was copied and leave it alone."
        ),
        proof=Proof(since, until, evidence_of(rows)),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "records_again": copies,
            "most_in_window": first["rounds_most"],
            "gap_ms": round(first["handled_ms"], 3),
            "topics": topics[:20],
            "where": topics[0],
            "clients": [client_numbers(row, copies=row["copies_count"]) for row in rows[:20]],
        },
    )


def _go(row: Row) -> str:
    return "goes" if row["values_count"] == 1 else "go"


_OF_A_LOOP = """topic IS NOT NULL AND payload_crc32 IS NOT NULL AND NOT dup
    AND NOT (retain AND direction = 'server_to_client')"""
_MESSAGE = "server_address, topic, payload_crc32, payload_bytes"
# Topics that go both ways: quickly told, and few of those that are only published.
_BOTH_WAYS = f"""
    SELECT server_address, topic FROM mqtt_publishes WHERE {_OF_A_LOOP} GROUP BY ALL
    HAVING count(*) FILTER (direction = 'client_to_server') >= 20
        AND count(*) FILTER (direction = 'server_to_client') >= 20"""
# Who published a message that somebody published about as often as he got it, or, of a circle, that nearly all who
# published it did so a second or third as often. All of their rows are counted, the first of each are looked at: those
# until `until`. A loop that nothing brakes has a million rows: they are never sorted, nor made a table of a join, as
# DuckDB does where it does not know how few rows are on the other side of it.
_PART = f"back BETWEEN {{}} * got AND {RATIO_MOST} * got"
_ROUND = f"""
    topic IS NOT NULL AND message_id IN (
        WITH both_ways AS MATERIALIZED ({_BOTH_WAYS}),
        parts AS MATERIALIZED (
            SELECT flow_id, {_MESSAGE}, back, got FROM (
                SELECT flow_id, {_MESSAGE}, count(*) FILTER (direction = 'client_to_server') AS back,
                       count(*) FILTER (direction = 'server_to_client') AS got
                FROM mqtt_publishes SEMI JOIN both_ways USING (server_address, topic)
                WHERE {_OF_A_LOOP} GROUP BY ALL HAVING back > 0)
            WINDOW of_one AS (PARTITION BY {_MESSAGE})
            QUALIFY max(back) FILTER ({_PART.format(RATIO_LEAST)}) OVER of_one >= 20
                OR (max(back) OVER of_one >= 20 AND 10 * sum(back) FILTER ({_PART.format(CIRCLE_LEAST)})
                    OVER of_one >= 9 * sum(back) OVER of_one)),
        long AS MATERIALIZED (
            SELECT flow_id, {_MESSAGE}, direction, list_max(min(ts, {ROWS_MOST})) AS until
            FROM mqtt_publishes SEMI JOIN (FROM parts WHERE greatest(back, got) > {ROWS_MOST})
                USING (flow_id, {_MESSAGE})
            WHERE {_OF_A_LOOP} GROUP BY ALL)
        SELECT message_id FROM mqtt_publishes SEMI JOIN parts USING (flow_id, {_MESSAGE})
            LEFT JOIN long USING (flow_id, {_MESSAGE}, direction)
        WHERE {_OF_A_LOOP} AND (until IS NULL OR ts <= until))"""

RULE = Rule(
    code="MQT120",
    question="repeated",
    name="message-loop",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_publishes": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "direction",
            "payload_bytes", "payload_crc32", "message_id", "file", "packet",
        ),
        ROUNDS: (
            "ts", "ts_last", "to_topic", "from_topic", "topics", "values_count", "copies_count", "rounds_most",
            "handled_ms", "client_id", "client_address", "client_port", "version", "server_port", "message_id", "file",
            "packet",
        ),
    },
    partition_by=("server_address", "topic"),
    detect=detect,
    rows={"mqtt_publishes": _ROUND},
    suspects=f"SELECT server_address, topic FROM r_mqtt_publishes UNION SELECT server_address, topic FROM r_{ROUNDS}",
)  # fmt: skip
