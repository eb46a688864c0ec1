"""Documents that have the same keys with values of the same types, in the same order, read in lock-step.

In: where many documents lie. Out: `Layout`s: documents of one kind each, and where the values of all of them are. The
first document says what comes next, a key with its type; one comparison tells which of the others say the same, and
these go on together. What is broken, large or rare is in no layout; the rules are those of `bson_fields.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.mongo.bson_fields import (
    BINARY,
    DOCUMENT,
    MIN_DOCUMENT_BYTES,
    SIZE_OF_TYPE,
    STRING,
)
from wirewitness.dissectors.mongo.lockstep.buffer import MAX_EQUAL, Buffer

# Fields of a document that is read here, and different ones that may stand at one place of it.
MAX_FIELDS = 40
MAX_BRANCHES = 48
# So often a document is compared with another one on the average; what is left then is read one by one.
MAX_COMPARED = 128
# A step costs the same for few documents as for many: behind so many fields twice as many are needed as at first.
_DOUBLES_AFTER = 8
_BY_STRING, _BY_SIZE, _AS_BINARY = SIZE_OF_TYPE[STRING], SIZE_OF_TYPE[DOCUMENT], SIZE_OF_TYPE[BINARY]


class Values(NamedTuple):
    """The values of one field, all of one type. start, end: where each lies."""

    kind: int
    start: Ints
    end: Ints

    def rows(self, rows: Ints) -> Values:
        """Of these documents only."""
        return Values(self.kind, self.start[rows], self.end[rows])


class Layout(NamedTuple):
    """Documents of one layout. rows: which of all documents they are, in any order.

    fields: by key, in their order. inner: those of the documents inside that were entered, by the key of these.
    """

    rows: Ints
    fields: dict[bytes, Values]
    inner: dict[bytes, dict[bytes, Values]]

    @property
    def size(self) -> int:
        """How many documents."""
        return len(self.rows)

    def only(self, kept: Flags) -> Layout:
        """The documents that are kept."""
        if kept.all():
            return self
        chosen = np.flatnonzero(kept)
        inner = {outer: _rows(fields, chosen) for outer, fields in self.inner.items()}
        return Layout(self.rows[chosen], _rows(self.fields, chosen), inner)


def _rows(fields: dict[bytes, Values], rows: Ints) -> dict[bytes, Values]:
    return {key: values.rows(rows) for key, values in fields.items()}


class _Field(NamedTuple):
    """What stands at one place. outer: the key of the document that it is in; None at the top."""

    outer: bytes | None
    key: bytes
    kind: int


class _Node(NamedTuple):
    """Documents that were the same so far. at: where each is read on; last: the last byte of what is read.

    inside: the key of the document inside that is read; behind: the last byte of the outer one then.
    """

    rows: Ints
    at: Ints
    last: Ints
    fields: tuple[_Field, ...] = ()
    inside: bytes | None = None
    behind: Ints | None = None

    def only(self, kept: Ints | Flags) -> _Node:
        """Of these documents only."""
        behind = None if self.behind is None else self.behind[kept]
        return self._replace(rows=self.rows[kept], at=self.at[kept], last=self.last[kept], behind=behind)


def layouts(buffer: Buffer, start: Ints, end: Ints, enter: Collection[bytes], least: int) -> list[Layout]:
    """The layouts that `least` or more of these documents have. enter: keys of documents inside that are read, too."""
    whole = (end - start >= MIN_DOCUMENT_BYTES) & (buffer.int32(start) == end - start) & (buffer.octet(end - 1) == 0)
    rows = np.flatnonzero(whole)
    reading = _Reading(buffer, len(start), enter, least)
    reading.read(_Node(rows, start[rows] + 4, end[rows] - 1))
    return reading.found


class _Reading:
    """Goes through documents of which ever fewer are the same. starts, ends: of values by their place, of all rows."""

    def __init__(self, buffer: Buffer, count: int, enter: Collection[bytes], least: int) -> None:
        self._buffer = buffer
        self._count = count
        self._enter = enter
        self._least = least
        self._starts: list[Ints] = []
        self._ends: list[Ints] = []
        self._waiting: list[_Node] = []
        self._compared_at_most = MAX_COMPARED * count
        self.found: list[Layout] = []

    def read(self, node: _Node) -> None:
        """Find the layouts of these documents."""
        self._waiting.append(node)
        while self._waiting:
            self._split(self._waiting.pop())

    def _split(self, node: _Node) -> None:
        """Documents that go on differently part."""
        over = node.at == node.last
        if over.any():
            self._ended(node.only(over))
            node = node.only(~over)
        least = self._least * (_DOUBLES_AFTER + len(node.fields)) // _DOUBLES_AFTER
        for _ in range(MAX_BRANCHES):
            if len(node.rows) < least or len(node.fields) == MAX_FIELDS or self._compared_at_most <= 0:
                return
            self._compared_at_most -= len(node.rows)
            token = self._token(int(node.at[0]), int(node.last[0]))
            if token is None:
                node = node.only(np.arange(1, len(node.rows)))
                continue
            same = self._buffer.equal(node.at, token)
            if same.all():
                self._go_on(node, token)
                return
            if np.count_nonzero(same) >= least:
                self._go_on(node.only(same), token)
            node = node.only(~same)

    def _token(self, at: int, last: int) -> bytes | None:
        """The type and the key at this place with its zero; None where it is too long, or none."""
        behind = self._buffer.data.find(0, at + 1, min(last, at + MAX_EQUAL)) + 1
        return self._buffer.data[at:behind] if behind else None

    def _go_on(self, node: _Node, token: bytes) -> None:
        """Step over the value behind this key, of those where there is one as it should be."""
        kind, key = token[0], token[1:-1]
        value = node.at + len(token)
        behind, good = self._behind(kind, value, node.last)
        entered = node.inside is None and kind == DOCUMENT and key in self._enter
        if entered:
            good &= self._buffer.octet(behind - 1) == 0
        if not good.all():
            node, value, behind = node.only(good), value[good], behind[good]
        place = len(node.fields)
        if place == len(self._starts):
            self._starts.append(np.empty(self._count, np.int64))
            self._ends.append(np.empty(self._count, np.int64))
        self._starts[place][node.rows] = value
        self._ends[place][node.rows] = behind
        fields = (*node.fields, _Field(node.inside, key, kind))
        if entered:
            self._waiting.append(_Node(node.rows, value + 4, behind - 1, fields, key, node.last))
        else:
            self._waiting.append(node._replace(at=behind, fields=fields))

    def _behind(self, kind: int, value: Ints, last: Ints) -> tuple[Ints, Flags]:
        """The byte behind each value of this type, and which of them are as they should be."""
        buffer, how = self._buffer, SIZE_OF_TYPE[kind]
        if how >= 0:
            behind = value + how
            return behind, behind <= last
        size = buffer.int32(value)
        if how == _BY_SIZE:
            behind = value + size
            return behind, (size >= MIN_DOCUMENT_BYTES) & (behind <= last)
        if how == _BY_STRING:
            behind = value + 4 + size
            return behind, (size >= 1) & (behind <= last) & (buffer.octet(behind - 1) == 0)
        behind = value + 5 + size
        return behind, (how == _AS_BINARY) & (size >= 0) & (behind <= last)

    def _ended(self, node: _Node) -> None:
        """These documents are over, those inside or the outer ones."""
        if node.behind is not None:
            self._waiting.append(_Node(node.rows, node.last + 1, node.behind, node.fields))
        elif len(node.rows) >= self._least:
            layout = self._layout(node.rows, node.fields)
            if layout is not None:
                self.found.append(layout)

    def _layout(self, rows: Ints, places: Sequence[_Field]) -> Layout | None:
        """None where a key stands twice, or no key."""
        fields: dict[bytes, Values] = {}
        inner: dict[bytes, dict[bytes, Values]] = {}
        for place, (outer, key, kind) in enumerate(places):
            where = fields if outer is None else inner[outer]
            if key in where:
                return None
            where[key] = Values(kind, self._starts[place][rows], self._ends[place][rows])
            if outer is None and kind == DOCUMENT and key in self._enter:
                inner[key] = {}
        return Layout(rows, fields, inner) if fields else None
