"""Where the rows of a conversation go, and how those that several parts of it make are built.

In: a sink. Out: lists to append to, None for tables nobody wants.
"""

from __future__ import annotations

from typing import NamedTuple

from dissectors.core.model import Frame, Row
from dissectors.core.protocol import Sink
from dissectors.mqtt.connection import Connection
from dissectors.mqtt.packet_types import operation_name
from dissectors.mqtt.reason_codes import is_error, reason_name
from dissectors.mqtt.subscriptions import REQUESTS, Answered, Asked, subscription_rows

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
        _, direction, _, start, end, offset, first, last, ts_ns, complete = frame
        row = (direction, offset, end - start, first, last, ts_ns, role, name)
        out.messages.append((*row, of.version, identifier, of.client_id, complete, error, words))


def answered(out: Output, of: Connection, direction: int, asked: Asked, answer: Answered, code: int | None) -> None:
    """The exchange of a request from this direction with its answer. code: what the answer says."""
    error = code is not None and is_error(answer.type, code, of.level)
    _add_exchange(
        out,
        of,
        direction,
        asked,
        (answer.offset, answer.packet, answer.ts_ns, answer.length),
        "error" if error else "ok",
        (None if code is None else code if error else 0, _name(answer.type, code, of)),
    )
    _add_subscriptions(out, of, asked, answer)


def unanswered(out: Output, of: Connection, direction: int, asked: Asked | None) -> None:
    """The exchange of a request without an answer; nothing for None."""
    if asked is not None:
        _add_exchange(out, of, direction, asked, (None,) * 4, "unanswered", (None, None))
        _add_subscriptions(out, of, asked, None)


def one_way(out: Output, of: Connection, direction: int, asked: Asked, code: int | None) -> None:
    """The exchange of a packet that wants no answer. code: its own."""
    error = code is not None and is_error(asked.type, code, of.level)
    names = (code if error else None, _name(asked.type, code, of) if error else None)
    _add_exchange(out, of, direction, asked, (None,) * 4, "one_way", names)


def orphan(out: Output, of: Connection, frame: Frame, operation: str, code_of: int, code: int | None) -> None:
    """The exchange of an answer without its request, which the other side would have sent."""
    if out.exchanges is None:
        return
    _, direction, _, start, end, offset, _, last, ts_ns, _ = frame
    error = code is not None and is_error(code_of, code, of.level)
    names = (code, _name(code_of, code, of)) if error else (None, None)
    places = (1 - direction, None, offset, None, last, ts_ns, ts_ns)
    out.exchanges.append((*places, operation, of.version, of.client_id, "orphan", *names, None, end - start, None))


def _name(packet_type: int, code: int | None, of: Connection) -> str | None:
    return None if code is None else reason_name(packet_type, code, of.level)


def _add_exchange(
    out: Output,
    of: Connection,
    direction: int,
    asked: Asked,
    answer: tuple[int | None, ...],
    status: str,
    code_and_name: tuple[int | None, str | None],
) -> None:
    """answer: offset, packet, time, length."""
    if out.exchanges is not None:
        offset, packet, ts_ns, length = answer
        places = (direction, asked.offset, offset, asked.packet, packet, asked.ts_ns, ts_ns)
        what = (operation_name(asked.type), of.version, of.client_id, status)
        out.exchanges.append((*places, *what, *code_and_name, asked.length, length, None))


def _add_subscriptions(out: Output, of: Connection, asked: Asked, answer: Answered | None) -> None:
    if out.subscriptions is not None and asked.type in REQUESTS:
        out.subscriptions.extend(subscription_rows(asked, answer, of.client_id, of.version))
