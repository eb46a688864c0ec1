"""Rows of messages that were published: their exchanges, and `mqtt_publishes`.

In: a PUBLISH and what became of it. Out: rows, where somebody wants them.
"""

from __future__ import annotations

from typing import Any

from wirewitness.dissectors.core.model import Frame, Row
from wirewitness.dissectors.core.rows import exchange_row
from wirewitness.dissectors.mqtt.connection import Connection, user_properties
from wirewitness.dissectors.mqtt.handshake import Flight
from wirewitness.dissectors.mqtt.output import Output
from wirewitness.dissectors.mqtt.reason_codes import reason_name

# Payloads as text for tables. In: bytes. Out: text and how it is written.


def shown(raw: bytes, most: int) -> tuple[str, str]:
    """(text, encoding): utf8, or hex where it is none; utf8_cut and hex_cut for the first `most` bytes of more."""
    cut = "_cut" if len(raw) > most else ""
    raw = raw[:most]
    try:
        return raw.decode("utf-8"), f"utf8{cut}"
    except UnicodeDecodeError as error:
        if cut and error.reason == "unexpected end of data":  # cut inside a character
            return raw[: error.start].decode("utf-8"), f"utf8{cut}"
    return raw.hex(), f"hex{cut}"


_NS_PER_MS = 1e6
# message_expiry_s to payload_encoding of `mqtt_publishes`.
NO_TAIL = (None,) * 9
# completed_ms to ts_completed, in_flight, reason_code to reason_string.
NO_STEPS = (None,) * 5
NO_REASON = (None,) * 3


def tail_of(properties: dict[str, Any], raw: bytes, most: int | None) -> tuple[Any, ...]:
    """message_expiry_s to payload_encoding of `mqtt_publishes`. most: bytes of the payload to show, None for none."""
    correlation = properties.get("correlation_data")
    text, encoding = (None, None) if most is None else shown(raw, most)
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


def add_at_once(
    out: Output,
    of: Connection,
    frame: Frame,
    status: str,
    handshake: str | None,
    head: tuple[Any, ...],
    tail: tuple[Any, ...],
) -> None:
    """A PUBLISH that nothing can answer. head: topic to length_bytes of `mqtt_publishes`."""
    _, direction, _, start, end, offset, _, last, ts_ns, _ = frame
    if out.exchanges is not None:
        out.exchanges.append(
            exchange_row(
                direction=direction,
                request_offset=offset,
                request_packet=last,
                request_bytes=end - start,
                ts=ts_ns,
                operation="PUBLISH",
                version=of.version,
                client_id=of.client_id,
                status=status,
            )
        )
    if out.publishes is not None:
        sent = (direction, offset, None, ts_ns, of.client_id)
        what = (*head, handshake, *NO_STEPS, None, *NO_REASON, of.version)
        out.publishes.append((*sent, *what, *tail, last, None))


def add_landed(
    out: Output, of: Connection, direction: int, flight: Flight, handshake: str | None, answer: Frame | None
) -> None:
    """A PUBLISH of QoS 1 or 2 is over. handshake: None where nobody knows. answer: what ended it."""
    reason = None if flight.code is None else reason_name(flight.code_of, flight.code, of.level)
    if out.exchanges is not None:
        out.exchanges.append(_landed_exchange(of, direction, flight, answer, handshake, reason))
    if out.publishes is not None:
        out.publishes.append(
            (
                direction,
                flight.offset,
                flight.first_offset,
                flight.ts_ns,
                of.client_id,
                *(flight.head or ()),
                handshake,
                None if answer is None else (answer.ts_ns - flight.ts_ns) / _NS_PER_MS,
                flight.ts_acknowledged,
                flight.ts_received,
                flight.ts_released,
                flight.ts_completed,
                flight.in_flight,
                flight.code,
                reason,
                flight.reason_string,
                of.version,
                *flight.tail,
                flight.packet,
                flight.last_packet,
            )
        )


def _landed_exchange(
    of: Connection, direction: int, flight: Flight, answer: Frame | None, handshake: str | None, reason: str | None
) -> Row:
    status, error_code = None if handshake is None else "unanswered", None
    offset = packet = size = ts_ns = None
    if answer is not None:
        _, _, _, start, end, offset, _, packet, ts_ns, _ = answer
        size = end - start
        status, error_code = ("error", flight.code) if handshake == "refused" else ("ok", 0)
    return exchange_row(
        direction=direction,
        request_offset=flight.offset,
        request_packet=flight.packet,
        request_bytes=flight.length,
        ts=flight.ts_ns,
        response_offset=offset,
        response_packet=packet,
        response_bytes=size,
        ts_response=ts_ns,
        operation="PUBLISH",
        version=of.version,
        client_id=of.client_id,
        status=status,
        error_code=error_code,
        error_name=None if answer is None else reason,
    )
