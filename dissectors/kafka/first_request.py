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

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.kafka.framing import MIN_HEADER_BYTES, MIN_REQUEST_BYTES
from wirewitness.dissectors.kafka.headers import request_header

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
