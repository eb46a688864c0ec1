"""The quick path: messages and acknowledgements that are as they should be, which is nearly all of them.

In: frames of a connection whose level is known and on which nothing special waits. Out: the same rows as the full path
gives; a property test holds both together. It stops, before it changed anything, at the first packet that it leaves to
the full path.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.payloads import PAYLOAD_KINDS, payload_kind
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.handshake import COMPLETE, FIRST, STEP_TIMES, STEPS, Flight
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.output import Output
from wirewitness.dissectors.mqtt.packet_types import PUBACK, PUBCOMP, PUBREC, PUBREL, operation_name
from wirewitness.dissectors.mqtt.publish_rows import NO_REASON, NO_STEPS, NO_TAIL, add_landed, tail_of
from wirewitness.dissectors.mqtt.publishing import Publishing

# First bytes of a PUBLISH without DUP, of QoS 0 to 2.
_PUBLISHES = frozenset({0x30, 0x31, 0x32, 0x33, 0x34, 0x35})
# First byte of an acknowledgement without reason code -> packet type, name, role, is it from the sender of the PUBLISH.
_ACKNOWLEDGEMENTS = {
    packet_type << 4 | flags: (packet_type, operation_name(packet_type), role, packet_type == PUBREL)
    for packet_type, flags, role in (
        (PUBACK, 0, "response"),
        (PUBREC, 0, "response"),
        (PUBREL, 2, "request"),
        (PUBCOMP, 0, "response"),
    )
}


def take_ordinary(
    frames: Sequence[Frame], at: int, out: Output, connection: Connection, publishing: Publishing, limits: Limits
) -> int:
    """Decode frames from the one at `at` on. Gives where it stopped: behind the last one, or at an unusual one.

    Rows are written in line, in the order of MESSAGE_FIELDS and EXCHANGE_FIELDS: a call of core/rows.py would cost a
    tenth of all that a message costs here.
    """
    five = connection.level == LEVEL_50
    version, client_id = connection.version, connection.client_id
    topics, flights = publishing.topics.known, publishing.flights.of
    beside, early_ns = publishing.flights.beside, publishing.flights.early.latest_ns
    unreleased = publishing.flights.unreleased.of
    packet_limit, receive_maximum = connection.packet_limit, connection.receive_maximum
    most = limits.max_outstanding
    counts, published = connection.messages, connection.publishes
    last_ts, last_packet = connection.last_ts_ns, connection.last_packet
    exchanges, messages, publishes = out.exchanges, out.messages, out.publishes
    after = len(frames)
    while at < after:
        _, direction, data, start, end, offset, first, last, ts_ns, complete = frames[at]
        first_byte = data[start]
        length = end - start
        if not complete or length > packet_limit[direction]:
            return at
        if first_byte in _PUBLISHES:
            position = start + 2 if data[start + 1] < 0x80 else start + 3
            topic_start = position + 2
            if data[position - 1] >= 0x80 or topic_start > end:
                return at
            payload = topic_start + (data[position] << 8 | data[position + 1])
            known = topics.get(data[topic_start:payload])
            if known is None or known[1] or payload == topic_start:
                return at
            qos = first_byte >> 1 & 3
            identifier = None
            if qos:
                if payload + 2 > end:
                    return at
                identifier = data[payload] << 8 | data[payload + 1]
                payload += 2
                mine = flights[direction]
                waiting = len(mine) + beside[direction]
                if not identifier or identifier in mine or waiting >= most or waiting >= receive_maximum[direction]:
                    return at
                if ts_ns <= early_ns or identifier in unreleased[direction]:
                    return at
            if five:
                if payload >= end or data[payload]:
                    return at
                payload += 1
            if payload > end:
                return at
            published[direction] += 1
            size = end - payload
            if messages is not None:
                words = f"{known[2][qos]}{size} retain" if first_byte & 1 else f"{known[2][qos]}{size}"
                role = "request" if qos else "notification"
                messages.append(
                    (direction, offset, length, first, last, ts_ns, role, "PUBLISH", version, identifier, client_id,
                     True, None, words)
                )  # fmt: skip
            head = None
            tail = NO_TAIL
            if publishes is not None:
                raw = data[payload:end]
                head = (known[0], None, qos, first_byte & 1 == 1, False, identifier, size, zlib.crc32(raw),
                        PAYLOAD_KINDS[payload_kind(raw)], length)  # fmt: skip
                if publishing.shown_bytes is not None:
                    tail = tail_of({}, raw, publishing.shown_bytes)
            if identifier is not None:
                waiting += 1
                mine[identifier] = Flight(offset, length, last, ts_ns, FIRST[qos], head, tail, waiting)
                connection.max_in_flight[direction] = max(connection.max_in_flight[direction], waiting)
            else:
                if exchanges is not None:
                    exchanges.append(
                        (direction, offset, None, last, None, ts_ns, None, "PUBLISH", version, client_id, "one_way",
                         None, None, length, None, False, None)
                    )  # fmt: skip
                if head is not None and publishes is not None:
                    publishes.append(
                        (direction, offset, None, ts_ns, client_id, *head, "none", *NO_STEPS, None, *NO_REASON, version,
                         *tail, last, None)
                    )  # fmt: skip
        else:
            acknowledges = _ACKNOWLEDGEMENTS.get(first_byte) if length == 4 else None
            if acknowledges is None:
                return at
            packet_type, name, role, of_sender = acknowledges
            publisher = direction if of_sender else 1 - direction
            identifier = data[start + 2] << 8 | data[start + 3]
            flight = flights[publisher].get(identifier)
            following = None if flight is None else STEPS.get((flight.waits_for, packet_type))
            if flight is None or following is None or not identifier:
                return at
            if packet_type == PUBCOMP and (flight.ts_received is None or flight.ts_released is None):
                return at
            if messages is not None:
                messages.append(
                    (direction, offset, length, first, last, ts_ns, role, name, version, identifier, client_id,
                     True, None, None)
                )  # fmt: skip
            setattr(flight, STEP_TIMES[packet_type], ts_ns)
            flight.last_packet = last
            if five:
                flight.code, flight.code_of = 0, packet_type
            if following == COMPLETE:
                del flights[publisher][identifier]
                add_landed(out, connection, publisher, flight, COMPLETE, frames[at])
            else:
                flight.waits_for = following
        # What Connection.saw does, in line: a call costs a tenth of all.
        counts[direction] += 1
        if direction == CLIENT_TO_SERVER:
            before = last_ts[CLIENT_TO_SERVER] or 0
            if ts_ns - before > connection.silence_ns:
                connection.silence_ns, connection.silence_from = ts_ns - before, before
                connection.silence_packet = last_packet[CLIENT_TO_SERVER]
        last_ts[direction], last_packet[direction] = ts_ns, last
        at += 1
    return at
