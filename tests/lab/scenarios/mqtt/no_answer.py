"""Clients that wait: for an acknowledgement, for a connection that is no more, for room in a window.

display has a small receive buffer and reads at intervals, while a publisher sends more than that. sleeper was out of
reach for longer than its keep-alive, so that the broker has ended the session; back again it sends what it gathered,
and all it gets is a RST. That connection began before the capture. Then the broker freezes, and meter sends one message
with QoS 1 nine times in 45 s. The three are a client of our own, since no library of the lab can be brought to it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tests.lab import clients, mqtt_facts, net, processes
from tests.lab.clients import mqtt
from tests.lab.mosquitto import Mosquitto
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, Process, wait_until
from tests.lab.runs import Run

SERVER = Mosquitto()
SHOWS = "one message sent nine times in 45 s, messages answered by RST alone, a window that a slow reader keeps full"
HOSTS = ("display", "sleeper", "meter", "office")
CLIENTS = (mqtt.PAHO_PYTHON, "a hand-written client that is stubborn (tests/lab/clients/python)")
EXPECTED = ("MQT105", "MQT107", "TCP106")
TOPIC = "meter/reading"
FLOOD, FLOOD_BYTES = 100, 600
SILENT_S, FORGOTTEN_S = 30, 30
SENDS = 9


def prepare() -> None:
    """Look whether the library is there."""
    mqtt.prepare("paho")


def stubborn(run: Run, name: str) -> Process:
    """Start one of the three on its host; it does the work that its name stands for."""
    work = {"display": "slow", "sleeper": "wake", "meter": "again"}[name]
    host, port = run.endpoint.split(":")
    return run.start(name, name, *clients.python_command("mqtt_stubborn_client", host, port, work, name))


def before_capture(run: Run) -> None:
    """Let the sleeper connect and be out of reach until nothing of its connection is left at the broker."""
    broker, sleeper = run.hosts["broker"], run.hosts["sleeper"]
    net.in_namespace(broker.namespace, "sysctl", "-q", "-w", "net.ipv4.tcp_orphan_retries=1")
    stubborn(run, "sleeper").wait_for_event("asleep")
    net.unplug(sleeper)
    wait_until(lambda: any(one.kind == "silent" for one in run.records()), "the keep-alive is over", SILENT_S)
    wait_until(lambda: sleeper.address not in sockets(broker), "the connection is forgotten", FORGOTTEN_S)
    net.plug_back(sleeper)
    for path in run.server.log_files:  # what it says of the time before the capture
        os.truncate(path, 0)


def sockets(host: net.Host) -> str:
    """Return the TCP connections of a host."""
    return processes.run(host.command("ss", "-Htan"))


def drive(run: Run) -> None:
    """Keep a window full, wake the sleeper, freeze the broker and let the meter try."""
    display = stubborn(run, "display")
    display.wait_for_event("subscribed")
    flood = mqtt.plan("flood", 4, mqtt.publish(TOPIC, size=FLOOD_BYTES, count=FLOOD), mqtt.DISCONNECT)
    run.call("flood", "office", *mqtt.command("paho", run.endpoint, flood))
    display.finish()
    run.processes["sleeper"].ask_to_end()
    run.processes["sleeper"].finish()
    meter = stubborn(run, "meter")
    meter.wait_for_event("connected")
    run.server.process.freeze()
    meter.finish(120)
    time.sleep(0.5)


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return what came of each; LabError where it did not happen."""
    printed = {name: mqtt_facts.events_of(directory, name) for name in ("display", "sleeper", "meter")}
    read = {name: [one for one in events if one["event"] == "read"] for name, events in printed.items()}
    sends = [one["at"] for one in printed["meter"] if one["event"] == "sent"]
    [woken], [slow] = read["sleeper"], read["display"]
    if len(sends) != SENDS or (woken["bytes"], woken["closed"]) != (0, True) or slow["bytes"] < FLOOD * FLOOD_BYTES:
        raise LabError(f"sent {len(sends)} times, the sleeper read {woken}, the display {slow}")
    return {
        **mqtt_facts.common(records),
        "sent_again": {
            "client_id": "meter",
            "topic": TOPIC,
            "sends": SENDS,
            "first_to_last_s": round(sends[-1] - sends[0]),
        },
        "answered_by_rst_alone": {"client_id": "sleeper", "messages": 3},
        "slow_reader": {"client_id": "display", "bytes": slow["bytes"]},
    }
