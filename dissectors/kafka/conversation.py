"""One Kafka connection: frames of both directions in, messages, exchanges and table rows out.

Requests wait here until their response comes; a response cannot be decoded without its request's API and version.
Brokers answer the requests of one connection in order, so a correlation id that stands twice means the older request.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from dissectors.core.early import EARLY_NS, EarlyFrames
from dissectors.core.errors import DecodeError
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, Frame, Row
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Sink
from dissectors.core.remarks import Remark, Remarks, place_of
from dissectors.core.rows import CUT, ORPHAN, exchange_row, message_row, orphan_row
from dissectors.kafka.error_codes import ERROR_NAMES
from dissectors.kafka.framing import (
    MIN_RESPONSE_BYTES,
    RESYNC_MAX_FIRST_BYTE,
    RESYNC_MAX_FRAME_BYTES,
    is_request,
    plausible_request,
    rising_responses,
)
from dissectors.kafka.headers import API_VERSIONS, decode_response, request_header, response_header
from dissectors.kafka.operation import TOKEN, Operation, operation
from dissectors.kafka.rows import admin_rows, cluster_rows, data_rows, group_rows, transaction_rows
from dissectors.kafka.rows.errors_in import error_finder
from dissectors.kafka.rows.fetch_sessions import FetchSessions
from dissectors.kafka.rows.fields import Request, Response
from dissectors.kafka.rows.record_rows import TABLE as RECORDS
from dissectors.kafka.rows.record_rows import RecordRows
from dissectors.kafka.rows.version_rows import ConnectionVersions
from dissectors.kafka.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, SaslTalk
from dissectors.kafka.sasl_tokens import auth_bytes, gssapi_token
from dissectors.kafka.schema.primitives import Value
from dissectors.kafka.schema.walk import begins
from dissectors.kafka.summary import summary

PRODUCE, FETCH, METADATA = 0, 1, 3
DESCRIBE_TOPIC_PARTITIONS = 75

RowMaker = Callable[[Request, Response | None, Sink], None]


class Rows(NamedTuple):
    """What makes the rows of an API's exchanges, and the tables they are for."""

    make: RowMaker | None
    tables: tuple[str, ...]


def _both(first: RowMaker, second: RowMaker) -> RowMaker:
    """Rows of two kinds for one API."""

    def make(request: Request, response: Response | None, out: Sink) -> None:
        first(request, response, out)
        second(request, response, out)

    return make


_EVENTS = ("kafka_group_events", "kafka_assignments")
_CLUSTER = ("kafka_brokers", "kafka_partitions")
_TRANSACTIONS = ("kafka_transactions",)

_ADMIN = {key: Rows(admin_rows.change_rows, ("kafka_admin_changes",)) for key in admin_rows.CHANGES}

API_ROWS: Mapping[int, Rows] = {
    **_ADMIN,
    # Remarks: on the checksums of batches.
    PRODUCE: Rows(data_rows.produce_rows, ("kafka_produce_batches", "kafka_records", "expert_infos")),
    FETCH: Rows(data_rows.fetch_rows, ("kafka_fetch_partitions", "kafka_records", "expert_infos")),
    2: Rows(data_rows.list_offsets_rows, ("kafka_list_offsets",)),
    METADATA: Rows(None, _CLUSTER),  # made by the conversation, which knows earlier answers
    8: Rows(group_rows.commit_rows, ("kafka_offset_commits",)),
    9: Rows(group_rows.offset_fetch_rows, ("kafka_offset_fetches",)),
    10: Rows(cluster_rows.coordinator_rows, ("kafka_brokers",)),
    11: Rows(group_rows.join_rows, _EVENTS),
    12: Rows(group_rows.heartbeat_rows, _EVENTS),
    13: Rows(group_rows.leave_rows, _EVENTS),
    14: Rows(group_rows.sync_rows, _EVENTS),
    15: Rows(group_rows.describe_rows, _EVENTS),
    19: Rows(
        _both(cluster_rows.created_topic_rows, admin_rows.change_rows), ("kafka_partitions", "kafka_admin_changes")
    ),
    22: Rows(transaction_rows.init_rows, _TRANSACTIONS),
    24: Rows(transaction_rows.add_partitions_rows, _TRANSACTIONS),
    25: Rows(transaction_rows.add_offsets_rows, _TRANSACTIONS),
    26: Rows(transaction_rows.end_rows, _TRANSACTIONS),
    27: Rows(transaction_rows.marker_rows, _TRANSACTIONS),
    28: Rows(
        _both(group_rows.commit_rows, transaction_rows.offset_commit_rows), ("kafka_offset_commits", *_TRANSACTIONS)
    ),
    60: Rows(cluster_rows.describe_cluster_rows, ("kafka_brokers",)),
    68: Rows(group_rows.consumer_heartbeat_rows, _EVENTS),
    69: Rows(group_rows.consumer_describe_rows, _EVENTS),
    DESCRIBE_TOPIC_PARTITIONS: Rows(None, ("kafka_partitions",)),  # as Metadata
}

# A commit or fetch of many partitions gives many times its size in rows, and a block holds thousands of them.
MAX_HELD_ROWS = 1 << 15
# Text or a bare SASL token read as a header shows versions far above this; then its client id is none either.
MAX_VERSION = 1000
# A response of which the rest is to come is believed when fields account for this much of its body: the few numbers
# that stand in front of most answers would allow anything.
PROOF_BYTES = 24
# What is said once for each connection when a limit was reached.
LIMIT_TEXTS: Mapping[str, str] = {
    "outstanding_requests": "too many requests wait for a response; the oldest are given as unanswered",
    "unheard_requests": "no response was captured so far; only the newest requests go on waiting for one",
    "outstanding_tokens": "too many bare SASL tokens wait for an answer; the oldest are given as unanswered",
    "early_responses": "too many responses wait for a request that may come later; the oldest are given as orphans",
    "fetch_sessions": "fetch sessions are too many or too large to remember; some offsets asked for stay unknown",
    "api_versions": "APIs are too many to remember; kafka_api_versions leaves some out",
    "known_partitions": "partitions are too many to remember; some are told again although nothing changed",
}

_read_correlation_id = struct.Struct(">i").unpack_from
_read_size_and_id = struct.Struct(">ii").unpack_from


class _Output(NamedTuple):
    """Where the rows of one feed go; None for tables nobody wants. apis: keys of which Kafka's own rows are wanted."""

    sink: Sink
    exchanges: list[Row] | None
    messages: list[Row] | None
    apis: frozenset[int]


def _output(sink: Sink) -> _Output:
    return _Output(sink, sink.rows("exchanges"), sink.rows("messages"), _apis_with_rows(sink.wanted))


@cache
def _apis_with_rows(wanted: frozenset[str]) -> frozenset[int]:
    """Keys of the APIs that give rows of any of these tables."""
    return frozenset(key for key, rows in API_ROWS.items() if not wanted.isdisjoint(rows.tables))


class KafkaConversation:
    """Pairs and decodes the messages of one flow. Picklable; holds no input or output."""

    __slots__ = (
        "_early",
        "_heard",
        "_known",
        "_limits",
        "_outstanding",
        "_records",
        "_remarks",
        "_sasl",
        "_sessions",
        "_told",
        "_versions",
    )

    def __init__(self, limits: Limits, options: DecodeOptions | None = None) -> None:
        self._limits = limits
        self._records = RecordRows(limits, options or DecodeOptions())
        self._outstanding: dict[int, Request] = {}
        self._early = EarlyFrames(limits)
        self._heard = False
        self._sessions = FetchSessions(limits)
        self._known = cluster_rows.KnownPartitions(limits)
        self._remarks = Remarks(limits)
        self._told: set[tuple[int, int]] = set()
        self._versions = ConnectionVersions(limits)
        self._sasl = SaslTalk()

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; see `Conversation.feed`."""
        output = _output(out)
        request, response = self._request, self._response
        for frame in frames:
            if frame.direction == CLIENT_TO_SERVER:
                request(frame, output)
            else:
                response(frame, output)

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """See `Conversation.boundary`. A response is believed only if the request it names is known and it decodes."""
        if direction == CLIENT_TO_SERVER:
            return plausible_request(data, position, hinted)
        if len(data) - position < 8:
            return None if data[position] <= RESYNC_MAX_FIRST_BYTE else False
        size, correlation_id = _read_size_and_id(data, position)
        if not MIN_RESPONSE_BYTES <= size <= RESYNC_MAX_FRAME_BYTES:
            return False
        asked = self._asked(correlation_id)
        if asked is None:
            return rising_responses(data, position, hinted)
        end = position + 4 + size
        if end > len(data):
            return _begins(asked, data, position + 4, end) if hinted else None
        return _decodes(asked, data, position + 4, end)

    def _asked(self, correlation_id: int) -> tuple[int, int] | None:
        """(API key, version) of the request that waits with this correlation id."""
        request = self._outstanding.get(correlation_id)
        return None if request is None else (request.api_key, request.version)

    def finish(self, out: Sink) -> None:
        """Give the requests that were never answered."""
        output = _output(out)
        for correlation_id, frame in self._early.rest():
            self._orphan(frame, output, correlation_id)
        for request in self._outstanding.values():
            self._no_response(request, "unanswered", output)
        self._outstanding = {}
        self._end_of_tokens(output, went_on=False)
        self._versions.finish(out)
        self._remarks.finish(out)

    def _request(self, frame: Frame, out: _Output) -> None:
        _, _, data, start, end, offset, _, last, ts_ns, complete = frame
        sasl = self._sasl
        if (sasl.bare or offset == 0) and self._token(frame, out):
            return
        try:
            api_key, version, correlation_id, client_id, body = request_header(data, start + 4, end)
            if version > MAX_VERSION:
                raise DecodeError(f"version {version} is beyond belief")
        except DecodeError as error:
            self._unreadable(frame, out, "request", str(error))
            return
        known = operation(api_key, version)
        value: Value | None = None
        error_text: str | None = None
        if known.request is None:
            error_text = self._undecoded(frame, out, api_key, version, known)
        else:
            try:
                value, behind = known.request(data, body, end)
                if behind != end:
                    self._trailing(frame, out, known, "request", end - behind)
            except DecodeError as error:
                error_text = self._malformed(frame, out, known, "request", error) if complete else CUT
        if out.messages is not None:
            line = summary(value, None)
            _add_message(out.messages, frame, "request", known, correlation_id, client_id, error_text, line)
        request = Request(api_key, version, correlation_id, client_id, offset, end - start, last, ts_ns, value)
        if api_key in out.apis and value is not None:
            request = request._replace(extra=self._extra(request, value, frame, out))
        self._versions.requested(request)
        if self._versions.full:
            self._limit(frame, out, "api_versions")
        if api_key == SASL_HANDSHAKE:
            sasl.handshake(request, out.sink)
        elif api_key == SASL_AUTHENTICATE:
            sasl.authenticate(request, auth_bytes(version, data, body, end))
        elif sasl.active:
            self._end_of_tokens(out, went_on=True)
        if api_key == PRODUCE and value is not None and value["acks"] == 0:
            self._no_response(request, "one_way", out)
            return
        outstanding = self._outstanding
        if correlation_id in outstanding:
            self._no_response(outstanding.pop(correlation_id), "unanswered", out)
        elif not self._heard and len(outstanding) >= self._limits.max_unheard:
            self._no_response(outstanding.pop(next(iter(outstanding))), "unanswered", out)
            self._limit(frame, out, "unheard_requests")
        elif len(outstanding) >= self._limits.max_outstanding:
            self._no_response(outstanding.pop(next(iter(outstanding))), "unanswered", out)
            self._limit(frame, out, "outstanding_requests")
        outstanding[correlation_id] = request
        if self._early.waiting:
            self._answer_early(correlation_id, ts_ns, out)

    def _response(self, frame: Frame, out: _Output) -> None:
        _, _, data, start, end, offset, _, last, ts_ns, complete = frame
        correlation_id: int = _read_correlation_id(data, start + 4)[0] if end - start >= 8 else -1
        if self._sasl.waiting and correlation_id not in self._outstanding:
            self._token_answer(frame, out)
            return
        if end - start < 8:
            self._unreadable(frame, out, "response", "the frame ends inside the response header")
            return
        outstanding = self._outstanding
        request = outstanding.get(correlation_id)
        if request is None:
            self._keep_early(frame, out, correlation_id)
            return
        # Answers come in the order of the requests, so those to older ones are lost; another request may take their id.
        while (oldest := next(iter(outstanding))) != correlation_id:
            self._no_response(outstanding.pop(oldest), "unanswered", out)
        del outstanding[correlation_id]
        self._heard = True
        known = operation(request.api_key, request.version)
        value: Value | None = None
        error_code: int | None = None
        error_text: str | None = None
        try:
            if known.response is None:
                error_text = known.undecoded[1]
            else:
                body = start + 8
                if known.tagged_response:
                    body = response_header(request.api_key, request.version, data, start + 4, end)[1]
                if request.api_key == API_VERSIONS:
                    value, behind, error_code = _decode_api_versions(request.version, known, data, body, end)
                else:
                    value, behind = known.response(data, body, end)
                    error_code = known.first_error(value)
                if behind != end:
                    self._trailing(frame, out, known, "response", end - behind)
        except DecodeError as error:
            error_text = self._malformed(frame, out, known, "response", error) if complete else CUT
        if out.messages is not None:
            line = summary(value, error_code)
            client_id = request.client_id
            _add_message(out.messages, frame, "response", known, correlation_id, client_id, error_text, line)
        status = "error" if error_code else "ok"
        if out.exchanges is not None:
            answer = (offset, end - start, last, ts_ns)
            out.exchanges.append(_exchange_row(request, known, status, error_code, answer))
        if request.api_key == API_VERSIONS:
            self._versions.answered(request, Response(offset, last, ts_ns, value, data))
            if self._versions.full:
                self._limit(frame, out, "api_versions")
        elif request.api_key == SASL_HANDSHAKE:
            self._sasl.handshake_answered(request, Response(offset, last, ts_ns, value, data), out.sink)
        elif request.api_key == SASL_AUTHENTICATE:
            self._sasl.authenticated(request, Response(offset, last, ts_ns, value, data), out.sink)
        if request.api_key in out.apis:
            answered = Response(offset, last, ts_ns, value, data, [])
            self._kafka_rows(request, answered, out)
            for remark in answered.remarks or ():
                self._remark(frame, out, *remark)
            if self._known.full:
                self._limit(frame, out, "known_partitions")
            if self._sessions.full:
                self._limit(frame, out, "fetch_sessions")

    def _extra(self, request: Request, value: Value, frame: Frame, out: _Output) -> Any:
        """What the rows of an exchange need beside the request's value, read while its bytes are at hand."""
        if request.api_key != PRODUCE:
            return self._sessions.asked(value) if request.api_key == FETCH else None
        remarks: list[Remark] = []
        partitions = data_rows.produced(value, frame.data, remarks)
        if out.sink.rows(RECORDS) is not None:
            partitions = self._records.hold(request._replace(extra=partitions), frame.data, out.sink, remarks)
        for remark in remarks:
            self._remark(frame, out, *remark)
        return partitions

    def _no_response(self, request: Request, status: str, out: _Output) -> None:
        """The exchange of a request that has no response: unanswered, or one_way by design."""
        if out.exchanges is not None:
            known = operation(request.api_key, request.version)
            out.exchanges.append(_exchange_row(request, known, status, None, _NO_ANSWER))
        if request.api_key in out.apis:
            self._kafka_rows(request, None, out)

    def _kafka_rows(self, request: Request, response: Response | None, out: _Output) -> None:
        api_key, sink = request.api_key, out.sink
        if api_key == METADATA:
            cluster_rows.metadata_rows(request, response, sink, self._known)
            return
        if api_key == DESCRIBE_TOPIC_PARTITIONS:
            cluster_rows.describe_partitions_rows(request, response, sink, self._known)
            return
        if api_key == FETCH and request.extra is not None and response is not None and response.value is not None:
            self._sessions.answered(response.value.get("session_id", 0), request.extra)
        if api_key in {PRODUCE, FETCH} and sink.rows(RECORDS) is not None:
            request = self._record_rows(request, response, out)
        rows = API_ROWS[api_key]
        if rows.make is not None:
            rows.make(request, response, sink)
        for table in rows.tables:
            if len(sink.rows(table) or ()) > MAX_HELD_ROWS:
                sink.drain(table)

    def _record_rows(self, request: Request, response: Response | None, out: _Output) -> Request:
        """kafka_records; the request of a Produce comes back with what decompressing told."""
        if request.api_key == FETCH:
            if response is not None:
                self._records.fetched(request, response, out.sink)
            return request
        remarks: list[Remark] = []
        partitions = self._records.produced(request, response, out.sink, remarks)
        for remark in remarks:
            place = (CLIENT_TO_SERVER, request.offset, request.length, request.packet, request.ts_ns)
            self._remarks.add(place, out.sink, remark)
        return request._replace(extra=partitions)

    def _token(self, frame: Frame, out: _Output) -> bool:
        """Take a frame that is a bare SASL token; False for one that is a request."""
        _, _, data, start, end, offset, _, last, ts_ns, _ = frame
        sasl = self._sasl
        if not sasl.bare and not gssapi_token(data, start + 4, end):
            return False
        if is_request(data, start, end):
            self._end_of_tokens(out, went_on=True)
            return False
        request = Request(-1, -1, -1, sasl.client_id, offset, end - start, last, ts_ns, None)
        if len(sasl.waiting) >= self._limits.max_outstanding_tokens:
            self._no_token_answer(sasl.waiting.pop(0), "unanswered", out)
            self._limit(frame, out, "outstanding_tokens")
        sasl.token(request, data[start + 4 : end])
        self._token_message(frame, out, "request")
        return True

    def _token_answer(self, frame: Frame, out: _Output) -> None:
        """A frame of the server while a bare token waits: its answer, whatever is in it."""
        _, _, _, start, end, offset, _, last, ts_ns, _ = frame
        request = self._sasl.token_answered(Response(offset, last, ts_ns, None, b""))
        self._token_message(frame, out, "response")
        if out.exchanges is not None:
            out.exchanges.append(_exchange_row(request, TOKEN, "ok", None, (offset, end - start, last, ts_ns)))

    def _token_message(self, frame: Frame, out: _Output, role: str) -> None:
        if out.messages is not None:
            words = (("mechanism", self._sasl.mechanism), ("user_name", self._sasl.user_name))
            line = " ".join(f"{name}={value}" for name, value in words if value is not None)
            _add_message(out.messages, frame, role, TOKEN, None, self._sasl.client_id, None, line or None)

    def _end_of_tokens(self, out: _Output, *, went_on: bool) -> None:
        """An authentication is over. A token that was not answered although the client went on needed no answer."""
        for request in self._sasl.end(out.sink, went_on=went_on):
            self._no_token_answer(request, "one_way" if went_on else "unanswered", out)

    def _no_token_answer(self, request: Request, status: str, out: _Output) -> None:
        if out.exchanges is not None:
            out.exchanges.append(_exchange_row(request, TOKEN, status, None, _NO_ANSWER))

    def _keep_early(self, frame: Frame, out: _Output, correlation_id: int) -> None:
        """Hold a response without request: a capture may hold it before its request (several receive queues)."""
        older = self._early.take(correlation_id)
        if older is not None:
            self._orphan(older, out, correlation_id)
        for oldest, gone in self._early.hold(correlation_id, frame):
            self._limit(frame, out, "early_responses")
            self._orphan(gone, out, oldest)

    def _answer_early(self, correlation_id: int, ts_ns: int, out: _Output) -> None:
        """The request whose response may have come before it."""
        frame = self._early.take(correlation_id)
        if frame is None:
            return
        if abs(frame.ts_ns - ts_ns) <= EARLY_NS:
            self._response(frame, out)
        else:
            self._orphan(frame, out, correlation_id)

    def _orphan(self, frame: Frame, out: _Output, correlation_id: int) -> None:
        if out.messages is not None:
            _add_message(out.messages, frame, "response", None, correlation_id, None, ORPHAN, None)
        if out.exchanges is not None:
            out.exchanges.append(orphan_row(frame))

    def _unreadable(self, frame: Frame, out: _Output, role: str, text: str) -> None:
        """A frame without even a header."""
        if out.messages is not None:
            _add_message(out.messages, frame, role, None, None, None, text, None)
        self._remark(frame, out, "error", "malformed", "malformed_message", f"{role} header: {text}")

    def _undecoded(self, frame: Frame, out: _Output, api_key: int, version: int, known: Operation) -> str:
        """Why a body stays bytes; remarked once for each API and version of a flow."""
        code, text = known.undecoded
        offer = self._versions.offer(api_key)
        text = text if offer is None else f"{text}; {offer}"
        if (api_key, version) not in self._told and len(self._told) < self._limits.max_expert_infos:
            self._told.add((api_key, version))
            self._remark(frame, out, "note", "undecoded", code, text)
        return text

    def _malformed(self, frame: Frame, out: _Output, known: Operation, role: str, error: DecodeError) -> str:
        text = str(error)
        what = f"{known.name} v{known.version} {role}: {text}"
        self._remark(frame, out, "error", "malformed", "malformed_message", what)
        return text

    def _trailing(self, frame: Frame, out: _Output, known: Operation, role: str, count: int) -> None:
        text = f"{known.name} v{known.version} {role}: {count} bytes behind the last field"
        self._remark(frame, out, "warn", "malformed", "trailing_bytes", text)

    def _remark(self, frame: Frame, out: _Output, severity: str, group: str, code: str, text: str) -> None:
        self._remarks.add(place_of(frame), out.sink, (severity, group, code, text))

    def _limit(self, frame: Frame, out: _Output, code: str) -> None:
        """Say once that a limit was reached."""
        self._remarks.limit(place_of(frame), out.sink, code, LIMIT_TEXTS[code])


# offset, length, packet and time of the response
_Answer = tuple[int, int, int, int] | tuple[None, None, None, None]
_NO_ANSWER = (None, None, None, None)


def _exchange_row(request: Request, known: Operation, status: str, error_code: int | None, answer: _Answer) -> Row:
    offset, length, packet, ts_ns = answer
    return exchange_row(
        request_offset=request.offset,
        request_packet=request.packet,
        request_bytes=request.length,
        ts=request.ts_ns,
        response_offset=offset,
        response_packet=packet,
        response_bytes=length,
        ts_response=ts_ns,
        operation=known.name,
        version=known.version,
        client_id=request.client_id,
        status=status,
        error_code=error_code,
        error_name=None if error_code is None else ERROR_NAMES.get(error_code),
        awaitable=known.waits(request.value) or None,
    )


def _decodes(asked: tuple[int, int], data: bytes, position: int, end: int) -> bool:
    """Do these bytes decode to their last one as a response to (API key, version)?"""
    api_key, version = asked
    try:
        _, body = response_header(api_key, version, data, position, end)
        decoded = decode_response(api_key, version, data, body, end)
    except DecodeError:
        return False
    return decoded is not None and decoded[1] == end


def _begins(asked: tuple[int, int], data: bytes, position: int, end: int) -> bool | None:
    """Can a response to (API key, version) that ends behind the data begin here? None: too little of it is there."""
    api_key, version = asked
    try:
        _, body = response_header(api_key, version, data, position, len(data))
    except DecodeError:
        return None
    read = begins(api_key, version, "response", data, body, end)
    if read is None:
        return False
    return True if read >= PROOF_BYTES else None


def _decode_api_versions(version: int, known: Operation, data: bytes, body: int, end: int) -> tuple[Value, int, int]:
    """(value, position behind it, error code): the answer may have the form of version 0 (KIP-511)."""
    decoded = decode_response(API_VERSIONS, version, data, body, end)
    if decoded is None:
        raise DecodeError(known.undecoded[1])
    value, behind, form = decoded
    return value, behind, error_finder(API_VERSIONS, form)(value)


def _add_message(
    rows: list[Row],
    frame: Frame,
    role: str,
    known: Operation | None,
    correlation_id: int | None,
    client_id: str | None,
    error: str | None,
    line: str | None,
) -> None:
    rows.append(
        message_row(
            frame,
            role=role,
            operation=None if known is None else known.name,
            version=None if known is None else known.version,
            correlation_id=correlation_id,
            client_id=client_id,
            error=error,
            summary=line,
        )
    )


def conversation(limits: Limits, options: DecodeOptions) -> KafkaConversation:
    """A new conversation, see `Dissector.conversation`."""
    return KafkaConversation(limits, options)
