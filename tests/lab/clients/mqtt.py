"""The MQTT clients of the lab: what each shall do as a plan, and the command that follows it.

In: a Plan. Out: commands that run paho-mqtt, Eclipse Paho for Go or MQTT.js. Each prints the same events: connected,
subscribed, published, received, unsubscribed, disconnected. Names of properties are those of the library.
"""

from __future__ import annotations

import json
from typing import Any

from tests.lab import clients
from tests.lab.clients import node

NODE = "node_mqtt"
PAHO_PYTHON = clients.python_pin("paho-mqtt")
PAHO_GO = clients.go_pin("go_paho", "github.com/eclipse/paho.mqtt.golang")
PAHO_GO_5 = clients.go_pin("go_paho", "github.com/eclipse/paho.golang")
MQTT_JS = f"MQTT.js {node.pin(NODE, 'mqtt').removeprefix('mqtt ')}"
MOSQUITTO_CLIENTS = "mosquitto_pub and mosquitto_sub of the server's version"

LIBRARIES = ("paho", "go", "node")
FLEETS = ("paho", "node")  # those that `fleet_command` knows
# Properties in paho's names, and what the other libraries call them.
_LOWER = ("SessionExpiryInterval", "ReceiveMaximum", "MaximumPacketSize", "MessageExpiryInterval", "WillDelayInterval")
_OTHER_NAMES = {
    "go": {"MessageExpiryInterval": "MessageExpiry"},
    "node": {name: name[0].lower() + name[1:] for name in _LOWER},
}

Step = dict[str, Any]


def subscribe(*filters: tuple[str, int] | dict[str, Any], **more: Any) -> Step:
    """Subscribe to filters of (name, QoS), or with options as a dict."""
    listed = [one if isinstance(one, dict) else {"name": one[0], "qos": one[1]} for one in filters]
    return {"do": "subscribe", "filters": listed, **more}


def unsubscribe(*names: str) -> Step:
    """Unsubscribe from filters."""
    return {"do": "unsubscribe", "names": names}


def publish(topic: str, qos: int = 0, **more: Any) -> Step:
    """Publish; count, pause_s, retain, payload or size, properties and, with paho-mqtt, wait=False are possible."""
    return {"do": "publish", "topic": topic, "qos": qos, **more}


def receive(count: int) -> Step:
    """Wait until so many deliveries came in all."""
    return {"do": "receive", "count": count}


def idle(seconds: float) -> Step:
    """Do nothing of one's own for some seconds; pings go on."""
    return {"do": "idle", "s": seconds}


STAY: Step = {"do": "stay"}  # until SIGTERM
HANG: Step = {"do": "hang"}  # paho-mqtt: serve the network no more, until SIGTERM
WEBSOCKET_PING: Step = {"do": "websocket_ping"}  # MQTT.js: a ping frame of WebSocket
KEEP_COMING: Step = {"do": "keep_coming"}  # paho-mqtt: connect again and again, until SIGTERM
DISCONNECT: Step = {"do": "disconnect"}


def plan(client_id: str, version: int, *steps: Step, **more: Any) -> dict[str, Any]:
    """Return what a client shall do; keep_alive is in s, more: transport, clean, user, password, will, properties."""
    return {"client_id": client_id, "version": version, "keep_alive": 60, "steps": steps, **more}


def renamed(library: str, wanted: Any) -> Any:
    """Return a plan, or a part of it, with the properties under the library's own names."""
    if isinstance(wanted, (list, tuple)):
        return [renamed(library, one) for one in wanted]
    if not isinstance(wanted, dict):
        return wanted
    names = _OTHER_NAMES.get(library, {})
    return {names.get(key, key): renamed(library, value) for key, value in wanted.items()}


def command(library: str, endpoint: str, wanted: dict[str, Any]) -> list[str]:
    """Return the command that lets "paho", "go" or "node" follow a plan."""
    host, port = endpoint.rsplit(":", 1)
    word = json.dumps({"host": host, "port": int(port), **renamed(library, wanted)})
    if library == "paho":
        return clients.python_command("paho_client", word)
    if library == "go":
        return [clients.go_program("go_paho"), word]
    return ["node", str(node.fetched(NODE) / "client.js"), word]


def fleet_command(library: str, endpoint: str, wanted: dict[str, Any]) -> list[str]:
    """Return the command that runs many clients of "paho" or "node" in one process.

    WANTED: version, keep_alive, topic, user and password as in a plan; clients (shortest and longest pause before one
    connects again, by client id), apart_s (between their first connects) and publish_s.
    """
    host, port = endpoint.rsplit(":", 1)
    word = json.dumps({"host": host, "port": int(port), **wanted})
    if library == "node":
        return ["node", str(node.fetched(NODE) / "fleet.js"), word]
    return clients.python_command("paho_fleet", word)


def prepare(*libraries: str) -> None:
    """Build or fetch what the libraries need; LabError where paho-mqtt is not the pinned one."""
    if "paho" in libraries:
        clients.check_python_client("paho-mqtt")
    if "go" in libraries:
        clients.go_program("go_paho")
    if "node" in libraries:
        node.fetched(NODE)


def mosquitto_command(kind: str, endpoint: str, client_id: str, version: str, *words: str) -> list[str]:
    """Return a command of the distribution's clients; KIND "pub" or "sub", which prints `received` events."""
    host, port = endpoint.rsplit(":", 1)
    shown = '{"event":"received","topic":"%t","qos":%q,"retain":%r,"mid":"%m","size":%l}'
    form = ["-F", shown] if kind == "sub" else []
    name = ["-i", client_id] if client_id else []
    return [f"mosquitto_{kind}", "-h", host, "-p", port, *name, "-V", version, *form, *words]
