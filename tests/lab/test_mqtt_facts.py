"""Facts of MQTT runs from the broker's log and the clients' prints."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.lab import make, mosquitto_log, mqtt_facts
from tests.lab.mosquitto_log import Endpoint, LogEntry
from tests.lab.processes import LabError

LAMP = Endpoint("10.0.0.9", 4000)
SAMPLES = [entry for entry in tomllib.loads(make.MANIFEST.read_text())["sample"] if entry["protocol"] == "mqtt"]


def publish(direction: str, topic: str = "a", qos: int = 0, size: int = 1, **more: Any) -> LogEntry:
    return LogEntry(1, direction, "PUBLISH", "lamp", LAMP, {"topic": topic, "qos": qos, "size": size, **more})


def test_messages_are_counted_by_client_topic_and_qos() -> None:
    entries = [publish("sent"), publish("sent"), publish("sent", qos=1), publish("received", "b")]
    assert mqtt_facts.messages(entries, "sent", "messages") == [
        {"client_id": "lamp", "topic": "a", "qos": 0, "messages": 2},
        {"client_id": "lamp", "topic": "a", "qos": 1, "messages": 1},
    ]
    assert mqtt_facts.packet_counts(entries) == {"received": {"PUBLISH": 1}, "sent": {"PUBLISH": 3}}


def test_refusals_are_those_without_a_grant_or_with_a_code() -> None:
    asked = LogEntry(1, "received", "SUBSCRIBE", "lamp", LAMP, {"filters": [["a", 1, 1], ["b", 1, None]]})
    answer = LogEntry(1, "sent", "CONNACK", None, None, {"code": 5})
    denied = publish("received", "c", verdict="Denied")
    assert mqtt_facts.refused_subscriptions([asked, answer]) == [{"client_id": "lamp", "filter": "b"}]
    assert mqtt_facts.refused_connections([asked, answer]) == {"5": 1}
    assert mqtt_facts.refused_messages([denied, publish("received", verdict="Received"), publish("sent")]) == [
        {"client_id": "lamp", "topic": "c", "verdict": "denied"}
    ]


def test_a_message_above_the_clients_limit_was_not_sent() -> None:
    entries = [publish("sent", size=10), publish("sent", size=11), publish("received", size=11)]
    assert mqtt_facts.without_too_large(entries, "lamp", 10) == [entries[0], entries[2]]


@pytest.mark.parametrize(
    ("printed", "agrees"),
    [
        pytest.param([{"event": "received", "topic": "a", "qos": 1}, {"event": "did"}], True, id="the same"),
        pytest.param([], False, id="nothing printed"),
        pytest.param([{"event": "received", "topic": "a", "qos": 0}], False, id="another QoS"),
        pytest.param([{"event": "received", "topic": "a", "qos": 1}] * 2, False, id="twice"),
    ],
)
def test_deliveries_are_what_the_client_printed(printed: list[dict[str, Any]], agrees: bool, tmp_path: Path) -> None:
    (tmp_path / "lamp.out").write_text("".join(f"{json.dumps(one)}\n" for one in printed))
    entries = [publish("sent", qos=1), publish("received", qos=1)]
    if agrees:
        mqtt_facts.check_deliveries(entries, tmp_path, {"lamp": "lamp"})
    else:
        with pytest.raises(LabError):
            mqtt_facts.check_deliveries(entries, tmp_path, {"lamp": "lamp"})


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample["file"]))
def test_the_manifest_tells_what_the_broker_logged(sample: dict[str, Any]) -> None:
    log = mosquitto_log.load(make.SAMPLES / sample["broker_log"])
    told = sample["facts"]["packets_logged"]
    counted = mqtt_facts.packet_counts(log)
    if "too_large_to_send" in sample["facts"]:
        counted["sent"]["PUBLISH"] -= sample["facts"]["too_large_to_send"]
    assert counted == told
