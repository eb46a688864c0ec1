"""Many paho-mqtt clients in one process, a thread each, which connect again by themselves whenever they are cut off.

In: a plan (JSON, made by clients/mqtt.py) as the only word. Out: JSON lines on standard output: `connected` and, for a
connection that came about but on which the server did not let the client in, `in_vain`. SIGTERM ends all in order.
paho-mqtt gives up a login that is not answered within the keep alive; it doubles its pause after each failure, up to
the longest.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from typing import Any

from paho.mqtt import client as mqtt

lock = threading.Lock()


def emit(event: str, client_id: str) -> None:
    """Print one fact of a client, as a line of its own."""
    with lock:
        print(json.dumps({"event": event, "at": time.time(), "client_id": client_id}), flush=True)


def made(plan: dict[str, Any], client_id: str, pauses_s: tuple[float, float]) -> mqtt.Client:
    """Return a client that tells what happens to it; it has not begun."""
    client = mqtt.Client(
        mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTProtocolVersion(plan["version"])
    )
    if "user" in plan:
        client.username_pw_set(plan["user"], plan["password"])
    client.reconnect_delay_set(*pauses_s)  # type: ignore[arg-type]  # it takes parts of seconds as well
    let_in = threading.Event()

    def on_connect(_client: Any, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        if not code.is_failure:
            let_in.set()
            emit("connected", client_id)

    def on_disconnect(*_: Any) -> None:
        if not let_in.is_set():
            emit("in_vain", client_id)
        let_in.clear()

    client.on_connect, client.on_disconnect = on_connect, on_disconnect
    client.connect_async(plan["host"], plan["port"], plan["keep_alive"])
    return client


def main() -> None:
    """Let the clients come one after the other, and publish a value of each that is there every now and then."""
    plan = json.loads(sys.argv[1])
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    clients = {name: made(plan, name, tuple(pauses_s)) for name, pauses_s in plan["clients"].items()}
    for client in clients.values():
        client.loop_start()
        stopped.wait(plan["apart_s"])
    while not stopped.wait(plan["publish_s"]):
        for client_id, client in clients.items():
            if client.is_connected():
                client.publish(f"{plan['topic']}/{client_id}", "on")
    for client in clients.values():
        client.disconnect()
    for client in clients.values():
        client.loop_stop()


if __name__ == "__main__":
    main()
