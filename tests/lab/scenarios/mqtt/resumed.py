"""Sessions that outlive their connections: what was under way is sent again with DUP, from clients and from the broker.

logbook takes messages of QoS 1 and 2 and is killed before it has acknowledged them; back with the same session, it gets
them again. buoy publishes into a broker that is frozen, gives its connection up when its ping stays without an answer
and comes back until the broker answers; then it sends again what was not acknowledged. Each with 3.1.1 and with 5.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mosquitto import Mosquitto
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, Process, terminate_all
from tests.lab.runs import Run

SERVER = Mosquitto()
SHOWS = "resumed sessions: publishes and releases that are sent again with DUP, by clients and by the broker"
HOSTS = ("sea", "office")
CLIENTS = (mqtt.PAHO_PYTHON,)
# The frozen broker answers no PINGREQ, and resets what it has not read.
EXPECTED = ("MQT104", "TCP103")
VERSIONS = (4, 5)
KEEP_ALIVE_S = 2
BEFORE_S = 1.5  # from buoy's first message to those that nobody answers
FROZEN_S = 5.0
KEPT: dict[int, dict[str, Any]] = {4: {}, 5: {"properties": {"SessionExpiryInterval": 300}}}


def prepare() -> None:
    """Look whether the client is there."""
    mqtt.prepare("paho")


def drive(run: Run) -> None:
    """Kill the takers in the middle and let them come back; then freeze the broker under the publishers."""

    def start(wanted: dict[str, Any], event: str, name: str = "") -> Process:
        host = "sea" if wanted["client_id"].startswith("buoy") else "office"
        command = mqtt.command("paho", run.endpoint, wanted)
        process = run.start(name or wanted["client_id"], host, *command)
        process.wait_for_event(event)
        return process

    asked = mqtt.subscribe(("tide/#", 2))
    first = [start(mqtt.plan(f"logbook-{version}", version, asked, mqtt.STAY, clean=False, manual_ack=True,
                             **KEPT[version]), "subscribed") for version in VERSIONS]  # fmt: skip
    feed = (mqtt.publish("tide/high", 1), mqtt.publish("tide/low", 2))
    start(mqtt.plan("tower", 4, *feed, mqtt.DISCONNECT), "disconnected")
    for process in first:
        process.wait_for_event("received")
        time.sleep(0.3)
        process.kill()
    back = [start(mqtt.plan(f"logbook-{version}", version, mqtt.STAY, mqtt.DISCONNECT, clean=False, **KEPT[version]),
                  "received", f"logbook-{version}-back") for version in VERSIONS]  # fmt: skip
    buoys = [start(buoy(version), "published") for version in VERSIONS]
    run.server.process.freeze()
    time.sleep(FROZEN_S)
    run.server.process.thaw()
    for process in buoys:
        process.wait_for_event("connected", 2)
    time.sleep(1.0)
    terminate_all(*buoys)
    terminate_all(*back)


def buoy(version: int) -> dict[str, Any]:
    """One message in peace, one of each QoS into silence, then back again and again."""
    parts = [mqtt.publish("tide/now", qos, payload=f"{qos}", wait=False) for qos in (1, 2)]
    return mqtt.plan(f"buoy-{version}", version, mqtt.publish("tide/now", 1), mqtt.idle(BEFORE_S), *parts,
                     mqtt.KEEP_COMING, clean=False, keep_alive=KEEP_ALIVE_S, **KEPT[version])  # fmt: skip


def resent(records: list[LogEntry]) -> list[dict[str, Any]]:
    """Return the messages with DUP: who sent them, to or from which client."""
    return [
        {"client_id": one.client_id, "direction": one.direction, "topic": one.fields["topic"],
         "qos": one.fields["qos"], "mid": one.fields["mid"]}
        for one in records if one.kind == "PUBLISH" and one.fields["dup"]
    ]  # fmt: skip


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return what was sent again; LabError where one side sent nothing again or a session was not kept."""
    again = resent(records)
    senders = {(one["client_id"], one["direction"]) for one in again}
    wanted = {(f"buoy-{version}", "received") for version in VERSIONS}
    wanted |= {(f"logbook-{version}", "sent") for version in VERSIONS}
    present = {one.client_id for one in records if one.kind == "CONNACK" and one.fields["session_present"]}
    if not wanted <= senders or present != {client_id for client_id, _ in wanted}:
        raise LabError(f"sent again: {sorted(map(str, senders))}; sessions: {sorted(map(str, present))}")
    return {
        **mqtt_facts.common(records),
        "session_resumed": sorted(str(name) for name in present),
        "sent_again": again,
        "broker_frozen_s": FROZEN_S,
    }
