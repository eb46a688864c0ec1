"""Two devices with one client id: each connection ends the other's, and both come back, again and again.

Two pairs of paho-mqtt, one with 3.1.1 and one with 5; a watcher has an id of its own and stays. Mosquitto 2.0.11 closes
the old connection without a DISCONNECT in both versions; the scenario other_broker has one that says 0x8E first.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mosquitto import Mosquitto
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, terminate_all
from tests.lab.runs import Run

SERVER = Mosquitto()
SHOWS = "two clients with one client id that take the session from each other again and again, with 3.1.1 and with 5"
HOSTS = ("meter-a", "meter-b", "dashboard")
CLIENTS = (mqtt.PAHO_PYTHON,)
EXPECTED = ("MQT102",)
PAIRS = {"meter-17": 4, "valve-3": 5}  # client id and protocol level
LOOP_S = 12.0
ENOUGH = 5


def prepare() -> None:
    """Look whether the client is there."""
    mqtt.prepare("paho")


def drive(run: Run) -> None:
    """Start the second of each pair while the first works, and let them fight."""
    watcher = run.start("dashboard", "dashboard", *mqtt.command("paho", run.endpoint, mqtt.plan(
        "dashboard", 4, mqtt.subscribe(("meters/#", 0)), mqtt.STAY, mqtt.DISCONNECT)))  # fmt: skip
    watcher.wait_for_event("subscribed")
    devices = []
    for host in ("meter-a", "meter-b"):
        for client_id, version in PAIRS.items():
            wanted = mqtt.plan(client_id, version, mqtt.publish(f"meters/{client_id}", payload=host), mqtt.KEEP_COMING)
            devices.append(run.start(f"{client_id}-{host}", host, *mqtt.command("paho", run.endpoint, wanted)))
            devices[-1].wait_for_event("published")
    time.sleep(LOOP_S)
    terminate_all(*devices)
    watcher.terminate()


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return each pair's take-overs; LabError where they are too few."""
    pairs = []
    for client_id, version in PAIRS.items():
        taken = [one for one in records if one.kind == "taken over" and one.client_id == client_id]
        outputs = [mqtt_facts.events_of(directory, f"{client_id}-{host}") for host in ("meter-a", "meter-b")]
        lost = [event for events in outputs for event in events if event["event"] == "disconnected"]
        if not ENOUGH <= len(taken) <= len(lost):
            raise LabError(f"{client_id}: {len(taken)} take-overs, connections lost: {len(lost)}")
        pairs.append({
            "client_id": client_id, "version": mqtt_facts.LEVELS[5 if version == 5 else 2], "take_overs": len(taken),
            "told_by_disconnect": sum(event["by_server"] for event in lost),
            "taken_over_s": [one.logged_s for one in taken],
            "addresses": sorted({one.client.host for one in taken if one.client is not None}),
        })  # fmt: skip
    return {**mqtt_facts.common(records), "take_over": pairs}
