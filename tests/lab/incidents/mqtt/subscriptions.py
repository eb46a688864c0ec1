"""Subscriptions that get nothing, or everything more than once."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident

# What was meant -> what is subscribed to, as people get it wrong.
MISTAKES: dict[str, Callable[[str], str]] = {
    "case": str.title,
    "a slash in front": lambda name: f"/{name}",
    "a slash at the end": lambda name: f"{name}/",
    "a level more": lambda name: f"{name.partition('/')[0]}/state/{name.partition('/')[2]}",
}
COPIES = ("allow_duplicate_messages true",)


@fault()
def topic_apart(it: Incident) -> None:
    """A subscriber waits for a topic that is published under another name."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    mistake = it.rng.choice(list(MISTAKES))
    it.subscriber("one", reader, (MISTAKES[mistake](f"{topic}/temp"), it.rng.randrange(3)))
    values = [mqtt.publish(f"{topic}/temp", it.rng.randrange(3), payload=f"{n}.5", pause_s=1.0) for n in range(13)]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    blamed = {"clients": [it.who("one", reader), it.who("two", writer)]}
    it.blame(f"filter and topic differ by {mistake}", blamed, "MQT118")


@fault(Wanted(kinds=MOSQUITTO))
def unheard(it: Incident) -> None:
    """A publisher of 5.0 is told for each message that nobody wants it."""
    topic, writer = it.names.topic(), it.names.client()
    # Mosquitto says so in PUBACK, not in PUBREC.
    values = [mqtt.publish(f"{topic}/v", 1, payload=f"{n}", pause_s=0.5) for n in range(it.rng.randrange(8, 14))]
    it.follow("two", writer, *values, mqtt.DISCONNECT, version=5).finish()
    it.blame("nobody subscribes", it.who("two", writer), "MQT118")


@fault(Wanted(kinds=MOSQUITTO, settings=COPIES))
def overlapping(it: Incident) -> None:
    """A subscriber with two filters for the same topics gets each message twice."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    qos = it.rng.randrange(2)
    others = it.rng.sample([f"{topic}/+/temp", f"{topic}/7/#", "+/7/temp"], it.rng.choice((1, 2)))
    it.subscriber("one", reader, (f"{topic}/#", qos), *((name, qos) for name in others))
    values = [
        mqtt.publish(f"{topic}/7/temp", qos, payload=f"{n}.5", pause_s=0.1) for n in range(it.rng.randrange(60, 120))
    ]
    it.follow("two", writer, *values, mqtt.DISCONNECT).finish()
    it.blame("overlapping filters", it.who("one", reader), "MQT123")
