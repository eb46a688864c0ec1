"""Digests of the _id of documents to insert, of many inserts at once; see `sent_ids` in `command_shapes.py`.

In: sections of documents, known to be well formed. Out: the digests of each. The n-th documents of all sections are
looked at together; an _id that does not come first, or is of a rare type, is read by itself.
"""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.mongo.bson_fields import SIZE_OF_TYPE, STRING
from wirewitness.dissectors.mongo.command_shapes import MAX_IDS, id_of_document
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values

# From the start of a document: its first type, and where the value of a first _id begins.
_KIND_AT, _KEY_AT, _VALUE_AT = 4, 5, 9
_FIXED = np.array([max(size, -1) for size in SIZE_OF_TYPE], np.int64)


def ids_of_sections(buffer: Buffer, sections: Values) -> list[list[int] | None]:
    """The digests of the first MAX_IDS documents of each section; None where none has an _id."""
    owner, start, end = _documents(buffer, sections)
    digests = _digests(buffer, start, end)
    bounds = np.searchsorted(owner, np.arange(len(sections.start) + 1)).tolist()
    return [[one for one in digests[first:until] if one is not None] or None for first, until in pairwise(bounds)]


def _documents(buffer: Buffer, sections: Values) -> tuple[Ints, Ints, Ints]:
    """The section, first byte and byte behind of each document, those of one section one behind the other."""
    rows = np.flatnonzero(sections.start < sections.end)
    at = sections.start[rows]
    parts: list[tuple[Ints, Ints, Ints]] = []
    while len(rows) and len(parts) < MAX_IDS:
        behind = at + buffer.int32(at)
        parts.append((rows, at, behind))
        more = behind < sections.end[rows]
        rows, at = rows[more], behind[more]
    if not parts:
        return rows, rows, rows
    owner, start, end = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(owner, kind="stable")
    return owner[order], start[order], end[order]


def _digests(buffer: Buffer, start: Ints, end: Ints) -> list[int | None]:
    """The digest of each document's _id, None where it has none."""
    data, value = buffer.data, start + _VALUE_AT
    kind = buffer.octet(start + _KIND_AT).astype(np.int64)
    behind, usual = _usual(buffer, kind, value, end)
    usual &= buffer.equal(start + _KEY_AT, b"_id\0")
    found: list[int | None] = [
        zlib.crc32(data[a:z], k) if is_usual else None
        for a, z, k, is_usual in zip(value.tolist(), behind.tolist(), kind.tolist(), usual.tolist(), strict=True)
    ]
    for row in np.flatnonzero(~usual).tolist():
        found[row] = id_of_document(data, int(start[row]), int(end[row]))
    return found


def _usual(buffer: Buffer, kind: Ints, value: Ints, end: Ints) -> tuple[Ints, Flags]:
    """The byte behind each value, and which are strings or of fixed size and end inside their document."""
    size = np.where(kind == STRING, buffer.int32(value) + 4, _FIXED[kind])
    behind = value + size
    good = (size >= 0) & (behind < end)
    is_string = kind == STRING
    good &= ~is_string | ((size >= 5) & (buffer.octet(behind - 1) == 0))
    return behind, good
