"""MQTT packets for tests. In: values. Out: bytes, also wrong ones: nothing is checked here.

Sources: MQTT 3.1.1 and 5.0 chapters 1 to 3.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = range(8, 16)
_FLAGS = {PUBREL: 2, SUBSCRIBE: 2, UNSUBSCRIBE: 2}
Properties = Sequence[bytes]


def varint(value: int) -> bytes:
    """A variable byte integer."""
    out = bytearray()
    while True:
        value, byte = value >> 7, value & 0x7F
        out.append(byte | 0x80 if value else byte)
        if not value:
            return bytes(out)


def packet(packet_type: int, body: bytes = b"", flags: int | None = None) -> bytes:
    """A fixed header and a body."""
    flags = _FLAGS.get(packet_type, 0) if flags is None else flags
    return bytes([packet_type << 4 | flags]) + varint(len(body)) + body


def string(text: str | bytes) -> bytes:
    """A string or binary data with its length."""
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack(">H", len(raw)) + raw


def u16(value: int) -> bytes:
    """Two bytes."""
    return struct.pack(">H", value)


def section(properties: Properties | None) -> bytes:
    """A property section; nothing for None, which is the form below 5.0."""
    return b"" if properties is None else varint(sum(map(len, properties))) + b"".join(properties)


def user_property(name: str, value: str) -> bytes:
    """One user property."""
    return b"\x26" + string(name) + string(value)


def connect(
    level: int = 4,
    client_id: str = "c",
    *,
    clean: bool = True,
    keep_alive: int = 60,
    properties: Properties = (),
    will: tuple[str, bytes, int, bool] | None = None,
    will_properties: Properties = (),
    user_name: str | None = None,
    password: bytes | None = None,
) -> bytes:
    """CONNECT at level 3, 4 or 5; will: topic, payload, QoS, retain."""
    flags = clean << 1 | (password is not None) << 6 | (user_name is not None) << 7
    five = level == 5
    payload = string(client_id)
    if will is not None:
        flags |= 4 | will[2] << 3 | will[3] << 5
        payload += section(will_properties if five else None) + string(will[0]) + string(will[1])
    payload += b"".join(string(one) for one in (user_name, password) if one is not None)
    head = string("MQIsdp" if level == 3 else "MQTT") + bytes([level, flags]) + u16(keep_alive)
    return packet(CONNECT, head + section(properties if five else None) + payload)


def connack(code: int = 0, session_present: int = 0, properties: Properties | None = None) -> bytes:
    """CONNACK."""
    return packet(CONNACK, bytes([session_present, code]) + section(properties))


def publish(
    topic: str,
    payload: bytes = b"",
    qos: int = 0,
    identifier: int = 0,
    *,
    dup: bool = False,
    retain: bool = False,
    properties: Properties | None = None,
) -> bytes:
    """PUBLISH; the identifier stands there when the QoS is not 0."""
    body = string(topic) + (u16(identifier) if qos else b"") + section(properties) + payload
    return packet(PUBLISH, body, dup << 3 | qos << 1 | retain)


def ack(packet_type: int, identifier: int, code: int | None = None, properties: Properties | None = None) -> bytes:
    """PUBACK, PUBREC, PUBREL, PUBCOMP."""
    return packet(packet_type, u16(identifier) + (b"" if code is None else bytes([code])) + section(properties))


def subscribe(identifier: int, *filters: tuple[str, int], properties: Properties | None = None) -> bytes:
    """SUBSCRIBE; filters with their options byte."""
    body = b"".join(string(name) + bytes([options]) for name, options in filters)
    return packet(SUBSCRIBE, u16(identifier) + section(properties) + body)


def suback(identifier: int, *codes: int, properties: Properties | None = None) -> bytes:
    """SUBACK."""
    return packet(SUBACK, u16(identifier) + section(properties) + bytes(codes))


def unsubscribe(identifier: int, *filters: str, properties: Properties | None = None) -> bytes:
    """UNSUBSCRIBE."""
    return packet(UNSUBSCRIBE, u16(identifier) + section(properties) + b"".join(map(string, filters)))


def unsuback(identifier: int, *codes: int, properties: Properties | None = None) -> bytes:
    """UNSUBACK; without properties and codes that of 3.1 and 3.1.1."""
    return packet(UNSUBACK, u16(identifier) + section(properties) + bytes(codes))


def disconnect(code: int | None = None, properties: Properties | None = None) -> bytes:
    """DISCONNECT."""
    return packet(DISCONNECT, (b"" if code is None else bytes([code])) + section(properties))


def auth(code: int, *properties: bytes) -> bytes:
    """AUTH."""
    return packet(AUTH, bytes([code]) + section(properties))


PING = packet(PINGREQ)
PONG = packet(PINGRESP)
