"""Which messages are as nearly all are: a whole OP_MSG of one body, and of a request perhaps one section of documents.

In: pairs of frames. Out: `Bodies`: where the parts of each lie, and which are plain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.mongo.bson_fields import DOCUMENT, MIN_DOCUMENT_BYTES
from wirewitness.dissectors.mongo.command_shapes import STATEMENTS
from wirewitness.dissectors.mongo.handshake import HELLOS
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values
from wirewitness.dissectors.mongo.opcodes import HEADER_BYTES, MAX_DOCUMENT_BYTES, OP_MSG

_FLAGS_AT = HEADER_BYTES
_KIND_AT = _FLAGS_AT + 4
_BODY_AT = _KIND_AT + 1
_FIRST_KEY_AT = _BODY_AT + 5
SECTIONS = tuple(sorted(set(STATEMENTS.values())))
NO_SECTION = -1


class Bodies(NamedTuple):
    """start, end: of the body. plain: which messages are read here.

    section: the name of the section behind the body, as its number in SECTIONS. listed, documents: what is in it.
    """

    start: Ints
    end: Ints
    plain: Flags
    section: Ints
    listed: Values
    documents: Ints

    def of(self, rows: Ints) -> Values:
        """The bodies with these numbers."""
        return Values(DOCUMENT, self.start[rows], self.end[rows])


def bodies(frames: Frames, buffer: Buffer, places: Ints, sections: bool) -> Bodies:
    """The bodies of these frames. sections: may there be documents behind them?"""
    message, behind = frames.start[places], frames.end[places]
    start = message + _BODY_AT
    size = buffer.int32(start)
    end = start + size
    plain = frames.complete[places] & (behind - message <= MAX_DOCUMENT_BYTES)
    plain &= (behind - start >= MIN_DOCUMENT_BYTES) & (size >= MIN_DOCUMENT_BYTES) & (end <= behind)
    plain &= buffer.int32(message + HEADER_BYTES - 4) == OP_MSG
    plain &= (buffer.int32(message + _FLAGS_AT) == 0) & (buffer.octet(message + _KIND_AT) == 0)
    section = np.full(len(places), NO_SECTION)
    documents_at, counts = end.copy(), np.zeros(len(places), np.int64)
    rows = np.flatnonzero(plain & (end < behind))
    if len(rows):
        plain[rows] = False
        if sections:
            _sections(buffer, rows, end, behind, section, documents_at)
            found = rows[section[rows] != NO_SECTION]
            bounds = zip(documents_at[found].tolist(), behind[found].tolist(), strict=True)
            counts[found] = [_documents(buffer.data, start, end) for start, end in bounds]
            plain[found] = counts[found] >= 0
    return Bodies(start, end, plain, section, Values(DOCUMENT, documents_at, behind), counts)


def _sections(buffer: Buffer, rows: Ints, end: Ints, behind: Ints, section: Ints, documents_at: Ints) -> None:
    """Fill in the name of the one section behind each of these bodies, and where its documents begin."""
    at = end[rows]
    fits = (buffer.octet(at) == 1) & (buffer.int32(at + 1) == behind[rows] - at - 1)
    for number, name in enumerate(SECTIONS):
        documents_from = at + 5 + len(name) + 1
        named = np.flatnonzero(fits & buffer.equal(at + 5, name + b"\0") & (documents_from <= behind[rows]))
        section[rows[named]] = number
        documents_at[rows[named]] = documents_from[named]


def _documents(data: bytes, at: int, end: int) -> int:
    """How many documents lie between these bytes, one behind the other; -1 where it is anything else."""
    count = 0
    while at < end:
        behind = at + int.from_bytes(data[at : at + 4], "little", signed=True)
        if not at + MIN_DOCUMENT_BYTES <= behind <= end or data[behind - 1] != 0:
            return -1
        at = behind
        count += 1
    return count


def may_be_hello(frames: Frames, buffer: Buffer, places: Ints) -> Flags:
    """Which of these requests may change what is known of the connection?"""
    message = frames.start[places]
    opcode, kind = buffer.int32(message + HEADER_BYTES - 4), buffer.octet(message + _KIND_AT)
    may: Flags = (opcode != OP_MSG) | (kind != 0) | (frames.size[places] < _FIRST_KEY_AT)
    for name in HELLOS:
        may |= buffer.equal(message + _FIRST_KEY_AT, name.encode() + b"\0")
    return may
