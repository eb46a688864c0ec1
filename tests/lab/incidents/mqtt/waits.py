"""Q7, who waits for whom: one in flight on a long line, a server that stands still for a moment."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.told import accusing, called, saying


@fault()
def stop_and_wait(it: Incident) -> None:
    """A gateway on a long line sends one message, waits for its PUBACK, and then the next: it cannot keep up."""
    topic, gateway = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    it.far("one", 140)
    values = mqtt.publish(f"{topic}/batch", 1, size=180, count=80)
    it.follow("one", gateway, values, mqtt.DISCONNECT).finish(90)
    fine = mqtt.publish(f"{topic}/other", 1, size=180, count=60, pause_s=0.1)
    it.follow("three", it.names.client(), fine, mqtt.DISCONNECT).finish(90)
    wordings = [
        "one (message )?(in flight|at a time|after)",
        "in flight",
        "stop.and.wait",
        "round trip",
        "window",
        "waits? for (each|its|every)",
    ]
    it.ask(
        "Q7",
        "one message in flight on a long line",
        it.who("one", gateway),
        [saying(called(gateway), wordings)],
        sides=("client", "network"),
    )


@fault(Wanted(kinds=MOSQUITTO, settings=("max_queued_messages 20",)))
def receive_maximum_one(it: Incident) -> None:
    """A subscriber on a long line takes one message at a time; the server drops what comes quicker."""
    topic, reader, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    it.far("one", 150)
    it.subscriber("one", reader, (f"{topic}/#", 1), version=5, properties={"ReceiveMaximum": 1})
    it.subscriber("three", good, (f"{topic}/#", 1), version=5)
    values = [mqtt.publish(f"{topic}/tick", 1, payload=f"t{n}", pause_s=0.06) for n in range(240)]
    it.follow("two", writer, *values, mqtt.idle(12), mqtt.DISCONNECT).finish(90)
    wordings = [
        "Receive ?Maximum",
        "in flight",
        "window",
        "lost",
        "dropped",
        "never (sent|deliver|got)",
        "slow",
        "not (sent|delivered)",
    ]
    it.ask(
        "Q7",
        "a receive window of one on a long line",
        it.who("one", reader),
        [saying(called(reader), wordings)],
        [accusing(good)],
    )


@fault()
def short_stop(it: Incident) -> None:
    """The server's process stands still for some seconds; nobody pings, all wait for their PUBACK."""
    topic = it.names.topic()
    it.subscriber("three", it.names.client(), (f"{topic}/#", 1))
    for host in ("one", "two"):
        values = [mqtt.publish(f"{topic}/{host}", 1, payload=f"n{n}", pause_s=0.2) for n in range(60)]
        it.follow(host, it.names.client(), *values, mqtt.DISCONNECT)
    it.seconds(5, 7)
    it.broker.freeze()
    it.seconds(6, 8)
    it.broker.thaw()
    it.seconds(5, 6)
    address = it.hosts["broker"].address
    wordings = [
        "stood still",
        "stands still",
        "did not answer",
        "answered nobody",
        "no answer",
        "stall",
        "paus",
        "unanswered",
        "silent",
        "all (of its )?clients",
    ]
    it.ask(
        "Q7",
        "the server stood still for a moment",
        {"server": it.broker.endpoint},
        [saying(called(address), wordings)],
        sides=("server",),
    )
    it.truth["cluster_wide"] = True
