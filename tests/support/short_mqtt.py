"""What MQTT clients say that connect for a moment, most of them as they should.

In: a dice. Out: turns of both sides.
"""

from __future__ import annotations

import random

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
    user_property,
)

CLIENT, SERVER = True, False
# (from the client, bytes)
Said = list[tuple[bool, bytes]]
# Properties of CONNACK: a QoS at most, no retained messages, packets of 40 bytes and two in flight at most, a name.
_GRANTED = (b"\x24\1", b"\x25\0", b"\x27\0\0\0\x28", b"\x21\0\2", b"\x12\0\4name")


def short_talk(dice: random.Random, oddities: float = 0.1) -> Said:
    """One connection. oddities: how often something is as it is rarely."""

    def rarely(share: float = 1) -> bool:
        return dice.random() < oddities * share

    level = dice.choice((4, 4, 5)) if not rarely() else 3
    none = () if level == 5 else None
    asked = {
        "clean": not rarely(),
        "keep_alive": dice.choice((10, 60)),
        "user_name": dice.choice((None, "robot")),
        "password": b"secret" if rarely(2) else None,
        "will": ("gone", b"bye", dice.randrange(3), dice.random() < 0.5) if rarely(2) else None,
        "properties": (user_property("k", "v"), b"\x21\0\3", b"\x27\0\0\1\0")[: dice.randrange(4)] if rarely() else (),
    }
    name = dice.choice(("a", f"sensor-{dice.randrange(9)}", "fühler", "x" * dice.randrange(90, 300)))
    if rarely():
        name = dice.choice(("", "bad\1", "x" * 30))
    granted = (dice.choice(_GRANTED),) if rarely() and level == 5 else none
    code = dice.choice((1, 5, 0x87)) if rarely(0.3) else 0
    said: Said = [(CLIENT, connect(level, name, **asked)), (SERVER, connack(code, int(rarely(0.5)), granted))]
    for number in range(dice.choice((0, 1, 1, 2, 3, 6))):
        said += _exchange(dice, number + 1, none, rarely)
    if rarely():
        del said[dice.randrange(1, len(said))]
    if dice.random() < 0.8:
        said.append((CLIENT, disconnect() if not rarely() else disconnect(dice.choice((0, 4)), none)))
    if rarely(0.5):
        said.insert(dice.randrange(len(said)), (dice.random() < 0.5, dice.choice((PING, PONG, disconnect()))))
    return said


def _exchange(dice: random.Random, identifier: int, none: tuple[()] | None, rarely: object) -> Said:
    assert callable(rarely)
    if rarely():
        identifier = dice.choice((1, 7))
    if dice.random() < 0.1:
        return [(CLIENT, PING), (SERVER, PONG)]
    if rarely():
        return [(CLIENT, subscribe(identifier, ("a/#", 1), properties=none)), (SERVER, suback(identifier, 1))]
    sender, qos = dice.random() < 0.9, dice.randrange(3)
    topic = dice.choice(("a/b", "plant/7", "küche")) if not rarely() else dice.choice(("", "bad/#", "\1"))
    properties = (b"\x02\0\0\0\x09",) if rarely() and none is not None else none
    data = dice.randbytes(dice.choice((0, 3, 150)))
    dup = rarely(0.3)
    said = [(sender, publish(topic, data, qos, identifier, dup=dup, retain=dice.random() < 0.2, properties=properties))]
    for step, of_sender in {0: (), 1: ((PUBACK, False),), 2: ((PUBREC, False), (PUBREL, True), (PUBCOMP, False))}[qos]:
        said.append((sender == of_sender, ack(step, identifier, dice.choice((0, 0x10)) if rarely(0.3) else None)))
    return said
