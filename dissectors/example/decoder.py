"""One connection: frames of both directions in, messages, exchanges and remarks out.

Several requests may wait at a time. Nothing in a response names its request: answers come in the order of the requests,
so the oldest request that waits is the one that is answered. After a loss the order is not known any more: what waits
is given up, and the next request begins anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import CUT, ORPHAN, exchange_row, expert_row, message_row
from wirewitness.dissectors.example.framing import SENT, plausible
from wirewitness.dissectors.example.headers import CALL, KNOWN_VERSION, REQUEST, RESPONSE, Header, header

MAX_VERSIONS = 8


class Half(NamedTuple):
    """A request or a response: what the row of its exchange needs."""

    offset: int
    size: int
    packet: int
    ts_ns: int
    version: str


class Nobody(NamedTuple):
    """What is known of the half that is not there."""

    offset: None = None
    size: None = None
    packet: None = None
    ts_ns: None = None
    version: None = None


NOBODY = Nobody()


class ExampleDecoder:
    """Pairs the messages of one flow. Picklable; holds no input or output."""

    __slots__ = ("_given_up", "_limits", "_outstanding", "_pipelines", "_remarks", "_versions")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._outstanding: deque[Half] = deque()
        self._given_up = 0
        self._versions = {KNOWN_VERSION}
        self._pipelines = False
        self._remarks = 0

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; see `Conversation.feed`."""
        for frame in frames:
            self._message(frame, out)

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """See `Conversation.boundary`."""
        return plausible(direction, data, position, hinted, self._versions)

    def lost(self, direction: int, out: Sink) -> None:
        """See `PairsByOrder.lost`: nobody knows how many requests or responses are missing.

        A client that was never seen to send a request before the last one was answered did not do so now: what comes
        next from the server answers its newest request.
        """
        keep = 1 if direction == SERVER_TO_CLIENT and not self._pipelines else 0
        self._given_up = 0
        while len(self._outstanding) > keep:
            _add_exchange(self._outstanding.popleft(), None, "unanswered", out)

    def finish(self, out: Sink) -> None:
        """Give the requests that were never answered."""
        while self._outstanding:
            _add_exchange(self._outstanding.popleft(), None, "unanswered", out)

    def _message(self, frame: Frame, out: Sink) -> None:
        direction = frame.direction
        try:
            known = header(frame.data, frame.start, frame.end)
        except DecodeError as problem:
            _add_message(frame, None, str(problem) if frame.complete else CUT, out)
            return
        in_place = known.frame_type == SENT[direction]
        is_orphan = in_place and known.frame_type == RESPONSE and (self._given_up or not self._outstanding)
        _add_message(frame, known, CUT if not frame.complete else ORPHAN if is_orphan else None, out)
        self._remark_unknown(frame, known, out)
        if known.role is not None and not in_place:
            sender = "client" if direction == CLIENT_TO_SERVER else "server"
            self._remark(frame, "warn", "protocol", "wrong_direction", f"the {sender} sent a {known.role}", out)
        elif known.frame_type == REQUEST:
            self._request(frame, known, out)
        elif known.frame_type == RESPONSE:
            self._response(frame, known, out)

    def _request(self, frame: Frame, known: Header, out: Sink) -> None:
        if len(self._outstanding) >= self._limits.max_outstanding:
            _add_exchange(self._outstanding.popleft(), None, None, out)
            self._given_up += 1
            text = "too many requests wait for a response"
            self._remark(frame, "note", "limit", "outstanding_requests", text, out)
        self._outstanding.append(_half(frame, known))

    def _response(self, frame: Frame, known: Header, out: Sink) -> None:
        self._pipelines = self._pipelines or len(self._outstanding) > 1
        if self._given_up:
            self._given_up -= 1
            _add_exchange(None, _half(frame, known), "orphan", out)
        elif self._outstanding:
            _add_exchange(self._outstanding.popleft(), _half(frame, known), "ok", out)
        else:
            _add_exchange(None, _half(frame, known), "orphan", out)

    def _remark_unknown(self, frame: Frame, known: Header, out: Sink) -> None:
        if known.version not in self._versions and len(self._versions) < MAX_VERSIONS:
            self._versions.add(known.version)
            self._remark(frame, "note", "undecoded", "unknown_version", f"version {known.version} is not known", out)
        if known.role is None:
            text = f"frame type {known.frame_type} is not known"
            self._remark(frame, "note", "undecoded", "unknown_frame_type", text, out)

    def _remark(self, frame: Frame, severity: str, group: str, code: str, text: str, out: Sink) -> None:
        """Remark on a frame, as long as the flow has not too many remarks."""
        self._remarks += 1
        if self._remarks <= self._limits.max_expert_infos:
            offset = frame.stream_offset
            out.expert(
                expert_row(
                    direction=frame.direction,
                    stream_offset=offset,
                    packet=frame.packet_last,
                    ts=frame.ts_ns,
                    remark=(severity, group, code, text),
                    span=f"{offset}-{offset + frame.size - 1}",
                )
            )


def _add_message(frame: Frame, known: Header | None, error: str | None, out: Sink) -> None:
    """A row of `messages`."""
    rows = out.rows("messages")
    if rows is None:
        return
    if known is None:
        rows.append(message_row(frame, role=None, error=error))
        return
    words = f"payload_bytes={known.payload_length}"
    rows.append(
        message_row(
            frame,
            role=known.role,
            operation=known.operation,
            version=str(known.version),
            error=error,
            summary=words,
        )
    )


def _half(frame: Frame, known: Header) -> Half:
    return Half(frame.stream_offset, frame.size, frame.packet_last, frame.ts_ns, str(known.version))


def _add_exchange(request: Half | None, response: Half | None, status: str | None, out: Sink) -> None:
    """A row of `exchanges`. An orphan's time and version are those of the response."""
    rows = out.rows("exchanges")
    known = request or response
    if rows is None or known is None:
        return
    asked, answered = request or NOBODY, response or NOBODY
    rows.append(
        exchange_row(
            operation=CALL,
            version=known.version,
            status=status,
            ts=known.ts_ns,
            ts_response=answered.ts_ns,
            request_offset=asked.offset,
            response_offset=answered.offset,
            request_packet=asked.packet,
            response_packet=answered.packet,
            request_bytes=asked.size,
            response_bytes=answered.size,
        )
    )
