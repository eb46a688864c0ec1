"""Query shapes of many requests of one layout, and what is told of their documents; see `command_shapes.py`.

In: requests with equal keys and types. Out: their columns are filled. A shape is made for one request of each kind:
those of a kind differ in literals only, which no shape tells.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.mongo.bson_fields import ARRAY, SIZE_OF_TYPE, STRING, Fields, element_spans
from wirewitness.dissectors.mongo.command_shapes import (
    ASK_BY_ID,
    MAX_IDS,
    SHAPED,
    STATEMENTS,
    add_shape,
    asked_id,
    document_shape,
    id_of_document,
    literals_id,
    made_at,
    sent_ids,
    written_ids,
)
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.filled import Filled
from wirewitness.dissectors.mongo.lockstep.layouts import Values
from wirewitness.dissectors.mongo.lockstep.literals import (
    none,
    of_filter,
    of_pipeline,
    of_sequence,
    of_statements,
    of_update,
)
from wirewitness.dissectors.mongo.lockstep.numbers import elements
from wirewitness.dissectors.mongo.lockstep.plain import NO_SECTION, SECTIONS
from wirewitness.dissectors.mongo.lockstep.requests import Named, Requests, span_of
from wirewitness.dissectors.mongo.lockstep.same_values import Kinds, Literals, alike, together
from wirewitness.dissectors.mongo.messages import Message, Sequence
from wirewitness.dissectors.mongo.opcodes import OP_MSG
from wirewitness.dissectors.mongo.rows import Facts

# Digests of the _id of documents to insert, of many inserts at once; see `sent_ids` in `command_shapes.py`.
#
# In: sections of documents, known to be well formed. Out: the digests of each. The n-th documents of all sections are
# looked at together; an _id that does not come first, or is of a rare type, is read by itself.

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


# Parts of commands whose literals do not count; of all others every byte does.
_LITERALS: dict[bytes, Literals] = {
    b"filter": of_filter,
    b"query": of_filter,
    b"update": of_update,
    b"pipeline": of_pipeline,
}


def can_be_shaped(name: str, fields: Collection[bytes], section: int) -> bool:
    """Are the documents of these requests where this file looks for them? section: what is behind the body."""
    return section == NO_SECTION or (STATEMENTS.get(name) == SECTIONS[section] and SECTIONS[section] not in fields)


def fill(buffer: Buffer, asked: Requests, databases: Named, collections: Named, into: Filled) -> None:
    """query_shape, shape_id, literals_id, document_ids, documents_sent; of an aggregate whether it is tailable."""
    rows, fields, name = asked.rows, asked.layout.fields, asked.name
    parts = [databases.kinds, collections.kinds]
    key = STATEMENTS.get(name)
    listed = None
    if key is not None:
        listed = asked.sequence or fields.get(key)
        if listed is not None and asked.sequence is None and listed.kind != ARRAY:
            listed = None
        if listed is not None:
            _fill_documents(buffer, asked, listed, into)
            if name != "insert":
                parts.append(alike(buffer, listed, of_statements if asked.sequence is None else of_sequence))
    first = SHAPED[name][0][0] if name in SHAPED else b""
    for part, _ in SHAPED.get(name, ()):
        if part in fields:
            parts.append(alike(buffer, fields[part], _LITERALS.get(part, none)))
    kinds = together(parts, len(rows))
    shapes = [_shape(buffer, asked, row, databases, collections) for row in kinds.firsts]
    for column in ("query_shape", "shape_id"):
        into.coded(column, rows, kinds.codes, [shape.get(column) for shape in shapes])
    if name == "aggregate":
        into.coded("tailable", rows, kinds.codes, [shape["tailable"] for shape in shapes])
    literals = listed if name != "insert" and listed is not None else fields.get(first)
    if literals is not None:
        _fill_literals(buffer, asked, literals, into)
    if name in ASK_BY_ID and first in fields:
        _fill_asked_ids(buffer, asked, fields[first], kinds, into)


def _shape(buffer: Buffer, asked: Requests, row: int, databases: Named, collections: Named) -> Facts:
    """What is told of one request."""
    facts: Facts = {
        "database": databases.texts[int(databases.kinds.codes[row])],
        "collection": collections.texts[int(collections.kinds.codes[row])],
    }
    fields: Fields = {key: span_of(values, row) for key, values in asked.layout.fields.items()}
    sequences: tuple[Sequence, ...] = ()
    if asked.sequence is not None and asked.documents is not None:
        _, start, end = span_of(asked.sequence, row)
        sequences = (Sequence(STATEMENTS[asked.name], start, end, int(asked.documents[row])),)
    message = Message(OP_MSG, 0, buffer.data, int(asked.starts[row]), int(asked.ends[row]), fields, 0, sequences)
    add_shape(facts, asked.name, fields, message)
    return facts


def _fill_documents(buffer: Buffer, asked: Requests, listed: Values, into: Filled) -> None:
    """How many documents or statements, and their ids."""
    counts = elements(buffer, listed) if asked.documents is None else asked.documents
    into.numbers("documents_sent", asked.rows, counts)
    rows = range(len(asked.rows))
    if asked.name in ("update", "delete"):
        into.each("document_ids", asked.rows, [_written(buffer, asked, listed, row) for row in rows])
    if asked.name == "insert":
        is_section = asked.sequence is not None
        ids = ids_of_sections(buffer, listed) if is_section else [_ids(buffer, listed, row) for row in rows]
        into.each("document_ids", asked.rows, ids)
        firsts = [_first(buffer, asked, listed, row) for row in rows]
        into.each("document_shape", asked.rows, [shape for shape, _ in firsts])
        into.each("id_time", asked.rows, [time for _, time in firsts])


def _first(buffer: Buffer, asked: Requests, listed: Values, row: int) -> tuple[str | None, int | None]:
    """The shape of the first document, and the time in its ObjectId."""
    span = span_of(listed, row)
    place = span[1], span[2], [] if asked.sequence is not None else element_spans(buffer.data, span, 1)
    return document_shape(buffer.data, *place), made_at(buffer.data, *place)


def _written(buffer: Buffer, asked: Requests, listed: Values, row: int) -> list[int] | None:
    """Those that the statements of one request write."""
    span = span_of(listed, row)
    spans = [] if asked.sequence is not None else element_spans(buffer.data, span, MAX_IDS)
    return written_ids(buffer.data, span[1], span[2], spans)


def _ids(buffer: Buffer, listed: Values, row: int) -> list[int] | None:
    """Those of an array."""
    span = span_of(listed, row)
    return sent_ids(buffer.data, span[1], span[2], element_spans(buffer.data, span, MAX_IDS))


def _fill_literals(buffer: Buffer, asked: Requests, literals: Values, into: Filled) -> None:
    data = buffer.data
    places = zip(literals.start.tolist(), literals.end.tolist(), strict=True)
    into.each("literals_id", asked.rows, [literals_id(data, start, end) for start, end in places])


def _fill_asked_ids(buffer: Buffer, asked: Requests, filters: Values, kinds: Kinds, into: Filled) -> None:
    """The document that each command asks for, where a filter has nothing but an _id."""
    by_id = [asked_id(buffer.data, span_of(filters, first)) is not None for first in kinds.firsts]
    if any(by_id):
        codes = kinds.codes.tolist()
        found = (
            asked_id(buffer.data, span_of(filters, row)) if by_id[code] else None for row, code in enumerate(codes)
        )
        into.each("document_ids", asked.rows, [None if one is None else [one] for one in found])
