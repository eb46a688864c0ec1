"""SASL on a Kafka connection: who authenticates, how, with which result; never with what.

In: handshakes, tokens and SaslAuthenticate exchanges of one flow. Out: kafka_authentications rows. Three forms exist:
tokens in SaslAuthenticate (after SaslHandshake 1, KIP-152), bare tokens (a size, then bytes, both ways) after
SaslHandshake 0 (KIP-43), and bare GSSAPI tokens from the first byte on (Kafka 0.9). Mechanism and user name are kept;
nothing else of a token leaves this module. Later handshakes of a connection are re-authentications (KIP-368).
"""

from __future__ import annotations

from dataclasses import dataclass

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.change_fields import AUTHENTICATIONS
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_of
from wirewitness.dissectors.kafka.sasl_tokens import NOBODY, Who, mechanism_of, who

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
