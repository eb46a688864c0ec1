"""The query shape of a command: what it asks for without the values.

In: the fields of a command and its message. Out: facts under the names of mongo_commands' columns.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b

from wirewitness.dissectors.mongo import shapes
from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    DOCUMENT,
    MIN_DOCUMENT_BYTES,
    OBJECT_ID,
    REGEX,
    Fields,
    Span,
    boolean,
    document,
    element_spans,
    field,
    inner,
    integer,
    text,
    value_size,
)
from wirewitness.dissectors.mongo.command_names import command_name
from wirewitness.dissectors.mongo.messages import Message
from wirewitness.dissectors.mongo.rows import Facts

# Statements of one update, delete or bulkWrite that take part in its shape; they are counted whatever their number.
MAX_STATEMENTS = 50
# Documents of an insert whose ids are told.
MAX_IDS = 100
# Fields of such a document among which its id is looked for: most drivers put it first, Node's puts it last.
MAX_FIELDS = 64
# Bytes of the name of such a field.
MAX_NAME = 128
# What an _id in a filter may be without asking for that very value.
_NOT_EQUAL = (DOCUMENT, REGEX)
_NS_PER_S = 1_000_000_000
# Characters of a text whose digest is remembered.
MAX_CACHED = 2048
# Characters of a shape that is shown; longer ones are told apart by their digest only.
MAX_SHAPE = 16_384
# Command -> its part with documents or statements, in its document or in a section of its own.
STATEMENTS = {"insert": b"documents", "update": b"updates", "delete": b"deletes", "bulkWrite": b"ops"}

# Commands whose filter may ask for one document by its _id.
ASK_BY_ID = ("find", "findAndModify", "findandmodify")


def shape_id(database: str | None, collection: str | None, command: str, shape: str | None) -> str:
    """A digest that tells shapes apart, in every capture the same."""
    value = f"{database or ''}\0{collection or ''}\0{command}\0{shape or ''}"
    return _usual_digest(value) if len(value) <= MAX_CACHED else _digest(value)


def _digest(value: str) -> str:
    return blake2b(value.encode("utf-8", "replace"), digest_size=8).hexdigest()


_usual_digest = lru_cache(maxsize=8192)(_digest)


def literals_id(data: bytes, start: int, end: int) -> str:
    """32 bits of the bytes with the values: enough to tell equal from different, too few to guess values from."""
    return f"{zlib.crc32(memoryview(data)[start:end]):08x}"


def id_digest(data: bytes, start: int, end: int) -> tuple[int, int, int] | None:
    """Of a document that begins with _id: the type of it, 32 bits of its bytes, and where it ends; None of others."""
    value = start + 9
    if data[start + 5 : value] != b"_id\0" or value > end:
        return None
    size = value_size(data, data[start + 4], value, end)
    behind = value + size
    if size < 0 or behind >= end:
        return None
    return data[start + 4], zlib.crc32(memoryview(data)[value:behind], data[start + 4]), behind


def id_of_document(data: bytes, start: int, end: int) -> int | None:
    """32 bits of the _id of a document to insert, wherever it stands in it; None: it has none, or not soon."""
    first = id_digest(data, start, end)
    if first is not None:
        return first[1]
    if data.find(b"_id\0", start, end) < 0:
        return None
    span = field(data, start, end, b"_id", MAX_FIELDS)
    return None if span is None else zlib.crc32(memoryview(data)[span[1] : span[2]], span[0])


def asked_id(data: bytes, span: Span) -> int | None:
    """32 bits of the _id that a filter asks for, if it asks for nothing else."""
    found = id_digest(data, span[1], span[2]) if span[0] == DOCUMENT else None
    return None if found is None or found[0] in _NOT_EQUAL or found[2] != span[2] - 1 else found[1]


def sent_ids(data: bytes, start: int, end: int, spans: Sequence[Span]) -> list[int] | None:
    """32 bits of each _id of the first documents of an insert. spans: those of an array; none where there is none."""
    places = [(one[1], one[2]) for one in spans[:MAX_IDS]] if spans else _document_places(data, start, end)
    return [one for place in places if (one := id_of_document(data, *place)) is not None] or None


def made_at(data: bytes, start: int, end: int, spans: Sequence[Span]) -> int | None:
    """Unix ns of the ObjectId of an insert's first document; None where its _id is of another type. spans: those of an
    array; none where there is none."""
    if spans:
        start, end = spans[0][1], spans[0][2]
    if start + 4 > end:
        return None
    behind = min(start + int.from_bytes(data[start : start + 4], "little", signed=True), end)
    span = field(data, start, behind, b"_id", MAX_FIELDS)
    if span is None or span[0] != OBJECT_ID:
        return None
    return int.from_bytes(data[span[1] : span[1] + 4], "big") * _NS_PER_S


def document_shape(data: bytes, start: int, end: int, spans: Sequence[Span]) -> str | None:
    """Fields of the first document of an insert, with their types; None for MAX_FIELDS of them and more. spans: those
    of an array; none where there is none."""
    if not spans:
        size = int.from_bytes(data[start : start + 4], "little", signed=True)
        if not MIN_DOCUMENT_BYTES <= size <= end - start:
            return None
    first = document(data, *(spans[0][1:] if spans else (start, start + size)))
    if first.error is not None or len(first.fields) > MAX_FIELDS:
        return None
    return _shape_of_types(tuple(sorted((key[:MAX_NAME], span[0]) for key, span in first.fields.items())))


@lru_cache(maxsize=256)
def _shape_of_types(types: tuple[tuple[bytes, int], ...]) -> str:
    parts = (f'{shapes.key_text(key)}"{shapes.MARKERS.get(kind, "?object")}"' for key, kind in types)
    return "{" + ",".join(parts) + "}"


def written_ids(data: bytes, start: int, end: int, spans: Sequence[Span]) -> list[int] | None:
    """32 bits of each _id that the first statements of an update or delete ask for and nothing else. spans: those of
    an array; none where there is none."""
    places = [(one[1], one[2]) for one in spans[:MAX_IDS]] if spans else _document_places(data, start, end)
    return [one for place in places if (one := _id_of_statement(data, *place)) is not None] or None


def _id_of_statement(data: bytes, start: int, end: int) -> int | None:
    """Of a statement that begins with its filter, as all drivers send it."""
    if data[start + 4 : start + 7] != b"\3q\0" or start + 7 + MIN_DOCUMENT_BYTES > end:
        return None
    behind = start + 7 + int.from_bytes(data[start + 7 : start + 11], "little", signed=True)
    return asked_id(data, (DOCUMENT, start + 7, behind)) if start + 7 < behind < end else None


def add_shape(facts: Facts, name: str, fields: Fields, message: Message) -> None:
    """query_shape, shape_id, literals_id and documents_sent."""
    data = message.data
    span = None
    statements = STATEMENTS.get(name)
    if statements is not None:
        _add_statements(facts, name, statements, fields, message)
    elif name == "explain":
        explained = inner(data, next(iter(fields.values())))
        if explained:
            what = command_name(next(iter(explained)))
            part = query_shape(what, data, explained)
            facts["query_shape"] = None if part is None else f'{{"{what}":{part}}}' if what.isidentifier() else part
            facts["collection"] = text(data, next(iter(explained.values())))
    else:
        facts["query_shape"] = query_shape(name, data, fields)
        span = fields.get(_LITERALS.get(name, b""))
        if span is not None:
            facts["literals_id"] = literals_id(data, span[1], span[2])
    if name in ASK_BY_ID and span is not None:
        asked = asked_id(data, span)
        if asked is not None:
            facts["document_ids"] = [asked]
    shape = facts.get("query_shape")
    if name == "aggregate":
        facts["tailable"] = shape is not None and shape.startswith('{"pipeline":[{"$changeStream"')
    facts["shape_id"] = shape_id(facts["database"], facts.get("collection"), name, shape)
    if shape is not None and len(shape) > MAX_SHAPE:
        facts["query_shape"] = shapes.MORE


def query_shape(name: str, data: bytes, fields: Fields) -> str | None:
    """The shape of what a command asks for; None for commands that do not query."""
    parts = SHAPED.get(name)
    if parts is None:
        return None
    found = []
    for number, (key, shaper) in enumerate(parts):
        span = fields.get(key)
        if span is None:
            if number == 0:  # a find without a filter is one with an empty filter
                found.append(f'"{key.decode()}":' + ("[]" if key == b"pipeline" else "{}"))
        elif number == 0 or span[2] - span[1] > 5:  # an empty sort order is none
            found.append(f'"{key.decode()}":{shaper(data, span)}')
    return "{" + ",".join(found) + "}"


def _add_statements(facts: Facts, name: str, key: bytes, fields: Fields, message: Message) -> None:
    """Statements of an update or delete, documents of an insert: in the command or behind it."""
    data = message.data
    listed = fields.get(key)
    spans: list[Span] = []
    if listed is not None and listed[0] == ARRAY:
        spans = element_spans(data, listed, listed[2])
        facts["documents_sent"] = len(spans)
        start, end = listed[1], listed[2]
    else:
        sequence = next((found for found in message.sequences if found.name == key), None)
        if sequence is None:
            return
        facts["documents_sent"] = sequence.documents
        start, end = sequence.start, sequence.end
    if name == "insert":
        facts["document_ids"] = sent_ids(data, start, end, spans)
        facts["document_shape"] = document_shape(data, start, end, spans)
        facts["id_time"] = made_at(data, start, end, spans)
        return
    if name != "bulkWrite":
        facts["document_ids"] = written_ids(data, start, end, spans)
    facts["literals_id"] = literals_id(data, start, end)
    if spans:
        documents = [inner(data, span) for span in spans[:MAX_STATEMENTS]]
    else:
        documents = sequence_documents(data, start, end, MAX_STATEMENTS)
    shaped = dict.fromkeys(_statement_shape(name, data, statement) for statement in documents)
    facts["query_shape"] = f'{{"{key.decode()}":[{",".join(shaped)}]}}'


def _document_places(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Where the first documents of a sequence lie."""
    found: list[tuple[int, int]] = []
    while end - start >= MIN_DOCUMENT_BYTES and len(found) < MAX_IDS:
        size = int.from_bytes(data[start : start + 4], "little", signed=True)
        if not MIN_DOCUMENT_BYTES <= size <= end - start:
            break
        found.append((start, start + size))
        start += size
    return found


def sequence_documents(data: bytes, start: int, end: int, most: int) -> list[Fields]:
    """The fields of the first documents of a sequence, those before damage."""
    found: list[Fields] = []
    while start < end and len(found) < most:
        one = document(data, start, end)
        if one.error is not None:
            break
        found.append(one.fields)
        start = one.end
    return found


def _statement_shape(name: str, data: bytes, fields: Fields) -> str:
    """One update or delete; of bulkWrite which of them, too."""
    parts = []
    for key, shaper in _STATEMENT_PARTS:
        span = fields.get(key)
        if span is not None and not (shaper is _flag and not boolean(data, span)):
            parts.append(f'"{key.decode()}":{shaper(data, span)}')
    if name == "bulkWrite":
        kind = next((key.decode() for key in fields if key in (b"insert", b"update", b"delete")), "?")
        parts.insert(0, f'"{kind}":"?number"')
    return "{" + ",".join(parts) + "}"


def _flag(_data: bytes, _span: Span) -> str:
    return "true"


def _count(data: bytes, span: Span) -> str:
    return str(integer(data, span))


_Shaper = Callable[[bytes, Span], str]
_STATEMENT_PARTS: tuple[tuple[bytes, _Shaper], ...] = (
    (b"q", shapes.filter_shape),
    (b"filter", shapes.filter_shape),
    (b"u", shapes.update_shape),
    (b"updateMods", shapes.update_shape),
    (b"sort", shapes.order_shape),
    (b"arrayFilters", shapes.pipeline_shape),
    (b"multi", _flag),
    (b"upsert", _flag),
    (b"limit", _count),
)
_MODIFY: tuple[tuple[bytes, _Shaper], ...] = (
    (b"query", shapes.filter_shape),
    (b"sort", shapes.order_shape),
    (b"update", shapes.update_shape),
    (b"fields", shapes.projection_shape),
)
# Command -> its parts that are a shape; the first one is always told.
SHAPED: dict[str, tuple[tuple[bytes, _Shaper], ...]] = {
    "find": (
        (b"filter", shapes.filter_shape),
        (b"sort", shapes.order_shape),
        (b"projection", shapes.projection_shape),
    ),
    "aggregate": ((b"pipeline", shapes.pipeline_shape),),
    "count": ((b"query", shapes.filter_shape),),
    "distinct": ((b"query", shapes.filter_shape), (b"key", shapes.name_shape)),
    "findAndModify": _MODIFY,
    "findandmodify": _MODIFY,
    "mapReduce": ((b"query", shapes.filter_shape), (b"sort", shapes.order_shape)),
    "mapreduce": ((b"query", shapes.filter_shape), (b"sort", shapes.order_shape)),
}
_LITERALS = {name: parts[0][0] for name, parts in SHAPED.items()}
