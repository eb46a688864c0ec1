"""Kafka on a stream: a 4-byte size, then that many bytes. Where frames start after a loss; is it Kafka at all?

In: stream bytes. Out: frame sizes, plausibility, certainty of the probe.
"""

from __future__ import annotations

import codecs
import itertools
import re
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.framer import LengthFramer, Ordinary
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.kafka.headers import CONTROLLED_SHUTDOWN, request_header
from wirewitness.dissectors.kafka.sasl_tokens import GSSAPI_TAG, gssapi_token
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS
from wirewitness.dissectors.kafka.schema.compile import decoder

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.frames import Bytes, Flags

_size = struct.Struct(">i").unpack_from
_header = struct.Struct(">hhih").unpack_from
_size_and_id = struct.Struct(">ii").unpack_from

_SIZE_BYTES = 4
MIN_REQUEST_BYTES = 8
# Bare SASL tokens may be as short as nothing. A connection has a few of them; more are damage.
MAX_SHORT_FRAMES = 16
MIN_RESPONSE_BYTES = 4
MIN_HEADER_BYTES = 14
# Kafka adds a version or two to an API in a release; this much beyond the newest known one is still believable.
NEWER_VERSIONS = 10
NEWER_KEYS = 40
_LAST_KEY = max(API_KEYS) + NEWER_KEYS
MAX_CLIENT_ID_BYTES = 1000
_MOST_BYTES_PER_CHARACTER = 4  # of UTF-8
# After a loss only frames below this are believed at first sight.
RESYNC_MAX_FRAME_BYTES = 1 << 26
RESYNC_MAX_FIRST_BYTE = RESYNC_MAX_FRAME_BYTES >> 24
# Mid-stream, a probe looks at this many places that could be a header; Kafka shows itself long before.
MAX_PROBED_STARTS = 2000
# And reads so much of their bodies.
MAX_PROBED_BYTES = 1 << 18
_SURE, _LIKELY, _WEAK = 100, 60, 30
# A size below 16 MiB, small API key and version, a correlation id that is not negative.
_HEADER_LIKE = re.compile(rb"(?=\0[\s\S]{3}\0[\s\S]\0[\s\S][\0-\x7f])")


def framer(direction: int, synchronised: bool, limits: Limits) -> LengthFramer:
    """The framer of one direction; `synchronised` when the stream is seen from its first byte."""
    smallest = MIN_REQUEST_BYTES if direction == CLIENT_TO_SERVER else MIN_RESPONSE_BYTES
    largest = limits.max_frame_bytes
    ordinary = Ordinary(">", _SIZE_BYTES, smallest + _SIZE_BYTES, largest + _SIZE_BYTES)
    return LengthFramer(_Measure(smallest, largest, synchronised), _zero_bytes, synchronised, ordinary)


class _Measure:
    """Size of the frame at a position; a class, not a closure, so that framers can be pickled."""

    __slots__ = ("_largest", "_short", "_smallest")

    def __init__(self, smallest: int, largest: int, from_first_byte: bool) -> None:
        self._smallest = smallest
        self._largest = largest
        self._short = MAX_SHORT_FRAMES if from_first_byte else 0

    def __call__(self, data: bytes, position: int, end: int) -> int:
        if end - position < 4:
            return 0
        size: int = _size(data, position)[0]
        if self._smallest <= size <= self._largest:
            return size + 4
        return self._short_frame(size, end - position - 4)

    def _short_frame(self, size: int, there: int) -> int:
        """A frame too short for a header: a bare token, as long as there are few. Counted when it is whole."""
        if not 0 <= size < self._smallest or not self._short:
            return -1
        self._short -= size <= there
        return size + 4


def _zero_bytes(data: bytes, position: int, end: int) -> Iterable[int]:
    """Frames below 16 MiB begin with a zero byte, so only zero bytes are worth a look."""
    found = data.find(b"\0", position, end)
    while found >= 0:
        yield found
        found = data.find(b"\0", found + 1, end)


def plausible_request(data: bytes, position: int, hinted: bool, judged: Judged) -> bool | None:
    """Does a request start here? Proof is one that decodes to its last byte, or two that follow each other.

    Less is believed where a segment starts (`hinted`); elsewhere what is not all there waits for more bytes.
    """
    end = len(data)
    if end - position < MIN_HEADER_BYTES:
        return None if data[position] <= RESYNC_MAX_FIRST_BYTE else False
    score, cut = _requests_score(data, position, end, judged)
    if score >= _LIKELY and (hinted or score == _SURE):
        return True
    return None if score and cut else False


def _requests_score(data: bytes, position: int, end: int, judged: Judged) -> tuple[int, bool]:
    """How sure it is that requests follow each other from `position`, and whether more bytes could tell more.

    Those that are cut by `end` count as well. 100: the first one is proven, or two are likely; else the best one's
    score, and at most 30 when what follows is no request.
    """
    best = likely = 0
    for _ in range(3):
        if end - position < MIN_HEADER_BYTES:
            return best, True
        size = _size(data, position)[0]
        score = _request_score(data, position, end, size, judged)
        if score == 0:
            return min(best, _WEAK), False
        likely += score >= _LIKELY
        best = max(best, score)
        position += 4 + size
        if best == _SURE or likely == 2:
            return _SURE, position > end
    return best, position > end


def is_request(data: bytes, position: int, end: int) -> bool:
    """Is the frame at `position` (its size first) likely a request? So bare SASL tokens and requests are told apart."""
    return _request_score(data, position, end, end - position - 4, Judged()) >= _LIKELY


def _request_score(data: bytes, position: int, end: int, size: int, judged: Judged) -> int:
    """100: it has a client id and the body decodes to its last byte; 60: one of both; 30: a header at least; 0: no."""
    if not MIN_REQUEST_BYTES <= size <= RESYNC_MAX_FRAME_BYTES:
        return 0
    frame_end = position + 4 + size
    if end - position >= MIN_HEADER_BYTES and not _may_be_header(*_header(data, position + 4)):
        return 0
    try:
        api_key, version, correlation_id, client_id, body = request_header(data, position + 4, min(frame_end, end))
    except DecodeError:
        return _WEAK if end < frame_end and _may_go_on(data, position, end) else 0
    if not _is_believable(api_key, version, correlation_id):
        return 0
    if client_id is not None and not looks_like_id(client_id):
        return 0
    decode = decoder(api_key, version, "request")
    if decode is None or frame_end > end:
        return _LIKELY if client_id else _WEAK
    judged.size += size
    try:
        whole = decode(data, body, frame_end)[1] == frame_end
    except DecodeError:
        return 0
    return (_SURE if client_id else _LIKELY) if whole else 0


def _may_go_on(data: bytes, position: int, end: int) -> bool:
    """Could a header begin here whose client id or tagged fields are not all there yet?"""
    api_key, version, correlation_id, id_bytes = _header(data, position + 4)
    if not _is_believable(api_key, version, correlation_id) or id_bytes > MAX_CLIENT_ID_BYTES:
        return False
    id_at = position + MIN_HEADER_BYTES
    there = data[id_at : min(end, id_at + max(id_bytes, 0))]
    try:
        # The last character may be cut as well.
        return codecs.utf_8_decode(there, "strict", False)[0].isprintable()
    except UnicodeDecodeError:
        return False


def _is_believable(api_key: int, version: int, correlation_id: int) -> bool:
    """Could Kafka of today or of the years to come say this?"""
    known = API_KEYS.get(api_key)
    newest = known.newest if known else 0
    return 0 <= api_key <= _LAST_KEY and 0 <= version <= newest + NEWER_VERSIONS and correlation_id >= 0


def _may_be_header(api_key: int, version: int, correlation_id: int, id_bytes: int) -> bool:
    """Is the client id worth reading? At a chance place it seems to be tens of kB long."""
    if not _is_believable(api_key, version, correlation_id):
        return False
    has_none = api_key == CONTROLLED_SHUTDOWN and version == 0
    return has_none or id_bytes <= MAX_CLIENT_ID_BYTES * _MOST_BYTES_PER_CHARACTER


def looks_like_id(client_id: str) -> bool:
    """Could a client call itself so?"""
    return len(client_id) <= MAX_CLIENT_ID_BYTES and client_id.isprintable()


def rising_responses(data: bytes, position: int, hinted: bool) -> bool | None:
    """Do three frames with close, rising correlation ids follow each other from this start of a segment?

    That is all there is to tell responses by whose requests are not in the capture. None: they may, with more bytes.
    """
    if not hinted:
        return False
    ids: list[int] = []
    end = len(data)
    while len(ids) < 3 and end - position >= 8:
        size, correlation_id = _size_and_id(data, position)
        if not MIN_RESPONSE_BYTES <= size <= RESYNC_MAX_FRAME_BYTES or correlation_id < 0:
            return False
        ids.append(correlation_id)
        position += 4 + size
    if not all(0 < later - earlier <= 100 for earlier, later in itertools.pairwise(ids)):
        return False
    return True if len(ids) == 3 else None


def opens(heads: Bytes) -> Flags:
    """See `Dissector.opens`: a frame of a credible size, an API that there may be; or a token of GSSAPI."""
    size = heads[:, 0].astype("int64") << 24 | heads[:, 1].astype("int64") << 16
    size |= heads[:, 2].astype("int64") << 8 | heads[:, 3]
    request = (size >= MIN_REQUEST_BYTES) & (size <= RESYNC_MAX_FRAME_BYTES)
    request &= (heads[:, 4] == 0) & (heads[:, 5] <= _LAST_KEY)
    found: Flags = request | (heads[:, 4] == GSSAPI_TAG)
    return found


def probe(client: bytes, server: bytes, whole: bool) -> int:
    """How sure it is that these are Kafka requests and responses, 0 to 100.

    A request that decodes to its last byte is proof; a header with a client id is nearly one. Mid-stream, where the
    first request may lie behind the rest of another one, only proof counts, and anything less is a hint that needs the
    port's support; so are, without requests, rising correlation ids in a chain of frames.
    """
    if client:
        if whole and len(client) >= 4 and gssapi_token(client, 4, 4 + _size(client, 0)[0]):
            return _LIKELY
        at_start, _ = _requests_score(client, 0, len(client), Judged())
        return at_start if whole or at_start >= _LIKELY else max(at_start, _score_inside(client))
    return _WEAK if server and rising_responses(server, 0, True) else 0


def _score_inside(client: bytes) -> int:
    """100 when requests certainly start somewhere in a stream that began mid-stream, 30 when they may, else 0."""
    best, judged = 0, Judged()
    starts = (match.start() for match in _HEADER_LIKE.finditer(client, 1))
    for position in itertools.islice(starts, MAX_PROBED_STARTS):
        score, _ = _requests_score(client, position, len(client), judged)
        if score == _SURE:
            return _SURE
        if score:
            best = _WEAK
        if judged.size > MAX_PROBED_BYTES:
            break
    return best
