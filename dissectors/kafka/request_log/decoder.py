"""One connection as the broker's request log has it: entries in, rows out, made as those of the wire are.

An entry is a request with its answer, so nothing waits here. Messages have no place in a stream; in its stead a number
names them, which rises along the connection: the correlation id, or one more than the last one where that does not
rise.
"""

from __future__ import annotations

from typing import cast

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.log_reader import LoggedExchange, Moment
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, MESSAGES, SERVER_TO_CLIENT, Frame, Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import exchange_row
from wirewitness.dissectors.kafka.error_codes import ERROR_NAMES
from wirewitness.dissectors.kafka.headers import API_VERSIONS
from wirewitness.dissectors.kafka.operation import Operation, operation
from wirewitness.dissectors.kafka.output import Output, output
from wirewitness.dissectors.kafka.remarks import FrameRemarks
from wirewitness.dissectors.kafka.request_log.bodies import UNREAD, body_value, is_refused
from wirewitness.dissectors.kafka.request_log.entry import Entry
from wirewitness.dissectors.kafka.rows.api_rows import FETCH, PRODUCE, ExchangeRows
from wirewitness.dissectors.kafka.rows.errors_in import error_finder
from wirewitness.dissectors.kafka.rows.fetch_sessions import Asked
from wirewitness.dissectors.kafka.rows.fields import Request, Response
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.rows.log_fields import REQUEST_TIMES, TABLE
from wirewitness.dissectors.kafka.rows.version_rows import ConnectionVersions
from wirewitness.dissectors.kafka.schema.definitions import Direction
from wirewitness.dissectors.kafka.schema.primitives import UNSEEN, Value
from wirewitness.dissectors.kafka.summary import summary

# Where a reader went on behind an answer whose records nobody has seen, as its next Fetch tells.
#
# A log has sizes of records in place of their offsets. A consumer that was given records asks for what lies behind
# them next, so the next offset that it names, where that is a later one, says how far the answer led it. A partition
# that it does not name again is not known.


def settled(answer: Value | None, asked: Asked | None) -> Asked | None:
    """What was asked of the partitions in an answer, whatever later requests do to the session."""
    if answer is None or asked is None:
        return asked
    answered = [
        (*topic_key(topic), partition["partition_index"])
        for topic in answer["responses"]
        for partition in topic["partitions"]
    ]
    return asked._replace(named={**asked.named, **{key: asked.of(key) for key in answered}})


def tell_next(answer: Value, asked: Asked, following: Asked) -> None:
    """Put the offset behind the size of the records, in the answer to a Fetch that asked this. following: the next."""
    for topic in answer["responses"]:
        names = topic_key(topic)
        for partition in topic["partitions"]:
            records = partition["records"]
            if not records or records[0] != UNSEEN or not records[1]:
                continue
            key = (*names, partition["partition_index"])
            began, then = asked.of(key)[0], following.named.get(key, (None, None))[0]
            if began is not None and then is not None and then > began:
                partition["records"] = (*records, then)


class LoggedKafka:
    """Makes the rows of one connection; a `LoggedConversation`."""

    __slots__ = ("_fetch", "_last", "_remarks", "_rows", "_versions")

    def __init__(self, limits: Limits, options: DecodeOptions) -> None:
        self._remarks = FrameRemarks(limits)
        self._rows = ExchangeRows(limits, options, self._remarks.remarks)
        self._versions = ConnectionVersions(limits)
        self._last = -1
        # The last Fetch, whose rows wait for the next one: it tells where the reader went on.
        self._fetch: tuple[Request, Response] | None = None

    def add(self, exchange: LoggedExchange, moment: Moment, out: Sink) -> None:
        """Append the rows of one line."""
        logged, rows = cast(Entry, exchange), output(out)
        self._last = offset = max(logged.correlation_id, self._last + 1)
        asked = _frame(CLIENT_TO_SERVER, offset, moment.line, moment.ts_ns)
        told = _frame(SERVER_TO_CLIENT, offset, moment.line, moment.ts_response_ns)
        known = operation(logged.api_key, logged.version)
        if logged.software_name is not None:
            self._versions.software = (logged.software_name, logged.software_version)
        request = self._request(logged, known, asked, rows)
        response = None if logged.response is None else self._response(logged, known, request, told, rows)
        _add_times(logged, known, moment, request, response, out)

    def finish(self, out: Sink) -> None:
        """Give the rows of the connection as a whole."""
        self._give_fetch(None, out)
        self._versions.finish(out)
        self._remarks.remarks.finish(out)

    def _request(self, logged: Entry, known: Operation, frame: Frame, out: Output) -> Request:
        value, error_text = self._body(logged, known, "request", frame, out)
        _add_message(frame, known, logged, value, None, error_text, out)
        line, ts_ns, offset = frame.packet_last, frame.ts_ns, frame.stream_offset
        head = (logged.api_key, logged.version, logged.correlation_id, logged.client_id)
        request = Request(*head, offset, 0, line, ts_ns, value)
        if self._has_rows(logged, out) and value is not None:
            request = request._replace(extra=self._rows.extra(request, value, b"", out.sink))
            if logged.api_key == FETCH:
                self._give_fetch(request, out.sink)
        self._versions.requested(request)
        if logged.response is None:
            one_way = logged.api_key == PRODUCE and value is not None and value["acks"] == 0
            _add_exchange(request, known, "one_way" if one_way else None, None, None, None, out)
            if self._has_rows(logged, out):
                self._rows.add(request, None, out.sink)
        return request

    def _response(self, logged: Entry, known: Operation, request: Request, frame: Frame, out: Output) -> Response:
        value, error_text = self._body(logged, known, "response", frame, out)
        error_code = None if value is None else _error_code(logged, known, value)
        _add_message(frame, known, logged, value, error_code, error_text, out)
        status = "error" if error_code else "ok"
        throttled = None if value is None else value.get("throttle_time_ms")
        _add_exchange(request, known, status, frame, error_code, throttled, out)
        response = Response(frame.stream_offset, frame.packet_last, frame.ts_ns, value, b"", [])
        if logged.api_key == API_VERSIONS:
            self._versions.answered(request, response)
        if logged.api_key == FETCH and self._has_rows(logged, out):
            self._fetch = request._replace(extra=settled(value, request.extra)), response
        elif self._has_rows(logged, out):
            self._rows.add(request, response, out.sink)
            for remark in response.remarks or ():
                self._remarks.add(frame, out.sink, remark)
        return response

    def _give_fetch(self, following: Request | None, out: Sink) -> None:
        """Give the rows of the Fetch that waits. following: the next one of the connection, None where none came."""
        if self._fetch is None:
            return
        (request, response), self._fetch = self._fetch, None
        if following is not None and response.value is not None and request.extra is not None:
            tell_next(response.value, request.extra, following.extra)
        self._rows.add(request, response, out)

    def _has_rows(self, logged: Entry, out: Output) -> bool:
        """Has the API tables of its own? Of what was passed on, the line of the broker that was asked tells them."""
        return logged.api_key in out.apis and not logged.forwarded

    def _body(
        self, logged: Entry, known: Operation, direction: Direction, frame: Frame, out: Output
    ) -> tuple[Value | None, str | None]:
        """The value of a body, and why it has none."""
        if direction == "request" and is_refused(logged):
            return None, UNREAD
        try:
            value = body_value(logged, direction)
        except DecodeError as error:
            return None, self._remarks.malformed(frame, out.sink, known, direction, error)
        if value is not None:
            return value, None
        offer = self._versions.offer(logged.api_key)
        return None, self._remarks.undecoded(frame, out.sink, (logged.api_key, logged.version), known, offer)


def _frame(direction: int, offset: int, line: int, ts_ns: int) -> Frame:
    """Where a message would be; it has no bytes."""
    return Frame(line, direction, b"", 0, 0, offset, line, line, ts_ns, True)


def _error_code(logged: Entry, known: Operation, value: Value) -> int:
    if is_refused(logged):
        return error_finder(API_VERSIONS, 0)(value)
    return known.first_error(value)


def _add_message(
    frame: Frame,
    known: Operation,
    logged: Entry,
    value: Value | None,
    error_code: int | None,
    error: str | None,
    out: Output,
) -> None:
    if out.messages is None:
        return
    row: Row = MESSAGES.row(
        direction=frame.direction,
        stream_offset=frame.stream_offset,
        packet_first=frame.packet_last,
        packet_last=frame.packet_last,
        ts=frame.ts_ns,
        role="request" if frame.direction == CLIENT_TO_SERVER else "response",
        operation=known.name,
        version=known.version,
        correlation_id=logged.correlation_id,
        client_id=logged.client_id,
        complete=True,
        error=error,
        summary=summary(value, error_code),
    )
    out.messages.append(row)


def _add_exchange(
    request: Request,
    known: Operation,
    status: str | None,
    answer: Frame | None,
    error_code: int | None,
    throttle_time_ms: int | None,
    out: Output,
) -> None:
    if out.exchanges is None:
        return
    out.exchanges.append(
        exchange_row(
            ts=request.ts_ns,
            status=status,
            operation=known.name,
            version=known.version,
            client_id=request.client_id,
            request_offset=request.offset,
            response_offset=None if answer is None else answer.stream_offset,
            request_packet=request.packet,
            response_packet=None if answer is None else answer.packet_last,
            ts_response=None if answer is None else answer.ts_ns,
            error_code=error_code,
            error_name=None if error_code is None else ERROR_NAMES.get(error_code),
            awaitable=known.waits(request.value),
            throttle_time_ms=throttle_time_ms,
        )
    )


def _add_times(
    logged: Entry, known: Operation, moment: Moment, request: Request, response: Response | None, out: Sink
) -> None:
    """What only the log knows."""
    rows = out.rows(TABLE)
    if rows is None:
        return
    times = logged.times
    rows.append(
        REQUEST_TIMES.row(
            request_offset=request.offset,
            response_offset=None if response is None else response.offset,
            ts=moment.ts_ns,
            ts_response=moment.ts_response_ns,
            line=moment.line,
            client_id=logged.client_id,
            operation=known.name,
            principal=logged.principal,
            listener=logged.listener,
            security_protocol=logged.security_protocol,
            software_name=logged.software_name,
            software_version=logged.software_version,
            forwarded=logged.forwarded,
            total_ms=times.total,
            request_queue_ms=times.request_queue,
            local_ms=times.local,
            remote_ms=times.remote,
            throttle_ms=times.throttle,
            response_queue_ms=times.response_queue,
            send_ms=times.send,
        )
    )
