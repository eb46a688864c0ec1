"""PUBLISH packets of one connection, in both directions.

In: packets that were read. Out: rows of messages, and of exchanges and publishes where nothing can answer them; what
wants an acknowledgement is in flight from then on, see `inflight.py`.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.payloads import PAYLOAD_KINDS, payload_kind
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.handshake import FIRST
from wirewitness.dissectors.mqtt.inflight import Flights
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.output import Output, add_message
from wirewitness.dissectors.mqtt.publish_rows import NO_TAIL, add_at_once, tail_of
from wirewitness.dissectors.mqtt.remarks import Remarks
from wirewitness.dissectors.mqtt.summary import publish_summary
from wirewitness.dissectors.mqtt.topics import Topic, Topics

# The quick reader of PUBLISH, the packet that fills captures: positions only, nothing is judged.
#
# In: the bytes of one whole packet. Out: where its parts are, or None where anything is unusual: then `walk` reads
# it.


class Parts(NamedTuple):
    """Positions in the data. properties_start: behind the property length; payload_start where there are none."""

    topic_start: int
    topic_end: int
    packet_identifier: int | None
    properties_start: int
    payload_start: int


# The same as a plain tuple: making a named one costs as much as all the rest.
PlainParts = tuple[int, int, int | None, int, int]


def publish_parts(data: bytes, start: int, end: int, five: bool) -> PlainParts | None:
    """The parts of the PUBLISH that is exactly data[start:end]; `five`: it has properties. In the order of Parts."""
    position = start + 2
    if data[start + 1] & 0x80:
        while position < end and data[position - 1] & 0x80:  # an impossible header may end with the stream
            position += 1
    topic = position + 2
    if topic > end:
        return None
    topic_end = topic + (data[position] << 8 | data[position + 1])
    payload = topic_end
    identifier = None
    if data[start] & 6:
        payload += 2
        if payload > end:
            return None
        identifier = data[topic_end] << 8 | data[topic_end + 1]
    elif payload > end:
        return None
    properties = payload
    if five:
        if payload >= end or data[payload] & 0x80:  # long property sections are rare
            return None
        properties = payload + 1
        payload = properties + data[payload]
        if payload > end:
            return None
    return topic, topic_end, identifier, properties, payload


_TOPIC_PROBLEMS = {
    "wildcard_in_topic": "holds a wildcard",
    "invalid_utf8": "holds bytes that are no UTF-8",
    "null_character": "holds U+0000",
    "control_character": "holds control characters or non-characters",
}
NO_PROPERTIES: dict[str, Any] = {}


class Publishing:
    """topics: names and aliases; flights: what waits for acknowledgements. shown_bytes: of a payload, None for none."""

    __slots__ = ("_connection", "_remarks", "flights", "shown_bytes", "topics")

    def __init__(self, limits: Limits, options: DecodeOptions, connection: Connection, remarks: Remarks) -> None:
        self._connection = connection
        self._remarks = remarks
        self.shown_bytes = limits.max_payload_bytes if options.payload else None
        self.topics = Topics(limits, connection, remarks)
        self.flights = Flights(limits, connection, remarks)

    def published(
        self,
        frame: Frame,
        out: Output,
        topic_name: Topic,
        identifier: int | None,
        properties: dict[str, Any],
        payload: tuple[int, int] | None,
        error: str | None,
    ) -> None:
        """A PUBLISH was read. payload: where it is; its end may lie behind the bytes that are there."""
        _, direction, data, start, end, *_ = frame
        connection = self._connection
        connection.publishes[direction] += 1
        flags = data[start] & 15
        qos = flags >> 1 & 3
        topic, alias = self._meant(frame, out, topic_name[0], properties, error)
        if topic_name[1] or flags & 14 == 8 or qos == 3 or identifier == 0:
            self._publish_problems(frame, out, topic_name[1], identifier)
        if direction == CLIENT_TO_SERVER and (connection.restricted or properties):
            self._client_problems(frame, out, qos, properties)
        # At an unknown level nobody can tell where the payload begins.
        size = None if payload is None or connection.level is None else payload[1] - payload[0]
        if out.messages is not None:
            role = "request" if qos else "notification"
            words = publish_summary(topic, flags, size)
            add_message(out, frame, connection, role, "PUBLISH", identifier, error, words)
        tail: tuple[Any, ...] = NO_TAIL
        crc = kind = None
        if out.publishes is not None and payload is not None and size is not None and frame.complete:
            raw = data[payload[0] : payload[1]]
            crc, kind = zlib.crc32(raw), PAYLOAD_KINDS[payload_kind(raw)]
            if properties or self.shown_bytes is not None:
                tail = tail_of(properties, raw, self.shown_bytes)
        head = (topic, alias, qos, flags & 1 == 1, flags & 8 == 8, identifier, size, crc, kind, end - start)
        if 0 < qos < 3 and identifier is not None:
            self.flights.take_off(frame, out, identifier, head, tail, qos)
        else:
            handshake = None if qos == 3 else f"no_{FIRST[qos]}" if qos else "none"
            add_at_once(out, connection, frame, "unanswered" if qos else "one_way", handshake, head, tail)

    def _meant(
        self, frame: Frame, out: Output, named: str, properties: dict[str, Any], error: str | None
    ) -> tuple[str | None, int | None]:
        """The topic that a PUBLISH means, and the alias that it has; None where nothing tells."""
        level = self._connection.level
        if level == LEVEL_50 and (not named or "topic_alias" in properties):
            alias = properties.get("topic_alias")
            return self.topics.resolved(frame, out, named, alias) if error is None or named else None, alias
        if not named and error is None and level is not None:
            self._remarks.add(frame, out, "empty_topic", "PUBLISH without a topic name")
        return named or None, None

    def _publish_problems(self, frame: Frame, out: Output, of_topic: tuple[str, ...], identifier: int | None) -> None:
        flags = frame.data[frame.start] & 15
        for code in of_topic:
            self._remarks.add(frame, out, code, f"the topic name {_TOPIC_PROBLEMS[code]}")
        if flags & 14 == 8:
            self._remarks.add(frame, out, "dup_on_qos_0", "PUBLISH with DUP and QoS 0")
        if flags & 6 == 6:
            self._remarks.add(frame, out, "invalid_qos", "PUBLISH with QoS 3")
        elif identifier == 0:
            self._remarks.add(frame, out, "packet_identifier_zero", "PUBLISH with packet identifier 0")

    def _client_problems(self, frame: Frame, out: Output, qos: int, properties: dict[str, Any]) -> None:
        """What a client must not send: at all, or because the server said so in CONNACK."""
        connection = self._connection
        if connection.maximum_qos < qos < 3:
            self._remarks.add(frame, out, "qos_above_maximum", f"QoS {qos}, the server takes {connection.maximum_qos}")
        if frame.data[frame.start] & 1 and not connection.retain_available:
            self._remarks.add(frame, out, "retain_not_available", "RETAIN is set, the server keeps no messages")
        if "subscription_identifier" in properties:
            text = "the client sends a subscription identifier"
            self._remarks.add(frame, out, "subscription_identifier_from_client", text)
