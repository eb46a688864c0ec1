"""Messages that do not reach their subscribers, and messages that are refused."""

from __future__ import annotations

from typing import Any

from tests.lab.clients import mqtt
from tests.lab.incidents.mqtt.brokers import MOSQUITTO, Wanted
from tests.lab.incidents.mqtt.catalogue import fault
from tests.lab.incidents.mqtt.incident import Incident

HANGING_S = 16.0  # longer than the time after which a delivery is missing
BY_HAND = ("paho", "go")  # libraries that can leave acknowledgements away
STANDS_STILL = ("TCP102", "MQT103", "MQT105", "MQT115")


def _few(it: Incident, topic: str, number: int, **more: Any) -> tuple[mqtt.Step, ...]:
    """Publishes of QoS 1, and time enough after them."""
    values = [mqtt.publish(topic, 1, payload=f"v{one}", pause_s=0.1, **more) for one in range(number)]
    return (*values, mqtt.idle(HANGING_S), mqtt.DISCONNECT)


@fault()
def frozen_subscriber(it: Incident) -> None:
    """A subscriber is stopped while large messages come for it."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    held = it.subscriber("one", reader, (f"{topic}/#", it.rng.randrange(2)), keep_alive=60)
    held.freeze()
    big = mqtt.publish(f"{topic}/image", 1, size=200_000, count=40, pause_s=0.1)
    it.follow("two", writer, big, mqtt.idle(HANGING_S), mqtt.DISCONNECT).finish(60)
    it.blame("a frozen subscriber", it.who("one", reader), *STANDS_STILL, allowed=("TCP106", "TCP101", "MQT123"))


@fault()
def never_acknowledges(it: Incident) -> None:
    """A subscriber that acknowledges nothing: the window of messages in flight is full."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("one", reader, (f"{topic}/#", 1), library=BY_HAND, manual_ack=True)
    it.follow("two", writer, *_few(it, f"{topic}/order", it.rng.randrange(12, 20))).finish(60)
    it.blame("a subscriber that never acknowledges", it.who("one", reader), "MQT105", "MQT115")


@fault()
def window_full(it: Incident) -> None:
    """A subscriber with a small Receive Maximum that acknowledges nothing."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    small = {"ReceiveMaximum": it.rng.randrange(1, 4)}
    it.subscriber("one", reader, (f"{topic}/#", 1), library=BY_HAND, manual_ack=True, version=5, properties=small)
    it.follow("two", writer, *_few(it, f"{topic}/order", it.rng.randrange(8, 16))).finish(60)
    it.blame("a full receive window", it.who("one", reader), "MQT105", "MQT115")


@fault(Wanted(kinds=MOSQUITTO, settings=("max_queued_messages 10",)))
def slow_subscriber(it: Incident) -> None:
    """A subscriber works so long for each message that the broker drops what comes."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("one", reader, (f"{topic}/#", 1), library="paho", work_s=it.rng.uniform(0.6, 1.2))
    it.follow("two", writer, *_few(it, f"{topic}/order", it.rng.randrange(60, 90))).finish(60)
    it.blame("a slow subscriber", it.who("one", reader), "MQT115", "MQT105")


@fault()
def too_large(it: Incident) -> None:
    """Messages that are larger than their subscriber takes."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    small = {"MaximumPacketSize": 100}
    it.subscriber("one", reader, (f"{topic}/#", 1), version=5, properties=small)
    some = mqtt.publish(f"{topic}/page", 1, size=500, count=it.rng.randrange(2, 6), pause_s=0.2)
    it.follow("two", writer, some, mqtt.idle(HANGING_S), mqtt.DISCONNECT, version=5).finish(60)
    it.blame("larger than the subscriber takes", it.who("one", reader), "MQT115")


@fault()
def shared_frozen(it: Incident) -> None:
    """A member of a shared subscription acknowledges nothing, the other works."""
    topic, mute, good, writer = it.names.topic(), it.names.client(), it.names.client(), it.names.client()
    wanted = (f"$share/work/{topic}/#", 1)
    it.subscriber("one", mute, wanted, version=5, library=BY_HAND, manual_ack=True)
    it.subscriber("three", good, wanted, version=5)
    it.follow("two", writer, *_few(it, f"{topic}/job", 30), version=5).finish(60)
    it.blame("a member of a group never acknowledges", it.who("one", mute), "MQT105", "MQT115")


@fault()
def expires_in_line(it: Incident) -> None:
    """Messages expire while they wait behind those that a subscriber does not acknowledge."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("one", reader, (f"{topic}/#", 1), library=BY_HAND, manual_ack=True, version=5)
    soon = {"properties": {"MessageExpiryInterval": 2}}
    it.follow("two", writer, *_few(it, f"{topic}/order", 15, **soon), version=5).finish(60)
    it.blame("messages expire behind others", it.who("one", reader), "MQT105", "MQT115")


@fault(Wanted(in_flight=8))
def in_flight(it: Incident) -> None:
    """A client of 5.0 sends more messages at once than the server takes."""
    _breach(it, "in-flight", "rule/flight", "MQT108")


@fault(Wanted(kinds=MOSQUITTO, settings=("max_packet_size 2000",)))
def packet_too_large(it: Incident) -> None:
    """A client of 5.0 sends a packet that is larger than the server takes."""
    _breach(it, "too-large", "rule/large", "MQT109")


@fault()
def alias_too_large(it: Incident) -> None:
    """A client of 5.0 uses a topic alias above the server's maximum."""
    _breach(it, "alias-above-maximum", "rule/alias", "MQT110")


def _breach(it: Incident, rule: str, topic: str, code: str) -> None:
    """Break a rule; a subscriber waits for what is refused, and is not to blame."""
    culprit = it.names.client()
    it.subscriber("one", it.names.client(), (f"{topic.partition('/')[0]}/#", 1))
    it.breach("two", culprit, rule).finish()
    it.seconds(12, 14)
    it.blame(f"refused: {rule}", it.who("two", culprit), code, allowed=("MQT111", "TCP103"))


@fault(Wanted(kinds=MOSQUITTO, settings=("message_size_limit 2000",)))
def dropped_silently(it: Incident) -> None:
    """The broker acknowledges messages above a limit of its own and sends them to nobody."""
    topic, reader, writer = it.names.topic(), it.names.client(), it.names.client()
    it.subscriber("one", reader, (f"{topic}/#", 1))
    large = mqtt.publish(f"{topic}/page", 1, size=it.rng.randrange(4000, 9000), count=3, pause_s=0.3)
    it.follow("two", writer, large, mqtt.idle(HANGING_S), mqtt.DISCONNECT, version=4).finish(60)
    blamed = {"clients": [it.who("one", reader), it.who("two", writer)]}
    it.blame("dropped by a limit of the server", blamed, "MQT115", sides=("server",))


@fault(Wanted(kinds=MOSQUITTO, settings=("max_packet_size 2000",)))
def poison_message(it: Incident) -> None:
    """A client sends one message again at each connection, which the broker closes for it."""
    topic, writer = it.names.topic(), it.names.client()
    it.subscriber("one", it.names.client(), (f"{topic}/#", 1))
    large = mqtt.publish(f"{topic}/page", 1, size=it.rng.randrange(4000, 9000), wait=False)
    it.follow("two", writer, large, mqtt.KEEP_COMING, library="paho", version=4, clean=False, reconnect_s=3)
    it.seconds(28, 34)
    it.blame("a message that is never taken", it.who("two", writer), "MQT124", "MQT107", "MQT109",
             allowed=("TCP103", "MQT105"))  # fmt: skip
