"""Q3, who acts on one thing at the same time: client ids, packet identifiers, a topic with two writers."""

from __future__ import annotations

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.sessions import EXPIRY
from tests.lab.incidents.told import accusing, called, saying


def field_client(it: Incident, host: str, work: str, client_id: str, topic: str) -> None:
    """Run the client with firmware of its own to its end."""
    it.clients.append(it.who(host, client_id))
    address, port = it.broker.endpoint.split(":")
    it.start(host, *python_command("mqtt_field_client", address, port, work, client_id, topic)).finish(90)


# Mochi refuses a SUBSCRIBE whose packet identifier is that of a message which it sends again (0x91).
@fault(Wanted(kinds=MOSQUITTO))
def in_turns(it: Incident) -> None:
    """Two jobs on two machines share one client id and its session, one after the other: each gets half."""
    topic, both, writer = it.names.topic(), it.names.client(), it.names.client()
    values = [mqtt.publish(f"{topic}/job", 1, payload=f"job {n}", pause_s=0.25) for n in range(120)]
    version = it.version()
    settings = {"clean": False, "version": version, **({"properties": EXPIRY} if version == 5 else {})}
    steps = (mqtt.subscribe((f"{topic}/#", 1)), mqtt.idle(it.rng.uniform(2, 3)), mqtt.DISCONNECT)
    it.follow("one", both, mqtt.subscribe((f"{topic}/#", 1)), mqtt.DISCONNECT, **settings).finish()
    it.follow("three", writer, *values, mqtt.DISCONNECT)
    for _ in range(5):
        for host in ("one", "two"):
            it.follow(host, both, *steps, **settings).finish()
            it.seconds(0.2, 0.6)
    addresses = [it.hosts[host].address for host in ("one", "two")]
    wordings = [
        "(two|2|both|several|different) (addresses|hosts|machines|places)",
        f"{addresses[0]}:.*{addresses[1]}:",
        f"{addresses[1]}:.*{addresses[0]}:",
        f"{addresses[0]} and {addresses[1]}",
    ]
    it.ask(
        "Q3",
        "one client id in turns from two addresses",
        {"clients": [it.who(host, both) for host in ("one", "two")]},
        [saying(called(both), wordings)],
        [accusing(writer)],
    )


@fault()
def one_identifier(it: Incident) -> None:
    """Firmware sends every message with packet identifier 1, also while one is in flight."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    field_client(it, "one", "one_identifier", device, f"{topic}/reading")
    it.seconds(1, 2)
    wordings = ["identifier", "packet id", "\\bmid\\b"]
    it.ask("Q3", "a packet identifier used again in flight", it.who("one", device), [saying(called(device), wordings)])


@fault(Wanted(kinds=MOSQUITTO))
def never_releases(it: Incident) -> None:
    """Firmware publishes with QoS 2 and never sends PUBREL: nobody gets its messages."""
    topic, device, reader = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("two", reader, (f"{topic}/#", 2))
    field_client(it, "one", "never_releases", device, f"{topic}/count")
    it.seconds(1, 2)
    wordings = ["PUBREL", "not released", "half", "QoS 2", "handshake"]
    it.ask(
        "Q1",
        "QoS 2 handshakes are left open by the sender",
        it.who("one", device),
        [saying(called(device), wordings)],
        [accusing(reader)],
        sides=("client",),
    )


@fault()
def two_writers(it: Incident) -> None:
    """Two controllers set the same retained setpoint in turn, each to its own value."""
    topic, here, there = f"{it.names.topic()}/setpoint", it.names.client(), it.names.client()
    it.subscriber("three", it.names.client(), (topic, 1))
    for host, client_id, value in (("one", here, "19.5"), ("two", there, "22.0")):
        again = mqtt.publish(topic, 1, payload=value, retain=True, count=20, pause_s=1.0)
        it.follow(host, client_id, again, mqtt.DISCONNECT)
        it.seconds(0.3, 0.7)
    it.seconds(20, 22)
    blamed = {"clients": [it.who("one", here), it.who("two", there)]}
    wordings = ["in turn", "both", "two", "other", "altern", "against", "overw", "flip"]
    it.ask(
        "Q3",
        "two writers of one retained value",
        blamed,
        [saying(called(here), called(there), called(topic), wordings)],
    )
