"""MQTT decoders made up packet by packet, some fields of which are broken.

In: dice. Out: pieces of a decoder, packets. Identifiers, topics and clients come from small pools, so that
handshakes and subscriptions meet.
"""

from __future__ import annotations

from random import Random

from tests.fuzz.mutate import broken
from tests.fuzz.pieces import FRAMED, FROM_CLIENT, Piece
from tests.support import mqtt_encode as mqtt
from wirewitness.dissectors.core.inspect import Asked

TOPICS = [
    "a",
    "a/b",
    "",
    "a/#",
    "+/b",
    "#",
    "$share/g/a/#",
    "$SYS/x",
    "küche",
    "/" * 40,
    "t" * 300,
    "$share//a",
    "a/\u202e",
]
_NAMES = [
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
]
_NAMES += ["UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH"]
_VERSIONS = ["3.1", "3.1.1", "5.0", None]
ASKED = [Asked(role, name, version) for name in _NAMES for role in ("request", "response") for version in _VERSIONS]
_BYTE_CODES = [0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A]
_TWO_BYTE_CODES, _FOUR_BYTE_CODES = [0x13, 0x21, 0x22, 0x23], [0x02, 0x11, 0x18, 0x27]
_TEXT_CODES = [0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, 0x1F]


def _properties(dice: Random, level: int) -> list[bytes] | None:
    """A property section's content; None below 5.0, now and then the other way round."""
    if (level != 5) != (dice.random() < 0.03):
        return None
    found = []
    for _ in range(dice.choice([0, 0, 1, 2, 5])):
        code = dice.choice(
            [*_BYTE_CODES, *_TWO_BYTE_CODES, *_FOUR_BYTE_CODES, *_TEXT_CODES, 0x0B, 0x26, 0x26, dice.randrange(256)]
        )
        if code in _BYTE_CODES:
            value = dice.randbytes(1)
        elif code in _TWO_BYTE_CODES:
            value = mqtt.u16(dice.choice([0, 1, 2, 65535]))
        elif code in _FOUR_BYTE_CODES:
            value = dice.choice([b"\0\0\0\1", b"\xff\xff\xff\xff"])
        elif code == 0x0B:
            value = mqtt.varint(dice.choice([0, 1, 5, 268_435_455]))
        elif code == 0x26:
            value = mqtt.string(dice.choice(["k", "password", ""])) + mqtt.string(dice.choice(["v", "http://u:p@h"]))
        else:
            value = mqtt.string(dice.choice(TOPICS))
        found.append(bytes([code]) + value)
    return found


def packet(dice: Random, level: int) -> tuple[bool, bytes]:
    """Whether the client sends it, and a packet."""
    sender, number, qos = dice.random() < 0.6, dice.choice([0, 1, 1, 2, 3, 65535]), dice.choice([0, 1, 2, 2, 3])
    properties, topic, code = (
        _properties(dice, level),
        dice.choice(TOPICS),
        dice.choice([0, 1, 2, 0x80, 0x87, 0x92, dice.randrange(256)]),
    )
    text = dice.choice([b"", b"x", b'{"a":1}', dice.randbytes(40)])
    topics = [(dice.choice(TOPICS), dice.choice([0, 1, 2, 0x2C, 0xFF])) for _ in range(dice.choice([0, 1, 1, 3]))]
    codes = [dice.choice([0, 1, 2, 0x80, 0x87]) for _ in range(dice.choice([0, 1, 1, 3]))]
    match dice.randrange(13):
        case 0:
            will = (topic, text, qos, dice.random() < 0.5) if dice.random() < 0.4 else None
            user = dice.choice([None, "u", ""])
            made = mqtt.connect(
                level,
                dice.choice(["c", "d", ""]),
                clean=dice.random() < 0.5,
                properties=properties or (),
                will=will,
                keep_alive=dice.choice([0, 1, 60, 65535]),
                user_name=user,
                password=text if user else None,
                will_properties=_properties(dice, level) or (),
            )
            return True, made
        case 1:
            return False, mqtt.connack(code, dice.choice([0, 1, 0xFF]), properties)
        case 2 | 3 | 4:
            return sender, mqtt.publish(
                topic, text, qos, number, dup=dice.random() < 0.2, retain=dice.random() < 0.3, properties=properties
            )
        case 5 | 6:
            kind = dice.choice([mqtt.PUBACK, mqtt.PUBREC, mqtt.PUBREL, mqtt.PUBCOMP])
            return sender, mqtt.ack(
                kind, number, code if dice.random() < 0.4 else None, properties if level == 5 else None
            )
        case 7:
            return True, mqtt.subscribe(number, *topics, properties=properties)
        case 8:
            return False, mqtt.suback(number, *codes, properties=properties)
        case 9:
            return True, mqtt.unsubscribe(number, *(name for name, _ in topics), properties=properties)
        case 10:
            return False, mqtt.unsuback(number, *codes, properties=properties)
        case 11:
            return sender, dice.choice([mqtt.PING, mqtt.PONG, mqtt.auth(code, *(properties or ()))])
        case _:
            return sender, mqtt.disconnect(code if dice.random() < 0.5 else None, properties if level == 5 else None)


def bare(payload: bytes) -> bytes | None:
    """A packet without its length; None when it is not one whole packet."""
    for length_bytes in range(1, 5):
        body = payload[:1] + payload[1 + length_bytes :]
        if payload == framed(body):
            return body
    return None


def framed(body: bytes) -> bytes:
    """The length behind the first byte."""
    return body[:1] + mqtt.varint(max(len(body) - 1, 0)) + body[1:]


def talk(dice: Random) -> list[Piece]:
    """A connection's packets."""
    level = dice.choice([3, 4, 4, 5, 5, 5, 0x84, 6])
    packets = [packet(dice, level) for _ in range(dice.choice([1, 2, 4, 8]))]
    if dice.random() < 0.6:
        packets[:0] = [(True, mqtt.connect(level)), (False, mqtt.connack(properties=() if level == 5 else None))]
    pieces = []
    for from_client, made in packets:
        body = bare(made) or made
        body = broken(body, dice) if dice.random() < 0.15 else body
        pieces.append(Piece(FRAMED | (FROM_CLIENT if from_client else 0), body))
    return pieces


def message(dice: Random) -> tuple[int, bytes]:
    """One packet, and its place in ASKED."""
    level = dice.choice([3, 4, 5])
    _, made = packet(dice, level)
    name = _NAMES[max(made[0] >> 4, 1) - 1]
    version = {3: "3.1", 4: "3.1.1", 5: "5.0"}[level]
    return ASKED.index(Asked(dice.choice(["request", "response"]), name, version)), made
