"""What many replies of one layout say, as columns: the rules are those of `replies.py`.

In: replies with equal keys and types. Out: their columns of `mongo_commands` are filled; the outcome of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.mongo.bson_fields import ARRAY, DOCUMENT
from wirewitness.dissectors.mongo.command_shapes import id_of_document
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.filled import Filled
from wirewitness.dissectors.mongo.lockstep.layouts import Layout, Values
from wirewitness.dissectors.mongo.lockstep.numbers import booleans, elements
from wirewitness.dissectors.mongo.lockstep.numbers import integers as many_integers
from wirewitness.dissectors.mongo.lockstep.requests import span_of
from wirewitness.dissectors.mongo.lockstep.same_values import Kinds, alike, together
from wirewitness.dissectors.mongo.messages import Message
from wirewitness.dissectors.mongo.opcodes import OP_MSG
from wirewitness.dissectors.mongo.replies import (
    ADD,
    ERRORS,
    FINE,
    NUMBERS,
    Outcome,
    duplicate_key,
    error_message,
    outcome,
)
from wirewitness.dissectors.mongo.rows import Facts

# Documents inside replies whose fields are looked at.
ENTERED = frozenset({b"cursor", b"lastErrorObject"})
# What the outcome of a reply that tells an error is made of, and the words for it.
_OUTCOME = (b"ok", b"code", b"codeName", *sorted(ERRORS))
_WORDS = (b"errmsg", b"$err", b"err", b"writeErrors", b"writeConcernError")
# What is read of each reply that has it, in so far as their bytes differ.
_BY_BYTES = (b"writeErrors", b"writeConcernError", b"errorLabels")


class Answers(NamedTuple):
    """Replies of one layout. rows: of the table to fill. finds: which of them answer a findAndModify."""

    layout: Layout
    rows: Ints
    finds: Flags


class Outcomes(NamedTuple):
    """The outcome of each of many replies: the one at its code."""

    codes: Ints
    values: list[Outcome]


def is_plain(layout: Layout) -> bool:
    """Are these replies read together? Not where an array stands in place of a document that is entered, and not of
    bulkWrite, which tells its errors inside the cursor's batch."""
    return b"nErrors" not in layout.fields and all(
        values.kind != ARRAY for key, values in layout.fields.items() if key in ENTERED
    )


def outcomes(buffer: Buffer, layout: Layout) -> Outcomes:
    """Success or error of each reply."""
    ok = layout.fields.get(b"ok")
    if ok is None:
        return Outcomes(np.zeros(layout.size, np.int64), [outcome(_reply(buffer, layout, 0), True)])
    good, there = booleans(buffer, ok)
    tells = np.flatnonzero(~(good & there)) if ERRORS.isdisjoint(layout.fields) else np.arange(layout.size)
    codes = np.zeros(layout.size, np.int64)
    if not len(tells):
        return Outcomes(codes, [FINE])
    kinds = _kinds(buffer, layout, _OUTCOME, tells)
    codes[tells] = kinds.codes + 1
    return Outcomes(codes, [FINE, *(outcome(_reply(buffer, layout, int(tells[one])), True) for one in kinds.firsts)])


def _kinds(buffer: Buffer, layout: Layout, keys: Sequence[bytes], rows: Ints) -> Kinds:
    """Which of these replies have the same values under these keys?"""
    parts = [alike(buffer, layout.fields[key].rows(rows)) for key in keys if key in layout.fields]
    return together(parts, len(rows))


def _reply(buffer: Buffer, layout: Layout, row: int) -> Message:
    fields = {key: span_of(values, row) for key, values in layout.fields.items()}
    return Message(OP_MSG, 0, buffer.data, 0, 0, fields, 0)


def fill(buffer: Buffer, answers: Answers, found: Outcomes, into: Filled) -> None:
    """Documents, counts, the cursor and the first error."""
    rows, layout = answers.rows, answers.layout
    tells = np.array([bool(one.code) for one in found.values], bool)[found.codes]
    for place, name in enumerate(("ok", "error_code", "error_name")):
        into.coded(name, rows, found.codes, [one[place] for one in found.values])
    for key, values in layout.fields.items():
        column = NUMBERS.get(key)
        if column is not None:
            into.numbers(column, rows, *many_integers(buffer, values))
        elif key in _OTHERS:
            _OTHERS[key](buffer, answers, values, into)
        elif key in _BY_BYTES:
            tells |= _fill_added(buffer, answers, key, into)
    value = layout.fields.get(b"value")
    if value is not None and answers.finds.any():
        is_document = np.full(np.count_nonzero(answers.finds), value.kind == DOCUMENT)
        into.numbers("documents_returned", rows[answers.finds], is_document)
        if value.kind == DOCUMENT:
            _fill_given_ids(buffer, rows[answers.finds], value.rows(np.flatnonzero(answers.finds)), into)
    _fill_words(buffer, answers, np.flatnonzero(tells), into)


def _fill_given_ids(buffer: Buffer, rows: Ints, values: Values, into: Filled) -> None:
    """The documents that findAndModify gave."""
    found = [id_of_document(buffer.data, *span_of(values, row)[1:]) for row in range(len(rows))]
    known = [place for place, one in enumerate(found) if one is not None]
    if known:
        into.each("document_ids", rows[known], [[found[place]] for place in known])


def _fill_added(buffer: Buffer, answers: Answers, key: bytes, into: Filled) -> Flags:
    """The columns of a field of `_BY_BYTES`; which replies tell errors of writes in it."""
    kinds = alike(buffer, answers.layout.fields[key])
    facts = [_added(buffer, answers.layout, key, first) for first in kinds.firsts]
    for column in facts[0]:
        into.coded(column, answers.rows, kinds.codes, [one[column] for one in facts])
    tells: Flags = np.array([bool(one.get("write_error_codes")) for one in facts], bool)[kinds.codes]
    return tells


def _fill_words(buffer: Buffer, answers: Answers, tells: Ints, into: Filled) -> None:
    """What these replies say of errors: of duplicate keys the message without values."""
    layout = answers.layout
    if len(tells) and not layout.fields.keys().isdisjoint(_WORDS):
        kinds = _kinds(buffer, layout, _WORDS, tells)
        words = [error_message(_reply(buffer, layout, int(tells[first]))) for first in kinds.firsts]
        into.coded("error_message", answers.rows[tells], kinds.codes, [duplicate_key(one) for one in words])


def _added(buffer: Buffer, layout: Layout, key: bytes, row: int) -> Facts:
    """What a field of one reply adds to the facts."""
    facts: Facts = {}
    ADD[key](facts, buffer.data, span_of(layout.fields[key], row))
    return facts


def _cursor(buffer: Buffer, answers: Answers, values: Values, into: Filled) -> None:
    rows = answers.rows
    inner = answers.layout.inner.get(b"cursor", {})
    batch = inner.get(b"firstBatch") or inner.get(b"nextBatch")
    if batch is not None and batch.kind == ARRAY:
        into.numbers("documents_returned", rows, elements(buffer, batch))
    cursor = inner.get(b"id")
    if cursor is None:
        return
    ids, there = many_integers(buffer, cursor)
    known = rows[there]
    into.numbers("cursor_exhausted", known, ids[there] == 0)
    is_open = there & (ids != 0)
    into.numbers("cursor_id", rows[is_open], ids[is_open])


def _upserted(buffer: Buffer, answers: Answers, values: Values, into: Filled) -> None:
    if values.kind == ARRAY:
        into.numbers("upserted", answers.rows, elements(buffer, values))
    else:
        into.same("upserted", answers.rows, 1)


def _values(buffer: Buffer, answers: Answers, values: Values, into: Filled) -> None:
    if values.kind == ARRAY:
        into.numbers("documents_returned", answers.rows, elements(buffer, values))


def _last_error(buffer: Buffer, answers: Answers, values: Values, into: Filled) -> None:
    n = answers.layout.inner.get(b"lastErrorObject", {}).get(b"n")
    if n is None:
        into.same("n", answers.rows, None)
    else:
        into.numbers("n", answers.rows, *many_integers(buffer, n))


_OTHERS: Mapping[bytes, Callable[[Buffer, Answers, Values, Filled], None]] = {
    b"cursor": _cursor,
    b"upserted": _upserted,
    b"values": _values,
    b"lastErrorObject": _last_error,
}
