"""Where the rows of a decoder go, and how those that several parts of it make are built.

In: a sink. Out: lists to append to, None for tables nobody wants.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.core.model import Frame, Row
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import exchange_row, message_row, orphan_row
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.packet_types import operation_name
from wirewitness.dissectors.mqtt.reason_codes import is_error, reason_name
from wirewitness.dissectors.mqtt.subscriptions import REQUESTS, Answered, Asked, subscription_rows

ORPHAN = "what this acknowledges is not in the capture"


class Output(NamedTuple):
    """The tables of one feed."""

    sink: Sink
    exchanges: list[Row] | None
    messages: list[Row] | None
    publishes: list[Row] | None
    subscriptions: list[Row] | None
    connections: list[Row] | None


def output(sink: Sink) -> Output:
    """What of this sink is wanted."""
    tables = ("exchanges", "messages", "mqtt_publishes", "mqtt_subscriptions", "mqtt_connections")
    return Output(sink, *(sink.rows(table) for table in tables))


def add_message(
    out: Output,
    frame: Frame,
    of: Connection,
    role: str | None,
    name: str,
    identifier: int | None = None,
    error: str | None = None,
    words: str | None = None,
) -> None:
    """A row of `messages`."""
    if out.messages is not None:
        out.messages.append(
            message_row(
                frame,
                role=role,
                operation=name,
                version=of.version,
                correlation_id=identifier,
                client_id=of.client_id,
                error=error,
                summary=words,
            )
        )


def answered(out: Output, of: Connection, direction: int, asked: Asked, answer: Answered, code: int | None) -> None:
    """The exchange of a request from this direction with its answer. code: what the answer says."""
    error = code is not None and is_error(answer.type, code, of.level)
    error_code = None if code is None else code if error else 0
    status, name = "error" if error else "ok", _name(answer.type, code, of)
    _add_exchange(out, of, direction, asked, status, answer, error_code, name)
    _add_subscriptions(out, of, asked, answer)


def unanswered(out: Output, of: Connection, direction: int, asked: Asked | None) -> None:
    """The exchange of a request without an answer; nothing for None."""
    if asked is not None:
        _add_exchange(out, of, direction, asked, "unanswered")
        _add_subscriptions(out, of, asked, None)


def given_up(out: Output, of: Connection, direction: int, asked: Asked) -> None:
    """The exchange of a request whose answer may still come, though nobody waits for it."""
    _add_exchange(out, of, direction, asked, None)
    _add_subscriptions(out, of, asked, None)


def one_way(out: Output, of: Connection, direction: int, asked: Asked, code: int | None) -> None:
    """The exchange of a packet that wants no answer. code: its own."""
    error = code is not None and is_error(asked.type, code, of.level)
    name = _name(asked.type, code, of) if error else None
    _add_exchange(out, of, direction, asked, "one_way", error_code=code if error else None, error_name=name)


def orphan(out: Output, of: Connection, frame: Frame, operation: str, code_of: int, code: int | None) -> None:
    """The exchange of an answer without its request, which the other side would have sent."""
    if out.exchanges is None:
        return
    error = code is not None and is_error(code_of, code, of.level)
    out.exchanges.append(
        orphan_row(
            frame,
            operation=operation,
            version=of.version,
            client_id=of.client_id,
            error_code=code if error else None,
            error_name=_name(code_of, code, of) if error else None,
        )
    )


def _name(packet_type: int, code: int | None, of: Connection) -> str | None:
    return None if code is None else reason_name(packet_type, code, of.level)


def _add_exchange(
    out: Output,
    of: Connection,
    direction: int,
    asked: Asked,
    status: str | None,
    answer: Answered | None = None,
    error_code: int | None = None,
    error_name: str | None = None,
) -> None:
    if out.exchanges is not None:
        out.exchanges.append(
            exchange_row(
                direction=direction,
                request_offset=asked.offset,
                request_packet=asked.packet,
                request_bytes=asked.length,
                ts=asked.ts_ns,
                response_offset=None if answer is None else answer.offset,
                response_packet=None if answer is None else answer.packet,
                response_bytes=None if answer is None else answer.length,
                ts_response=None if answer is None else answer.ts_ns,
                operation=operation_name(asked.type),
                version=of.version,
                client_id=of.client_id,
                status=status,
                error_code=error_code,
                error_name=error_name,
            )
        )


def _add_subscriptions(out: Output, of: Connection, asked: Asked, answer: Answered | None) -> None:
    if out.subscriptions is not None and asked.type in REQUESTS:
        out.subscriptions.extend(subscription_rows(asked, answer, of.client_id, of.version))
