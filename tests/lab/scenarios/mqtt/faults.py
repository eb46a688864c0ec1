"""What goes wrong with devices and their broker: frozen and killed clients, wills, a storm of retained messages.

A message is too large for its subscriber, so that the broker drops it; a device forgets what it was sending. tracker
freezes (SIGSTOP), misses its keep-alive and loses its connection; lamp is killed; both have wills. A viewer subscribes
to more than a thousand retained messages. Then the broker itself freezes for a while: pings stay without an answer.
Rules of the protocol that no library breaks are broken by a small client of our own (mqtt_raw_client.py).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.lab import clients, mqtt_facts
from tests.lab.clients import mqtt
from tests.lab.mosquitto import Mosquitto, User
from tests.lab.mosquitto_log import LogEntry
from tests.lab.processes import LabError, Process
from tests.lab.runs import Run

DEVICE = User("device", "lab-device-8Rk3", forbidden=("admin/#",))
SERVER = Mosquitto(settings=("max_inflight_messages 8", "max_packet_size 2000"), users=(DEVICE,))
SHOWS = "missed keep-alives, wills after kills, a storm of retained messages, refusals, unanswered pings, broken rules"
HOSTS = ("devices", "office", "rules")
CLIENTS = (mqtt.PAHO_PYTHON, mqtt.PAHO_GO, "a hand-written client that breaks rules (tests/lab/clients/python)")
EXPECTED = ("MQT101", "MQT103", "MQT104", "MQT106", "MQT108", "MQT109", "MQT110", "MQT111", "MQT112", "MQT113",
            "MQT115", "MQT116", "MQT117", "TCP103")  # fmt: skip
KEEP_ALIVE_S = 2
BROKER_FROZEN_S = 7.0
RETAINED = 1_050
PAGER_BYTES = 100  # the largest packet that the pager takes
WRONG_PASSWORD = "lab-wrong-3Vb8"
# Whose connection the broker ends for silence: the frozen client's, and after its own pause one that did ping.
SILENT = ["patient", "tracker"]


def prepare() -> None:
    """Build the clients."""
    mqtt.prepare("paho", "go")


def start(run: Run, library: str, host: str, wanted: dict[str, Any], name: str = "") -> Process:
    """Start a client with a login; its output has the name of its client id or NAME."""
    known = {"user": DEVICE.name, "password": DEVICE.password, **wanted}
    return run.start(name or wanted["client_id"], host, *mqtt.command(library, run.endpoint, known))


def drive(run: Run) -> None:
    """One fault after the other, while a viewer watches for wills."""
    watched = mqtt.subscribe(("wills/#", 1))
    viewer = start(run, "paho", "office", mqtt.plan("viewer", 4, watched, mqtt.receive(2), mqtt.DISCONNECT))
    viewer.wait_for_event("subscribed")
    lasting = [lose_message(run), forget_message(run)]
    tracker = freeze_and_kill(run)
    storm(run)
    be_refused(run)
    host, port = run.endpoint.split(":")
    run.call("rules", "rules", *clients.python_command("mqtt_raw_client", host, port, DEVICE.name, DEVICE.password))
    viewer.finish()
    tracker.kill()
    patient = mqtt.plan("patient", 4, mqtt.publish("state/on"), mqtt.STAY, mqtt.DISCONNECT, keep_alive=KEEP_ALIVE_S)
    freeze_broker(run, start(run, "go", "devices", patient))
    for process in lasting:
        process.terminate()


def lose_message(run: Run) -> Process:
    """A message that is too large for its only subscriber: the broker accepts it and drops it."""
    pager = mqtt.plan("pager", 5, mqtt.subscribe(("page/#", 1)), mqtt.STAY, mqtt.DISCONNECT,
                      properties={"MaximumPacketSize": PAGER_BYTES})  # fmt: skip
    process = start(run, "paho", "office", pager)
    process.wait_for_event("subscribed")
    caller = mqtt.plan("caller", 5, mqtt.publish("page/doctor", 1, size=3 * PAGER_BYTES), mqtt.DISCONNECT)
    start(run, "paho", "office", caller).finish()
    return process


def forget_message(run: Run) -> Process:
    """A device that is killed in a handshake; its session goes on, and it does not know the message any more."""
    half = mqtt.publish("press/9", 2, wait=False)
    first = start(run, "paho", "devices", mqtt.plan("press-9", 4, half, mqtt.HANG, clean=False))
    first.wait_for_event("published")
    time.sleep(0.3)
    first.kill()
    again = mqtt.plan("press-9", 4, mqtt.STAY, mqtt.DISCONNECT, clean=False)
    process = start(run, "paho", "devices", again, "press-9-again")
    process.wait_for_event("connected")
    return process


def freeze_and_kill(run: Run) -> Process:
    """Freeze tracker, kill lamp; return tracker, which stays frozen."""

    def doomed(client_id: str, keep_alive_s: int) -> dict[str, Any]:
        will = {"topic": f"wills/{client_id}", "payload": "gone", "qos": 1}
        return mqtt.plan(client_id, 4, mqtt.publish("state/on", 1), mqtt.STAY, will=will, keep_alive=keep_alive_s)

    tracker, lamp = (start(run, "paho", "devices", doomed(*one)) for one in (("tracker", KEEP_ALIVE_S), ("lamp", 60)))
    for device in (tracker, lamp):
        device.wait_for_event("published")
    tracker.freeze()
    lamp.kill()
    return tracker


def storm(run: Run) -> None:
    """Retain a message for each tile of a map, then ask for the whole map."""
    tiles = [mqtt.publish(f"map/{number}", payload="o", retain=True) for number in range(RETAINED)]
    start(run, "paho", "devices", mqtt.plan("painter", 4, *tiles, mqtt.DISCONNECT)).finish()
    atlas = mqtt.plan("atlas", 4, mqtt.subscribe(("map/#", 0)), mqtt.receive(RETAINED), mqtt.DISCONNECT)
    start(run, "paho", "office", atlas).finish()


def be_refused(run: Run) -> None:
    """A forbidden filter, a wrong password."""
    snoop = mqtt.plan("snoop", 4, mqtt.subscribe(("admin/#", 2), ("open/#", 1)), mqtt.DISCONNECT)
    start(run, "paho", "office", snoop).finish()
    start(run, "paho", "office", mqtt.plan("thief", 4, password=WRONG_PASSWORD)).finish()


def freeze_broker(run: Run, patient: Process) -> None:
    """Let the broker answer nothing for some seconds; its clients' packets wait in the kernel."""
    patient.wait_for_event("published")
    run.server.process.freeze()
    time.sleep(BROKER_FROZEN_S)
    run.server.process.thaw()
    time.sleep(0.5)
    patient.terminate()


def facts(records: list[LogEntry], directory: Path) -> dict[str, Any]:
    """Return what went wrong; LabError where a fault did not happen."""
    logged, records = records, mqtt_facts.without_too_large(records, "pager", PAGER_BYTES)
    wills = [one["topic"] for one in mqtt_facts.messages(records, "sent", "messages") if one["client_id"] == "viewer"]
    silent = sorted({one.client_id for one in records if one.kind == "silent"} - {None})
    breaches = [one for one in mqtt_facts.events_of(directory, "rules") if one["event"] == "breach"]
    stormed = sum(one["event"] == "received" for one in mqtt_facts.events_of(directory, "atlas"))
    refused = mqtt_facts.refused_subscriptions(records)
    if wills != ["wills/lamp", "wills/tracker"] or silent != SILENT or stormed != RETAINED or len(refused) != 1:
        raise LabError(f"wills {wills}, silent {silent}, retained {stormed}, refused {refused}")
    common = mqtt_facts.common(records)
    for name in ("published", "delivered"):  # a row per map tile says nothing
        common[name] = [row for row in common[name] if not row["topic"].startswith("map/")]
    return {
        **common,
        "keep_alive_missed": ["tracker"],
        "ended_for_silence": silent,
        "will_fired": wills,
        "retained_on_subscribe": {"client_id": "atlas", "filter": "map/#", "messages": stormed},
        "refused_connections": mqtt_facts.refused_connections(records),
        "refused_subscription": refused,
        "broker_frozen_s": BROKER_FROZEN_S,
        "too_large_to_send": len(logged) - len(records),
        "undelivered": [{"topic": "page/doctor", "subscriber": "pager"}],
        "release_not_sent_again": [{"client_id": "press-9", "topic": "press/9"}],
        "breach": [{"client_id": one["name"], "answer": one["answer"], "closed": one["closed"]} for one in breaches],
    }
