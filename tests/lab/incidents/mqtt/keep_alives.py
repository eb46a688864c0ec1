"""Q6, who ended it: keep alives that do not fit the program, the path or the server."""

from __future__ import annotations

from tests.lab import net
from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.logins import habit
from tests.lab.incidents.mqtt.told_words import CUT_OFF
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import LabError

PROXY_PORT = 1884


def often(process_events: list[dict[str, object]], least: int) -> None:
    """Raise LabError where something did not happen often enough."""
    if len(process_events) < least:
        raise LabError(f"{len(process_events)} times, {least} wanted")


@fault(Wanted(kinds=MOSQUITTO))
def handler_without_pings(it: Incident) -> None:
    """A subscriber's handler takes longer than the keep alive and sends no ping meanwhile: it is cut off each time."""
    topic, reader, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    steps = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.KEEP_COMING)
    settings = {"library": "paho", "clean": False, "version": 4, "reconnect_s": 1}
    held = it.follow("one", reader, *steps, keep_alive=4, work_s=it.rng.uniform(8, 9), **settings)
    held.wait_for_event("subscribed")
    it.subscriber("three", good, (f"{topic}/#", 1), keep_alive=4)
    values = [mqtt.publish(f"{topic}/report", 1, payload=f"report {n}", pause_s=3.0) for n in range(15)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish(90)
    often(held.named_events("disconnected"), 3)
    it.ask(
        "Q6",
        "a handler that is longer than the keep alive",
        it.who("one", reader),
        [saying(called(reader), [*CUT_OFF, "slow", "takes", "not acknowledged", "redeliver", "stood still"])],
        [accusing(good), accusing(writer)],
        sides=("client",),
    )


@fault()
def pings_never(it: Incident) -> None:
    """Firmware says a keep alive of 8 s and has no pings: as it only listens, the server cuts it off each time."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", good, (f"{topic}/#", 1), keep_alive=8)
    values = [mqtt.publish(f"{topic}/rate", 1, payload=f"n{n}", pause_s=2.5) for n in range(24)]
    it.follow("three", it.names.client(), *values, mqtt.DISCONNECT)
    process = habit(it, "one", "pings_never", device, topic)
    it.seconds(54, 58)
    often(process.named_events("closed"), 3)
    it.ask(
        "Q6",
        "a keep alive without pings",
        it.who("one", device),
        [saying(called(device), CUT_OFF)],
        [accusing(good)],
        sides=("client",),
    )


@fault(Wanted(kinds=MOSQUITTO))
def keep_alive_of_a_second(it: Incident) -> None:
    """A line has gaps of two seconds; a device with a keep alive of 1 s is cut off at each, its peer is not."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    settings = {"library": "paho", "clean": False, "version": 4, "reconnect_s": 1}
    steps = (mqtt.subscribe((f"{topic}/set", 1)), mqtt.KEEP_COMING)
    held = it.follow("one", device, *steps, keep_alive=1, **settings)
    held.wait_for_event("subscribed")
    it.follow("one", good, *steps, keep_alive=40, **settings).wait_for_event("subscribed")
    for _ in range(6):
        it.seconds(4, 6)
        net.unplug(it.hosts["one"])
        it.seconds(2.2, 2.6)
        net.plug_back(it.hosts["one"])
    it.seconds(3, 4)
    often(held.named_events("disconnected"), 4)
    it.ask(
        "Q6",
        "a keep alive that is too short for the line",
        it.who("one", device),
        [saying(called(device), CUT_OFF)],
        [accusing(good)],
        sides=("client", "network"),
    )


@fault()
def proxy_cuts_idle(it: Incident) -> None:
    """A proxy ends connections that were idle for 9 s; clients behind it ping each minute and are cut off for good."""
    topic, good = it.names.topic(), it.names.client()
    names = [it.names.client() for _ in range(4)]
    proxy = f"{it.hosts['hub'].address}:{PROXY_PORT}"
    it.start("hub", *python_command("idle_proxy", proxy, it.broker.endpoint, "9")).wait_for_event("listening")
    settings = {"library": "paho", "keep_alive": 60, "reconnect_s": 1, "clean": False, "version": 4}
    steps = (mqtt.subscribe((f"{topic}/alarm", 1)), mqtt.KEEP_COMING)
    it.follow("three", good, *steps, **settings).wait_for_event("subscribed")
    running = [it.follow("one", name, *steps, **settings, endpoint=proxy) for name in names]
    # The server sees the proxy's address.
    it.clients += [it.who("hub", name) for name in names]
    it.seconds(48, 52)
    for held in running:
        often(held.named_events("disconnected"), 3)
    it.ask(
        "Q6",
        "a proxy with a time-out below the keep alive",
        {"address": it.hosts["hub"].address, "any": [it.who("hub", name) for name in names]},
        [saying(called(it.hosts["hub"].address), [*CUT_OFF, "idle", "ends", "ended"])],
        [accusing(good)],
        sides=("client", "network"),
    )
