"""The first request of a connection that is joined in the middle, where its answer has to prove it.

Most requests prove themselves: they have a client id and decode to their last byte. What does not (a body with more
than the definition says, a client id that is no text, a negative correlation id) is believed if it fills a segment and
is answered: by a response with its correlation id that decodes as its answer. In: the client's bytes from the start of
such a segment, and the responses whose request nobody read. Out: does a request start there?
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.kafka.framing import (
    MIN_HEADER_BYTES,
    MIN_REQUEST_BYTES,
    MIN_RESPONSE_BYTES,
    RESYNC_MAX_FIRST_BYTE,
    RESYNC_MAX_FRAME_BYTES,
    plausible_request,
    rising_responses,
)
from wirewitness.dissectors.kafka.headers import decode_response, request_header, response_header
from wirewitness.dissectors.kafka.rows.fields import Request
from wirewitness.dissectors.kafka.schema.walk import begins

# What a client says first is short.
MAX_REQUEST_BYTES = 1024
# Segments that are remembered, for the time until a request is read.
MAX_REMEMBERED = 16

_size = struct.Struct(">i").unpack_from


class Asked(NamedTuple):
    """What may have been asked for."""

    api_key: int
    version: int


# (what was asked for, data, position behind the size, end) -> do the bytes decode as the answer?
Decodes = Callable[[Asked, bytes, int, int], bool]


class FirstRequests:
    """Segments that may be the first request. confirmed: the correlation id of the one that was. Picklable."""

    __slots__ = ("_asked", "confirmed")

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}
        self.confirmed: int | None = None

    def asked(self, correlation_id: int) -> Asked | None:
        """What may have been asked for with this correlation id."""
        return self._asked.get(correlation_id)

    def verdict(self, data: bytes, position: int, answers: Mapping[int, Frame], decodes: Decodes) -> bool | None:
        """Does a request start at this start of a segment? None: when its answer is there, that will tell.

        answers: responses without a request, by correlation id. What comes behind the segment before its answer does
        is another request at best, so by then the answer must be there.
        """
        end = len(data)
        if end - position < MIN_HEADER_BYTES:
            return False
        size = _size(data, position)[0]
        frame_end = position + 4 + size
        if not MIN_REQUEST_BYTES <= size <= MAX_REQUEST_BYTES or frame_end > end:
            return False
        try:
            api_key, version, correlation_id, _, _ = request_header(data, position + 4, frame_end)
        except DecodeError:
            return False
        known = Asked(api_key, version)
        if self._asked.get(correlation_id) != known and (frame_end < end or not self._remember(correlation_id, known)):
            return False
        answer = answers.get(correlation_id)
        if answer is None:
            return None if frame_end == end else False
        if not (answer.complete and decodes(known, answer.data, answer.start + 4, answer.end)):
            return False
        self.confirmed = correlation_id
        return True

    def _remember(self, correlation_id: int, known: Asked) -> bool:
        """A segment that may be a request; False when there are too many."""
        if len(self._asked) >= MAX_REMEMBERED:
            return False
        self._asked[correlation_id] = known
        return True


# Does a message start here, in a stream that lost bytes? Strict: no message may be made up.
#
# In: bytes from a position on, and what is known of the requests that wait. Out: yes, no, or None while more bytes
# are needed to tell.

# A response of which the rest is to come is believed when fields account for this much of its body: the few numbers
# that stand in front of most answers would allow anything.
PROOF_BYTES = 24

_read_size_and_id = struct.Struct(">ii").unpack_from


def plausible(
    direction: int,
    data: bytes,
    position: int,
    hinted: bool,
    waiting: Mapping[int, Request | Asked],
    first: FirstRequests,
    judged: Judged,
    early: Mapping[int, Frame] | None,
) -> bool | None:
    """See `Conversation.boundary`. A response is believed only if the request it names waits and it decodes.

    waiting: the requests that wait, by correlation id. first: what the first request may have been. early: responses
    that came before any request was read, by correlation id; None when one was. judged: counts what is read.
    """
    if direction == CLIENT_TO_SERVER:
        verdict = plausible_request(data, position, hinted, judged)
        if verdict or not hinted or early is None:
            return verdict
        answered = first.verdict(data, position, early, _decodes)
        return verdict if answered is False else answered
    if len(data) - position < 8:
        return None if data[position] <= RESYNC_MAX_FIRST_BYTE else False
    size, correlation_id = _read_size_and_id(data, position)
    if not MIN_RESPONSE_BYTES <= size <= RESYNC_MAX_FRAME_BYTES:
        return False
    request = waiting.get(correlation_id) or first.asked(correlation_id)
    if request is None:
        return rising_responses(data, position, hinted)
    end = position + 4 + size
    judged.size += min(end, len(data)) - position
    if end > len(data):
        return _begins(request, data, position + 4, end) if hinted else None
    return _decodes(request, data, position + 4, end)


def answers(request: Request, frame: Frame) -> bool:
    """Is this whole frame, to its last byte, a response to the request?"""
    return frame.complete and _decodes(request, frame.data, frame.start + 4, frame.end)


def _decodes(request: Request | Asked, data: bytes, position: int, end: int) -> bool:
    """Do these bytes decode to their last one as the response to this request?"""
    try:
        _, body = response_header(request.api_key, request.version, data, position, end)
        decoded = decode_response(request.api_key, request.version, data, body, end)
    except DecodeError:
        return False
    return decoded is not None and decoded[1] == end


def _begins(request: Request | Asked, data: bytes, position: int, end: int) -> bool | None:
    """Can the response to this request begin here and end behind the data? None: too little of it is there."""
    try:
        _, body = response_header(request.api_key, request.version, data, position, len(data))
    except DecodeError:
        return None
    read = begins(request.api_key, request.version, "response", data, body, end)
    if read is None:
        return False
    return True if read >= PROOF_BYTES else None
