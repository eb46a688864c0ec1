"""The fields of one BSON document, without its values: which keys there are and where their values lie.

In: bytes. Out: key -> (type, start, end of the value), and small readers for single values. A command's meaning needs
a handful of values, so whole documents are not made into Python objects here; see `bson_tree.py` and pymongo's `bson`
for that. Source: BSON specification 1.1. Nothing raises on any bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, UNDEFINED, OBJECT_ID, BOOL = range(1, 9)
DATE, NULL, REGEX, DB_POINTER, CODE, SYMBOL, CODE_WITH_SCOPE, INT32, TIMESTAMP, INT64, DECIMAL = range(9, 20)
MIN_KEY, MAX_KEY = 0xFF, 0x7F
UUID_SUBTYPES = frozenset({3, 4})
MIN_DOCUMENT_BYTES = 5
# Names and messages of servers are far shorter; rows and what waits for a reply keep no more.
MAX_TEXT_BYTES = 4096


_BY_STRING, _BY_SIZE, _AS_BINARY, _AS_REGEX, _AS_DB_POINTER, UNKNOWN_TYPE = -1, -2, -3, -4, -5, -6
_SIZES = {
    DOUBLE: 8,
    STRING: _BY_STRING,
    DOCUMENT: _BY_SIZE,
    ARRAY: _BY_SIZE,
    BINARY: _AS_BINARY,
    UNDEFINED: 0,
    OBJECT_ID: 12,
    BOOL: 1,
    DATE: 8,
    NULL: 0,
    REGEX: _AS_REGEX,
    DB_POINTER: _AS_DB_POINTER,
    CODE: _BY_STRING,
    SYMBOL: _BY_STRING,
    CODE_WITH_SCOPE: _BY_SIZE,
    INT32: 4,
    TIMESTAMP: 8,
    INT64: 8,
    DECIMAL: 16,
    MIN_KEY: 0,
    MAX_KEY: 0,
}
# By type: bytes of a value of fixed size, else how its size is found.
SIZE_OF_TYPE = tuple(_SIZES.get(kind, UNKNOWN_TYPE) for kind in range(256))

_int32 = struct.Struct("<i").unpack_from
_int64 = struct.Struct("<q").unpack_from
_double = struct.Struct("<d").unpack_from

# Type, first byte of the value, byte behind it.
Span = tuple[int, int, int]
# Keys as they are on the wire; of equal ones the last counts, as with drivers.
Fields = dict[bytes, Span]


class Document(NamedTuple):
    """What one document holds. end: behind its last byte as far as it is there. error: why it is not whole."""

    fields: Fields
    end: int
    error: str | None = None


def document(data: bytes, start: int, limit: int) -> Document:
    """The fields of the document at `start`, which must end at `limit` or before it; those before damage are kept."""
    fields: Fields = {}
    if limit - start < MIN_DOCUMENT_BYTES:
        return Document(fields, limit, "a document ends early")
    size: int = _int32(data, start)[0]
    if size < MIN_DOCUMENT_BYTES:
        return Document(fields, limit, "impossible size of a document")
    end = start + size
    cut = end > limit
    last = limit if cut else end - 1
    error = _add_fields(data, start + 4, last, fields)
    if error is not None:
        return Document(fields, last, error)
    if cut:
        return Document(fields, limit, "the document is longer than what is there")
    if data[last] != 0:
        return Document(fields, end, "a document does not end in zero")
    return Document(fields, end)


def whole_fields(data: bytes, start: int, end: int) -> Fields | None:
    """The fields of a document that ends exactly at `end`; None where it does not, or is broken."""
    fields: Fields = {}
    if end - start < MIN_DOCUMENT_BYTES or _int32(data, start)[0] != end - start or data[end - 1] != 0:
        return None
    return fields if _add_fields(data, start + 4, end - 1, fields) is None else None


def _add_fields(data: bytes, at: int, last: int, fields: Fields) -> str | None:
    """Read fields from `at` to before `last`; what is wrong. Most time is spent here, so sizes are found in place."""
    sizes, find, int32 = SIZE_OF_TYPE, data.find, _int32
    try:
        while at < last:
            kind = data[at]
            value = find(0, at + 1, last) + 1
            if value == 0:
                return "a key ends early"
            size = sizes[kind]
            if size >= 0:
                behind = value + size
            elif size == _BY_SIZE:
                behind = value + int32(data, value)[0]
                if behind < value + MIN_DOCUMENT_BYTES:
                    return _REASONS[_NOT_ENDED]
            elif size == _BY_STRING:
                behind = value + 4 + int32(data, value)[0]
                if behind <= value + 4 or (behind <= last and data[behind - 1] != 0):
                    return _REASONS[_NOT_ENDED]
            else:
                size = value_size(data, kind, value, last)
                if size < 0:
                    return _REASONS[size]
                behind = value + size
            if behind > last:
                return "a value ends early"
            fields[data[at + 1 : value - 1]] = (kind, value, behind)
            at = behind
    except struct.error:  # the last bytes there are do not hold a size
        return _REASONS[_NO_ROOM]
    return None


def first_fields(data: bytes, start: int, end: int, most: int) -> int:
    """How many fields, at most `most`, the document at `start` begins with, as far as it is there; -1: it is broken."""
    size: int = _int32(data, start)[0]
    if size < MIN_DOCUMENT_BYTES:
        return -1
    behind = start + size
    cut = behind > end
    last = end if cut else behind - 1
    at = start + 4
    for count in range(most):
        if at >= last:
            return count if cut or data[last] == 0 else -1
        value = data.find(0, at + 1, last) + 1
        length = value_size(data, data[at], value, last) if value else _NO_ROOM
        if length == _NO_ROOM or (length >= 0 and value + length > last):
            return count if cut and value + max(length, 0) < behind else -1
        if length < 0:
            return -1
        at = value + length
    return most


def field(data: bytes, start: int, end: int, name: bytes, most: int) -> Span | None:
    """The field of that name among the first `most` of the document from `start` to `end`; None of a broken one."""
    at, last = start + 4, end - 1
    for _ in range(most):
        value = data.find(0, at + 1, last) + 1 if at < last else 0
        length = value_size(data, data[at], value, last) if value else _NO_ROOM
        if length < 0 or value + length > last:
            return None
        if data[at + 1 : value - 1] == name:
            return data[at], value, value + length
        at = value + length
    return None


_NO_ROOM, _NOT_ENDED, _NO_SUCH_TYPE = -1, -2, -3
_REASONS = {
    _NO_ROOM: "a value ends early",
    _NOT_ENDED: "impossible size of a value",
    _NO_SUCH_TYPE: "unknown type of a value",
}


def value_size(data: bytes, kind: int, value: int, limit: int) -> int:
    """Bytes of the value of this type at `value`; may reach behind `limit`. Negative: it has none, see `_REASONS`."""
    how = SIZE_OF_TYPE[kind]
    if how >= 0:
        return how
    if how == UNKNOWN_TYPE:
        return _NO_SUCH_TYPE
    if how == _AS_REGEX:
        options = data.find(0, value, limit) + 1
        end = data.find(0, options, limit) + 1 if options else 0
        return end - value if end else _NO_ROOM
    if limit - value < 4:
        return _NO_ROOM
    size: int = _int32(data, value)[0]
    if how == _BY_SIZE:
        return size if size >= MIN_DOCUMENT_BYTES else _NOT_ENDED
    if how == _AS_BINARY:
        return size + 5 if size >= 0 else _NOT_ENDED
    if size < 1 or (value + 4 + size <= limit and data[value + 3 + size] != 0):
        return _NOT_ENDED
    return size + (16 if how == _AS_DB_POINTER else 4)


def count_elements(data: bytes, span: Span) -> int:
    """Elements of an array; those before damage."""
    return len(element_spans(data, span, span[2]))


def element_spans(data: bytes, span: Span, most: int) -> list[Span]:
    """The first elements of an array, at most `most`; those before damage."""
    found: list[Span] = []
    _, at, end = span
    last = min(end, at + max(_int32(data, at)[0], 0)) - 1 if end - at >= 4 else at
    at += 4
    sizes, find, add = SIZE_OF_TYPE, data.find, found.append
    while at < last and len(found) < most:
        kind = data[at]
        value = find(0, at + 1, last) + 1
        if value == 0:
            break
        if kind == DOCUMENT and last - value >= 4:
            size = _int32(data, value)[0]
        else:
            size = sizes[kind]
            if size < 0:
                size = value_size(data, kind, value, last)
        if size < 0 or value + size > last:
            break
        at = value + size
        add((kind, value, at))
    return found


def text(data: bytes, span: Span | None) -> str | None:
    """A string value, its first MAX_TEXT_BYTES; None for another type or none."""
    if span is None or span[0] != STRING:
        return None
    _, start, end = span
    return data[start + 4 : min(end - 1, start + 4 + MAX_TEXT_BYTES)].decode("utf-8", "replace")


def integer(data: bytes, span: Span | None) -> int | None:
    """A number as an integer, whatever its type; None where there is none."""
    if span is None:
        return None
    kind, at, _ = span
    if kind == INT32:
        return int(_int32(data, at)[0])
    if kind == INT64:
        return int(_int64(data, at)[0])
    if kind == DOUBLE:
        value: float = _double(data, at)[0]
        return int(value) if abs(value) < 2**63 else None
    return None


def boolean(data: bytes, span: Span | None) -> bool | None:
    """A boolean, or a number that stands for one; None where there is neither."""
    if span is None:
        return None
    if span[0] == BOOL:
        return data[span[1]] != 0
    number = integer(data, span)
    return None if number is None else number != 0


def raw_bytes(data: bytes, span: Span | None) -> bytes | None:
    """The bytes of a binary value."""
    return None if span is None or span[0] != BINARY else data[span[1] + 5 : span[2]]


def inner(data: bytes, span: Span | None) -> Fields:
    """The fields of a document or array inside; none where it is neither."""
    if span is None or span[0] not in (DOCUMENT, ARRAY):
        return {}
    found = whole_fields(data, span[1], span[2])
    return document(data, span[1], span[2]).fields if found is None else found


def path(data: bytes, fields: Mapping[bytes, Span], *keys: bytes) -> Span | None:
    """The value under these keys, one inside the other."""
    *outer, name = keys
    found: Mapping[bytes, Span] = fields
    for key in outer:
        found = inner(data, found.get(key))
    return found.get(name)


def texts(data: bytes, span: Span | None, most: int) -> list[str]:
    """The strings of an array, at most `most`."""
    if span is None or span[0] != ARRAY:
        return []
    found = (text(data, element) for element in element_spans(data, span, most))
    return [value for value in found if value is not None]


def integers(data: bytes, span: Span | None, most: int) -> list[int]:
    """The numbers of an array, at most `most`."""
    if span is None or span[0] != ARRAY:
        return []
    found = (integer(data, element) for element in element_spans(data, span, most))
    return [value for value in found if value is not None]
