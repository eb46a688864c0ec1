"""MQT114 will-fires: connections with a will that ended without DISCONNECT.

Finds
    Clients that set a will and whose connection closed without a DISCONNECT of theirs, so that the server sends the
    will.

Why it matters
    A will says "this client is gone". One that fires again and again is a device that flaps, and everybody who
    listens to the topic hears of it each time.

How it decides
    A CONNECT with a will that was accepted, and a connection that was closed without a DISCONNECT of the client, or
    in 5.0 with reason 0x04. One is info; 3 (often_least) of one client id within 5 min (window_s) are a warning.

False alarms
    In 5.0 a will with a delay is not sent when the client comes back in time.

References
    MQTT 3.1.1: section 3.1.2.5, [MQTT-3.1.2-8]; 5.0: [MQTT-3.1.2-8], [MQTT-3.1.2-10], section 3.1.3.2.2 (delay).
"""

from __future__ import annotations

from collections.abc import Iterator

from analyser.detectors.detector import Detector, Frames
from analyser.detectors.findings import Evidence, Finding
from analyser.detectors.frame_rows import Row, rows_of
from analyser.detectors.mqtt.mqtt_rows import client_numbers, client_text, server_text
from analyser.detectors.proof import Proof
from analyser.words import printable, sentence_start, times

_NS = 1_000_000_000
DISCONNECT_WITH_WILL = 0x04


def detect(frames: Frames, *, often_least: int = 3, window_s: float = 300.0) -> Iterator[Finding]:
    """At most one finding for this client id."""
    rows = rows_of(frames["mqtt_connections"])
    fired = [row for row in rows if _fires(row) and not _back_in_time(row, rows)]
    if not fired:
        return
    most = _most_within([row["ts_closed"] for row in fired], int(window_s * _NS))
    often = most >= often_least
    last = fired[-1]
    topics = sorted({printable(str(row["will_topic"]), 60) for row in fired})
    yield DETECTOR.finding(
        severity="warning" if often else "info",
        subject={"server": last["server_address"], "client_id": last["client_id"]},
        sentence=(
            f"{sentence_start(client_text(last))} lost its connection to {server_text(last)} without DISCONNECT "
            f"{times(len(fired))}, so that the server sends its will on {', '.join(topics[:4])}."
        ),
        next_step=(
            "Look at the device and its network: why does the connection break? MQT102 and MQT103 name two reasons."
        ),
        proof=Proof(
            fired[0]["ts_closed"],
            last["ts_closed"],
            (Evidence(row["file"], row["last_client_packet"] or row["packet"], None) for row in fired),
        ),
        numbers={
            "fired": len(fired),
            "most_in_window": most,
            "connections": len(rows),
            "will_topics": topics[:20],
            "where": topics[0],
            "clients": [client_numbers(last, fired=len(fired))],
        },
    )


def _fires(row: Row) -> bool:
    if row["will_topic"] is None or row["error_code"] != 0 or row["closed_by"] is None:
        return False
    return row["disconnected_by"] != "client" or bool(row["disconnect_reason_code"] == DISCONNECT_WITH_WILL)


def _back_in_time(row: Row, rows: list[Row]) -> bool:
    """Did the client come back before its will delay was over?"""
    delay_ns = (row["will_delay_s"] or 0) * _NS
    return any(row["ts_closed"] <= other["ts"] < row["ts_closed"] + delay_ns for other in rows)


def _most_within(times: list[int], window_ns: int) -> int:
    times = sorted(times)
    return max(sum(1 for time in times[place:] if time - times[place] <= window_ns) for place in range(len(times)))


DETECTOR = Detector(
    code="MQT114",
    name="will-fires",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "client_address", "client_port", "server_port", "version", "will_topic", "will_delay_s", "error_code",
            "disconnected_by", "disconnect_reason_code", "closed_by", "ts_closed", "file", "packet",
            "last_client_packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    suspects="SELECT server_address, client_id FROM r_mqtt_connections WHERE will_topic IS NOT NULL AND error_code = 0",
)  # fmt: skip
