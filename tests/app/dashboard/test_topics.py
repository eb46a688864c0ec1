"""The page of MQTT topics: what changed between two payloads, and only where somebody asked to see payloads."""

from __future__ import annotations

from itertools import pairwise

import wirewitness
from tests.app.dashboard.opening import follow, kept, opened, sample, shown
from tests.conftest import SAMPLES

CAPTURE = "mqtt_healthy"


def test_payloads_of_a_topic_are_compared_where_somebody_asks() -> None:
    with wirewitness.read(str(SAMPLES / f"{CAPTURE}.pcapng"), tables=["mqtt_publishes"]) as analysis:
        of_topic = analysis.sql(
            "SELECT message_id, packet, payload_crc32 FROM mqtt_publishes WHERE topic = 'house/paho/power' "
            "AND direction = 'client_to_server' ORDER BY ts"
        ).to_pylist()
    one, other = next(
        (before, after) for before, after in pairwise(of_topic) if before["payload_crc32"] != after["payload_crc32"]
    )
    kept(sample(CAPTURE))
    values = {"under": "house/paho/power/", "message": other["message_id"]}
    told = shown(opened(CAPTURE, "mqtt-topics", values))
    assert f"in packet {one['packet']}" in told
    assert "Switch payloads on to see what changed." in told
    assert "<th" not in told
    app = opened(CAPTURE, "mqtt-topics", {**values, "payload": "shown"})
    assert not app.exception
    told = shown(app)
    assert "Switch payloads on" not in told
    assert "Before</th>" in told
    app = follow(app, "Open the message before")
    assert app.query_params["message"] == one["message_id"]


def test_the_first_message_of_a_topic_has_none_before() -> None:
    with wirewitness.read(str(SAMPLES / f"{CAPTURE}.pcapng"), tables=["mqtt_publishes"]) as analysis:
        first = analysis.sql(
            "SELECT message_id FROM mqtt_publishes WHERE topic = 'house/paho/power' ORDER BY ts LIMIT 1"
        )
    kept(sample(CAPTURE))
    app = opened(CAPTURE, "mqtt-topics", {"message": first.column(0)[0].as_py(), "payload": "shown"})
    assert not app.exception
    assert "No earlier message of its topic is in the capture." in shown(app)
