"""The properties of MQTT 5.0: which there are, and how a section of them is read.

In: the bytes of a packet. Out: values by name, and what is wrong. Source: MQTT 5.0 table 2-4 (section 2.2.2.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from wirewitness.dissectors.mqtt.packet_types import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
)
from wirewitness.dissectors.mqtt.text import string

# The properties of a will stand in CONNECT, in a section of their own.
WILL = 16
_MESSAGE = (PUBLISH, WILL)
_ANSWERS = (CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH)
_ALL = (CONNECT, PUBLISH, WILL, SUBSCRIBE, UNSUBSCRIBE, *_ANSWERS)


class Property(NamedTuple):
    """A property. packets: where it may stand; often: where more than once; allowed: lowest and highest value."""

    name: str
    type: str
    packets: tuple[int, ...]
    often: tuple[int, ...] = ()
    allowed: tuple[int, int] | None = None
    secret: bool = False


_FLAG = (0, 1)
_FROM_1_16 = (1, (1 << 16) - 1)
_FROM_1_32 = (1, (1 << 32) - 1)

PROPERTIES: dict[int, Property] = {
    0x01: Property("payload_format_indicator", "u8", _MESSAGE, allowed=_FLAG),
    0x02: Property("message_expiry_interval", "u32", _MESSAGE),
    0x03: Property("content_type", "string", _MESSAGE),
    0x08: Property("response_topic", "string", _MESSAGE),
    0x09: Property("correlation_data", "binary", _MESSAGE),
    0x0B: Property("subscription_identifier", "varint", (PUBLISH, SUBSCRIBE), (PUBLISH,), (1, 268_435_455)),
    0x11: Property("session_expiry_interval", "u32", (CONNECT, CONNACK, DISCONNECT)),
    0x12: Property("assigned_client_identifier", "string", (CONNACK,)),
    0x13: Property("server_keep_alive", "u16", (CONNACK,)),
    0x15: Property("authentication_method", "string", (CONNECT, CONNACK, AUTH)),
    0x16: Property("authentication_data", "binary", (CONNECT, CONNACK, AUTH), secret=True),
    0x17: Property("request_problem_information", "u8", (CONNECT,), allowed=_FLAG),
    0x18: Property("will_delay_interval", "u32", (WILL,)),
    0x19: Property("request_response_information", "u8", (CONNECT,), allowed=_FLAG),
    0x1A: Property("response_information", "string", (CONNACK,)),
    0x1C: Property("server_reference", "string", (CONNACK, DISCONNECT)),
    0x1F: Property("reason_string", "string", _ANSWERS),
    0x21: Property("receive_maximum", "u16", (CONNECT, CONNACK), allowed=_FROM_1_16),
    0x22: Property("topic_alias_maximum", "u16", (CONNECT, CONNACK)),
    0x23: Property("topic_alias", "u16", (PUBLISH,)),
    0x24: Property("maximum_qos", "u8", (CONNACK,), allowed=_FLAG),
    0x25: Property("retain_available", "u8", (CONNACK,), allowed=_FLAG),
    0x26: Property("user_property", "pair", _ALL, _ALL),
    0x27: Property("maximum_packet_size", "u32", (CONNECT, CONNACK), allowed=_FROM_1_32),
    0x28: Property("wildcard_subscription_available", "u8", (CONNACK,), allowed=_FLAG),
    0x29: Property("subscription_identifier_available", "u8", (CONNACK,), allowed=_FLAG),
    0x2A: Property("shared_subscription_available", "u8", (CONNACK,), allowed=_FLAG),
}


def quick_properties(data: bytes, position: int, end: int, of: int, most: int) -> dict[str, Any] | None:
    """The properties data[position:end] of a packet of this type; None where anything about them is unusual.

    most: so many are usual.
    """
    found: dict[str, Any] = {}
    try:
        while position < end:
            most -= 1
            if most < 0:
                return None
            known = PROPERTIES[data[position]]
            value, position = _READERS[known.type](data, position + 1)
            if of not in known.packets or (known.allowed and not known.allowed[0] <= value <= known.allowed[1]):
                return None
            if known.often:
                found.setdefault(known.name, []).append(value)
            elif known.name in found:
                return None
            else:
                found[known.name] = value
    except (KeyError, IndexError, ValueError):
        return None
    return found if position == end else None


def _quick_string(data: bytes, position: int) -> tuple[str, int]:
    raw, position = _quick_binary(data, position)
    text, problems = string(raw)
    if problems:
        raise ValueError
    return text, position


def _quick_binary(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 2
    stop = start + (data[position] << 8 | data[position + 1])
    if stop > len(data):
        raise ValueError
    return data[start:stop], stop


def _quick_pair(data: bytes, position: int) -> tuple[list[str], int]:
    name, position = _quick_string(data, position)
    value, position = _quick_string(data, position)
    return [name, value], position


def _quick_varint(data: bytes, position: int) -> tuple[int, int]:
    if data[position] & 0x80:
        raise ValueError
    return data[position], position + 1


_READERS: dict[str, Callable[[bytes, int], tuple[Any, int]]] = {
    "u8": lambda data, at: (data[at], at + 1),
    "u16": lambda data, at: (data[at] << 8 | data[at + 1], at + 2),
    "u32": lambda data, at: (data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3], at + 4),
    "varint": _quick_varint,
    "string": _quick_string,
    "binary": _quick_binary,
    "pair": _quick_pair,
}
