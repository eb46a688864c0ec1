"""One BSON document as a tree of fields with byte spans: slow, complete, for `show` and redaction.

In: bytes, and who says which values are kept back. Out: nodes, hidden spans, and where reading stopped. No recursion:
a document may be nested as deep as its bytes allow. Source: BSON specification 1.1. Never raises.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bson.decimal128 import Decimal128

from wirewitness.dissectors.core.inspect import Hidden, HiddenKind, Node
from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    BINARY,
    BOOL,
    CODE,
    CODE_WITH_SCOPE,
    DATE,
    DECIMAL,
    DOCUMENT,
    DOUBLE,
    INT32,
    INT64,
    MAX_KEY,
    MIN_DOCUMENT_BYTES,
    MIN_KEY,
    NULL,
    OBJECT_ID,
    REGEX,
    SIZE_OF_TYPE,
    STRING,
    SYMBOL,
    TIMESTAMP,
    UNDEFINED,
    UNKNOWN_TYPE,
    UUID_SUBTYPES,
    value_size,
)
from wirewitness.dissectors.mongo.command_options import uuid_text
from wirewitness.dissectors.mongo.secrets import MASK

# Levels that get nodes; servers store 100. What lies deeper is one node.
MAX_DEPTH = 120
MAX_KEY_TEXT = 1024

_int32 = struct.Struct("<i").unpack_from
_int64 = struct.Struct("<q").unpack_from
_double = struct.Struct("<d").unpack_from
_timestamp = struct.Struct("<II").unpack_from
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Keys on the way to a value, outermost first; array elements have none -> is it kept back?
Classify = Callable[[tuple[str, ...]], HiddenKind | None]


class Walked(NamedTuple):
    """The fields of a document. pos: behind the last byte read. error: why that is not its end."""

    nodes: list[Node]
    hidden: list[Hidden]
    pos: int
    error: str | None


class _Open(NamedTuple):
    """A document or array that is being read: `last` is its closing zero, `children` where its fields go."""

    node: Node | None
    children: list[Node]
    last: int
    keys: tuple[str, ...]
    array: bool


class DocumentWalker:
    """Walks documents of one message. nodes_left: how many fields may still get a node."""

    def __init__(self, data: bytes, classify: Classify, max_nodes: int, *, payload: bool) -> None:
        self._data = data
        self._classify = classify
        self._payload = payload
        self.nodes_left = max_nodes

    def walk(self, start: int, limit: int, keys: tuple[str, ...] = ()) -> Walked:
        """The document at `start`, which ends at `limit` at the latest. keys: what it stands under."""
        hidden: list[Hidden] = []
        nodes: list[Node] = []
        last, error = self._opened(start, limit)
        if error is not None:
            return Walked(nodes, hidden, start, error)
        open_ones = [_Open(None, nodes, last, keys, False)]
        at = start + 4
        while open_ones:
            here = open_ones[-1]
            if at >= here.last:
                error = self._closed(here)
                if error is not None:
                    break
                at = here.last + 1
                open_ones.pop()
                continue
            at, error = self._field(at, here, open_ones, hidden)
            if error is not None:
                break
        for unfinished in open_ones:
            if unfinished.node is not None:
                unfinished.node.end = at
        return Walked(nodes, hidden, at, error)

    def _opened(self, start: int, limit: int) -> tuple[int, str | None]:
        """(where the closing zero of a document stands, or its bytes end; what is wrong with it)."""
        if limit - start < 4:
            return limit, "a document ends early"
        size = _int32(self._data, start)[0]
        if size < MIN_DOCUMENT_BYTES:
            return limit, f"impossible size of a document: {size}"
        return (start + size - 1 if start + size <= limit else limit), None

    def _closed(self, here: _Open) -> str | None:
        if here.last >= len(self._data):
            return "the document is longer than what is there"
        return None if self._data[here.last] == 0 else "a document does not end in zero"

    def _field(self, at: int, here: _Open, open_ones: list[_Open], hidden: list[Hidden]) -> tuple[int, str | None]:
        """Read the field at `at`; (where to go on, what is wrong)."""
        data, kind = self._data, self._data[at]
        key_end = data.find(0, at + 1, here.last)
        if key_end < 0:
            return at, "a key ends early"
        value = key_end + 1
        size = value_size(data, kind, value, here.last)
        if size < 0 or value + size > here.last:
            why = f"unknown type 0x{kind:02x}" if SIZE_OF_TYPE[kind] == UNKNOWN_TYPE else "a value ends early"
            return at, why
        self.nodes_left -= 1
        if self.nodes_left < 0:
            return at, "there are more fields than are shown"
        end = value + size
        name = data[at + 1 : min(key_end, at + 1 + MAX_KEY_TEXT)].decode("utf-8", "replace")
        keys = here.keys if here.array else (*here.keys, name)
        node = Node(f"[{name}]" if here.array else name, at, end)
        here.children.append(node)
        kept_back = self._classify(keys)
        if kind in (DOCUMENT, ARRAY) and kept_back != "secret" and len(open_ones) < MAX_DEPTH:
            open_ones.append(_Open(node, node.children, end - 1, keys, kind == ARRAY))
            return value + 4, None
        self._leaf(node, kind, value, end, kept_back, hidden)
        return end, None

    def _leaf(
        self, node: Node, kind: int, value: int, end: int, kept_back: HiddenKind | None, hidden: list[Hidden]
    ) -> None:
        if kept_back == "secret" or (kept_back == "payload" and not self._payload):
            first, behind = _content(kind, value, end)
            if behind > first:
                hidden.append(Hidden(first, behind, kept_back))
            node.value = MASK if kept_back == "secret" else None
        else:
            node.value = value_of(self._data, kind, value, end)


def _content(kind: int, value: int, end: int) -> tuple[int, int]:
    """The bytes of a value without its length and closing zero."""
    if kind in (STRING, CODE, SYMBOL):
        return value + 4, end - 1
    if kind == BINARY:
        return value + 5, end
    if kind in (DOCUMENT, ARRAY):
        return value + 4, end
    return value, end


def value_of(data: bytes, kind: int, value: int, end: int) -> Any:
    """A value that is all there, as people read it."""
    reader = _VALUES.get(kind)
    return None if reader is None else reader(data, value, end)


def _text(data: bytes, value: int, end: int) -> str:
    return data[value + 4 : end - 1].decode("utf-8", "replace")


def _binary(data: bytes, value: int, end: int) -> Any:
    content = data[value + 5 : end]
    return uuid_text(content) if data[value + 4] in UUID_SUBTYPES and len(content) == 16 else content


def _date(data: bytes, value: int, _end: int) -> str:
    """Milliseconds since 1970; years beyond 9999 as their number."""
    milliseconds = _int64(data, value)[0]
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"{milliseconds} ms"


def _regex(data: bytes, value: int, end: int) -> str:
    pattern, options = data[value : end - 1].split(b"\0", 1)
    return f"/{pattern.decode('utf-8', 'replace')}/{options.decode('utf-8', 'replace')}"


def _timestamp_text(data: bytes, value: int, _end: int) -> str:
    increment, seconds = _timestamp(data, value)
    return f"Timestamp({seconds}, {increment})"


_VALUES: dict[int, Callable[[bytes, int, int], Any]] = {
    DOUBLE: lambda data, value, _: _double(data, value)[0],
    STRING: _text,
    BINARY: _binary,
    UNDEFINED: lambda _data, _value, _end: "undefined",
    OBJECT_ID: lambda data, value, end: f"ObjectId({data[value:end].hex()})",
    BOOL: lambda data, value, _: data[value] != 0,
    DATE: _date,
    NULL: lambda _data, _value, _end: None,
    REGEX: _regex,
    CODE: _text,
    SYMBOL: _text,
    CODE_WITH_SCOPE: lambda data, value, end: data[value:end],
    INT32: lambda data, value, _: _int32(data, value)[0],
    TIMESTAMP: _timestamp_text,
    INT64: lambda data, value, _: _int64(data, value)[0],
    DECIMAL: lambda data, value, end: str(Decimal128.from_bid(data[value:end])),
    MIN_KEY: lambda _data, _value, _end: "MinKey",
    MAX_KEY: lambda _data, _value, _end: "MaxKey",
}
