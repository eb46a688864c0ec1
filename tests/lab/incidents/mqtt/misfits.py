"""Q4 and Q6, devices that do not fit their server: levels, names, QoS and keep alives that it does not take."""

from __future__ import annotations

from tests.lab.clients import mqtt, python_command
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident
from tests.lab.incidents.mqtt.keep_alives import often
from tests.lab.incidents.mqtt.told_words import CUT_OFF, REFUSED
from tests.lab.incidents.told import accusing, called, saying
from tests.lab.processes import Process

LIMIT_S = 10


def odd(it: Incident, host: str, work: str, client_id: str, topic: str, *words: str, port: int = 0) -> Process:
    """Start the client that does not fit."""
    it.clients.append(it.who(host, client_id))
    address, usual = it.broker.endpoint.split(":")
    return it.start(
        host, *python_command("mqtt_odd_client", address, str(port or usual), work, client_id, topic, *words)
    )


def values(it: Incident, host: str, topic: str, number: int, pause_s: float) -> str:
    """Let a device publish as it should; return its name."""
    good = it.names.client()
    steps = [mqtt.publish(topic, 1, payload=f"v{n % 9}.{n}", pause_s=pause_s) for n in range(number)]
    it.follow(host, good, *steps, mqtt.DISCONNECT)
    return good


@fault(Wanted(kinds=MOSQUITTO, settings=("max_qos 1",)))
def qos_too_high(it: Incident) -> None:
    """A server takes QoS 1 at most; a device publishes with QoS 2 and is thrown out, again and again."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "three", f"{topic}/fan", 90, 0.4)
    process = odd(it, "one", "qos2", device, f"{topic}/pump")
    process.finish(90)
    often([one for one in process.named_events("closed") if one["closed"]], 10)
    wordings = [*REFUSED, *CUT_OFF, "QoS 2", "never acknowledg", "unacknowledg", "no PUBREC"]
    it.ask("Q4", "a QoS that the server does not take", it.who("one", device),
           [saying(called(device), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO, settings=(f"max_keepalive {LIMIT_S}",), alone=True))
def ignores_server_keep_alive(it: Incident) -> None:
    """A server sets a keep alive of 10 s; firmware of 5.0 goes on with its own 60 s and is cut off each time."""
    topic, device, good = it.names.topic(), it.names.client(), it.names.client()
    settings = {"version": 5, "keep_alive": LIMIT_S}
    it.subscriber("two", good, (f"{topic}/#", 1), **settings)
    steps = [mqtt.publish(f"{topic}/tank", 1, payload=f"n{n}", pause_s=3) for n in range(24)]
    it.follow("three", it.names.client(), *steps, mqtt.STAY, **settings)
    process = odd(it, "one", "deaf", device, topic)
    it.seconds(66, 70)
    often(process.named_events("closed"), 3)
    it.ask("Q6", "a keep alive of the server that is not kept", it.who("one", device),
           [saying(called(device), CUT_OFF)], [accusing(good)], sides=("client",))  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def protocol_level(it: Incident) -> None:
    """Firmware says that it speaks a level of MQTT that the server does not know: refused, again and again."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "three", f"{topic}/a", 70, 0.5)
    odd(it, "one", "level", device, f"{topic}/b").finish(90)
    wordings = [*REFUSED, *CUT_OFF, "version", "level", "protocol", "malformed", "unknown"]
    it.ask("Q4", "a level of the protocol that the server does not know", it.who("one", device),
           [saying(called(device, it.hosts["one"].address), wordings)], [accusing(good)])  # fmt: skip


@fault(Wanted(kinds=MOSQUITTO))
def latin1_topic(it: Incident) -> None:
    """A device publishes to a topic with an umlaut in Latin-1, which is no UTF-8: the server closes each time."""
    topic, device = it.names.topic(), it.names.client()
    it.subscriber("two", it.names.client(), (f"{topic}/#", 1))
    good = values(it, "three", f"{topic}/Flur/temp", 80, 0.5)
    process = odd(it, "one", "latin", device, topic)
    process.finish(90)
    often([one for one in process.named_events("closed") if one["closed"]], 9)
    wordings = [*REFUSED, *CUT_OFF, "UTF", "malformed", "encod", "invalid", "topic"]
    it.ask("Q4", "a topic that is no UTF-8", it.who("one", device),
           [saying(called(device, it.hosts["one"].address), wordings)], [accusing(good)])  # fmt: skip
