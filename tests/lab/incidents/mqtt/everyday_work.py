"""Everyday work at which nothing is wrong."""

from __future__ import annotations

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.sessions import EXPIRY


@fault(Wanted(in_flight=10))
def flow_control(it: Incident) -> None:
    """Clients of 5.0 with topic aliases and small receive windows, which suffice; nothing is wrong."""
    topic = it.names.topic()
    small = {"ReceiveMaximum": it.rng.randrange(4, 9)}
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1), version=5, properties=small)
    options = {"autoAssignTopicAlias": True}
    values = [mqtt.publish(f"{topic}/line/{n % 4}", n % 2, payload=f"v{n}", pause_s=0.1) for n in range(150)]
    it.follow("one", it.names.client(), *values, mqtt.DISCONNECT, library="node", version=5, options=options)
    it.follow("three", it.names.client(), *values, mqtt.DISCONNECT, version=5).finish(90)
    it.healthy("aliases and flow control")


@fault(Wanted(kinds=MOSQUITTO, in_flight=20))
def catches_up(it: Incident) -> None:
    """A consumer with a session is stopped for an update and catches up with what waited for it; nothing is wrong."""
    topic, reader, version = it.names.topic(), it.names.client(), it.version()
    settings = {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}
    values = [mqtt.publish(f"{topic}/order", 1, payload=f"order {n}", pause_s=0.1) for n in range(220)]
    it.follow("two", it.names.client(), *values, mqtt.DISCONNECT)
    it.follow("one", reader, mqtt.subscribe((f"{topic}/#", 1)), mqtt.idle(4), mqtt.DISCONNECT, **settings).finish()
    it.seconds(7, 9)
    it.follow("one", reader, mqtt.subscribe((f"{topic}/#", 1)), mqtt.idle(14), mqtt.DISCONNECT, **settings).finish()
    it.healthy("a consumer that catches up")


@fault()
def asks_and_answers(it: Incident) -> None:
    """Clients ask over a topic and each gets the answers on one of its own; nothing is wrong."""
    topic, servant = it.names.topic(), it.names.client()
    copies = {f"{topic}/ask/": f"{topic}/answer/"}
    served = (mqtt.subscribe((f"{topic}/ask/#", 1)), mqtt.STAY, mqtt.DISCONNECT)
    it.follow("five", servant, *served, library="paho", copies=copies).wait_for_event("subscribed")
    for host in ("one", "two", "three"):
        client_id = it.names.client()
        asks = [mqtt.publish(f"{topic}/ask/{client_id}", 1, payload=f"ask {n}", pause_s=0.4) for n in range(40)]
        it.follow(host, client_id, mqtt.subscribe((f"{topic}/answer/{client_id}", 1)), *asks, mqtt.DISCONNECT)
    it.seconds(19, 21)
    it.healthy("requests and answers")


@fault()
def gateway(it: Incident) -> None:
    """Twenty-four devices behind one gateway's address, which come one after the other; nothing is wrong."""
    topic, library = it.names.topic(), it.rng.choice(mqtt.FLEETS)
    clients = {it.names.client(): (2.0, 30.0) for _ in range(24)}
    it.clients += [it.who("one", client_id) for client_id in clients]
    it.subscriber("two", it.names.client(), (f"{topic}/#", 0))
    wanted = {
        "version": it.version(),
        "keep_alive": 20,
        "topic": topic,
        "clients": clients,
        "apart_s": 0.3,
        "publish_s": 2,
    }
    it.start("one", *mqtt.fleet_command(library, it.broker.endpoint, wanted)).wait_for_event(
        "connected", 24, timeout_s=60
    )
    it.libraries.append(library)
    it.seconds(12, 15)
    it.healthy("a fleet behind a gateway")
