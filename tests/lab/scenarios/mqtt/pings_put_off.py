"""Two subscribers that never publish, with messages every second: one of MQTT.js 5.5.5, which puts its PINGREQ off for
each message that it gets, until the broker closes its connection, and one of 5.6.0, which does not. It is no sample: a
test holds both to the contract `mqtt-client`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.clients.node import fetched
from tests.lab.mosquitto import Mosquitto
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError
from tests.lab.runs import Run

SHOWS = "a subscriber of MQTT.js 5.5.5 that is closed for silence, beside one of 5.6.0"
OLD, NEW = "display-old", "display-new"  # client ids and hosts
VERSIONS = {OLD: "mqtt-5.5.5", NEW: "mqtt-5.6.0"}
HOSTS = (OLD, NEW, "meter")
CLIENTS = ("MQTT.js 5.5.5", "MQTT.js 5.6.0", mqtt.PAHO_PYTHON)
EXPECTED = ("MQT103",)
SERVER = Mosquitto()
KEEP_ALIVE_S = 4
# The broker closes after one and a half times the keep alive; it looks once in a while.
MESSAGES, PAUSE_S = 24, 1.0


def prepare() -> None:
    """Fetch the clients."""
    fetched("node_fixes")
    mqtt.prepare("paho")


def drive(run: Run) -> None:
    """Let both listen while a meter publishes."""
    host, port = run.endpoint.split(":")
    program = str(fetched("node_fixes") / "mqttjs_listener.js")
    displays = [
        run.start(name, name, "node", program, version, host, port, name, "power/now", str(KEEP_ALIVE_S))
        for name, version in VERSIONS.items()
    ]
    for display in displays:
        display.wait_for_event("subscribed")
    plan = mqtt.plan("meter", 4, mqtt.publish("power/now", payload="230", count=MESSAGES, pause_s=PAUSE_S),
                     mqtt.DISCONNECT)  # fmt: skip
    run.call("meter", "meter", *mqtt.command("paho", run.endpoint, plan))
    time.sleep(0.5)
    for display in displays:
        display.terminate()


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Whom the broker closed for silence, by its log; LabError unless it is the old one alone."""
    del directory
    silent = sorted({one.client_id for one in records if one.kind == "silent"} - {None})
    if silent != [OLD]:
        raise LabError(f"closed for silence: {silent}")
    return {"ended_for_silence": silent, "pings": mqtt_facts.packet_counts(records)["received"].get("PINGREQ", 0)}
