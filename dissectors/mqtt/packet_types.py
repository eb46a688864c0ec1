"""The control packets of MQTT: numbers, names, who may send them, which flag bits they carry.

In: nothing. Out: TYPES, by packet type. Sources: MQTT 3.1.1 tables 2.1 and 2.2, MQTT 5.0 tables 2-1 and 2-2.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.mqtt.levels import LEVEL_31

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = range(8, 16)


class PacketType(NamedTuple):
    """A control packet. flags: the value that its reserved flag bits must have, None where they mean something.

    to_server, to_client: the direction in which it may travel, in MQTT 5.0. first_level: lowest protocol level.
    """

    name: str
    flags: int | None = 0
    to_server: bool = True
    to_client: bool = False
    first_level: int = 3


TYPES: dict[int, PacketType] = {
    CONNECT: PacketType("CONNECT"),
    CONNACK: PacketType("CONNACK", to_server=False, to_client=True),
    PUBLISH: PacketType("PUBLISH", flags=None, to_client=True),
    PUBACK: PacketType("PUBACK", to_client=True),
    PUBREC: PacketType("PUBREC", to_client=True),
    PUBREL: PacketType("PUBREL", flags=2, to_client=True),
    PUBCOMP: PacketType("PUBCOMP", to_client=True),
    SUBSCRIBE: PacketType("SUBSCRIBE", flags=2),
    SUBACK: PacketType("SUBACK", to_server=False, to_client=True),
    UNSUBSCRIBE: PacketType("UNSUBSCRIBE", flags=2),
    UNSUBACK: PacketType("UNSUBACK", to_server=False, to_client=True),
    PINGREQ: PacketType("PINGREQ"),
    PINGRESP: PacketType("PINGRESP", to_server=False, to_client=True),
    DISCONNECT: PacketType("DISCONNECT", to_client=True),
    AUTH: PacketType("AUTH", to_client=True, first_level=5),
}
NUMBERS: dict[str, int] = {packet.name: number for number, packet in TYPES.items()}
# In MQTT 3.1 these carry a DUP flag when they are sent again (sections 3.6, 3.8 and 3.10 there).
MAY_REPEAT_IN_31 = frozenset({PUBREL, SUBSCRIBE, UNSUBSCRIBE})
DUP, RETAIN = 8, 1


def may_travel(packet_type: int, direction: int, level: int | None) -> bool:
    """May a packet of this type go in this direction (0: to the server) at this level? True where the level is unknown.

    A server sends DISCONNECT from 5.0 on.
    """
    packet = TYPES.get(packet_type)
    if packet is None or (level is not None and max(level, LEVEL_31) < packet.first_level):
        return False
    if packet_type == DISCONNECT and direction == 1 and level is not None and level < 5:
        return False
    return packet.to_client if direction else packet.to_server


def operation_name(packet_type: int) -> str:
    """The packet's name, or `Type 0` where the protocol has none."""
    packet = TYPES.get(packet_type)
    return f"Type {packet_type}" if packet is None else packet.name
