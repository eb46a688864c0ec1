"""Frames on a stream: 8 bytes of header, then as many as it says. Where frames start after a loss; is it this protocol?

In: stream bytes. Out: frame sizes, plausibility, certainty of the probe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.framer import LengthFramer
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.example.headers import (
    HEADER_BYTES,
    KNOWN_VERSION,
    MAGIC,
    MAX_PAYLOAD_BYTES,
    REQUEST,
    RESPONSE,
    Header,
    header,
)

# What a direction carries; anything else is no place to start at.
SENT = {CLIENT_TO_SERVER: REQUEST, SERVER_TO_CLIENT: RESPONSE}
_SURE, _LIKELY, _WEAK = 100, 60, 30


def framer(_direction: int, synchronised: bool, limits: Limits) -> LengthFramer:
    """The framer of one direction; `synchronised` when the stream is seen from its first byte."""
    return LengthFramer(_Measure(min(MAX_PAYLOAD_BYTES, limits.max_frame_bytes)), _magics, synchronised)


class _Measure:
    """Size of the frame at a position; a class, not a closure, so that framers can be pickled."""

    __slots__ = ("_largest",)

    def __init__(self, largest: int) -> None:
        self._largest = largest

    def __call__(self, data: bytes, position: int, end: int) -> int:
        if not MAGIC.startswith(data[position : position + 2]):
            return -1
        if end - position < HEADER_BYTES:
            return 0
        length = header(data, position, end).payload_length
        return HEADER_BYTES + length if length <= self._largest else -1


def _magics(data: bytes, position: int, end: int) -> Iterable[int]:
    """Every 0xCAFE is worth a look, and so is half of one at the end."""
    found = data.find(MAGIC, position, end)
    while found >= 0:
        yield found
        found = data.find(MAGIC, found + 1, end)
    if end > position and data[end - 1 : end] == MAGIC[:1]:
        yield end - 1


def plausible(direction: int, data: bytes, position: int, hinted: bool, versions: Collection[int]) -> bool | None:
    """Does a frame start here? Proof is another one right behind it, or the end of what is there.

    Where a segment starts (`hinted`) the header is enough; elsewhere a frame that is not all there is waited for.
    """
    end = len(data)
    if end - position < HEADER_BYTES:
        return None if MAGIC.startswith(data[position : position + 2]) else False
    first = _likely_header(direction, data, position, versions)
    if first is None:
        return False
    after = position + HEADER_BYTES + first.payload_length
    if hinted or after == end:
        return True
    if after + HEADER_BYTES > end:
        return None
    return _likely_header(direction, data, after, versions) is not None


def probe(client: bytes, server: bytes, whole: bool) -> int:
    """How sure it is that these are such frames, 0 to 100. Mid-stream, the first frame may begin anywhere."""
    scores = [
        score(direction, head, whole)
        for direction, head in ((CLIENT_TO_SERVER, client), (SERVER_TO_CLIENT, server))
        if head
    ]
    return min(scores, default=0)


def score(direction: int, data: bytes, whole: bool) -> int:
    """100 for two frames that follow each other, 60 for one, 30 for one of a version that is not known."""
    start = 0 if whole else max(data.find(MAGIC), 0)
    first = _sent_header(direction, data, start)
    if first is None:
        return 0
    if first.version != KNOWN_VERSION:
        return _WEAK
    second = _sent_header(direction, data, start + HEADER_BYTES + first.payload_length)
    return _SURE if second is not None else _LIKELY


def _likely_header(direction: int, data: bytes, position: int, versions: Collection[int]) -> Header | None:
    found = _sent_header(direction, data, position)
    return found if found is not None and found.version in versions else None


def _sent_header(direction: int, data: bytes, position: int) -> Header | None:
    """The header at `position`, if this direction may send it."""
    try:
        found = header(data, position, len(data))
    except DecodeError:
        return None
    fits = found.frame_type == SENT[direction] and found.payload_length <= MAX_PAYLOAD_BYTES
    return found if fits else None
