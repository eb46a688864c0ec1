"""What stands in each control packet behind its fixed header, in the order of the specification.

In: nothing. Out: LAYOUT, by packet type. Sources: MQTT 3.1 chapter 3, MQTT 3.1.1 chapter 3, MQTT 5.0 chapter 3. The
layout of 3.1 and 3.1.1 is the same; what 5.0 adds is marked.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from wirewitness.dissectors.mqtt.packet_types import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
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
from wirewitness.dissectors.mqtt.properties import WILL

# properties: of the packet itself; payload: all that is left.
FieldType = Literal["u8", "u16", "string", "binary", "properties", "will_properties", "payload"]
# qos: the fixed header says 1 or 2 (3 is read as if it did). will, user_name, password: bits of connect_flags.
# more: anything is left in the packet.
Condition = Literal["qos", "will", "user_name", "password", "more"]


class Field(NamedTuple):
    """A field. since_5: 5.0 added it; when: it is only there then; hidden: secret or payload, kept back."""

    name: str
    type: FieldType
    when: Condition | None = None
    since_5: bool = False
    hidden: Literal["secret", "payload"] | None = None


class Layout(NamedTuple):
    """The fields of a packet. each: of every element of the list that follows them, up to the end of the packet.

    each_since_5: the list is there from 5.0 on.
    """

    fields: tuple[Field, ...] = ()
    each: tuple[Field, ...] = ()
    each_since_5: bool = False


_IDENTIFIER = Field("packet_identifier", "u16")
_PROPERTIES = Field("properties", "properties", since_5=True)
_REASON = Field("reason_code", "u8", "more", since_5=True)
_LAST_PROPERTIES = Field("properties", "properties", "more", since_5=True)
_ACKNOWLEDGEMENT = Layout((_IDENTIFIER, _REASON, _LAST_PROPERTIES))

LAYOUT: dict[int, Layout] = {
    CONNECT: Layout(
        (
            Field("protocol_name", "string"),
            Field("protocol_level", "u8"),
            Field("connect_flags", "u8"),
            Field("keep_alive", "u16"),
            _PROPERTIES,
            Field("client_id", "string"),
            Field("will_properties", "will_properties", "will", since_5=True),
            Field("will_topic", "string", "will"),
            Field("will_payload", "binary", "will", hidden="payload"),
            Field("user_name", "string", "user_name"),
            Field("password", "binary", "password", hidden="secret"),
        )
    ),
    # 3.1 calls the first byte reserved and the second one return code, 3.1.1 the second one return code.
    CONNACK: Layout((Field("acknowledge_flags", "u8"), Field("reason_code", "u8"), _PROPERTIES)),
    PUBLISH: Layout(
        (
            Field("topic_name", "string"),
            Field("packet_identifier", "u16", "qos"),
            _PROPERTIES,
            Field("payload", "payload", hidden="payload"),
        )
    ),
    PUBACK: _ACKNOWLEDGEMENT,
    PUBREC: _ACKNOWLEDGEMENT,
    PUBREL: _ACKNOWLEDGEMENT,
    PUBCOMP: _ACKNOWLEDGEMENT,
    SUBSCRIBE: Layout((_IDENTIFIER, _PROPERTIES), (Field("topic_filter", "string"), Field("options", "u8"))),
    SUBACK: Layout((_IDENTIFIER, _PROPERTIES), (Field("reason_code", "u8"),)),
    UNSUBSCRIBE: Layout((_IDENTIFIER, _PROPERTIES), (Field("topic_filter", "string"),)),
    UNSUBACK: Layout((_IDENTIFIER, _PROPERTIES), (Field("reason_code", "u8"),), each_since_5=True),
    PINGREQ: Layout(),
    PINGRESP: Layout(),
    DISCONNECT: Layout((_REASON, _LAST_PROPERTIES)),
    AUTH: Layout((_REASON, _LAST_PROPERTIES)),
}
# Whose properties a field of these types holds, where not the packet's own.
PROPERTIES_OF = {"will_properties": WILL}

# Bits of connect_flags (3.1.1 figure 3.4): name, lowest bit, width.
CONNECT_FLAGS = (
    ("reserved", 0, 1),
    ("clean_start", 1, 1),
    ("will", 2, 1),
    ("will_qos", 3, 2),
    ("will_retain", 5, 1),
    ("password", 6, 1),
    ("user_name", 7, 1),
)
# Bits of a subscription's options (5.0 section 3.8.3.1). Below 5.0 only the QoS means something.
SUBSCRIPTION_OPTIONS = (
    ("requested_qos", 0, 2),
    ("no_local", 2, 1),
    ("retain_as_published", 3, 1),
    ("retain_handling", 4, 2),
    ("reserved", 6, 2),
)
FLAG_BITS = {"connect_flags": CONNECT_FLAGS, "options": SUBSCRIPTION_OPTIONS}


def flag_bits(field: str, byte: int) -> dict[str, int]:
    """The named bits of a flags field."""
    return {name: byte >> low & ((1 << width) - 1) for name, low, width in FLAG_BITS[field]}
