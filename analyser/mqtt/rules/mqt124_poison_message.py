"""MQT124 poison-message: one message ends each connection on which it is sent.

Finds
    A message of QoS 1 or 2 that a client sends again on each new connection and that the server never takes: it ends
    the connection instead.

Why it matters
    The client keeps the message and begins with it every time, so nothing after it gets through. The logs of both show
    connections that break, and the network is blamed.

How it decides
    One client id sends the same message (topic, payload, packet identifier) on 3 connections or more
    (connections_least); on none of them it is acknowledged, and the server ends each at most 5 s after it
    (closed_within_s). Bytes missing from a connection leave that connection out.

False alarms
    A server that ends all connections at that time, also those without this message.

References
    MQTT 3.1.1 and 5.0: section 4.4 (what is sent again when the session goes on), 3.2.2.3.6 (Maximum Packet Size, 5.0);
    Mosquitto: max_packet_size.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text


def detect(frames: Frames, *, connections_least: int = 3, closed_within_s: float = 5.0) -> Iterator[Finding]:
    """One finding for each message of this client that no connection survives."""
    ended = {
        row["flow_id"]: row["ts_disconnect"] if row["disconnected_by"] == "server" else row["ts_closed"]
        for row in rows_of(frames["mqtt_connections"])
        if not row["gap_bytes"] and "server" in (row["disconnected_by"], row["closed_by"])
    }
    messages: dict[tuple[object, ...], list[Row]] = {}
    for row in rows_of(frames["mqtt_publishes"]):
        key = (row["topic"], row["packet_identifier"], row["payload_crc32"], row["payload_bytes"])
        messages.setdefault(key, []).append(row)
    for sent in messages.values():
        if any(row["handshake"] not in ("no_puback", "no_pubrec") for row in sent):
            continue
        last = {row["flow_id"]: row for row in sent if row["flow_id"] in ended}
        fatal = [
            row for flow, row in last.items()
            if (end := ended[flow]) is not None and 0 <= end - row["ts"] <= closed_within_s * NS_PER_S
        ]  # fmt: skip
        if len(fatal) >= connections_least and len(fatal) == len({row["flow_id"] for row in sent}):
            yield _finding(fatal)


def _finding(sent: list[Row]) -> Finding:
    first, last = sent[0], sent[-1]
    topic = printable(first["topic"], 80)
    return RULE.finding(
        subject={"server": first["server_address"], "client_id": first["client_id"], "topic": first["topic"],
                 "payload": first["payload_crc32"]},
        sentence=(
            f"{sentence_start(client_text(first))} sent one message of QoS {first['qos']} on {topic} "
            f"({count(first['length_bytes'], 'byte')}) {times(len(sent))}, each time on a new connection, and "
            f"{server_text(first)} ended each of them instead of taking it, {period_text(first['ts'], last['ts'])}."
        ),
        next_step=(
            "Look at the server's log for why it ends the connection: the message may be larger than it takes, or be "
            "forbidden. Then take the message out of the client's store; nothing after it gets through."
        ),
        proof=Proof(first["ts"], last["ts"], evidence_of(sent)),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "connections": len(sent),
            "requests_refused": len(sent),
            "stood_still_ms": (last["ts"] - first["ts"]) / NS_PER_MS,
            "bytes": first["length_bytes"],
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(last)],
        },
    )  # fmt: skip


_UNTAKEN = """direction = 'client_to_server' AND qos > 0 AND topic IS NOT NULL AND payload_crc32 IS NOT NULL
    AND client_id <> ''"""

RULE = Rule(
    code="MQT124",
    question="repeated",
    name="poison-message",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_connections": ("flow_id", "closed_by", "disconnected_by", "ts_disconnect", "ts_closed", "gap_bytes"),
        "mqtt_publishes": (
            "ts", "flow_id", "client_address", "client_port", "server_port", "version", "topic", "qos", "handshake",
            "packet_identifier", "payload_bytes", "payload_crc32", "length_bytes", "message_id", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={"mqtt_publishes": _UNTAKEN},
    suspects="""
        SELECT server_address, client_id FROM r_mqtt_publishes WHERE handshake IN ('no_puback', 'no_pubrec')
        GROUP BY server_address, client_id, topic, packet_identifier, payload_crc32, payload_bytes
        HAVING count(DISTINCT flow_id) >= 3""",
)  # fmt: skip
