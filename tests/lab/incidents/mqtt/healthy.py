"""Healthy changes: nothing is wrong, however it may look."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.sessions import EXPIRY, away


@fault()
def repeats(it: Incident) -> None:
    """A device that repeats a value and gets it too, a screen that comes and goes."""
    topic, device, screen = it.names.topic(), it.names.client(), it.names.client()
    same = mqtt.publish(f"{topic}/state", 1, payload="on", count=40, pause_s=0.3, retain=True)
    steady = it.follow("two", device, mqtt.subscribe((f"{topic}/#", 1)), same, mqtt.DISCONNECT, keep_alive=30)
    for _ in range(5):
        it.follow("one", screen, mqtt.subscribe((f"{topic}/#", 0)), mqtt.receive(1), mqtt.DISCONNECT).finish()
        it.seconds(0.5, 1.5)
    steady.finish(60)
    it.healthy("a device that repeats a value, a screen that comes and goes")


# Mochi refuses a SUBSCRIBE whose packet identifier is that of a message which it sends again (0x91): not healthy.
@fault(Wanted(kinds=MOSQUITTO))
def session_kept(it: Incident) -> None:
    """A subscriber with a kept session is killed and gets its messages when it comes back."""
    version = it.version()
    settings = {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}
    away(it, settings, settings)
    it.healthy("a session that keeps its messages")


@fault()
def dashboards(it: Incident) -> None:
    """Screens of QoS 0 come, go in order and come back."""
    topic, writer = it.names.topic(), it.names.client()
    values = [mqtt.publish(f"{topic}/v", 0, payload=f"{n}", pause_s=0.05) for n in range(300)]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    screens = [it.names.client() for _ in range(3)]
    for _ in range(2):
        for screen in screens:
            steps = (mqtt.subscribe((f"{topic}/#", 0)), mqtt.idle(it.rng.uniform(0.5, 2)), mqtt.DISCONNECT)
            it.follow("one", screen, *steps).finish()
    it.healthy("screens of QoS 0 that come and go")


@fault(Wanted(kinds=MOSQUITTO))  # of Mochi as above
def rolling_restart(it: Incident) -> None:
    """All subscribers are restarted, one after the other, with sessions that are kept."""
    topic, writer, version = it.names.topic(), it.names.client(), it.version()
    settings = {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}
    names = [it.names.client() for _ in range(3)]
    hosts = ("one", "three", "four")
    running = [
        it.subscriber(host, name, (f"{topic}/#", 1), **settings) for host, name in zip(hosts, names, strict=True)
    ]
    values = [mqtt.publish(f"{topic}/v", 1, payload=f"{n}", pause_s=0.1) for n in range(120)]
    it.follow("two", writer, *values, mqtt.DISCONNECT)
    for host, name, process in zip(hosts, names, running, strict=True):
        process.terminate()
        it.seconds(0.5, 2)
        it.subscriber(host, name, (f"{topic}/#", 1), **settings)
        it.seconds(0.5, 1.5)
    it.healthy("a rolling restart of all subscribers")


@fault()
def shared(it: Incident) -> None:
    """A shared subscription whose members come and go in order."""
    topic, writer = it.names.topic(), it.names.client()
    wanted = (f"$share/work/{topic}/#", 1)
    first = it.subscriber("one", it.names.client(), wanted, version=5)
    it.subscriber("three", it.names.client(), wanted, version=5)
    jobs = [mqtt.publish(f"{topic}/job", 1, payload=f"j{n}", pause_s=0.1) for n in range(120)]
    it.follow("two", writer, *jobs, mqtt.DISCONNECT)
    it.seconds(3, 5)
    it.subscriber("four", it.names.client(), wanted, version=5)
    it.seconds(2, 3)
    first.terminate()
    it.seconds(4, 6)
    it.healthy("a shared subscription")


@fault()
def back_before_its_will(it: Incident) -> None:
    """A client with a delayed will is killed and comes back before the delay is over."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    delay = {"WillDelayInterval": 30}
    will = {"topic": f"{topic}/gone", "payload": "offline", "qos": 1, "properties": delay}
    for _ in range(4):
        process = it.follow("one", device, mqtt.publish(f"{topic}/state", 1, payload="on"), mqtt.STAY, version=5,
                            clean=False, properties=EXPIRY, will=will, will_properties=delay)  # fmt: skip
        process.wait_for_event("published")
        it.seconds(0.5, 1.5)
        process.kill()
        it.seconds(0.3, 1)
    it.healthy("back before its will")
