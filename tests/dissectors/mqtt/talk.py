"""MQTT decoders for the properties that every protocol has."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import strategies as st

from tests.dissectors.properties import Case, Turn
from tests.support.mqtt_encode import (
    PING,
    PONG,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connack,
    connect,
    disconnect,
    publish,
    suback,
    subscribe,
    u16,
    unsuback,
    unsubscribe,
    user_property,
)
from wirewitness.dissectors.core.inspect import Asked
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.mqtt.dissector import MQTT

_TOPICS = ("plant/oven/temperature", "küche", "a")
_PROPERTIES = ((), (b"\x02\0\0\0\x09",), (user_property("k", "v"), b"\x23" + u16(1)), (b"\x0b\x05", b"\x0b\x06"))


def _published(sender: int, qos: int, topic: str, payload: bytes, properties: tuple[bytes, ...] | None) -> list[Turn]:
    """A message of one side with its acknowledgements, the identifier 77."""
    receiver = 1 - sender
    turns = [Turn(sender, publish(topic, payload, qos, 77, properties=properties))]
    if qos == 1:
        turns.append(Turn(receiver, ack(PUBACK, 77)))
    elif qos == 2:
        turns += [Turn(receiver, ack(PUBREC, 77)), Turn(sender, ack(PUBREL, 77)), Turn(receiver, ack(PUBCOMP, 77))]
    return turns


def _subscribed(five: bool) -> list[Turn]:
    properties = () if five else None
    return [
        Turn(CLIENT_TO_SERVER, subscribe(5, ("a/#", 1), ("b/+", 2), properties=properties)),
        Turn(SERVER_TO_CLIENT, suback(5, 1, 0x80, properties=properties)),
        Turn(CLIENT_TO_SERVER, unsubscribe(6, "a/#", properties=properties) + PING),
        Turn(SERVER_TO_CLIENT, unsuback(6, *((0,) if five else ()), properties=properties) + PONG),
    ]


@st.composite
def _talk(draw: st.DrawFn) -> list[Turn]:
    level = draw(st.sampled_from([3, 4, 5]))
    five = level == 5
    turns = [
        Turn(CLIENT_TO_SERVER, connect(level, "client", user_name="u", password=b"secret", will=("w", b"x", 1, False))),
        Turn(SERVER_TO_CLIENT, connack(properties=[b"\x22" + u16(9)] if five else None)),
    ]
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            turns += _subscribed(five)
            continue
        sender, qos = draw(st.integers(0, 1)), draw(st.integers(0, 2))
        properties = draw(st.sampled_from(_PROPERTIES)) if five else None
        turns += _published(sender, qos, draw(st.sampled_from(_TOPICS)), draw(st.binary(max_size=200)), properties)
    if draw(st.booleans()):
        turns.append(Turn(CLIENT_TO_SERVER, disconnect()))
    return turns


def _long() -> Iterator[Turn]:
    """Payloads are text, as most are; some are long."""
    yield Turn(CLIENT_TO_SERVER, connect(4, "client"))
    yield Turn(SERVER_TO_CLIENT, connack())
    for number in range(200):
        payload = b'{"n": %d, "text": "%s"}' % (number, b"x" * (number % 97))
        yield from _published(number % 2, number % 3, f"plant/{number % 7}/state", payload, None)
        if number % 20 == 0:
            yield from _subscribed(five=False)


MQTT_CASE = Case(
    MQTT,
    _talk(),
    list(_long()),
    (Asked("request", "CONNECT", None), Asked("request", "PUBLISH", "5.0"), Asked(None, None, None)),
)
