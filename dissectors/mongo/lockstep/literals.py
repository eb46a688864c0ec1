"""Which bytes of a filter, update or pipeline are literals that its query shape does not tell.

In: a value, as `shapes.py` gets it. Out: where these bytes lie. Two values of one size whose other bytes are equal have
the same shape: keys, types, sizes and whatever a shape may repeat are among these others. What is broken or unusual has
no literals, so that it is like nothing but itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    BINARY,
    BOOL,
    CODE,
    DATE,
    DECIMAL,
    DOCUMENT,
    DOUBLE,
    INT32,
    INT64,
    MIN_DOCUMENT_BYTES,
    OBJECT_ID,
    STRING,
    SYMBOL,
    TIMESTAMP,
    Span,
    value_size,
)

Places = list[tuple[int, int]]

_int32 = struct.Struct("<i").unpack_from
# Types whose values are told by shapes in some places: numbers of a sort order, names and paths.
_TOLD = frozenset({STRING, BOOL, INT32, INT64, DOUBLE})
# How many bytes of a value come before its literal, and behind it: sizes and a string's last zero count.
_AROUND = {
    **dict.fromkeys((DOUBLE, OBJECT_ID, BOOL, DATE, INT32, TIMESTAMP, INT64, DECIMAL), (0, 0)),
    **dict.fromkeys((STRING, CODE, SYMBOL), (4, 1)),
    BINARY: (4, 0),
}
# Operators below which a filter or an update tells values.
_TELLING = (b"$expr\0", b"$sort\0")
_MOST = 3000


def none(_data: bytes, _span: Span) -> Places:
    """Every byte counts."""
    return []


def of_filter(data: bytes, span: Span) -> Places:
    """Of a filter, or of an update by operators or that replaces."""
    if any(data.find(word, span[1], span[2]) >= 0 for word in _TELLING):
        return []
    return _leaves(data, [span]) or []


def of_update(data: bytes, span: Span) -> Places:
    """Of an update, which may be a pipeline."""
    return of_pipeline(data, span) if span[0] == ARRAY else of_filter(data, span)


def of_pipeline(data: bytes, span: Span) -> Places:
    """Of a pipeline: of its $match stages all, of others what no shape tells."""
    stages = _elements(data, span)
    if stages is None:
        return []
    found: Places = []
    for stage in stages:
        inside = _elements(data, stage[1]) if stage[1][0] == DOCUMENT else None
        if inside is not None and len(inside) == 1 and inside[0][0] == b"$match":
            found += of_filter(data, inside[0][1])
            continue
        leaves = _leaves(data, [stage[1]], _TOLD)
        if leaves is None:
            return []
        found += leaves
    return found


def of_document_but(told: frozenset[bytes]) -> Callable[[bytes, Span], Places]:
    """Of a document: of all its fields but these."""

    def literals(data: bytes, span: Span) -> Places:
        fields = _elements(data, span)
        return [] if fields is None else _leaves(data, [value for key, value in fields if key not in told]) or []

    return literals


def of_statements(data: bytes, span: Span) -> Places:
    """Of the statements of an update or delete, in an array."""
    statements = _elements(data, span)
    return [] if statements is None else _of_statements(data, [one for _, one in statements])


def of_sequence(data: bytes, span: Span) -> Places:
    """Of the statements of an update or delete, one document behind the other."""
    _, at, end = span
    found: list[Span] = []
    while end - at >= MIN_DOCUMENT_BYTES and len(found) < _MOST:
        behind = at + int(_int32(data, at)[0])
        if not at + MIN_DOCUMENT_BYTES <= behind <= end:
            return []
        found.append((DOCUMENT, at, behind))
        at = behind
    return _of_statements(data, found) if at == end else []


_OF_STATEMENT = {b"q": of_filter, b"filter": of_filter, b"u": of_update, b"updateMods": of_update}


def _of_statements(data: bytes, statements: list[Span]) -> Places:
    found: Places = []
    for statement in statements:
        fields = _elements(data, statement)
        if fields is None:
            return []
        for key, value in fields:
            found += _OF_STATEMENT.get(key, none)(data, value)
    return found


def _elements(data: bytes, span: Span) -> list[tuple[bytes, Span]] | None:
    """Keys and values of a document or array; None of a broken one, or of one that has many."""
    kind, start, end = span
    if kind not in (DOCUMENT, ARRAY) or end - start < MIN_DOCUMENT_BYTES:
        return None
    at, last = start + 4, end - 1
    if _int32(data, start)[0] != end - start or data[last] != 0:
        return None
    found: list[tuple[bytes, Span]] = []
    while at < last:
        value = data.find(0, at + 1, last) + 1
        size = value_size(data, data[at], value, last) if value else -1
        if size < 0 or value + size > last or len(found) == _MOST:
            return None
        found.append((data[at + 1 : value - 1], (data[at], value, value + size)))
        at = value + size
    return found


def _leaves(data: bytes, waiting: list[Span], told: frozenset[int] = frozenset()) -> Places | None:
    """The literals in these values, but for those of types that are told; None where something is broken."""
    found: Places = []
    seen = 0
    while waiting:
        span = waiting.pop()
        kind, start, end = span
        if kind in (DOCUMENT, ARRAY):
            inside = _elements(data, span)
            seen += len(inside or ())
            if inside is None or seen > _MOST:
                return None
            waiting += [value for _, value in inside]
        elif kind in _AROUND and kind not in told:
            before, behind = _AROUND[kind]
            if start + before < end - behind:
                found.append((start + before, end - behind))
    return found
