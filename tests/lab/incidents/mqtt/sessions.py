"""Sessions: lost, forgotten, thrown away, and messages that expire in them."""

from __future__ import annotations

import time
from typing import Any

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident

KEPT = ("persistence true", "persistence_location {place}")
EXPIRY = {"SessionExpiryInterval": 600}
# How a client loses its session: version, its settings before and after.
WAYS: dict[str, tuple[int, dict[str, Any], dict[str, Any]]] = {
    "a clean session": (4, {"clean": True}, {"clean": True}),
    "no session expiry": (5, {"clean": False}, {"clean": False}),
    "a short session expiry": (
        5,
        {"clean": False, "properties": {"SessionExpiryInterval": 2}},
        {"clean": False, "properties": {"SessionExpiryInterval": 2}},
    ),
    "clean start when it comes back": (
        5,
        {"clean": False, "properties": EXPIRY},
        {"clean": True, "properties": EXPIRY},
    ),
}


def away(it: Incident, before: dict[str, Any], after: dict[str, Any], *, leaves: bool = False,
          between: Any = None, **sent: Any) -> str:  # fmt: skip
    """Let a subscriber be away while messages come for it; return its client id."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    wanted = mqtt.subscribe((f"{topic}/#", it.rng.choice((1, 2))))
    first = it.subscriber("one", reader, (f"{topic}/#", wanted["filters"][0]["qos"]), **before)
    it.seconds(1, 2)
    if leaves:
        first.terminate()
    else:
        first.kill()
    number = it.rng.randrange(5, 15)
    values = [
        mqtt.publish(f"{topic}/new", it.rng.choice((1, 2)), payload=f"n{one}", pause_s=0.3, **sent)
        for one in range(number)
    ]
    it.follow("two", writer, *values, mqtt.DISCONNECT, version=before["version"]).finish()
    if between is not None:
        between()
    it.seconds(0.5, 2)
    it.follow("one", reader, wanted, mqtt.idle(2), mqtt.DISCONNECT, **after).finish()
    return reader


@fault()
def session_lost(it: Incident) -> None:
    """A subscriber is killed and comes back without the session that should have held its messages."""
    way = it.rng.choice(list(WAYS))
    version, before, after = WAYS[way]
    reader = away(it, {**before, "version": version}, {**after, "version": version})
    it.blame(f"messages lost by {way}", it.who("one", reader), "MQT119")


@fault()
def broker_forgot(it: Incident) -> None:
    """The broker is restarted without persistence while a subscriber with a kept session is away."""

    def restart() -> None:
        it.broker.stop()
        it.seconds(0.5, 2)
        it.broker.start()

    version = it.version()
    settings = {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}
    reader = away(it, settings, settings, between=restart)
    it.blame("the broker forgot the session", it.who("one", reader), "MQT119", allowed=("MQT114", "TCP103", "TCP104"))
    it.truth["cluster_wide"] = True  # the broker was away for all


@fault()
def message_expired(it: Incident) -> None:
    """Messages with a short expiry come for a subscriber that is away, with a session that is kept."""
    settings = {"clean": False, "version": 5, "properties": EXPIRY}
    reader = away(it, settings, settings, between=lambda: it.seconds(3, 5), properties={"MessageExpiryInterval": 2})
    it.blame("messages expired", it.who("one", reader), "MQT119")


@fault()
def takeover(it: Incident) -> None:
    """Two programs with one client id throw each other out."""
    name, version = it.names.client(), it.version()
    for host in ("one", "two"):
        it.follow(host, name, mqtt.KEEP_COMING, version=version, library="paho", reconnect_s=1)
        it.seconds(0.3, 0.8)
    it.seconds(10, 15)
    blamed = {"clients": [it.who(host, name) for host in ("one", "two")]}
    it.blame("one client id twice", blamed, "MQT102", allowed=("TCP103", "MQT114"))


@fault()
def connection_per_message(it: Incident) -> None:
    """A script that connects for each message."""
    topic, client_id = it.names.topic(), it.names.client()
    for number in range(it.rng.randrange(25, 40)):
        it.tool("pub", "one", client_id, "-t", topic, "-m", f"v{number}", "-q", f"{it.rng.randrange(2)}").finish()
        it.seconds(0.1, 0.5)
    it.blame("a connection for each message", it.who("one", client_id), "MQT122")


@fault()
def sessions_left(it: Incident) -> None:
    """A program that takes a new client id with a lasting session each time."""
    topic, base = it.names.topic(), it.names.client()
    for _ in range(it.rng.randrange(24, 32)):
        client_id = f"{base}-{it.rng.randrange(16**8):08x}"
        it.tool("sub", "one", client_id, "-t", f"{topic}/#", "-q", "1", "-c", "-W", "1", "-E")
        time.sleep(0.2)
    it.seconds(2, 3)
    it.blame("sessions that nobody comes back to", {"address": it.hosts["one"].address}, "MQT122")


@fault()
def will_flaps(it: Incident) -> None:
    """A device with a will that loses its connection again and again."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    for _ in range(it.rng.randrange(3, 6)):
        will = {"topic": f"{topic}/gone", "payload": "offline", "qos": 1}
        steps = (mqtt.publish(f"{topic}/state", 1, payload="on"), mqtt.STAY)
        process = it.follow("one", device, *steps, will=will)
        process.wait_for_event("published")
        it.seconds(0.5, 1.5)
        process.kill()
        it.seconds(0.5, 1)
    it.blame("a device that flaps", it.who("one", device), "MQT114", allowed=("TCP103",))


@fault()
def asks_for_its_will(it: Incident) -> None:
    """A client leaves with DISCONNECT 0x04, which sends its will."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    will = {"topic": f"{topic}/gone", "payload": "offline", "qos": 1}
    leave = {**mqtt.DISCONNECT, "code": 4}
    it.follow("one", device, mqtt.idle(1), leave, version=5, will=will).finish()
    it.seconds(1, 2)
    it.blame("a client asks for its will", it.who("one", device), "MQT114")


@fault(Wanted(kinds=MOSQUITTO, settings=KEPT))
def broker_restart(it: Incident) -> None:
    """A broker with persistence is restarted in order, and its clients come back; nothing is wrong."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    wanted = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.KEEP_COMING)
    it.follow("one", reader, *wanted, library="paho", clean=False, version=4).wait_for_event("subscribed")
    values = [mqtt.publish(f"{topic}/new", 1, payload=f"n{one}", pause_s=0.3) for one in range(8)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    it.broker.stop()
    it.seconds(1, 3)
    it.broker.start()
    it.seconds(2, 4)
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    it.healthy("a broker that is restarted in order")
