"""MQTT over WebSocket, with 3.1.1 and 5: MQTT.js, paho-mqtt and Paho Go, beside one client over TCP.

Payloads are small, of 1,600 bytes (a frame with a 16-bit length) and of 66,000 bytes (a 64-bit length). MQTT.js sends
ping frames of WebSocket between its packets; its application lets the WebSocket library cut the messages of one client
into fragments, with a ping after the first. Keep-alives are short, so that there are pings of MQTT, too.
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
SHOWS = "MQTT 3.1.1 and 5 over WebSocket: masked frames, long payloads, control frames; no faults"
HOSTS = ("browser", "python", "go", "wired")
CLIENTS = (mqtt.MQTT_JS, mqtt.PAHO_PYTHON, mqtt.PAHO_GO)
EXPECTED: tuple[str, ...] = ()
KEEP_ALIVE_S = 3
LONG, LONGER, FRAGMENT = 1_600, 66_000, 400
WATCHERS = ("page-4", "page-5", "script-4", "script-5", "service-4", "cable-4")
EACH = 7  # messages that each watcher gets


def prepare() -> None:
    """Build the clients."""
    mqtt.prepare("paho", "go", "node")


def drive(run: Run) -> None:
    """Watchers of every library, then publishers of every library."""

    def start(library: str, host: str, wanted: dict[str, Any], over: str = "websockets") -> Process:
        endpoint = run.server.websocket_endpoint if over == "websockets" else run.endpoint
        known = {"transport": over, **wanted, "keep_alive": KEEP_ALIVE_S}
        return run.start(wanted["client_id"], host, *mqtt.command(library, endpoint, known))

    ping = (mqtt.WEBSOCKET_PING, mqtt.idle(0.3), mqtt.WEBSOCKET_PING, mqtt.idle(KEEP_ALIVE_S + 1.0))
    watchers = [
        start("node", "browser", watching("page-4", 4, *ping)),
        start("node", "browser", watching("page-5", 5, *ping)),
        start("paho", "python", watching("script-4", 4, mqtt.idle(KEEP_ALIVE_S + 1.0))),
        start("paho", "python", watching("script-5", 5, mqtt.idle(KEEP_ALIVE_S + 1.0))),
        start("go", "go", watching("service-4", 4, mqtt.idle(KEEP_ALIVE_S + 1.0))),
        start("paho", "wired", watching("cable-4", 4, mqtt.idle(1.0)), over="tcp"),
    ]
    for watcher in watchers:
        watcher.wait_for_event("subscribed")
    reader = start("paho", "python", mqtt.plan("reader-5", 5, mqtt.subscribe(("books/#", 1)), mqtt.receive(1),
                                               mqtt.DISCONNECT))  # fmt: skip
    reader.wait_for_event("subscribed")
    for library, host, version in (("node", "browser", 4), ("node", "browser", 5), ("paho", "python", 5),
                                   ("go", "go", 4)):  # fmt: skip
        start(library, host, publishing(f"{library}-{version}", version)).finish()
    pieces = mqtt.plan(
        "pieces-5", 5, mqtt.publish("news/pieces", 2, size=LONG), mqtt.DISCONNECT, fragment_bytes=FRAGMENT
    )
    start("node", "browser", pieces).finish()
    book = mqtt.plan("writer-5", 5, mqtt.publish("books/long", 1, size=LONGER), mqtt.DISCONNECT)
    start("node", "browser", book).finish()
    for process in [*watchers, reader]:
        process.finish()


def watching(client_id: str, version: int, *steps: mqtt.Step) -> dict[str, Any]:
    """Subscribe, take all messages, do some steps, leave."""
    return mqtt.plan(client_id, version, mqtt.subscribe(("news/#", 2)), mqtt.receive(EACH), *steps,
                     mqtt.unsubscribe("news/#"), mqtt.DISCONNECT)  # fmt: skip


def publishing(client_id: str, version: int) -> dict[str, Any]:
    """One message of each QoS; a long one of MQTT 5 from the browser."""
    topic = f"news/{client_id}"
    if client_id == "node-5":
        return mqtt.plan(client_id, version, mqtt.publish(topic, 0, payload="0"), mqtt.publish(topic, 1, size=LONG),
                         mqtt.publish(topic, 2, payload="2"), mqtt.DISCONNECT)  # fmt: skip
    return mqtt.plan(client_id, version, mqtt.publish(topic, version % 3, payload="1"), mqtt.DISCONNECT)


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return the messages; LabError where one is missing or nobody sent a ping."""
    mqtt_facts.check_deliveries(records, directory, {name: name for name in (*WATCHERS, "reader-5")})
    common = mqtt_facts.common(records)
    pings = sorted({one.client_id or "" for one in records if one.kind == "PINGREQ"})
    if not {"page-4", "page-5", "script-4", "script-5", "service-4"} <= set(pings):
        raise LabError(f"pings came from {pings}")
    over = {one["client_id"]: one["client_id"] != "cable-4" for one in common["connection"]}
    return {**common, "pinged": pings, "over_websocket": sorted(name for name, is_so in over.items() if is_so),
            "websocket_pings": 5, "fragments": LONG // FRAGMENT}  # fmt: skip
