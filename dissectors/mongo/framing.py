"""MongoDB on a stream: messages that begin with their size. Where they start after a loss; is it MongoDB at all?

In: stream bytes. Out: frame sizes, plausibility, certainty of the probe.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.framer import LengthFramer, Ordinary
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.mongo.bson_fields import MIN_DOCUMENT_BYTES, SIZE_OF_TYPE, UNKNOWN_TYPE, first_fields
from wirewitness.dissectors.mongo.compressed import COMPRESSED_HEADER_BYTES, COMPRESSORS, open_compressed
from wirewitness.dissectors.mongo.messages import Message, read_header, read_message
from wirewitness.dissectors.mongo.opcodes import (
    HEADER_BYTES,
    KNOWN_FLAGS,
    MAX_MESSAGE_BYTES,
    NO_RESPONSE_TO,
    OP_COMPRESSED,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    OPCODES,
    REPLIES,
    REQUESTS,
    REQUIRED_FLAGS,
)

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.frames import Bytes, Flags

_int32 = struct.Struct("<i").unpack_from
_uint32 = struct.Struct("<I").unpack_from
_read_compressed = struct.Struct("<iiB").unpack_from

# Where an opcode could stand: 12 bytes behind the start of a message.
_OPCODE_AT = 12
_OPCODE_LIKE = re.compile(rb"(?=[\xd1-\xd7\xda-\xdd]\x07\0\0|\x01\0\0\0)")
_BOTH_WAYS = frozenset({OP_MSG, OP_COMPRESSED})
_MIN_KNOWN = HEADER_BYTES + 4
# Mid-stream, a probe looks at this many places that could be a header.
MAX_PROBED_STARTS = 2000
# What a command, a field of a reply or a namespace begins with.
_WORD = re.compile(rb"[A-Za-z_$][\x20-\x7e]*\Z")
# Likely: well formed as far as it was looked at. Many: the same, and there are more fields than are looked at.
_SURE, _LIKELY, _MANY, _WEAK = 100, 60, 59, 30
# Places that could be a boundary may be many, so judging one costs little: larger messages and documents of more fields
# are looked at from their beginning only, and believed where a segment starts.
MAX_JUDGED_BYTES = 1 << 15
MAX_JUDGED_FIELDS = 200
# The same where the beginning says little, or has to be decompressed.
MAX_UNSEEN_BYTES = 1 << 12
_JUDGING = Limits(max_decompressed_bytes=MAX_UNSEEN_BYTES, decompression_slack_bytes=MAX_UNSEEN_BYTES)


def framer(_direction: int, synchronised: bool, limits: Limits) -> LengthFramer:
    """The framer of one direction; `synchronised` when the stream is seen from its first byte."""
    largest = limits.max_frame_bytes
    return LengthFramer(_Measure(largest), candidates, synchronised, Ordinary("<", 0, HEADER_BYTES, largest))


class _Measure:
    """Size of the message at a position; a class, not a closure, so that framers can be pickled."""

    __slots__ = ("_largest",)

    def __init__(self, largest: int) -> None:
        self._largest = largest

    def __call__(self, data: bytes, position: int, end: int) -> int:
        if end - position < 4:
            return 0
        size: int = _int32(data, position)[0]
        return size if HEADER_BYTES <= size <= self._largest else -1


def candidates(data: bytes, position: int, end: int) -> Iterator[int]:
    """Positions whose header could hold an opcode, and the last ones, whose opcode is not there yet."""
    for match in _OPCODE_LIKE.finditer(data, position + _OPCODE_AT, end):
        yield match.start() - _OPCODE_AT
    yield from range(max(position, end - HEADER_BYTES + 1), end)


def plausible(data: bytes, position: int, hinted: bool, waits: Callable[[int], bool] | None) -> bool | None:
    """Does a message start here? Proof is one that is whole and well formed to its last byte.

    Less is believed where a segment starts (`hinted`). waits: where replies are looked for, does a request with this id
    wait for one? None where requests are. It is asked where it matters only, as the answer may cost much; an OP_REPLY
    without documents is believed only if it answers such a request.
    """
    end = len(data)
    if end - position < HEADER_BYTES:
        return None
    size, _, response_to, opcode = read_header(data, position)
    goes_this_way = is_reply(opcode, response_to) == (waits is not None)
    if waits is None and not goes_this_way:
        return False
    score = message_score(data, position, end)
    if waits is not None and score and (not goes_this_way or (hinted and score == _WEAK)):
        if waits(response_to):
            score = max(score, _MANY)
        elif not goes_this_way:
            return False
    if score == _SURE or (hinted and score >= _MANY):
        return True
    return None if score and position + size > end else False


def is_reply(opcode: int, response_to: int) -> bool:
    """Does such a message go from server to client? What both may send tells it by what it answers."""
    return opcode in REPLIES or (opcode not in REQUESTS and response_to not in NO_RESPONSE_TO)


def message_score(data: bytes, position: int, end: int) -> int:
    """100: a whole, well formed message; 60: one that is cut and well formed so far; 30: a header at least; 0: none."""
    if end - position < HEADER_BYTES:
        return 0
    size, request_id, response_to, opcode = read_header(data, position)
    if not HEADER_BYTES < size <= MAX_MESSAGE_BYTES or opcode not in OPCODES:
        return 0
    behind = position + size
    likely = _cut_score(data, position, min(end, behind), size, opcode)
    most = MAX_JUDGED_BYTES if likely == _LIKELY else MAX_UNSEEN_BYTES
    if behind > end or likely in (0, _MANY) or size > most:
        return likely
    return _whole_score(data, position, behind, request_id, response_to, opcode)


def _whole_score(data: bytes, position: int, end: int, request_id: int, response_to: int, opcode: int) -> int:
    remarks: list[Remark] = []
    start, body_at = position, position + HEADER_BYTES
    if opcode == OP_COMPRESSED:
        if not _compressed_header(data, position, end):
            return 0
        opened = open_compressed(data, position, end, request_id, response_to, Allowance(_JUDGING), remarks)
        if opened is None or opened.error is not None:
            limited = any(group == "limit" for _, group, _, _ in remarks)
            return _LIKELY if limited and opened is not None and opened.stated_bytes < MAX_MESSAGE_BYTES else 0
        data, start, body_at, end, opcode = opened.data, 0, HEADER_BYTES, len(opened.data), opened.opcode
    message = read_message(opcode, data, start, body_at, end, remarks, complete=True)
    if message.error is not None or any(group == "malformed" for _, group, _, _ in remarks):
        return 0
    if opcode == OP_MSG and message.flags & ~KNOWN_FLAGS & REQUIRED_FLAGS:
        return 0
    return _SURE if _speaks(message) else _WEAK


def _speaks(message: Message) -> bool:
    """Is there anything in it that noise would hardly have? A first key, or a namespace."""
    namespace = None if message.legacy is None else message.legacy.namespace
    if namespace is not None:
        return "." in namespace and _WORD.match(namespace.encode()) is not None
    return bool(message.body) and _WORD.match(next(iter(message.body or {}))) is not None


def _cut_score(data: bytes, position: int, end: int, size: int, opcode: int) -> int:
    if end - position < _MIN_KNOWN + 1:
        return _WEAK
    at = position + HEADER_BYTES
    if opcode == OP_COMPRESSED:
        if end - position < min(COMPRESSED_HEADER_BYTES, size):
            return _WEAK
        return _LIKELY if _compressed_header(data, position, end) else 0
    if opcode == OP_MSG:
        flags = _uint32(data, at)[0]
        if flags & ~KNOWN_FLAGS & REQUIRED_FLAGS or data[at + 4] > 1:
            return 0
        return _cut_document(data, at + 5, end, position + size) if data[at + 4] == 0 else _WEAK
    if opcode == OP_QUERY:
        name_end = data.find(0, at + 4, min(end, at + 4 + 512))
        if name_end < 0 or not _WORD.match(data[at + 4 : name_end]) or b"." not in data[at + 4 : name_end]:
            return 0 if name_end >= 0 else _WEAK
        return _cut_document(data, name_end + 9, end, position + size)
    if opcode == OP_REPLY:
        return _cut_document(data, at + 20, end, position + size)
    return _WEAK


def _cut_document(data: bytes, at: int, end: int, behind: int) -> int:
    """A document that ends at `behind` at the latest and of which there is something up to `end`."""
    if end - at < 4:
        return _WEAK
    size = _int32(data, at)[0]
    if size < MIN_DOCUMENT_BYTES or at + size > behind:
        return 0
    count = first_fields(data, at, end, MAX_JUDGED_FIELDS)
    if count < 0:
        return 0
    key_end = data.find(0, at + 5, end)
    if key_end < 0 or SIZE_OF_TYPE[data[at + 4]] == UNKNOWN_TYPE:
        return _WEAK
    if not _WORD.match(data[at + 5 : key_end]):
        return _WEAK
    return _LIKELY if count < MAX_JUDGED_FIELDS else _MANY


def _compressed_header(data: bytes, position: int, end: int) -> bool:
    """Original opcode, size and compressor of a compressed message are possible."""
    if end - position < COMPRESSED_HEADER_BYTES:
        return False
    opcode, stated, compressor = _read_compressed(data, position + HEADER_BYTES)
    return (
        opcode in OPCODES and opcode != OP_COMPRESSED and 0 < stated < MAX_MESSAGE_BYTES and compressor in COMPRESSORS
    )


def opens(heads: Bytes) -> Flags:
    """See `Dissector.opens`: a header names what its message is."""
    low, high, *rest = (heads[:, place].astype("int64") for place in range(_OPCODE_AT, HEADER_BYTES))
    opcode = low | high << 8
    found: Flags = opcode < 0
    for one in OPCODES:
        found |= opcode == one
    for byte in rest:
        found &= byte == 0
    return found


def probe(client: bytes, server: bytes, whole: bool) -> int:
    """How sure it is that these are MongoDB requests and replies, 0 to 100.

    A message that is well formed to its last byte is proof; requests answer nothing, so that client and server are told
    apart. Mid-stream, where the first message may lie behind the rest of another one, only proof counts.
    """
    if client:
        return _side_score(client, whole, replies=False)
    return _side_score(server, whole, replies=True) if server else 0


def _side_score(data: bytes, whole: bool, replies: bool) -> int:
    score = _directed_score(data, 0, replies)
    if whole or score >= _MANY:
        return score
    for position in itertools.islice(candidates(data, 1, len(data)), MAX_PROBED_STARTS):
        if _directed_score(data, position, replies) == _SURE:
            return _SURE
    return min(score, _WEAK)


def _directed_score(data: bytes, position: int, replies: bool) -> int:
    """The score of a message, if it goes the way that is looked at; some clients fill responseTo of requests."""
    score = message_score(data, position, len(data))
    if score == 0:
        return 0
    _, _, response_to, opcode = read_header(data, position)
    if is_reply(opcode, response_to) == replies:
        return score
    return min(score, _LIKELY) if opcode in _BOTH_WAYS and not replies else 0
