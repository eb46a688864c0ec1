"""MQT120 message-loop: a message goes round and round between the server and a client that publishes it back.

Finds
    Messages that the server sends to a client and that this client publishes again with the same topic and payload,
    each time that it gets them.

Why it matters
    Two bridges in a circle, or a program that publishes to what it subscribes to, make one message an endless stream:
    servers and subscribers are busy with nothing, and each subscriber gets the same message many times.

How it decides
    One topic and payload that a client first got (not as a retained message) and then published itself, at most 0.25 s
    after it got it in the median (back_within_s), 20 times in 10 s (rounds_least, window_s), where it published about
    as often as it got it (0.7 to 1.5 times, for a bridge that loops with others gets more). A device that repeats a
    value publishes it before it gets it, or publishes half of what it gets.

False alarms
    Two programs that answer each other with equal messages on one topic.

References
    MQTT 5.0: section 3.8.3.1 (No Local, made for bridges); Mosquitto: bridges, topic in, out, both.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from analyser.addresses import server_of, server_text
from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.mqtt.mqtt_rows import client_numbers, client_text
from analyser.detectors.proof import Proof, evidence_of
from analyser.times import NS_PER_MS, NS_PER_S, ms_text, period_text
from analyser.words import count, printable

RATIO_LEAST, RATIO_MOST = 0.7, 1.5


class _Loop(NamedTuple):
    """back: the publishes of what the client got before. most: of them, in any window. gap_ms: from getting it."""

    back: list[Row]
    most: int
    gap_ms: float


def detect(
    frames: Frames, *, rounds_least: int = 20, window_s: float = 10.0, back_within_s: float = 0.25
) -> Iterator[Finding]:
    """At most one finding for this topic."""
    by_client: dict[tuple[object, ...], list[Row]] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        key = (row["flow_id"], row["payload_crc32"], row["payload_bytes"])
        by_client.setdefault(key, []).append(row)
    loops = [
        loop
        for rows in by_client.values()
        if (loop := _loop(rows, int(window_s * NS_PER_S))) is not None
        and loop.most >= rounds_least
        and loop.gap_ms <= back_within_s * 1000
    ]
    if loops:
        yield _finding(sorted(loops, key=lambda loop: -len(loop.back)))


def _loop(rows: list[Row], window_ns: int) -> _Loop | None:
    """What one client does with one message; None where it began by itself."""
    if rows[0]["direction"] == "client_to_server":
        return None
    back: list[Row] = []
    gaps: list[float] = []
    got: list[int] = []
    for row in rows:
        if row["direction"] == "server_to_client":
            got.append(row["ts"])
        elif got:
            back.append(row)
            gaps.append((row["ts"] - got[min(len(back), len(got)) - 1]) / NS_PER_MS)
    if not back or not RATIO_LEAST <= len(back) / len(got) <= RATIO_MOST:
        return None
    times = [row["ts"] for row in back]
    most = first = 0
    for place, time in enumerate(times):
        while time - times[first] > window_ns:
            first += 1
        most = max(most, place - first + 1)
    return _Loop(back, most, median(gaps))


def _finding(loops: list[_Loop]) -> Finding:
    worst = loops[0]
    row = worst.back[0]
    rows = sorted((one for loop in loops for one in loop.back), key=lambda one: one["ts"])
    clients = {one["flow_id"]: one for one in rows}
    topic = printable(row["topic"], 80)
    others = f" and {count(len(clients) - 1, 'other client')}" if len(clients) > 1 else ""
    return DETECTOR.finding(
        subject={"server": row["server_address"], "topic": row["topic"]},
        sentence=(
            f"A message on {topic} goes round: {client_text(row)}{others} published it back to {server_text(row)} "
            f"{count(len(rows), 'time')}, {ms_text(worst.gap_ms)} after the server had sent it, "
            f"{period_text(rows[0]['ts'], rows[-1]['ts'])} (up to {worst.most} times in 10 s)."
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


DETECTOR = Detector(
    code="MQT120",
    name="message-loop",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_publishes": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "direction",
            "payload_bytes", "payload_crc32", "message_id", "file", "packet",
        ),
    },
    partition_by=("server_address", "topic"),
    detect=detect,
    rows={
        "mqtt_publishes": "topic IS NOT NULL AND payload_crc32 IS NOT NULL AND NOT dup "
        "AND NOT (retain AND direction = 'server_to_client')",
    },
    suspects="""
        SELECT server_address, topic FROM r_mqtt_publishes
        GROUP BY server_address, topic, flow_id, payload_crc32, payload_bytes
        HAVING count(*) FILTER (direction = 'client_to_server') >= 20
            AND count(*) FILTER (direction = 'server_to_client') >= 14""",
)  # fmt: skip
