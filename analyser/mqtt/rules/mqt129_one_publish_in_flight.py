"""MQT129 one-publish-in-flight: a publisher sends one message at a time over a way that takes most of the time.

Finds
    Publishers that send each message of QoS 1 or 2 right after the last one was acknowledged, on a way that is far
    longer than the server needs. Question: who waits for whom (each message waits for the way of the one before).

Why it matters
    Link and server look idle and nothing is lost, yet the publisher gets no further: one message for each round trip,
    two for one of QoS 2. What it has to send piles up in the client, and no other client of the server sees anything.

How it decides
    The way is what the TCP handshake took, or the time from SYN to CONNECT, which a capture beside the server shows. Of
    the first thousand such messages of a connection whose way is `way_ms` or more: `messages` at least, always one in
    flight, on a connection that is known whole; and nine tenths (share) of the times from one message to the next are
    as long as the round trips that a message takes, from a tenth less to a quarter more. So it is the way that sets the
    pace, wherever the capture was taken. A warning where it went on so for four fifths of the connection's time.

False alarms
    A timer whose period happens to be the round trip.

What it cannot tell
    How much was waiting in the client.

References
    MQTT 3.1.1 and 5.0: section 4.3, 4.6 (order), 3.1.2.11.3 (Receive Maximum, 5.0). max_inflight of libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title

_SHORTER, _LONGER = 0.9, 1.25
_MOST_LOOKED_AT = 1000
_OF_THE_TIME = 0.8
# What libraries usually have on the way at a time, where the server allows it.
_WINDOW = 20


def detect(frames: Frames, *, messages: int = 50, share: float = 0.9, way_ms: float = 10.0) -> Iterator[Finding]:
    """At most one finding for this connection."""
    rows = rows_of(frames["mqtt_publishes"])
    flow = next(iter(rows_of(frames["flows"])), None)
    connection = next(iter(rows_of(frames["mqtt_connections"])), None)
    if flow is None or connection is None or len(rows) < messages:
        return
    way = max(flow["handshake_ms"] or 0.0, (connection["ts"] - flow["ts_first"]) / NS_PER_MS)
    if way < way_ms:
        return
    if any(row["in_flight"] != 1 for row in rows):
        return
    steps = [(after["ts"] - before["ts"]) / NS_PER_MS / (way * before["qos"]) for before, after in pairwise(rows)]
    if sum(_SHORTER <= one <= _LONGER for one in steps) >= share * len(steps):
        yield _finding(rows, connection, way)


def _finding(rows: Sequence[Row], connection: Row, way_ms: float) -> Finding:
    first, last = rows[0], rows[-1]
    each_ms = median((after["ts"] - before["ts"]) / NS_PER_MS for before, after in pairwise(rows))
    rate = 1000 / each_ms
    allowed = min(connection["server_receive_maximum"] or _WINDOW, _WINDOW)
    lived = (connection["observed_until"] or last["ts"]) - connection["ts"]
    busy = last["ts"] - first["ts"] >= _OF_THE_TIME * lived or len(rows) >= _MOST_LOOKED_AT
    server = server_text(first)
    return RULE.finding(
        severity="warning" if busy else "info",
        subject={"server": first["server_address"], "client_id": first["client_id"],
                 "address": first["client_address"]},
        title=f"One message at a time over {way_ms:,.0f} ms of way: {client_title(first)} to {server}",
        sentence=(
            f"{sentence_start(client_text(first))} sends each message of QoS {first['qos']} to {server} only after the "
            f"one before was acknowledged: {count(len(rows), 'message')}, {ms_text(each_ms)} each, where the way alone "
            f"(TCP handshake and CONNECT) takes {ms_text(way_ms)}. So {rate:,.1f} messages a second get "
            f"through; with {allowed} on the way at a time up to {rate * allowed:,.0f} would."
        ),
        next_step=(
            "Where this is too little, do not wait for each acknowledgement in the application, and raise the "
            "library's window (max_inflight); or put several values into one message."
        ),
        proof=Proof(first["ts"], last["ts"], evidence_of(rows)),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "flow_id": connection["flow_id"],
            "published": len(rows),
            "each_ms": round(each_ms, 3),
            "way_ms": round(way_ms, 3),
            "messages_a_second": round(rate, 2),
            "window": allowed,
            "wasted_ms": round((last["ts"] - first["ts"]) / NS_PER_MS * (1 - 1 / allowed), 3),
            "seconds": round((last["ts"] - first["ts"]) / NS_PER_S, 3),
            "topics": [printable(first["topic"] or "?", 80)],
            "where": server,
            "clients": [client_numbers(first)],
        },
    )  # fmt: skip


_FAR = """SELECT flow_id FROM flows JOIN mqtt_connections AS own USING (flow_id)
    WHERE flows.handshake_seen AND own.connect_seen
        AND greatest(coalesce(handshake_ms, 0), (epoch_ns(own.ts) - epoch_ns(ts_first)) / 1e6) >= 10"""
_SENT = "direction = 'client_to_server' AND qos IN (1, 2) AND NOT coalesce(dup, false)"
RULE = Rule(
    code="MQT129",
    question="waiting",
    name="one-publish-in-flight",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_publishes": (
            "ts", "client_id", "client_address", "client_port", "server_address", "server_port", "version", "topic",
            "qos", "in_flight", "message_id", "file", "packet",
        ),
        "mqtt_connections": ("ts", "server_receive_maximum", "observed_until"),
        "flows": ("ts_first", "handshake_ms"),
    },
    partition_by=("flow_id",),
    detect=detect,
    rows={
        "mqtt_publishes": f"""{_SENT} AND message_id IN (
            SELECT unnest(arg_min(message_id, ts, {_MOST_LOOKED_AT})) FROM mqtt_publishes
            WHERE {_SENT} AND flow_id IN ({_FAR})
            GROUP BY flow_id HAVING count(*) >= 50)""",
        "mqtt_connections": "gap_bytes = 0 AND max_in_flight_from_client <= 1",
        "flows": "handshake_seen AND protocol = 'mqtt'",
    },
    suspects=AnyRow("mqtt_publishes"),
)  # fmt: skip
