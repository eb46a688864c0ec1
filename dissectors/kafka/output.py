"""Where the rows of one feed go, and how those that all messages and exchanges give are made.

In: a frame or an exchange, and its operation. Out: rows of `messages` and `exchanges`, where somebody wants them.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame, Row
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import message_row
from wirewitness.dissectors.kafka.error_codes import ERROR_NAMES
from wirewitness.dissectors.kafka.long_polls import never
from wirewitness.dissectors.kafka.operation import Operation
from wirewitness.dissectors.kafka.rows.api_rows import apis_with_rows
from wirewitness.dissectors.kafka.rows.fields import Request


class Output(NamedTuple):
    """The tables of one feed; None for those nobody wants. apis: keys of which Kafka's own rows are wanted."""

    sink: Sink
    exchanges: list[Row] | None
    messages: list[Row] | None
    apis: frozenset[int]


def output(sink: Sink) -> Output:
    """What of this sink is wanted."""
    return Output(sink, sink.rows("exchanges"), sink.rows("messages"), apis_with_rows(sink.wanted))


def add_message(
    rows: list[Row],
    frame: Frame,
    role: str,
    known: Operation | None,
    correlation_id: int | None = None,
    client_id: str | None = None,
    error: str | None = None,
    summary: str | None = None,
) -> None:
    """A row of `messages`. known: None where the frame has no header that can be read."""
    rows.append(
        message_row(
            frame,
            role=role,
            operation=None if known is None else known.name,
            version=None if known is None else known.version,
            correlation_id=correlation_id,
            client_id=client_id,
            error=error,
            summary=summary,
        )
    )


def add_exchange(
    rows: list[Row],
    request: Request,
    known: Operation,
    status: str | None,
    answer: Frame | None = None,
    error_code: int | None = None,
    throttle_time_ms: int | None = None,
) -> None:
    """A row of `exchanges`. answer: the frame of the response; error_code, throttle_time_ms: what it says.

    In line, in the order of EXCHANGE_FIELDS: `exchange_row` takes a fifth longer, and there is one for each exchange.
    """
    offset = packet = size = ts_ns = None
    if answer is not None:
        _, _, _, start, end, offset, _, packet, ts_ns, _ = answer
        size = end - start
    _, _, _, client_id, request_offset, request_bytes, request_packet, request_ns, value, _ = request
    error_name = None if error_code is None else ERROR_NAMES.get(error_code)
    awaitable = False if known.waits is never else known.waits(value)
    rows.append(
        (CLIENT_TO_SERVER, request_offset, offset, request_packet, packet, request_ns, ts_ns, known.name, known.version,
         client_id, status, error_code, error_name, request_bytes, size, awaitable,
         throttle_time_ms)
    )  # fmt: skip
