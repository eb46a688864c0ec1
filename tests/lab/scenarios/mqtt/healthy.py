"""Ordinary work with MQTT 3.1, 3.1.1 and 5: every library publishes and subscribes with every QoS, nothing goes wrong.

Keep-alives are short, so that clients with nothing to say ping. Subscribers give some filters back and all leave in
order; wills are set and never sent. A device sleeps and gets what came meanwhile when it is back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lab import mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mosquitto import Mosquitto
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, Process
from tests.lab.runs import Run

SERVER = Mosquitto()
SHOWS = "ordinary work with MQTT 3.1, 3.1.1 and 5, all QoS, by paho-mqtt, Paho Go, MQTT.js and mosquitto's own clients"
HOSTS = ("sensors", "office", "shell")
CLIENTS = (mqtt.PAHO_PYTHON, mqtt.PAHO_GO, mqtt.PAHO_GO_5, mqtt.MQTT_JS, mqtt.MOSQUITTO_CLIENTS)
EXPECTED: tuple[str, ...] = ()
KEEP_ALIVE_S = 2
SHELL_KEEP_ALIVE_S = 5  # the least that mosquitto_sub takes
# Library and protocol level; each has a subscriber and a publisher.
PAIRS = (("paho", 3), ("paho", 4), ("paho", 5), ("go", 3), ("go", 4), ("go", 5), ("node", 3), ("node", 4), ("node", 5))
SHELLS = ("mqttv31", "mqttv311", "mqttv5")
COUNT = 1  # messages of each QoS of each publisher
EACH = COUNT * 3 * len(PAIRS) + len(SHELLS)  # messages that each subscriber gets


def prepare() -> None:
    """Build the clients."""
    mqtt.prepare("paho", "go", "node")


def drive(run: Run) -> None:
    """All subscribe, one publisher after the other sends; then silence until pings were sent."""

    def start(library: str, host: str, wanted: dict[str, Any]) -> Process:
        return run.start(wanted["client_id"], host, *mqtt.command(library, run.endpoint, wanted))

    sleeper = mqtt.subscribe(("night/+", 1))
    start("paho", "office", mqtt.plan("sleeper", 4, sleeper, mqtt.DISCONNECT, clean=False)).finish()
    watchers = [start(library, "office", watching(library, version)) for library, version in PAIRS]
    shells = [run.start(f"sub-{version}", "shell", *mqtt.mosquitto_command(
        "sub", run.endpoint, f"sub-{version}", version, "-t", "house/#", "-q", "2", "-C", str(EACH + 1),
        "-k", str(SHELL_KEEP_ALIVE_S))) for version in SHELLS]  # fmt: skip
    for watcher in watchers:
        watcher.wait_for_event("subscribed")
    for library, version in PAIRS:
        start(library, "sensors", publishing(library, version)).finish()
    for qos, version in enumerate(SHELLS):
        words = ("-t", "house/shell", "-m", "on", "-q", str(qos))
        name = f"pub-{version}"
        run.call(name, "shell", *mqtt.mosquitto_command("pub", run.endpoint, name, version, *words))
    start("paho", "sensors", mqtt.plan("night-watch", 4, mqtt.publish("night/door", 1, payload="shut", count=2),
                                       mqtt.DISCONNECT)).finish()  # fmt: skip
    for watcher in watchers:
        watcher.finish()
    start("paho", "office", mqtt.plan("sleeper", 4, mqtt.receive(2), mqtt.DISCONNECT, clean=False)).finish()
    start("go", "sensors", mqtt.plan("last", 4, mqtt.publish("house/last", 2), mqtt.DISCONNECT)).finish()
    for shell in shells:
        shell.finish()


def watching(library: str, version: int) -> dict[str, Any]:
    """Take everything of the house, look at what is retained, wait in silence, give all back and leave."""
    name = f"{library}-{version}-sub"
    will = {"topic": f"wills/{name}", "payload": "gone", "qos": 1, "retain": False}
    return mqtt.plan(
        name, version, mqtt.subscribe(("house/#", 2)),
        mqtt.receive(EACH), mqtt.subscribe(("state/+", 1)), mqtt.idle(SHELL_KEEP_ALIVE_S + 1.0),
        mqtt.unsubscribe("house/#", "state/+"), mqtt.DISCONNECT, keep_alive=KEEP_ALIVE_S, will=will,
    )  # fmt: skip


def publishing(library: str, version: int) -> dict[str, Any]:
    """Messages of each QoS, and a retained one."""
    name = f"{library}-{version}-pub"
    parts = [mqtt.publish(f"house/{library}/power", qos, payload=f"{qos} W", count=COUNT) for qos in (0, 1, 2)]
    kept = mqtt.publish(f"state/{library}", 1, payload="on", retain=True)
    return mqtt.plan(name, version, *parts, kept, mqtt.DISCONNECT)


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return the messages; LabError where anything is missing, refused or lost."""
    watchers = [f"{library}-{version}-sub" for library, version in PAIRS]
    mqtt_facts.check_deliveries(records, directory, {name: name for name in watchers})
    shells = {f"sub-{version}": f"sub-{version}" for version in SHELLS}
    mqtt_facts.check_deliveries(records, directory, shells)
    pings = {one.client_id for one in records if one.kind == "PINGREQ"}
    strange = [one for one in records if one.kind in ("silent", "closed", "taken over")]
    if strange or mqtt_facts.refused_connections(records) or not {*watchers, *shells} <= pings:
        raise LabError(f"not healthy: {strange[:3]}; pings came from {sorted(map(str, pings))}")
    return {**mqtt_facts.common(records), "pinged": sorted(str(name) for name in pings)}
