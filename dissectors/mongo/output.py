"""Where the rows of one feed go, and how they are made.

In: a message, or an exchange that is over with its facts. Out: rows of messages, exchanges and mongo_commands, where
somebody wants them.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.core.model import Row
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import exchange_row, message_row
from wirewitness.dissectors.mongo.opcodes import opcode_name
from wirewitness.dissectors.mongo.pending import Pending
from wirewitness.dissectors.mongo.read_message import Received
from wirewitness.dissectors.mongo.replies import Outcome
from wirewitness.dissectors.mongo.rows import MONGO_COMMANDS, Facts

_NS_PER_MS = 1e6


class Output(NamedTuple):
    """The tables of one feed; None for those nobody wants."""

    sink: Sink
    exchanges: list[Row] | None
    messages: list[Row] | None
    commands: list[Row] | None


def output(sink: Sink) -> Output:
    """What of this sink is wanted."""
    return Output(sink, sink.rows("exchanges"), sink.rows("messages"), sink.rows("mongo_commands"))


def latency_ms(asked_ns: int, answered_ns: int) -> float:
    """How long an answer took."""
    return round((answered_ns - asked_ns) / _NS_PER_MS, 6)


def request_line(command: str, database: str | None) -> str | None:
    """One line on a request: its command and database."""
    return None if database is None else f"{command} on {database}"


def reply_line(found: Outcome) -> str | None:
    """One line on a reply; None where it says nothing."""
    if found.ok is None:
        return None
    if found.status == "ok":
        return "ok"
    words = (str(word) for word in ("error", found.code, found.name) if word is not None)
    return " ".join(words)


def add_message(
    rows: list[Row],
    received: Received,
    role: str,
    operation: str | None,
    client_id: str | None,
    summary: str | None,
    error: str | None = None,
) -> None:
    """A row of `messages`."""
    rows.append(
        message_row(
            received.frame,
            role=role,
            operation=operation,
            version=opcode_name(received.message.opcode),
            correlation_id=received.request_id,
            client_id=client_id,
            error=error or received.message.error,
            summary=summary,
        )
    )


def add_exchange(rows: list[Row], pending: Pending, status: str | None) -> None:
    """A row of `exchanges`."""
    found = pending.outcome
    offset, packet, ts_ns = pending.answer or (None, None, None)
    rows.append(
        exchange_row(
            request_offset=pending.offset,
            request_packet=pending.packet,
            request_bytes=pending.declared,
            ts=pending.ts_ns,
            response_offset=offset,
            response_packet=packet,
            response_bytes=pending.reply_bytes or None,
            ts_response=ts_ns,
            operation=pending.operation,
            version=pending.opcode,
            client_id=pending.client_id,
            status=status,
            error_code=found.code,
            error_name=found.name,
            awaitable=pending.awaitable,
        )
    )


def add_command(rows: list[Row], pending: Pending, status: str | None, facts: Facts) -> None:
    """A row of `mongo_commands`. facts: of connection, request and replies."""
    offset, packet, ts_ns = pending.answer or (None, None, None)
    latency = None if ts_ns is None or pending.awaitable else latency_ms(pending.ts_ns, ts_ns)
    row = {
        **facts,
        "request_offset": pending.offset,
        "response_offset": offset,
        "request_packet": pending.packet,
        "response_packet": packet,
        "ts": pending.ts_ns,
        "ts_response": ts_ns,
        "ts_last_response": pending.last,
        "status": status,
        "latency_ms": latency,
        "awaitable": pending.awaitable,
        "replies": pending.replies,
        "request_bytes": pending.declared,
        "request_id": pending.request_id,
    }
    if pending.replies:
        row["response_bytes"] = pending.reply_bytes
        row["response_uncompressed_bytes"] = pending.reply_uncompressed
    if pending.replies > 1 or (pending.exhaust and pending.replies):
        row["exhaust"] = True
    if status == "one_way":
        row["unacknowledged"] = True
    rows.append(tuple(map(row.get, MONGO_COMMANDS.names)))


def add_orphan_command(rows: list[Row], received: Received, facts: Facts) -> None:
    """A row of `mongo_commands` for a reply whose request is not in the capture."""
    frame = received.frame
    row = {
        **facts,
        "opcode": opcode_name(received.message.opcode),
        "response_offset": frame.stream_offset,
        "response_packet": frame.packet_last,
        "ts": frame.ts_ns,
        "ts_response": frame.ts_ns,
        "ts_last_response": frame.ts_ns,
        "status": "orphan",
        "replies": 1,
        "response_bytes": frame.size,
        "response_uncompressed_bytes": received.uncompressed_bytes,
        "request_id": received.response_to,
    }
    rows.append(tuple(map(row.get, MONGO_COMMANDS.names)))
