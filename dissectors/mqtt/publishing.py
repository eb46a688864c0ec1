"""PUBLISH and its acknowledgements on one connection, in both directions.

In: frames. Out: rows of messages, exchanges and publishes. Messages of QoS 1 and 2 are kept by direction and packet
identifier until their handshake is over; topic aliases are kept by direction.
"""

from __future__ import annotations

import zlib
from typing import Any

from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, Frame
from dissectors.core.options import DecodeOptions
from dissectors.core.rows import exchange_row
from dissectors.mqtt.connection import Connection, user_properties
from dissectors.mqtt.early import Early, EarlyAnswer
from dissectors.mqtt.handshake import (
    BEFORE_PUBCOMP,
    COMPLETE,
    FIRST,
    LEAPS,
    REFUSING,
    REPEATS,
    STEP_TIMES,
    STEPS,
    Flight,
)
from dissectors.mqtt.levels import LEVEL_50
from dissectors.mqtt.output import ORPHAN, Output, add_message, answered, orphan, unanswered
from dissectors.mqtt.packet_types import PUBACK, PUBCOMP, PUBREC, PUBREL, operation_name
from dissectors.mqtt.payload import shown
from dissectors.mqtt.reason_codes import FAILURE, reason_name
from dissectors.mqtt.remarks import Remarks
from dissectors.mqtt.subscriptions import Asked, answered_by, asked_by
from dissectors.mqtt.text import string, topic_problems
from dissectors.mqtt.walk import Walked

_NS_PER_MS = 1e6
# message_expiry_s to payload_encoding of `mqtt_publishes`.
NO_TAIL = (None,) * 9
# completed_ms to ts_completed, in_flight, reason_code to reason_string.
NO_STEPS = (None,) * 5
NO_REASON = (None,) * 3
_TOPIC_PROBLEMS = {
    "wildcard_in_topic": "holds a wildcard",
    "invalid_utf8": "holds bytes that are no UTF-8",
    "null_character": "holds U+0000",
    "control_character": "holds control characters or non-characters",
}
# Topic names that need not be read and judged again.
_MAX_CACHED, _MAX_CACHED_BYTES = 10_000, 1 << 20
NO_PROPERTIES: dict[str, Any] = {}

# A topic name, the rules that it breaks, and how the summary of a message of QoS 0, 1 and 2 begins.
Topic = tuple[str, tuple[str, ...], tuple[str, ...]]


def topic_of(text: str, problems: tuple[str, ...]) -> Topic:
    """What is remembered of a topic name."""
    prefixes = tuple(f"topic={text} qos={qos} payload_bytes=" for qos in range(3))
    return text, problems + topic_problems(text), prefixes


class Publishing:
    """What is in flight on one connection."""

    __slots__ = (
        "_alias_bytes",
        "_aliases",
        "_connection",
        "_limits",
        "_released",
        "_remarks",
        "_topic_bytes",
        "early",
        "flights",
        "shows_payload",
        "topics",
    )

    def __init__(self, limits: Limits, options: DecodeOptions, connection: Connection, remarks: Remarks) -> None:
        self._limits = limits
        self.shows_payload = options.payload
        self._connection = connection
        self._remarks = remarks
        # By packet identifier, of the client's and of the server's messages.
        self.flights: tuple[dict[int, Flight], dict[int, Flight]] = ({}, {})
        # PUBREL without a PUBLISH on this connection, which wait for PUBCOMP.
        self._released: tuple[dict[int, Asked], dict[int, Asked]] = ({}, {})
        self.early = Early(limits)
        self._aliases: tuple[dict[int, str], dict[int, str]] = ({}, {})
        self._alias_bytes = 0
        self.topics: dict[bytes, Topic] = {}
        self._topic_bytes = 0

    def topic(self, raw: bytes) -> Topic:
        """The text of a topic name and the rules it breaks, remembered for the next PUBLISH."""
        known = self.topics.get(raw)
        if known is None:
            text, problems = string(raw)
            known = topic_of(text, problems)
            self._topic_bytes += len(raw)
            if self._topic_bytes > _MAX_CACHED_BYTES or len(self.topics) >= _MAX_CACHED:
                self.topics.clear()
                self._topic_bytes = len(raw)
            self.topics[raw] = known
        return known

    def uses(self, direction: int, identifier: int) -> bool:
        """Is a message of this direction in flight with this packet identifier?"""
        return identifier in self.flights[direction]

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
        _, direction, data, start, end, offset, _, last, ts_ns, complete = frame
        connection = self._connection
        level = connection.level
        connection.publishes[direction] += 1
        flags = data[start] & 15
        qos = flags >> 1 & 3
        topic: str | None = topic_name[0]
        alias = None
        if level == LEVEL_50 and (not topic or "topic_alias" in properties):
            alias = properties.get("topic_alias")
            topic = self._resolved(frame, out, topic, alias) if error is None or topic else None
        elif not topic:
            topic = None
            if error is None and level is not None:
                self._remarks.add(frame, out, "empty_topic", "PUBLISH without a topic name")
        if topic_name[1] or flags & 14 == 8 or qos == 3 or identifier == 0:
            self._publish_problems(frame, out, topic_name[1], identifier)
        if direction == CLIENT_TO_SERVER and connection.restricted:
            self._server_limits(frame, out, qos)
        if "subscription_identifier" in properties and direction == CLIENT_TO_SERVER:
            text = "the client sends a subscription identifier"
            self._remarks.add(frame, out, "subscription_identifier_from_client", text)
        # At an unknown level nobody can tell where the payload begins.
        size = None if payload is None or level is None else payload[1] - payload[0]
        if out.messages is not None:
            words = f"topic={topic} qos={qos}" if size is None else f"topic={topic} qos={qos} payload_bytes={size}"
            if flags & 9:
                words += (" dup" if flags & 8 else "") + (" retain" if flags & 1 else "")
            add_message(
                out, frame, connection, "request" if qos else "notification", "PUBLISH", identifier, error, words
            )
        tail: tuple[Any, ...] = NO_TAIL
        crc = None
        if out.publishes is not None and payload is not None and size is not None and complete:
            raw = data[payload[0] : payload[1]]
            crc = zlib.crc32(raw)
            if properties or self.shows_payload:
                tail = self.tail(properties, raw)
        length = end - start
        head = (topic, alias, qos, flags & 1 == 1, flags & 8 == 8, identifier, size, crc, length)
        if 0 < qos < 3 and identifier is not None:
            self._take_off(frame, out, identifier, head, tail, qos)
            return
        if out.exchanges is not None:
            out.exchanges.append(
                exchange_row(
                    direction=direction,
                    request_offset=offset,
                    request_packet=last,
                    request_bytes=length,
                    ts=ts_ns,
                    operation="PUBLISH",
                    version=connection.version,
                    client_id=connection.client_id,
                    status="unanswered" if qos else "one_way",
                )
            )
        if out.publishes is not None:
            handshake = None if qos == 3 else f"no_{FIRST[qos]}" if qos else "none"
            sent = (direction, offset, None, ts_ns, connection.client_id)
            what = (*head, handshake, *NO_STEPS, None, *NO_REASON, connection.version)
            out.publishes.append((*sent, *what, *tail, last, None))

    def acknowledged(
        self,
        frame: Frame,
        out: Output,
        packet_type: int,
        identifier: int | None,
        found: Walked | None = None,
        error: str | None = None,
        final: bool = False,
    ) -> None:
        """PUBACK, PUBREC, PUBREL or PUBCOMP was read. found: None for the shortest form, which says success.

        final: its PUBLISH is not waited for any more.
        """
        direction, last, ts_ns = frame.direction, frame.packet_last, frame.ts_ns
        code = 0 if found is None else found.value.get("reason_code", 0)
        publisher = direction if packet_type == PUBREL else 1 - direction
        flights = self.flights[publisher]
        flight = None if identifier is None else flights.get(identifier)
        if flight is None and identifier and not final and not self._is_expected(packet_type, publisher, identifier):
            gone = self.early.hold((publisher, packet_type, identifier), frame, found, error)
            if gone:
                self._remarks.limit(frame, out, "early_responses")
                self._lost(gone, out)
            return
        if out.messages is not None:
            self._acknowledgement_message(frame, out, packet_type, identifier, code, flight is not None, error)
        if identifier is None:
            return
        if identifier == 0:
            text = f"{operation_name(packet_type)} with packet identifier 0"
            self._remarks.add(frame, out, "packet_identifier_zero", text)
        if flight is None:
            self._unknown(frame, out, packet_type, identifier, code)
            return
        following = STEPS.get((flight.waits_for, packet_type))
        if following is None:
            following = self._out_of_turn(frame, out, packet_type, identifier, flight)
            if following is None:
                return
        setattr(flight, STEP_TIMES[packet_type], ts_ns)
        flight.last_packet = last
        if self._connection.level == LEVEL_50:
            flight.code, flight.code_of = code, packet_type
            if found is not None and found.properties:
                flight.reason_string = found.properties.get("reason_string")
        refused = code >= FAILURE and packet_type in REFUSING
        if following == COMPLETE or refused:
            del flights[identifier]
            answer = (frame.stream_offset, frame.size, last, ts_ns)
            if packet_type == PUBCOMP:
                self._missing_steps(frame, out, identifier, flight)
            self.landed(publisher, flight, "refused" if refused else COMPLETE, answer, out)
        else:
            flight.waits_for = following

    def finish(self, out: Output) -> None:
        """Give what is still in flight."""
        self._lost(self.early.rest(), out)
        for direction, (flights, released) in enumerate(zip(self.flights, self._released, strict=True)):
            for flight in flights.values():
                self.landed(direction, flight, f"no_{flight.waits_for}", None, out)
            flights.clear()
            for asked in released.values():
                unanswered(out, self._connection, direction, asked)
            released.clear()

    def _is_expected(self, packet_type: int, publisher: int, identifier: int) -> bool:
        """Can this acknowledgement come without its PUBLISH: as a step of a message of an earlier connection?"""
        return packet_type == PUBREL or (packet_type == PUBCOMP and identifier in self._released[publisher])

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

    def _server_limits(self, frame: Frame, out: Output, qos: int) -> None:
        """What the server does not take, said in CONNACK."""
        connection = self._connection
        if connection.maximum_qos < qos < 3:
            self._remarks.add(frame, out, "qos_above_maximum", f"QoS {qos}, the server takes {connection.maximum_qos}")
        if frame.data[frame.start] & 1 and not connection.retain_available:
            self._remarks.add(frame, out, "retain_not_available", "RETAIN is set, the server keeps no messages")

    def _resolved(self, frame: Frame, out: Output, topic: str | None, alias: int | None) -> str | None:
        """The topic that a PUBLISH of 5.0 means, by its alias where it has none itself."""
        direction = frame.direction
        aliases = self._aliases[direction]
        add = self._remarks.add
        if alias is None:
            add(frame, out, "empty_topic", "PUBLISH with neither topic name nor topic alias")
            return None
        if alias == 0:
            add(frame, out, "topic_alias_zero", "topic alias 0")
            return topic or None
        maximum = self._connection.topic_alias_maximum[direction]
        if maximum is not None and alias > maximum:
            add(frame, out, "topic_alias_too_high", f"topic alias {alias}, the other side takes {maximum}")
        if not topic:
            if alias not in aliases:
                code = "topic_alias_unknown" if self._connection.all_seen else "topic_alias_not_seen"
                add(frame, out, code, f"topic alias {alias} stands for no topic that was sent")
            return aliases.get(alias)
        self._alias_bytes += len(topic) - len(aliases.pop(alias, ""))
        if self._alias_bytes > self._limits.max_topic_bytes:
            self._alias_bytes -= len(topic)
            self._remarks.limit(frame, out, "topic_aliases")
        else:
            aliases[alias] = topic
        return topic

    def tail(self, properties: dict[str, Any], raw: bytes) -> tuple[Any, ...]:
        """message_expiry_s to payload_encoding of `mqtt_publishes`."""
        correlation = properties.get("correlation_data")
        text, encoding = shown(raw, self._limits.max_payload_bytes) if self.shows_payload else (None, None)
        return (
            properties.get("message_expiry_interval"),
            properties.get("payload_format_indicator"),
            properties.get("content_type"),
            properties.get("response_topic"),
            None if correlation is None else len(correlation),
            properties.get("subscription_identifier"),
            user_properties(properties),
            text,
            encoding,
        )

    def _take_off(
        self, frame: Frame, out: Output, identifier: int, head: tuple[Any, ...], tail: tuple[Any, ...], qos: int
    ) -> None:
        """A PUBLISH that wants an acknowledgement is in flight from now on."""
        _, direction, _, start, end, offset, _, last, ts_ns, _ = frame
        connection = self._connection
        flights = self.flights[direction]
        before = flights.pop(identifier, None)
        first_offset = None if before is None else self._again(frame, out, identifier, before)
        heard = connection.messages[1 - direction] > 0
        if len(flights) >= (self._limits.max_outstanding if heard else self._limits.max_unheard):
            flight = flights.pop(next(iter(flights)))
            self.landed(direction, flight, f"no_{flight.waits_for}", None, out)
            self._remarks.limit(frame, out, "outstanding_requests" if heard else "unheard_requests")
        in_flight = len(flights) + 1
        flights[identifier] = Flight(offset, end - start, last, ts_ns, FIRST[qos], head, tail, in_flight, first_offset)
        connection.max_in_flight[direction] = max(connection.max_in_flight[direction], in_flight)
        if in_flight > connection.receive_maximum[direction]:
            text = f"{in_flight} messages in flight, {connection.receive_maximum[direction]} are allowed"
            self._remarks.add(frame, out, "receive_maximum_exceeded", text)
        if self.early:
            for early in self.early.take(direction, ACKNOWLEDGEMENTS, identifier, ts_ns):
                self.acknowledged(early.frame, out, early.key[1], identifier, early.found, early.error)

    def _again(self, frame: Frame, out: Output, identifier: int, before: Flight) -> int | None:
        """A PUBLISH with an identifier that is in flight: the offset of the first one when it is sent again."""
        direction, resent = frame.direction, frame.data[frame.start] & 8
        self.landed(direction, before, "resent" if resent else "replaced", None, out)
        if resent:
            code = "resent_on_connection" if self._connection.level == LEVEL_50 else "resent"
            self._remarks.add(frame, out, code, f"PUBLISH {identifier} is sent again on its connection")
            return before.offset if before.first_offset is None else before.first_offset
        text = f"packet identifier {identifier} is used again before {before.waits_for.upper()} came"
        self._remarks.add(frame, out, "packet_identifier_in_use", text)
        return None

    def _acknowledgement_message(
        self, frame: Frame, out: Output, packet_type: int, identifier: int | None, code: int, known: bool,
        error: str | None,
    ) -> None:  # fmt: skip
        connection = self._connection
        words = None
        if code:
            words = f"reason={code} {reason_name(packet_type, code, connection.level) or ''}".rstrip()
        role = "response"
        if packet_type == PUBREL:
            role = "request"
        elif not known and error is None and identifier not in self._released[1 - frame.direction]:
            error = ORPHAN
        add_message(out, frame, connection, role, operation_name(packet_type), identifier, error, words)

    def _lost(self, answers: list[EarlyAnswer], out: Output) -> None:
        """Acknowledgements whose PUBLISH is not in the capture."""
        for (_, packet_type, identifier), frame, found, error in answers:
            self.acknowledged(frame, out, packet_type, identifier, found, error, final=True)

    def _out_of_turn(self, frame: Frame, out: Output, packet_type: int, identifier: int, flight: Flight) -> str | None:
        """What follows when another packet comes than the one waited for; None: nothing changes."""
        name = operation_name(packet_type)
        step = (flight.waits_for, packet_type)
        if step in LEAPS:  # the step between may be read later, see `early.py`
            return LEAPS[step]
        time = STEP_TIMES[packet_type]
        if step in REPEATS and getattr(flight, time) is None:
            setattr(flight, time, frame.ts_ns)
        elif step in REPEATS:
            self._remarks.add(frame, out, "repeated_ack", f"{name} {identifier} comes again")
        else:
            text = f"{name} {identifier} comes while {flight.waits_for.upper()} is waited for"
            self._remarks.add(frame, out, "unexpected_ack", text)
        return None

    def _missing_steps(self, frame: Frame, out: Output, identifier: int, flight: Flight) -> None:
        for time, name in BEFORE_PUBCOMP.items():
            if getattr(flight, time) is None:
                text = f"PUBCOMP {identifier} although no {name} was seen"
                self._remarks.unpaired(frame, out, "unexpected_ack", text)

    def _unknown(self, frame: Frame, out: Output, packet_type: int, identifier: int, code: int) -> None:
        """One without its PUBLISH: of an earlier connection, or lost. PUBREL asks for PUBCOMP in any case."""
        direction = frame.direction
        released = self._released[1 - direction]
        if packet_type == PUBCOMP and identifier in released:
            asked = released.pop(identifier)
            answered(out, self._connection, 1 - direction, asked, answered_by(frame, PUBCOMP), code)
            return
        text = f"{operation_name(packet_type)} {identifier} without its PUBLISH"
        self._remarks.unpaired(frame, out, "ack_without_publish", text)
        if packet_type != PUBREL:
            orphan(out, self._connection, frame, "PUBLISH", packet_type, code)
            return
        mine = self._released[direction]
        unanswered(out, self._connection, direction, mine.pop(identifier, None))
        if len(mine) >= self._limits.max_unheard:
            unanswered(out, self._connection, direction, mine.pop(next(iter(mine))))
        mine[identifier] = asked_by(frame, PUBREL, identifier)

    def landed(
        self, direction: int, flight: Flight, handshake: str, answer: tuple[int, int, int, int] | None, out: Output
    ) -> None:
        """A PUBLISH of QoS 1 or 2 is over. answer: offset, length, packet and time of what ended it."""
        if out.exchanges is None and out.publishes is None:
            return
        connection = self._connection
        sent, code = flight.ts_ns, flight.code
        reason = None if code is None else reason_name(flight.code_of, code, connection.level)
        offset = length = packet = ended = completed_ms = error_code = None
        status = "unanswered"
        if answer is not None:
            offset, length, packet, ended = answer
            completed_ms = (ended - sent) / _NS_PER_MS
            status, error_code = ("error", code) if handshake == "refused" else ("ok", 0)
        if out.exchanges is not None:
            out.exchanges.append(
                exchange_row(
                    direction=direction,
                    request_offset=flight.offset,
                    request_packet=flight.packet,
                    request_bytes=flight.length,
                    ts=sent,
                    response_offset=offset,
                    response_packet=packet,
                    response_bytes=length,
                    ts_response=ended,
                    operation="PUBLISH",
                    version=connection.version,
                    client_id=connection.client_id,
                    status=status,
                    error_code=error_code,
                    error_name=None if answer is None else reason,
                )
            )
        if out.publishes is not None:
            out.publishes.append(
                (
                    direction,
                    flight.offset,
                    flight.first_offset,
                    sent,
                    connection.client_id,
                    *(flight.head or ()),
                    handshake,
                    completed_ms,
                    flight.ts_acknowledged,
                    flight.ts_received,
                    flight.ts_released,
                    flight.ts_completed,
                    flight.in_flight,
                    code,
                    reason,
                    flight.reason_string,
                    connection.version,
                    *flight.tail,
                    flight.packet,
                    flight.last_packet,
                )
            )


ACKNOWLEDGEMENTS = frozenset({PUBACK, PUBREC, PUBREL, PUBCOMP})
