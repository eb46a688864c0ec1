"""Healthy traffic beside an incident: a gauge that publishes, a board that gets it, a screen that shows it."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import OF_3_1_1
from tests.lab.incidents.mqtt.incident import Incident

VALUES = 400


def start(it: Incident) -> None:
    """Start it; it goes on until the incident ends."""
    topic, board, gauge, screen = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    it.subscriber("board", board, (f"{topic}/#", 1))
    values = [mqtt.publish(f"{topic}/level", 1, payload=f"{n % 7}.{n % 10}", pause_s=0.3) for n in range(VALUES)]
    it.follow("gauge", gauge, *values, mqtt.DISCONNECT)
    version = "mqttv311" if it.broker.kind in OF_3_1_1 else "mqttv5"
    it.tool("sub", "screen", screen, "-t", f"{topic}/#", "-q", "0", version=version)
