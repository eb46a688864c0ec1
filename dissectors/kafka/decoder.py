"""One Kafka connection: frames of both directions in, messages, exchanges and table rows out.

A response cannot be decoded without its request's API and version, so requests wait until it comes. Brokers answer the
requests of one connection in order (Kafka's protocol guide, "Network"), so a correlation id that stands twice means the
older request, and an answer in another order is remarked on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.batch_backoff import Worth, try_together
from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.budget import BODY_TIMES, REQUEST_BYTES
from wirewitness.dissectors.core.deferred import DeferredFrames, rests_of
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.outstanding import Outstanding
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import CUT, ORPHAN, orphan_row
from wirewitness.dissectors.kafka.authentication import Authentication
from wirewitness.dissectors.kafka.first_request import FirstRequests, answers, plausible
from wirewitness.dissectors.kafka.headers import (
    API_VERSIONS,
    MAX_VERSION,
    decode_response,
    request_header,
    response_header,
)
from wirewitness.dissectors.kafka.operation import Operation, operation
from wirewitness.dissectors.kafka.output import Output, add_exchange, add_message, output
from wirewitness.dissectors.kafka.pending_headers import Ahead
from wirewitness.dissectors.kafka.remarks import FrameRemarks
from wirewitness.dissectors.kafka.rows.api_rows import PRODUCE, ExchangeRows
from wirewitness.dissectors.kafka.rows.data_rows import ProducedPartition
from wirewitness.dissectors.kafka.rows.errors_in import error_finder
from wirewitness.dissectors.kafka.rows.fetch_sessions import FetchSessions
from wirewitness.dissectors.kafka.rows.fields import Request, Response
from wirewitness.dissectors.kafka.rows.version_rows import ConnectionVersions
from wirewitness.dissectors.kafka.sasl import SASL_KEYS
from wirewitness.dissectors.kafka.schema.primitives import Value
from wirewitness.dissectors.kafka.summary import summary

# From so many frames on those of a connection are read together with others, if these are so many in all. Finding pairs
# takes a fifth of what decoding one by one takes.
MANY_FRAMES = 4
LEAST_FRAMES = 64
LEAST_PART = 4

if TYPE_CHECKING:
    from wirewitness.dissectors.kafka.lockstep.batch_decode import Together

# A partition of a Produce that waits: its value, and what was read of its batch.
PARTITION_BYTES = 1000
_read_correlation_id = struct.Struct(">i").unpack_from


class KafkaDecoder:
    """Pairs and decodes the messages of one flow. Picklable; holds no input or output."""

    __slots__ = (
        "_ahead",
        "_authentication",
        "_first",
        "_left",
        "_limits",
        "_outstanding",
        "_remarks",
        "_rows",
        "_versions",
        "judged",
    )

    def __init__(self, limits: Limits, options: DecodeOptions | None = None) -> None:
        self._limits = limits
        self._remarks = FrameRemarks(limits)
        self._outstanding: Outstanding[Request, Output] = Outstanding(limits)
        self._first = FirstRequests()
        self.judged = Judged()
        self._authentication = Authentication(limits, self._remarks)
        self._rows = ExchangeRows(limits, options or DecodeOptions(), self._remarks.remarks)
        self._versions = ConnectionVersions(limits)
        self._left: DeferredFrames[Together] = DeferredFrames()
        self._ahead: Ahead | None = None

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; see `Conversation.feed`."""
        if out.later is None:
            self.one_by_one(frames, output(out))
            return
        first = next((place for place, frame in enumerate(frames) if frame.direction == CLIENT_TO_SERVER), -1)
        if frames and frames[first].stream_offset == 0:  # what a connection begins with may be no request
            if self._left.count:
                self.settle(out)
            self.one_by_one(frames[: first + 1], output(out))
            frames = frames[first + 1 :]
        if frames:
            self._left.leave(self, frames, out)

    def settle(self, out: Sink) -> None:
        """Decode the frames that were left; see `core/deferred.py`."""
        frames, together = self._left.take()
        self._ahead = None
        if together is None:
            self.one_by_one(frames, output(out))
        else:
            self._outstanding.heard = True
            together.follow(self, frames, output(out))

    def whole(self, frames: Sequence[Frame], together: Together | None, out: Sink) -> None:
        """All frames of a connection from its first one to its last. together: what was read of them with others."""
        rows = output(out)
        if together is None:
            self.one_by_one(frames, rows)
        else:
            self._outstanding.heard = True
            together.follow(self, frames, rows)
        self.finish(out)

    @staticmethod
    def read_together(decoders: Sequence[KafkaDecoder], out: Sink) -> None:
        """Prepare what these have left; `settle` of each gives its rows."""

        def read(many: list[KafkaDecoder]) -> Sequence[Together | None]:
            from wirewitness.dissectors.kafka.lockstep.batch_decode import together
            from wirewitness.dissectors.kafka.lockstep.pairs import Connection

            of_all = [Connection.of(one._left.frames, one._outstanding, one._rows.records.held_bytes) for one in many]
            return together(of_all, many[0]._limits, many[0]._rows.records.payload, out)

        many = [one for one in decoders if one._left.count >= MANY_FRAMES and one._is_plain]
        try_together([(one, one._left) for one in many], read, rests_of(out), Worth("kafka", LEAST_FRAMES, LEAST_PART))

    @property
    def sessions(self) -> FetchSessions:
        """What Fetches ask for."""
        return self._rows.sessions

    @property
    def _is_plain(self) -> bool:
        """Does nothing go on but requests and their responses?"""
        talk = self._authentication.talk
        return not (self._outstanding.overtakes or talk.bare or talk.active or talk.waiting or self._versions.full)

    def one_by_one(self, frames: Sequence[Frame], out: Output) -> None:
        """Decode frames in the order given."""
        request, respond = self._request, self.respond
        for frame in frames:
            if frame.direction == CLIENT_TO_SERVER:
                request(frame, out)
            else:
                respond(frame, out)

    def tell_limits(self, frame: Frame, out: Output) -> None:
        """Say once of each limit of rows that it was reached, if it was."""
        for code in self._rows.limits_reached:
            self.limit(frame, out, code)

    def pass_over(self, correlation_ids: Sequence[int], out: Output) -> None:
        """A newer request was answered than these, of which some may wait."""
        self._outstanding.pass_over(correlation_ids, self, out)

    def note(self, request: Request, frame: Frame, out: Output) -> None:
        """Remember the version of a request."""
        self._versions.requested(request)
        if self._versions.full:
            self.limit(frame, out, "api_versions")

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """See `Conversation.boundary`."""
        outstanding = self._outstanding
        if direction == CLIENT_TO_SERVER and outstanding.lost and self._has_heard and self._is_regular:
            # No request that waits, nor any frame that is left, has a say in where a request starts.
            return plausible(direction, data, position, hinted, {}, self._first, self.judged, None)
        ahead = self._looked_ahead()
        if ahead is not None:
            outstanding.lost = True
            return plausible(direction, data, position, hinted, ahead.requests, self._first, self.judged, None)
        self._left.settle(self)
        if outstanding.heard or (direction == CLIENT_TO_SERVER and outstanding.requests):
            outstanding.lost = True  # the stream was read before, and goes on behind bytes that are missing
        requests = outstanding.requests
        early = None if requests or outstanding.heard else outstanding.early
        verdict = plausible(direction, data, position, hinted, requests, self._first, self.judged, early)
        if direction == CLIENT_TO_SERVER and early is not None:
            outstanding.certain = self._first.confirmed
        return verdict

    def _looked_ahead(self) -> Ahead | None:
        """What waits behind the frames that are left; None where these must be decoded first, or none are left."""
        outstanding = self._outstanding
        if not (self._left.count and self._is_regular):
            return None
        if self._ahead is None:
            self._ahead = Ahead(outstanding, self._limits)
        ahead = self._ahead
        if not ahead.follow(self._left.frames, lost=outstanding.lost):
            return None
        return ahead if ahead.heard or (outstanding.lost and ahead.requests) else None

    @property
    def _has_heard(self) -> bool:
        """Was any response read, or looked at where it is left?"""
        return self._outstanding.heard or (self._ahead is not None and self._ahead.heard)

    @property
    def _is_regular(self) -> bool:
        """Is nothing but requests and responses in question, and of no response that it was read early for certain?"""
        return self._outstanding.certain is None and self._is_plain

    @property
    def held_bytes(self) -> int:
        """See `HoldsRequests`. What was left for later is not in it."""
        outstanding = self._outstanding
        return sum(map(_held_by, outstanding.requests.values())) + outstanding.early_bytes

    def let_go(self, out: Sink) -> None:
        """See `HoldsRequests`."""
        self.settle(out)
        self._outstanding.let_go(self, output(out))

    def finish(self, out: Sink) -> None:
        """Give the requests that were never answered."""
        self.settle(out)
        rows = output(out)
        self._outstanding.finish(self, rows)
        self._authentication.end(rows, went_on=False)
        self._versions.finish(out)
        self._remarks.remarks.finish(out)

    # Requests.

    def _request(self, frame: Frame, out: Output) -> None:
        _, _, data, start, end, offset, _, last, ts_ns, _ = frame
        authentication = self._authentication
        if (offset == 0 or authentication.talk.bare) and authentication.token(frame, out):
            return
        try:
            api_key, version, correlation_id, client_id, body = request_header(data, start + 4, end)
            if version > MAX_VERSION:
                raise DecodeError(f"version {version} is beyond belief")
        except DecodeError as error:
            self._unreadable(frame, out, "request", str(error))
            return
        known = operation(api_key, version)
        value, error_text = self._request_body(frame, out, api_key, version, known, body)
        if out.messages is not None:
            line = summary(value, None)
            add_message(out.messages, frame, "request", known, correlation_id, client_id, error_text, line)
        size = (
            end - start if frame.complete else max(_read_correlation_id(data, start)[0] + 4, end - start)
        )  # as it says
        request = Request(api_key, version, correlation_id, client_id, offset, size, last, ts_ns, value)
        if api_key in out.apis and value is not None:
            request = request._replace(extra=self._rows.extra(request, value, data, out.sink))
            self.tell_limits(frame, out)
        self.note(request, frame, out)
        if api_key in SASL_KEYS or authentication.talk.active:
            authentication.requested(request, out, data, body, end)
        if api_key == PRODUCE and value is not None and value["acks"] == 0:
            self._no_response(request, "one_way", out)
        else:
            self._outstanding.wait(correlation_id, request, frame, self, out)

    def _request_body(
        self, frame: Frame, out: Output, api_key: int, version: int, known: Operation, body: int
    ) -> tuple[Value | None, str | None]:
        """The value of a request's body, and why it has none."""
        if known.request is None:
            offer = self._versions.offer(api_key)
            return None, self._remarks.undecoded(frame, out.sink, (api_key, version), known, offer)
        try:
            value, behind = known.request(frame.data, body, frame.end)
        except DecodeError as error:
            return None, self._malformed(frame, out, known, "request", error)
        if behind != frame.end:
            self._remarks.trailing(frame, out.sink, known, "request", frame.end - behind)
        return value, None

    # Responses.

    def respond(self, frame: Frame, out: Output) -> None:
        """A frame of the server; see also `Pairing.respond`."""
        _, _, data, start, end, _, _, _, _, _ = frame
        outstanding = self._outstanding
        correlation_id: int = _read_correlation_id(data, start + 4)[0] if end - start >= 8 else -1
        request = outstanding.requests.get(correlation_id)
        if request is None and self._authentication.talk.waiting:
            self._authentication.token_answer(frame, out)
        elif end - start < 8:
            self._unreadable(frame, out, "response", "the frame ends inside the response header")
        elif request is None:
            self._not_waited_for(correlation_id, frame, out)
        else:
            outstanding.take_in_order(correlation_id, self, out)
            self._answered(request, frame, out)

    def _not_waited_for(self, correlation_id: int, frame: Frame, out: Output) -> None:
        """A response to none of the requests that wait: one that a newer one overtook, else it may come later."""
        outstanding = self._outstanding
        request = outstanding.overtaken(correlation_id)
        if request is None or not answers(request, frame):
            outstanding.hold_early(correlation_id, frame, self, out)
            return
        outstanding.take_overtaken(correlation_id)
        self._remarks.out_of_order(frame, out.sink, operation(request.api_key, request.version), correlation_id)
        self._answered(request, frame, out)

    def _answered(self, request: Request, frame: Frame, out: Output) -> None:
        """The response to this request."""
        api_key = request.api_key
        known = operation(api_key, request.version)
        value, error_code, error_text = self._response_body(request, frame, out, known)
        if out.messages is not None:
            line = summary(value, error_code)
            correlation_id, client_id = request.correlation_id, request.client_id
            add_message(out.messages, frame, "response", known, correlation_id, client_id, error_text, line)
        if out.exchanges is not None:
            throttled = None if value is None else value.get("throttle_time_ms")
            add_exchange(out.exchanges, request, known, "error" if error_code else "ok", frame, error_code, throttled)
        if api_key == API_VERSIONS:
            self._versions.answered(request, _response(frame, value))
            if self._versions.full:
                self.limit(frame, out, "api_versions")
        elif api_key in SASL_KEYS:
            self._authentication.answered(request, _response(frame, value), out)
        if api_key in out.apis:
            response = _response(frame, value)._replace(remarks=[])
            self._rows.add(request, response, out.sink)
            for remark in response.remarks or ():
                self._remarks.add(frame, out.sink, remark)
            self.tell_limits(frame, out)

    def _response_body(
        self, request: Request, frame: Frame, out: Output, known: Operation
    ) -> tuple[Value | None, int | None, str | None]:
        """The value of a response's body, its first error code, and why it is not wholly decoded."""
        if known.response is None:
            return None, None, known.undecoded[1]
        data, end, version = frame.data, frame.end, request.version
        body = frame.start + 8
        value: Value | None = None
        error_code: int | None = None
        try:
            if known.tagged_response:
                body = response_header(request.api_key, version, data, frame.start + 4, end)[1]
            if request.api_key == API_VERSIONS:
                value, behind, error_code = _decode_api_versions(version, known, data, body, end)
            else:
                value, behind = known.response(data, body, end)
                error_code = known.first_error(value)
        except DecodeError as error:
            return value, error_code, self._malformed(frame, out, known, "response", error)
        if behind != end:
            self._remarks.trailing(frame, out.sink, known, "response", end - behind)
        return value, error_code, None

    # What becomes of requests and responses without each other, see `Pairing`.

    def unanswered(self, request: Request, out: Output) -> None:
        """A request that waits no longer."""
        self._no_response(request, "unanswered", out)

    def given_up(self, request: Request, out: Output) -> None:
        """A request whose response may still come."""
        self._no_response(request, None, out)

    def orphan(self, frame: Frame, out: Output) -> None:
        """A response whose request is not in the capture."""
        if out.messages is not None:
            correlation_id: int = _read_correlation_id(frame.data, frame.start + 4)[0]
            add_message(out.messages, frame, "response", None, correlation_id, error=ORPHAN)
        if out.exchanges is not None:
            out.exchanges.append(orphan_row(frame))

    def limit(self, frame: Frame, out: Output, code: str) -> None:
        """A limit was reached: said once."""
        self._remarks.limit(frame, out.sink, code)

    def _no_response(self, request: Request, status: str | None, out: Output) -> None:
        """The exchange of a request that has no response: unanswered, one_way by design, None where nobody knows."""
        if out.exchanges is not None:
            add_exchange(out.exchanges, request, operation(request.api_key, request.version), status)
        if request.api_key in out.apis:
            self._rows.add(request, None, out.sink)

    # Frames that cannot be read.

    def _unreadable(self, frame: Frame, out: Output, role: str, text: str) -> None:
        """A frame without even a header."""
        if out.messages is not None:
            add_message(out.messages, frame, role, None, error=text)
        self._remarks.header(frame, out.sink, role, text)

    def _malformed(self, frame: Frame, out: Output, known: Operation, role: str, error: DecodeError) -> str:
        """What `messages` says of a body that could not be decoded; no remark where it is cut."""
        return self._remarks.malformed(frame, out.sink, known, role, error) if frame.complete else CUT


def _held_by(request: Request) -> int:
    """Memory of a request that waits. The records of a Produce are held apart from its value, or not at all."""
    if request.value is None:
        return REQUEST_BYTES  # nothing of its body, whose length may be more than what came
    if request.api_key != PRODUCE:
        return REQUEST_BYTES + BODY_TIMES * request.length
    partitions: Sequence[ProducedPartition] = request.extra or ()
    held = sum(partition.size for partition in partitions if partition.held is not None)
    return REQUEST_BYTES + held + PARTITION_BYTES * len(partitions)


def _response(frame: Frame, value: Value | None) -> Response:
    return Response(frame.stream_offset, frame.packet_last, frame.ts_ns, value, frame.data)


def _decode_api_versions(version: int, known: Operation, data: bytes, body: int, end: int) -> tuple[Value, int, int]:
    """(value, position behind it, error code): the answer may have the form of version 0 (KIP-511)."""
    decoded = decode_response(API_VERSIONS, version, data, body, end)
    if decoded is None:
        raise DecodeError(known.undecoded[1])
    value, behind, form = decoded
    return value, behind, error_finder(API_VERSIONS, form)(value)
