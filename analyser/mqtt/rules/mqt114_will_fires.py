"""MQT114 will-fires: connections with a will that ended without DISCONNECT.

Finds
    Clients that set a will and whose connection closed without a DISCONNECT of theirs, so that the server sends the
    will.

Why it matters
    A will says "this client is gone". One that fires again and again is a device that flaps, and everybody who
    listens to the topic hears of it each time.

How it decides
    A CONNECT with a will that was accepted, and a connection that was closed without a DISCONNECT of the client, or
    in 5.0 with reason 0x04, by which the client asks for its will. One is info; 3 (often_least) of one client id within
    5 min (window_s) are a warning. In 5.0 a will with a delay is not sent when the session goes on before the delay is
    over: the client came back in time, or another connection took the session over while this one was open.

False alarms
    Brokers that send no will without delay at a take-over whose session goes on (Mosquitto).

References
    MQTT 3.1.1: section 3.1.2.5, [MQTT-3.1.2-8]; 5.0: [MQTT-3.1.2-8], [MQTT-3.1.2-10], section 3.1.3.2.2 (delay).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.base.words import names_text, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import most_within
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

DISCONNECT_WITH_WILL = 0x04


def detect(frames: Frames, *, often_least: int = 3, window_s: float = 300.0) -> Iterator[Finding]:
    """At most one finding for this client id."""
    rows = rows_of(frames["mqtt_connections"])
    fired = [row for row in rows if _fires(row) and not _back_in_time(row, rows)]
    if not fired:
        return
    most = len(most_within(sorted(row["ts_closed"] for row in fired), int(window_s * NS_PER_S), int))
    often = most >= often_least
    last = fired[-1]
    asked = sum(_asks_for_will(row) for row in fired)
    topics = sorted({printable(str(row["will_topic"]), 60) for row in fired})
    yield RULE.finding(
        severity="warning" if often else "info",
        subject={"server": last["server_address"], "client_id": last["client_id"]},
        title=(
            f"{'Will asked for with DISCONNECT 0x04' if asked == len(fired) else 'Connection lost without DISCONNECT'}"
            f" {times(len(fired))}: {client_title(last)}, will on {names_text([short(one) for one in topics], 1)}"
        ),
        sentence=_sentence(last, len(fired), asked, topics),
        next_step=(
            "Look at the program that ends with reason 0x04: it wants its will to be sent, nothing broke."
            if asked == len(fired)
            else "Look at the device and its network: why does the connection break? MQT102, MQT103 name two reasons."
        ),
        proof=Proof(
            fired[0]["ts_closed"],
            last["ts_closed"],
            (Evidence(row["file"], row["last_client_packet"] or row["packet"], None) for row in fired),
        ),
        numbers={
            "fired": len(fired),
            "left_behind": len(fired),
            "asked_for": asked,
            "most_in_window": most,
            "connections": len(rows),
            "will_topics": topics[:20],
            "where": topics[0],
            "clients": [client_numbers(last, fired=len(fired))],
        },
    )


def _fires(row: Row) -> bool:
    if row["will_topic"] is None or row["error_code"] != 0 or row["closed_by"] is None or row["ts_closed"] is None:
        return False
    return row["disconnected_by"] != "client" or _asks_for_will(row)


def _asks_for_will(row: Row) -> bool:
    return bool(row["disconnected_by"] == "client" and row["disconnect_reason_code"] == DISCONNECT_WITH_WILL)


def _sentence(last: Row, fired: int, asked: int, topics: list[str]) -> str:
    who, where = sentence_start(client_text(last)), ", ".join(topics[:4])
    if asked == fired:
        return (
            f"{who} ended its connection to {server_text(last)} with DISCONNECT 0x04 (disconnect with will message) "
            f"{times(fired)}: it asked the server to send its will on {where}."
        )
    also = f", {asked} of them with DISCONNECT 0x04, which asks for it" if asked else ""
    return (
        f"{who} lost its connection to {server_text(last)} without DISCONNECT {times(fired)}{also}, so that the "
        f"server sends its will on {where}."
    )


def _back_in_time(row: Row, rows: list[Row]) -> bool:
    """Did the session go on before the will delay was over, by a return or a take-over?"""
    delay_ns = (row["will_delay_s"] or 0) * NS_PER_S
    if delay_ns:
        compared(len(rows))
    return any(
        row["ts"] < other["ts"] < row["ts_closed"] + delay_ns and other["error_code"] == 0 and not other["clean_start"]
        for other in rows
        if delay_ns and other["flow_id"] != row["flow_id"]
    )


RULE = Rule(
    code="MQT114",
    question="ended",
    name="will-fires",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "flow_id", "client_address", "client_port", "server_port", "version", "clean_start", "will_topic",
            "will_delay_s", "error_code",
            "disconnected_by", "disconnect_reason_code", "closed_by", "ts_closed", "file", "packet",
            "last_client_packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    suspects=AnyRow("mqtt_connections", "will_topic IS NOT NULL AND error_code = 0"),
)  # fmt: skip
