"""One Kafka connection: frames of both directions in, messages, exchanges and table rows out.

Requests wait here until their response comes; a response cannot be decoded without its request's API and version.
Brokers answer the requests of one connection in order, so a correlation id that stands twice means the older request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dissectors.core.errors import DecodeError
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, Frame
from dissectors.core.protocol import Sink
from dissectors.kafka import cluster_rows, data_rows, group_rows
from dissectors.kafka.api_keys import API_KEYS, api_name
from dissectors.kafka.compile import decoder
from dissectors.kafka.error_codes import error_name
from dissectors.kafka.errors_in import error_plan, first_error
from dissectors.kafka.headers import correlation_id, decode_response, request_header, response_header
from dissectors.kafka.rows import Request, Response, Value
from dissectors.kafka.summary import summary

PRODUCE, FETCH, METADATA = 0, 1, 3

RowMaker = Callable[[Request, Response | None, Sink], None]

# API key -> what makes the rows of its exchanges.
ROW_MAKERS: Mapping[int, RowMaker] = {
    0: data_rows.produce_rows,
    1: data_rows.fetch_rows,
    2: data_rows.list_offsets_rows,
    8: group_rows.commit_rows,
    9: group_rows.offset_fetch_rows,
    10: cluster_rows.coordinator_rows,
    11: group_rows.join_rows,
    12: group_rows.heartbeat_rows,
    13: group_rows.leave_rows,
    14: group_rows.sync_rows,
    15: group_rows.describe_rows,
    28: group_rows.commit_rows,
    68: group_rows.consumer_heartbeat_rows,
    69: group_rows.consumer_describe_rows,
}

_VERSIONS = tuple(str(version) for version in range(64))
_NAMES = {key: known.name for key, known in API_KEYS.items()}


class KafkaConversation:
    """Pairs and decodes the messages of one flow. Picklable; holds no input or output."""

    __slots__ = ("_known", "_limits", "_outstanding", "_remarks", "_sessions", "_told")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._outstanding: dict[int, Request] = {}
        self._sessions = data_rows.FetchSessions(limits)
        self._known = cluster_rows.KnownPartitions(limits)
        self._remarks = 0
        self._told: set[tuple[int, int]] = set()

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; see `Conversation.feed`."""
        for frame in frames:
            if frame[1] == CLIENT_TO_SERVER:
                self._request(frame, out)
            else:
                self._response(frame, out)

    def finish(self, out: Sink) -> None:
        """Give the requests that were never answered."""
        for request in self._outstanding.values():
            self._exchange(request, None, "unanswered", None, 0, out)
        self._outstanding = {}

    def _request(self, frame: Frame, out: Sink) -> None:
        _, _, data, start, end, offset, _, last, ts_ns, complete = frame
        try:
            api_key, version, correlation, client_id, body = request_header(data, start + 4, end)
        except DecodeError as error:
            self._message(frame, out, "request", None, None, None, None, str(error), None)
            self._malformed(frame, out, "request header", str(error))
            return
        value, error_text = self._body(frame, out, api_key, version, body)
        self._message(frame, out, "request", api_key, version, correlation, client_id, error_text, value)
        if not complete and error_text is not None:
            # What a gap cut is no request that anybody answers to this capture's knowledge, but it may be answered.
            value = None
        request = Request(api_key, version, correlation, client_id, offset, end - start, last, ts_ns, value)
        if value is not None:
            if api_key == PRODUCE:
                request = self._produced(request, data, out)
                if value["acks"] == 0:
                    self._exchange(request, None, "one_way", None, 0, out)
                    return
            elif api_key == FETCH:
                request = request._replace(extra=self._sessions.asked(value))
        outstanding = self._outstanding
        older = outstanding.pop(correlation, None)
        if older is not None:
            self._exchange(older, None, "unanswered", None, 0, out)
        elif len(outstanding) >= self._limits.max_outstanding:
            oldest = outstanding.pop(next(iter(outstanding)))
            self._exchange(oldest, None, "unanswered", None, 0, out)
            self._remark(frame, out, "note", "limit", "outstanding_requests", "too many requests wait for a response")
        outstanding[correlation] = request

    def _body(self, frame: Frame, out: Sink, api_key: int, version: int, body: int) -> tuple[Value | None, str | None]:
        """(value, why there is none) of a request's body."""
        data, end, complete = frame[2], frame[4], frame[9]
        decode = decoder(api_key, version, "request")
        if decode is None:
            return None, self._undecoded(frame, out, api_key, version)
        try:
            value, behind = decode(data, body, end)
        except DecodeError as error:
            text = str(error) if complete else "cut: the capture lacks the rest of this message"
            if complete:
                self._malformed(frame, out, f"{api_name(api_key)} v{version} request", text)
            return None, text
        if behind != end:
            self._trailing(frame, out, f"{api_name(api_key)} v{version} request", end - behind)
        return value, None

    def _response(self, frame: Frame, out: Sink) -> None:
        _, _, data, start, end, offset, _, last, ts_ns, complete = frame
        try:
            correlation = correlation_id(data, start + 4, end)
        except DecodeError as error:
            self._message(frame, out, "response", None, None, None, None, str(error), None)
            self._malformed(frame, out, "response header", str(error))
            return
        request = self._outstanding.pop(correlation, None)
        if request is None:
            text = "the request is not in the capture"
            self._message(frame, out, "response", None, None, correlation, None, text, None)
            self._orphan(frame, out)
            return
        api_key, version = request.api_key, request.version
        value: Value | None = None
        error_text: str | None = None
        error_code: int | None = None
        try:
            _, body = response_header(api_key, version, data, start + 4, end)
            decoded = decode_response(api_key, version, data, body, end)
            if decoded is None:
                error_text = "no schema for this API and version"
            else:
                value, behind, form = decoded
                error_code = first_error(value, error_plan(api_key, form))
                if behind != end:
                    self._trailing(frame, out, f"{api_name(api_key)} v{version} response", end - behind)
        except DecodeError as error:
            error_text = str(error) if complete else "cut: the capture lacks the rest of this message"
            if complete:
                self._malformed(frame, out, f"{api_name(api_key)} v{version} response", error_text)
        self._message(frame, out, "response", api_key, version, correlation, request.client_id, error_text, value)
        response = Response(offset, last, ts_ns, value, data)
        self._exchange(request, response, "error" if error_code else "ok", error_code, end - start, out)

    def _produced(self, request: Request, data: bytes, out: Sink) -> Request:
        if request.value is None or out.rows("kafka_produce_batches") is None:
            return request
        return request._replace(extra=data_rows.produced(request.value, data))

    def _exchange(
        self,
        request: Request,
        response: Response | None,
        status: str,
        error_code: int | None,
        response_bytes: int,
        out: Sink,
    ) -> None:
        rows = out.rows("exchanges")
        api_key, version = request.api_key, request.version
        if rows is not None:
            rows.append(
                (
                    request.offset,
                    None if response is None else response.offset,
                    request.packet,
                    None if response is None else response.packet,
                    request.ts_ns,
                    None if response is None else response.ts_ns,
                    _NAMES.get(api_key) or api_name(api_key),
                    _version(version),
                    request.client_id,
                    status,
                    error_code,
                    None if error_code is None else error_name(error_code),
                    request.length,
                    None if response is None else response_bytes,
                )
            )
        if api_key == METADATA:
            cluster_rows.metadata_rows(request, response, out, self._known)
            return
        if api_key == FETCH and request.extra is not None and response is not None and response.value is not None:
            self._sessions.answered(response.value.get("session_id", 0), request.extra[1])
        maker = ROW_MAKERS.get(api_key)
        if maker is not None:
            maker(request, response, out)

    def _orphan(self, frame: Frame, out: Sink) -> None:
        rows = out.rows("exchanges")
        if rows is not None:
            _, _, _, start, end, offset, _, last, ts_ns, _ = frame
            rows.append(
                (None, offset, None, last, ts_ns, ts_ns, None, None, None, "orphan", None, None, None, end - start)
            )

    def _message(
        self,
        frame: Frame,
        out: Sink,
        role: str,
        api_key: int | None,
        version: int | None,
        correlation: int | None,
        client_id: str | None,
        error: str | None,
        value: Value | None,
    ) -> None:
        rows = out.rows("messages")
        if rows is None:
            return
        _, direction, _, start, end, offset, first, last, ts_ns, complete = frame
        known = api_key is not None and version is not None
        line = summary(api_key, version, value, role == "response") if known else None  # type: ignore[arg-type]
        rows.append(
            (
                direction,
                offset,
                end - start,
                first,
                last,
                ts_ns,
                role,
                None if api_key is None else api_name(api_key),
                None if version is None else _version(version),
                correlation,
                client_id,
                complete,
                error,
                line,
            )
        )

    def _undecoded(self, frame: Frame, out: Sink, api_key: int, version: int) -> str:
        """Why a body stays bytes; said once for each API and version of a flow."""
        known = API_KEYS.get(api_key)
        if known is None:
            code, text = "unknown_api_key", f"API key {api_key} is not known"
        elif version > known.newest:
            code, text = "unknown_version", f"{known.name} v{version} is newer than v{known.newest}, the newest known"
        else:
            code, text = "undecoded_body", f"the body of {known.name} v{version} is not decoded"
        if (api_key, version) not in self._told:
            self._told.add((api_key, version))
            self._remark(frame, out, "note", "undecoded", code, text)
        return text

    def _malformed(self, frame: Frame, out: Sink, what: str, text: str) -> None:
        self._remark(frame, out, "error", "malformed", "malformed_message", f"{what}: {text}")

    def _trailing(self, frame: Frame, out: Sink, what: str, count: int) -> None:
        self._remark(frame, out, "warn", "malformed", "trailing_bytes", f"{what}: {count} bytes behind the last field")

    def _remark(self, frame: Frame, out: Sink, severity: str, group: str, code: str, text: str) -> None:
        self._remarks += 1
        if self._remarks > self._limits.max_expert_infos:
            return
        _, direction, _, start, end, offset, _, last, ts_ns, _ = frame
        span = f"{offset}-{offset + end - start - 1}"
        out.expert((direction, offset, last, ts_ns, severity, group, code, text, span))


def _version(version: int) -> str:
    return _VERSIONS[version] if 0 <= version < len(_VERSIONS) else str(version)


def conversation(limits: Limits) -> KafkaConversation:
    """A new conversation, see `Dissector.conversation`."""
    return KafkaConversation(limits)
