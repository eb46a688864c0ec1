"""The SASL messages of a connection: what is a bare token, and the messages and exchanges of those.

In: frames of a flow and its SASL requests and responses. Out: rows of messages and exchanges for bare tokens, which
have no header; what an authentication comes to is told by `SaslTalk`.
"""

from __future__ import annotations

from wirewitness.dissectors.core.closed import closed_user
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.kafka.framing import is_request
from wirewitness.dissectors.kafka.operation import TOKEN
from wirewitness.dissectors.kafka.output import Output, add_exchange, add_message
from wirewitness.dissectors.kafka.remarks import FrameRemarks
from wirewitness.dissectors.kafka.rows.fields import Request, Response
from wirewitness.dissectors.kafka.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, SaslTalk
from wirewitness.dissectors.kafka.sasl_tokens import auth_bytes, gssapi_token


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
            words = (("mechanism", self.talk.mechanism), ("user_name", self._user()))
            line = " ".join(f"{name}={value}" for name, value in words if value is not None) or None
            add_message(out.messages, frame, role, TOKEN, client_id=self.talk.client_id, summary=line)

    def _user(self) -> str | None:
        name = self.talk.user_name
        return None if name is None else closed_user(name)

    def _add_exchange(self, request: Request, status: str | None, out: Output, answer: Frame | None = None) -> None:
        if out.exchanges is not None:
            add_exchange(out.exchanges, request, TOKEN, status, answer)
