"""What is known of one connection: what CONNECT, CONNACK and DISCONNECT said, and how it went.

In: read packets and counts. Out: the row of `mqtt_connections`, and the limits that both sides set each other.
"""

from __future__ import annotations

import json
from typing import Any

from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Row
from wirewitness.dissectors.core.secrets import masked_value
from wirewitness.dissectors.mqtt.framing import strict
from wirewitness.dissectors.mqtt.levels import BRIDGE_BIT, LEVEL_3X, LEVEL_31, LEVEL_50, LEVEL_311, VERSIONS
from wirewitness.dissectors.mqtt.packet_types import CONNACK, CONNECT, DISCONNECT, operation_name
from wirewitness.dissectors.mqtt.reason_codes import reason_name
from wirewitness.dissectors.mqtt.rows import CONNECTIONS
from wirewitness.dissectors.mqtt.walk import Walked, walk

# The protocol level of a connection whose CONNECT is not in the capture.


def evidence(data: bytes, start: int, end: int, direction: int) -> tuple[int, str] | None:
    """(level, what it is known from). 3.1 and 3.1.1 differ in CONNECT only, so without it they stay one."""
    packet_type = data[start] >> 4
    if packet_type == CONNECT:
        level = walk(data, start, end, None).level
        return None if level is None else (level, "connect")
    name = operation_name(packet_type)
    newer, older = (strict(data, start, end, direction, level) for level in (LEVEL_50, LEVEL_311))
    if newer is not None and older is None:
        return LEVEL_50, f"{name} that fits 5.0 only"
    if older is not None and newer is None:
        return LEVEL_3X, f"3.1 or 3.1.1: {name} that does not fit 5.0"
    if newer is not None and newer.properties:
        return LEVEL_50, f"{name} with properties of 5.0"
    return None


_FIELDS = CONNECTIONS.names
_NS_PER_MS = 1e6
DEFAULT_RECEIVE_MAXIMUM = 65_535
NO_LIMIT = 1 << 62
_SIDES = ("client", "server")

# Columns that a property of CONNECT or CONNACK fills.
_OF_CONNECT = {
    "session_expiry_s": "session_expiry_interval",
    "maximum_packet_size_bytes": "maximum_packet_size",
    "authentication_method": "authentication_method",
}
_OF_CONNACK = {
    "server_keep_alive_s": "server_keep_alive",
    "server_session_expiry_s": "session_expiry_interval",
    "server_maximum_packet_size_bytes": "maximum_packet_size",
    "reason_string": "reason_string",
    "server_reference": "server_reference",
    "response_information": "response_information",
}
_AVAILABLE = {
    "retain_available": "retain_available",
    "wildcard_subscription_available": "wildcard_subscription_available",
    "subscription_identifiers_available": "subscription_identifier_available",
    "shared_subscription_available": "shared_subscription_available",
}


def user_properties(properties: dict[str, Any]) -> str | None:
    """User properties as JSON; None without any."""
    pairs = properties.get("user_property")
    shown = [[name, masked_value(name, value)] for name, value in pairs or ()]
    return json.dumps(shown, ensure_ascii=False) if shown else None


class Connection:
    """The facts of a connection while it is read. Lists with two elements: of the client, of the server."""

    __slots__ = (
        "_facts",
        "clean_start",
        "client_id",
        "first_packet",
        "first_ts_ns",
        "last_packet",
        "last_ts_ns",
        "level",
        "lossy",
        "max_in_flight",
        "maximum_qos",
        "messages",
        "packet_limit",
        "publishes",
        "receive_maximum",
        "restricted",
        "retain_available",
        "session_present",
        "silence_from",
        "silence_ns",
        "silence_packet",
        "topic_alias_maximum",
        "version",
        "version_source",
        "whole",
    )

    def __init__(self, transport: str, whole: bool) -> None:
        """whole: both streams are seen from their first byte."""
        self._facts: dict[str, Any] = dict.fromkeys(_FIELDS)
        self._facts.update(transport=transport, connect_seen=False, authentications=0, pings=0, pings_unanswered=0)
        self.whole = whole
        self.lossy = False
        self.level: int | None = None
        self.version: str | None = None
        self.client_id: str | None = None
        self.clean_start: bool | None = None
        self.session_present: bool | None = None
        self.first_ts_ns: int | None = None
        self.first_packet: int | None = None
        self.last_ts_ns: list[int | None] = [None, None]
        self.last_packet: list[int | None] = [None, None]
        self.messages = [0, 0]
        self.publishes = [0, 0]
        self.max_in_flight = [0, 0]
        # What each side may send, as the other one said.
        self.receive_maximum = [NO_LIMIT, NO_LIMIT]
        self.packet_limit = [NO_LIMIT, NO_LIMIT]
        self.topic_alias_maximum: list[int | None] = [None, None]
        self.maximum_qos = 2
        self.retain_available = True
        self.restricted = False
        self.silence_ns = -1
        self.silence_from: int | None = None
        self.silence_packet: int | None = None
        self.version_source: str | None = None

    @property
    def all_seen(self) -> bool:
        """Was everything seen that went over this connection so far?"""
        return self.whole and not self.lossy

    def at_level(self, level: int, source: str) -> None:
        """The protocol level is known now."""
        self.level, self.version, self.version_source = level, VERSIONS.get(level), source

    def saw(self, direction: int, ts_ns: int, packet: int) -> None:
        """One more message of this direction."""
        self.messages[direction] += 1
        if direction == CLIENT_TO_SERVER:
            before = self.last_ts_ns[0]
            if before is not None and ts_ns - before > self.silence_ns:
                self.silence_ns, self.silence_from, self.silence_packet = ts_ns - before, before, self.last_packet[0]
        self.last_ts_ns[direction] = ts_ns
        self.last_packet[direction] = packet

    def began(self, ts_ns: int, packet: int) -> None:
        """The first message of either side."""
        self.first_ts_ns, self.first_packet = ts_ns, packet
        self._facts.update(ts=ts_ns, packet=packet)

    def note(self, **facts: Any) -> None:
        """Facts that the decoder tells itself."""
        self._facts.update(facts)

    def count(self, fact: str, more: int = 1) -> None:
        """So many more of something."""
        self._facts[fact] += more

    def connect(self, found: Walked, offset: int, ts_ns: int, packet: int) -> None:
        """CONNECT was read; as much of it as is there."""
        value, properties = found.value, found.properties
        flags = value.get("connect_flags", {})
        level = value.get("protocol_level")
        will = value.get("will_properties") or {}
        payload = value.get("will_payload")
        self.client_id = value.get("client_id") or None
        self.clean_start = bool(flags["clean_start"]) if flags else None
        with_will = bool(flags.get("will"))
        self._facts.update(
            request_offset=offset,
            ts=ts_ns,
            packet=packet,
            connect_seen=True,
            protocol_name=value.get("protocol_name"),
            protocol_level=None if level is None else level & ~BRIDGE_BIT,
            bridge=None if level is None else bool(level & BRIDGE_BIT),
            clean_start=self.clean_start,
            keep_alive_s=value.get("keep_alive"),
            user_name=value.get("user_name"),
            password_given=bool(flags["password"]) if flags else None,
            will_topic=value.get("will_topic"),
            will_qos=flags["will_qos"] if with_will else None,
            will_retain=bool(flags["will_retain"]) if with_will else None,
            will_payload_bytes=None if payload is None else len(payload),
            will_delay_s=will.get("will_delay_interval"),
            user_properties=user_properties(properties),
            **{column: properties.get(name) for column, name in _OF_CONNECT.items()},
        )
        if found.level == LEVEL_50 and "properties" in value:
            self._limits(SERVER_TO_CLIENT, properties, "")

    def connack(self, found: Walked, offset: int | None, ts_ns: int, packet: int) -> None:
        """CONNACK was read."""
        value, properties, level = found.value, found.properties, found.level
        code = value.get("reason_code")
        flags = value.get("acknowledge_flags")
        if flags is not None and level != LEVEL_31:
            self.session_present = bool(flags & 1)
        assigned = properties.get("assigned_client_identifier")
        if assigned:
            self.client_id = assigned
        self._facts.update(
            response_offset=offset,
            ts_response=ts_ns,
            response_packet=packet,
            session_present=self.session_present,
            client_id_assigned=None if level is None else bool(assigned),
            error_code=code,
            error_name=None if code is None else reason_name(CONNACK, code, level),
            **{column: properties.get(name) for column, name in _OF_CONNACK.items()},
        )
        if level == LEVEL_50 and "properties" in value:
            self._limits(CLIENT_TO_SERVER, properties, "server_")
            self.maximum_qos = properties.get("maximum_qos", 2)
            available = {column: bool(properties.get(name, 1)) for column, name in _AVAILABLE.items()}
            self.retain_available = available["retain_available"]
            self.restricted = self.maximum_qos < 2 or not self.retain_available
            self._facts.update(available, maximum_qos=self.maximum_qos)

    def _limits(self, sender: int, properties: dict[str, Any], prefix: str) -> None:
        """What one side takes limits the sender. Defaults: MQTT 5.0 sections 3.1.2.11 and 3.2.2.3."""
        receive_maximum = properties.get("receive_maximum", DEFAULT_RECEIVE_MAXIMUM)
        alias_maximum = properties.get("topic_alias_maximum", 0)
        self.receive_maximum[sender] = receive_maximum
        self.topic_alias_maximum[sender] = alias_maximum
        self.packet_limit[sender] = properties.get("maximum_packet_size", NO_LIMIT)
        self._facts[f"{prefix}receive_maximum"] = receive_maximum
        self._facts[f"{prefix}topic_alias_maximum"] = alias_maximum

    def disconnect(self, found: Walked, direction: int, ts_ns: int, packet: int) -> None:
        """DISCONNECT was read; the first one counts."""
        if self._facts["disconnected_by"] is not None:
            return
        code = found.value.get("reason_code", 0)
        self._facts.update(
            disconnected_by=_SIDES[direction],
            ts_disconnect=ts_ns,
            disconnect_packet=packet,
            disconnect_reason_code=code,
            disconnect_reason_name=reason_name(DISCONNECT, code, found.level),
            disconnect_reason_string=found.properties.get("reason_string"),
        )

    def row(self) -> Row:
        """The row of `mqtt_connections`."""
        ends = [ts_ns for ts_ns in self.last_ts_ns if ts_ns is not None]
        silent = self.silence_ns >= 0
        self._facts.update(
            ts_end=max(ends, default=None),
            client_id=self.client_id,
            version=self.version,
            version_source=self.version_source,
            ts_last_from_client=self.last_ts_ns[0],
            last_client_packet=self.last_packet[0],
            client_silence_ms=self.silence_ns / _NS_PER_MS if silent else None,
            client_silence_from=self.silence_from,
            client_silence_packet=self.silence_packet,
            client_messages=self.messages[0],
            server_messages=self.messages[1],
            publishes_from_client=self.publishes[0],
            publishes_from_server=self.publishes[1],
            max_in_flight_from_client=self.max_in_flight[0],
            max_in_flight_from_server=self.max_in_flight[1],
        )
        return tuple(self._facts[name] for name in _FIELDS)
