"""Rows of the tables that every protocol fills, by name: the one place that knows the order of their fields.

In: a frame or what is known of an exchange. Out: plain tuples in the order of MESSAGE_FIELDS, EXCHANGE_FIELDS and
EXPERT_FIELDS. A call costs about a quarter of a microsecond; where that is a good part of a message, in MQTT's quick
path and for Kafka's exchanges, tuples are written in line.
"""

from __future__ import annotations

from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame, Row

# What `messages.error` says of a frame that a gap or the end of the stream cut, and of a response without request.
CUT = "cut: the rest of this message is not in the capture"
ORPHAN = "the request is not in the capture"


def message_row(
    frame: Frame,
    *,
    role: str | None,
    operation: str | None = None,
    version: str | None = None,
    correlation_id: int | None = None,
    client_id: str | None = None,
    error: str | None = None,
    summary: str | None = None,
) -> Row:
    """MESSAGE_FIELDS: the message that this frame holds. error: why it was not wholly decoded."""
    _, direction, _, start, end, offset, first, last, ts_ns, complete = frame
    return (
        direction,
        offset,
        end - start,
        first,
        last,
        ts_ns,
        role,
        operation,
        version,
        correlation_id,
        client_id,
        complete,
        error,
        summary,
    )


def exchange_row(
    *,
    ts: int,
    status: str | None,
    operation: str | None = None,
    version: str | None = None,
    client_id: str | None = None,
    direction: int = CLIENT_TO_SERVER,
    request_offset: int | None = None,
    response_offset: int | None = None,
    request_packet: int | None = None,
    response_packet: int | None = None,
    ts_response: int | None = None,
    error_code: int | None = None,
    error_name: str | None = None,
    request_bytes: int | None = None,
    response_bytes: int | None = None,
    awaitable: bool | None = False,
    throttle_time_ms: int | None = None,
) -> Row:
    """EXCHANGE_FIELDS. direction: the request's. ts: its time; without a request, that of the response."""
    return (
        direction,
        request_offset,
        response_offset,
        request_packet,
        response_packet,
        ts,
        ts_response,
        operation,
        version,
        client_id,
        status,
        error_code,
        error_name,
        request_bytes,
        response_bytes,
        awaitable,
        throttle_time_ms,
    )


def orphan_row(
    frame: Frame,
    *,
    operation: str | None = None,
    version: str | None = None,
    client_id: str | None = None,
    error_code: int | None = None,
    error_name: str | None = None,
) -> Row:
    """EXCHANGE_FIELDS: the exchange of a response whose request is not in the capture, sent by the other side."""
    return exchange_row(
        direction=1 - frame.direction,
        ts=frame.ts_ns,
        status="orphan",
        operation=operation,
        version=version,
        client_id=client_id,
        response_offset=frame.stream_offset,
        response_packet=frame.packet_last,
        ts_response=frame.ts_ns,
        response_bytes=frame.size,
        awaitable=None,
        error_code=error_code,
        error_name=error_name,
    )


def expert_row(
    *,
    direction: int | None,
    packet: int | None,
    ts: int | None,
    remark: tuple[str, str, str, str],
    stream_offset: int | None = None,
    span: str | None = None,
) -> Row:
    """EXPERT_FIELDS.

    remark: severity, group, code, text. stream_offset: of the message. span: first and last offset of the bytes in
    question.
    """
    return direction, stream_offset, packet, ts, *remark, span
