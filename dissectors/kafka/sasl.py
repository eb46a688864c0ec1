"""SASL on a Kafka connection: who authenticates, how, with which result; never with what.

In: handshakes, tokens and SaslAuthenticate exchanges of one flow. Out: kafka_authentications rows. Three forms exist:
tokens in SaslAuthenticate (after SaslHandshake 1, KIP-152), bare tokens (a size, then bytes, both ways) after
SaslHandshake 0 (KIP-43), and bare GSSAPI tokens from the first byte on (Kafka 0.9). Mechanism and user name are kept;
nothing else of a token leaves this module. Later handshakes of a connection are re-authentications (KIP-368).
"""

from __future__ import annotations

from dataclasses import dataclass

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.framing import is_request
from wirewitness.dissectors.kafka.operation import TOKEN
from wirewitness.dissectors.kafka.output import Output, add_exchange, add_message
from wirewitness.dissectors.kafka.remarks import FrameRemarks
from wirewitness.dissectors.kafka.rows.change_fields import AUTHENTICATIONS
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_of
from wirewitness.dissectors.kafka.sasl_tokens import NOBODY, Who, auth_bytes, gssapi_token, mechanism_of, who

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
SASL_KEYS = frozenset({SASL_HANDSHAKE, SASL_AUTHENTICATE})
# Answered tokens after which the client is in; other mechanisms take what they take.
_ROUND_TRIPS = {"PLAIN": 1, "OAUTHBEARER": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2}


@dataclass(slots=True)
class _Authentication:
    """One authentication while it goes on: its newest exchange and what is known."""

    request: Request
    response: Response | None
    mechanism: str | None
    form: str
    known: Who = NOBODY
    round_trips: int = 0
    error_code: int | None = None
    error_message: str | None = None
    session_lifetime_ms: int | None = None

    def accepted(self, went_on: bool) -> bool | None:
        """Is the client in? It is if it went on with other requests; None while nothing tells."""
        if self.error_code:
            return False
        if went_on or self.session_lifetime_ms:
            return True
        enough = _ROUND_TRIPS.get(self.mechanism or "")
        return True if enough is not None and self.round_trips >= enough else None


class SaslTalk:
    """The authentications of one connection.

    bare: tokens without a Kafka header may come. active: an authentication goes on. waiting: bare tokens without
    an answer yet.
    """

    __slots__ = ("_current", "_done", "active", "bare", "client_id", "waiting")

    def __init__(self) -> None:
        self.bare = False
        self.active = False
        self.client_id: str | None = None
        self.waiting: list[Request] = []
        self._current: _Authentication | None = None
        self._done = 0

    @property
    def mechanism(self) -> str | None:
        """The mechanism of the authentication that goes on."""
        return None if self._current is None else self._current.mechanism

    @property
    def user_name(self) -> str | None:
        """Its user name as far as it was seen."""
        return None if self._current is None else self._current.known.user_name

    def handshake(self, request: Request, out: Sink) -> None:
        """A SaslHandshake names the mechanism; with version 0 bare tokens follow."""
        self.end(out, went_on=False)
        mechanism = None if request.value is None else request.value["mechanism"]
        self.bare = request.version == 0
        self._begin(request, mechanism, "bare_tokens" if self.bare else "sasl_authenticate")

    def handshake_answered(self, request: Request, response: Response, out: Sink) -> None:
        """A refused mechanism is the end of it."""
        current = self._current
        if current is None or response.value is None or not response.value["error_code"]:
            return
        current.request, current.response = request, response
        current.error_code = response.value["error_code"]
        self.end(out, went_on=False)

    def token(self, request: Request, token: bytes) -> None:
        """A bare token of the client. The caller keeps `waiting` short."""
        self.bare = True
        if self._current is None:
            self._begin(request, mechanism_of(token), "bare_tokens")
        self._said(request, token)
        self.waiting.append(request)

    def token_answered(self, response: Response) -> Request:
        """The bare token that this frame of the server answers: the oldest one that waits."""
        request = self.waiting.pop(0)
        if self._current is not None:
            self._current.request, self._current.response = request, response
            self._current.round_trips += 1
        return request

    def authenticate(self, request: Request, token: bytes) -> None:
        """A SaslAuthenticate request, with its own auth_bytes."""
        if self._current is None:
            self._begin(request, mechanism_of(token), "sasl_authenticate")
        self._said(request, token)

    def authenticated(self, request: Request, response: Response, out: Sink) -> None:
        """A SaslAuthenticate answer; an error is the end of the authentication."""
        current, value = self._current, response.value
        if current is None or value is None:
            return
        current.request, current.response = request, response
        current.round_trips += 1
        current.error_code, current.error_message = value["error_code"], value["error_message"]
        current.session_lifetime_ms = value.get("session_lifetime_ms")
        if current.error_code:
            self.end(out, went_on=False)

    def end(self, out: Sink, *, went_on: bool) -> list[Request]:
        """The authentication is over: give its row. Returns bare tokens that were never answered."""
        left, current = self.waiting, self._current
        self.waiting, self._current, self.bare, self.active = [], None, False, False
        if current is None:
            return left
        accepted = current.accepted(went_on)
        rows = out.rows("kafka_authentications")
        if rows is not None:
            rows.append(
                AUTHENTICATIONS.row(
                    **exchange_of(current.request, current.response),
                    client_id=current.request.client_id,
                    mechanism=current.mechanism,
                    user_name=current.known.user_name,
                    delegation_token=current.known.delegation_token,
                    form=current.form,
                    round_trips=current.round_trips,
                    accepted=accepted,
                    session_lifetime_ms=current.session_lifetime_ms,
                    reauthentication=self._done > 0,
                    error_code=current.error_code,
                    error_message=current.error_message,
                )
            )
        self._done += bool(accepted)
        return left

    def _begin(self, request: Request, mechanism: str | None, form: str) -> None:
        self.active = True
        self.client_id = request.client_id
        self._current = _Authentication(request, None, mechanism, form)

    def _said(self, request: Request, token: bytes) -> None:
        current = self._current
        if current is None:
            return
        current.request, current.response = request, None
        if current.known.user_name is None:
            current.known = who(current.mechanism, token)


# The SASL messages of a connection: what is a bare token, and the messages and exchanges of those.


class Authentication:
    """The authentications of one flow and the bare tokens that wait for an answer. Picklable.

    talk: what goes on; every request asks whether frames without a Kafka header may come (`bare`), and whether an
    authentication goes on (`active`).
    """

    __slots__ = ("_limits", "_remarks", "talk")

    def __init__(self, limits: Limits, remarks: FrameRemarks) -> None:
        self._limits = limits
        self._remarks = remarks
        self.talk = SaslTalk()

    def token(self, frame: Frame, out: Output) -> bool:
        """Take a frame that is a bare token; False for one that is a request."""
        talk, start, end = self.talk, frame.start, frame.end
        if not talk.bare and not gssapi_token(frame.data, start + 4, end):
            return False
        if is_request(frame.data, start, end):
            self.end(out, went_on=True)
            return False
        place = (frame.stream_offset, frame.size, frame.packet_last, frame.ts_ns)
        request = Request(-1, -1, -1, talk.client_id, *place, None)
        if len(talk.waiting) >= self._limits.max_outstanding_tokens:
            self._add_exchange(talk.waiting.pop(0), None, out)
            self._remarks.limit(frame, out.sink, "outstanding_tokens")
        talk.token(request, frame.data[start + 4 : end])
        self._add_message(frame, out, "request")
        return True

    def token_answer(self, frame: Frame, out: Output) -> None:
        """A frame of the server while a bare token waits: its answer, whatever is in it."""
        response = Response(frame.stream_offset, frame.packet_last, frame.ts_ns, None, b"")
        request = self.talk.token_answered(response)
        self._add_message(frame, out, "response")
        self._add_exchange(request, "ok", out, frame)

    def requested(self, request: Request, out: Output, data: bytes, body: int, end: int) -> None:
        """A SASL request, its body at `data[body:end]`, or the first request behind an authentication."""
        if request.api_key == SASL_HANDSHAKE:
            self.talk.handshake(request, out.sink)
        elif request.api_key == SASL_AUTHENTICATE:
            self.talk.authenticate(request, auth_bytes(request.version, data, body, end))
        else:
            self.end(out, went_on=True)

    def answered(self, request: Request, response: Response, out: Output) -> None:
        """The response to a SASL request."""
        if request.api_key == SASL_HANDSHAKE:
            self.talk.handshake_answered(request, response, out.sink)
        else:
            self.talk.authenticated(request, response, out.sink)

    def end(self, out: Output, *, went_on: bool) -> None:
        """An authentication is over. A token that was not answered although the client went on needed no answer."""
        for request in self.talk.end(out.sink, went_on=went_on):
            self._add_exchange(request, "one_way" if went_on else "unanswered", out)

    def _add_message(self, frame: Frame, out: Output, role: str) -> None:
        if out.messages is not None:
            words = (("mechanism", self.talk.mechanism), ("user_name", self.talk.user_name))
            line = " ".join(f"{name}={value}" for name, value in words if value is not None) or None
            add_message(out.messages, frame, role, TOKEN, client_id=self.talk.client_id, summary=line)

    def _add_exchange(self, request: Request, status: str | None, out: Output, answer: Frame | None = None) -> None:
        if out.exchanges is not None:
            add_exchange(out.exchanges, request, TOKEN, status, answer)
