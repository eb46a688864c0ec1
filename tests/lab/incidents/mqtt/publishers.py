"""Publishers that send what nobody needs, and retained messages that are not what they should be."""

from __future__ import annotations

import time

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Place, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident


@fault()
def unchanged(it: Incident) -> None:
    """A sensor that repeats an unchanged value a hundred times a second."""
    topic, client_id = it.names.topic(), it.names.client()
    pause_s = it.rng.choice((0.004, 0.008))
    many = mqtt.publish(topic, 0, payload="21.5", count=int(14 / pause_s), pause_s=pause_s)
    sender = it.follow("one", client_id, many, mqtt.DISCONNECT)
    it.seconds(15, 18)
    sender.stop()
    it.blame("an unchanged payload at a high rate", it.who("one", client_id), "MQT123")


@fault()
def one_topic(it: Incident) -> None:
    """A camera whose pictures are nearly all that passes the broker."""
    topic, camera = it.names.topic(), it.names.client()
    it.subscriber("one", it.names.client(), (f"{topic}/+/state", 0))
    other = [mqtt.publish(f"{topic}/7/state", 0, payload=f"s{n}", pause_s=0.1) for n in range(150)]
    it.follow("three", it.names.client(), *other, mqtt.DISCONNECT)
    pictures = mqtt.publish(f"{topic}/camera", 0, size=it.rng.randrange(60_000, 120_000), count=200, pause_s=0.05)
    it.follow("two", camera, pictures, mqtt.DISCONNECT)
    it.seconds(14, 16)
    it.blame("one topic is nearly all the bytes", it.who("two", camera), "MQT125")


@fault()
def echo(it: Incident) -> None:
    """A client publishes back what it gets."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    back = it.follow("one", reader, mqtt.subscribe((f"{topic}/#", 0)), mqtt.STAY, echo=True, library="paho")
    back.wait_for_event("subscribed")
    it.follow("two", writer, mqtt.publish(f"{topic}/on", 0, payload="once"), mqtt.DISCONNECT).finish()
    it.seconds(11, 14)
    it.blame("a message goes round", it.who("one", reader), "MQT120", allowed=("MQT123",))


@fault(Wanted(kinds=MOSQUITTO))
def bridge_loop(it: Incident) -> None:
    """A broker is bridged to this one twice, in both directions: what passes one bridge comes back by the other."""
    topic, writer = it.names.topic(), it.names.client()
    bridges = _bridged(it, f"{topic}/# both 0", 2)
    it.follow("two", writer, mqtt.publish(f"{topic}/on", 0, payload="once"), mqtt.DISCONNECT).finish()
    it.seconds(11, 14)
    it.blame("bridges in a circle", {"any": bridges, **bridges[0]}, "MQT120", allowed=("MQT123",))


def _bridged(it: Incident, what: str, number: int) -> list[dict[str, str]]:
    """Start a second broker with so many bridges to the first; return who they are."""
    names = [it.names.client() for _ in range(number)]
    lines: list[str] = []
    for name in names:
        lines += [f"connection {name}", f"address {it.broker.endpoint}", f"topic {what}", f"remote_clientid {name}",
                  f"local_clientid local-{name}", "bridge_protocol_version mqttv311", "try_private false",
                  "notifications false", "restart_timeout 1"]  # fmt: skip
        it.clients.append(it.who("hub", name))
    hub = Place(it.hosts["hub"], it.directory, Wanted(kinds=MOSQUITTO, settings=tuple(lines)), it.rng)
    hub.start()
    it.stack.callback(hub.stop)
    time.sleep(3)
    return it.clients[-number:]


@fault(Wanted(kinds=MOSQUITTO))
def bridge(it: Incident) -> None:
    """A bridge to a second broker, in both directions; nothing is wrong."""
    topic, near, far = it.names.topic(), it.names.client(), it.names.client()
    _bridged(it, f"{topic}/# both 1", 1)
    it.subscriber("one", it.names.client(), (f"{topic}/#", 1))
    endpoint = it.broker.endpoint.replace(it.hosts["broker"].address, it.hosts["hub"].address)
    values = [mqtt.publish(f"{topic}/state", 1, payload=f"{n % 3}", pause_s=0.1) for n in range(100)]
    it.follow("two", near, *values, mqtt.DISCONNECT)
    it.follow("three", far, *values, mqtt.DISCONNECT, endpoint=endpoint)
    it.seconds(12, 15)
    it.healthy("a bridge")


@fault()
def retained_command(it: Incident) -> None:
    """A device gets the same retained command at each connect."""
    topic = f"{it.names.topic()}/{it.rng.choice(('cmd', 'set', 'reboot'))}"
    device, admin = it.names.client(), it.names.client()
    it.follow("two", admin, mqtt.publish(topic, 1, payload="reboot", retain=True), mqtt.DISCONNECT).finish()
    for _ in range(it.rng.randrange(3, 6)):
        it.follow("one", device, mqtt.subscribe((topic, 1)), mqtt.receive(1), mqtt.DISCONNECT).finish()
        it.seconds(0.5, 2)
    blamed = {"clients": [it.who("two", admin), it.who("one", device)]}
    it.blame("a retained command at each connect", blamed, "MQT121")


@fault()
def stale_state(it: Incident) -> None:
    """A retained state that later messages without RETAIN do not replace."""
    topic, setter, reader = it.names.topic(), it.names.client(), it.names.client()
    number = it.rng.randrange(12, 18)
    live = [mqtt.publish(topic, 1, payload=f"value-{n}", pause_s=1.0) for n in range(number)]
    first = mqtt.publish(topic, 1, payload="first", retain=True)
    it.follow("two", setter, first, *live, mqtt.DISCONNECT).finish()
    it.follow("one", reader, mqtt.subscribe((topic, 1)), mqtt.receive(1), mqtt.DISCONNECT).finish()
    it.blame("a stale retained message", it.who("two", setter), "MQT121")


@fault()
def cleared(it: Incident) -> None:
    """A retained state is cleared by another client than the one that sets it."""
    topic, setter, other = it.names.topic(), it.names.client(), it.names.client()
    it.follow("two", setter, mqtt.publish(topic, 1, payload="on", retain=True), mqtt.DISCONNECT).finish()
    it.seconds(1, 2)
    it.follow("one", other, mqtt.publish(topic, 1, payload="", retain=True), mqtt.DISCONNECT).finish()
    it.seconds(1, 2)
    it.blame("cleared by another", it.who("one", other), "MQT121")
