"""Does a message start here, in a stream that lost bytes? Strict: no message may be made up.

In: bytes from a position on, and what is known of the requests that wait. Out: yes, no, or None while more bytes are
needed to tell.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.kafka.first_request import Asked, FirstRequests
from wirewitness.dissectors.kafka.framing import (
    MIN_RESPONSE_BYTES,
    RESYNC_MAX_FIRST_BYTE,
    RESYNC_MAX_FRAME_BYTES,
    plausible_request,
    rising_responses,
)
from wirewitness.dissectors.kafka.headers import decode_response, response_header
from wirewitness.dissectors.kafka.rows.fields import Request
from wirewitness.dissectors.kafka.schema.walk import begins

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
