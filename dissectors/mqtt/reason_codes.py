"""Return codes and reason codes by name, for each packet type and version.

In: packet type, level, code. Out: names as in the documents. Sources: MQTT 3.1 section 3.2, MQTT 3.1.1 tables 3.1 and
section 3.9.3, MQTT 5.0 table 2-6 (section 2.4).
"""

from __future__ import annotations

from wirewitness.dissectors.mqtt.levels import LEVEL_31, LEVEL_50
from wirewitness.dissectors.mqtt.packet_types import (
    AUTH,
    CONNACK,
    DISCONNECT,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
)

FAILURE = 0x80

# 3.1 and 3.1.1: return codes of CONNACK.
_CONNECT_RETURN_CODES = {
    0: "Connection Accepted",
    1: "Connection Refused, unacceptable protocol version",
    2: "Connection Refused, identifier rejected",
    3: "Connection Refused, Server unavailable",
    4: "Connection Refused, bad user name or password",
    5: "Connection Refused, not authorized",
}
_GRANTED = {0: "Granted QoS 0", 1: "Granted QoS 1", 2: "Granted QoS 2"}

# 5.0: code -> name, and the packets that may carry it.
_PUBLISHED = (PUBACK, PUBREC)
_SUBSCRIBED = (SUBACK, UNSUBACK)
_CLOSING = (CONNACK, DISCONNECT)
_CODES: tuple[tuple[int, str, tuple[int, ...]], ...] = (
    (0x00, "Success", (CONNACK, *_PUBLISHED, PUBREL, PUBCOMP, UNSUBACK, AUTH)),
    (0x00, "Normal disconnection", (DISCONNECT,)),
    (0x00, "Granted QoS 0", (SUBACK,)),
    (0x01, "Granted QoS 1", (SUBACK,)),
    (0x02, "Granted QoS 2", (SUBACK,)),
    (0x04, "Disconnect with Will Message", (DISCONNECT,)),
    (0x10, "No matching subscribers", _PUBLISHED),
    (0x11, "No subscription existed", (UNSUBACK,)),
    (0x18, "Continue authentication", (AUTH,)),
    (0x19, "Re-authenticate", (AUTH,)),
    (0x80, "Unspecified error", (*_CLOSING, *_PUBLISHED, *_SUBSCRIBED)),
    (0x81, "Malformed Packet", _CLOSING),
    (0x82, "Protocol Error", _CLOSING),
    (0x83, "Implementation specific error", (*_CLOSING, *_PUBLISHED, *_SUBSCRIBED)),
    (0x84, "Unsupported Protocol Version", (CONNACK,)),
    (0x85, "Client Identifier not valid", (CONNACK,)),
    (0x86, "Bad User Name or Password", (CONNACK,)),
    (0x87, "Not authorized", (*_CLOSING, *_PUBLISHED, *_SUBSCRIBED)),
    (0x88, "Server unavailable", (CONNACK,)),
    (0x89, "Server busy", _CLOSING),
    (0x8A, "Banned", (CONNACK,)),
    (0x8B, "Server shutting down", (DISCONNECT,)),
    (0x8C, "Bad authentication method", _CLOSING),
    (0x8D, "Keep Alive timeout", (DISCONNECT,)),
    (0x8E, "Session taken over", (DISCONNECT,)),
    (0x8F, "Topic Filter invalid", (*_SUBSCRIBED, DISCONNECT)),
    (0x90, "Topic Name invalid", (*_CLOSING, *_PUBLISHED)),
    (0x91, "Packet Identifier in use", (*_PUBLISHED, *_SUBSCRIBED)),
    (0x92, "Packet Identifier not found", (PUBREL, PUBCOMP)),
    (0x93, "Receive Maximum exceeded", (DISCONNECT,)),
    (0x94, "Topic Alias invalid", (DISCONNECT,)),
    (0x95, "Packet too large", _CLOSING),
    (0x96, "Message rate too high", (DISCONNECT,)),
    (0x97, "Quota exceeded", (*_CLOSING, *_PUBLISHED, SUBACK)),
    (0x98, "Administrative action", (DISCONNECT,)),
    (0x99, "Payload format invalid", (*_CLOSING, *_PUBLISHED)),
    (0x9A, "Retain not supported", _CLOSING),
    (0x9B, "QoS not supported", _CLOSING),
    (0x9C, "Use another server", _CLOSING),
    (0x9D, "Server moved", _CLOSING),
    (0x9E, "Shared Subscriptions not supported", (SUBACK, DISCONNECT)),
    (0x9F, "Connection rate exceeded", _CLOSING),
    (0xA0, "Maximum connect time", (DISCONNECT,)),
    (0xA1, "Subscription Identifiers not supported", (SUBACK, DISCONNECT)),
    (0xA2, "Wildcard Subscriptions not supported", (SUBACK, DISCONNECT)),
)
_NAMES_50: dict[tuple[int, int], str] = {(packet, code): name for code, name, packets in _CODES for packet in packets}
# Names alone, of every failure: for tables whose rows do not name their codes.
REASON_NAMES: dict[int, str] = {code: name for code, name, _ in _CODES if code >= FAILURE}


def reason_name(packet_type: int, code: int, level: int | None) -> str | None:
    """The name of a code that a packet of this type carries at this level; None for an undefined one."""
    if level is None or level >= LEVEL_50:
        return _NAMES_50.get((packet_type, code))
    if packet_type == CONNACK:
        return _CONNECT_RETURN_CODES.get(code)
    if packet_type == SUBACK:
        return "Failure" if code == FAILURE and level != LEVEL_31 else _GRANTED.get(code)
    return None


def is_error(packet_type: int, code: int, level: int | None) -> bool:
    """Does this code say that something was refused or failed?"""
    if level is not None and level < LEVEL_50 and packet_type == CONNACK:
        return code != 0
    return code >= FAILURE
