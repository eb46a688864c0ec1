"""What many replies of one layout say, as columns: the rules are those of `replies.py`.

In: replies with equal keys and types. Out: their columns of `mongo_commands` are filled; the outcome of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dissectors.core.columns.frames import Flags, Ints
from dissectors.mongo.bson_fields import ARRAY, DOCUMENT, text
from dissectors.mongo.columns.alike import alike, together
from dissectors.mongo.columns.asked import span_of
from dissectors.mongo.columns.buffer import Buffer
from dissectors.mongo.columns.counting import elements
from dissectors.mongo.columns.filled import Filled
from dissectors.mongo.columns.layouts import Layout, Values
from dissectors.mongo.columns.numbers import booleans
from dissectors.mongo.columns.numbers import integers as many_integers
from dissectors.mongo.messages import Message
from dissectors.mongo.opcodes import OP_MSG
from dissectors.mongo.replies import ERRORS, FINE, NUMBERS, Outcome, duplicate_key, labels, outcome

# Documents inside replies whose fields are looked at.
ENTERED = frozenset({b"cursor", b"lastErrorObject"})
# Replies with these are read one by one.
_LEFT_OUT = ERRORS | {b"$err"}


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
    """Are these replies read together?"""
    entered = (values for key, values in layout.fields.items() if key in ENTERED)
    return _LEFT_OUT.isdisjoint(layout.fields) and all(values.kind != ARRAY for values in entered)


def outcomes(buffer: Buffer, layout: Layout) -> Outcomes:
    """Success or error of each reply."""
    ok = layout.fields.get(b"ok")
    if ok is None:
        return Outcomes(np.zeros(layout.size, np.int64), [outcome(_reply(buffer, layout, 0), True)])
    good, there = booleans(buffer, ok)
    failed = np.flatnonzero(~(good & there))
    codes = np.zeros(layout.size, np.int64)
    if not len(failed):
        return Outcomes(codes, [FINE])
    parts = [alike(buffer, layout.fields[key].rows(failed)) for key in (b"code", b"codeName") if key in layout.fields]
    kinds = together(parts, len(failed))
    codes[failed] = kinds.codes + 1
    return Outcomes(codes, [FINE, *(outcome(_reply(buffer, layout, int(failed[one])), True) for one in kinds.firsts)])


def _reply(buffer: Buffer, layout: Layout, row: int) -> Message:
    fields = {key: span_of(values, row) for key, values in layout.fields.items()}
    return Message(OP_MSG, 0, buffer.data, 0, 0, fields, 0)


def fill(buffer: Buffer, answers: Answers, found: Outcomes, into: Filled) -> None:
    """Documents, counts, the cursor and the first error."""
    rows, layout = answers.rows, answers.layout
    for place, name in enumerate(("ok", "error_code", "error_name")):
        into.coded(name, rows, found.codes, [one[place] for one in found.values])
    for key, values in layout.fields.items():
        column = NUMBERS.get(key)
        if column is not None:
            into.numbers(column, rows, *many_integers(buffer, values))
        elif key in _OTHERS:
            _OTHERS[key](buffer, answers, values, into)
    value = layout.fields.get(b"value")
    if value is not None and answers.finds.any():
        is_document = np.full(np.count_nonzero(answers.finds), value.kind == DOCUMENT)
        into.numbers("documents_returned", rows[answers.finds], is_document)
    _fill_words(buffer, answers, found, into)


def _fill_words(buffer: Buffer, answers: Answers, found: Outcomes, into: Filled) -> None:
    """What is said of errors: of duplicate keys the message without values."""
    is_error = np.array([bool(one.code) for one in found.values], bool)[found.codes]
    words = answers.layout.fields.get(b"errmsg")
    if words is None or not is_error.any():
        return
    failed = words.rows(np.flatnonzero(is_error))
    kinds = alike(buffer, failed)
    texts = [duplicate_key(text(buffer.data, span_of(failed, first))) for first in kinds.firsts]
    into.coded("error_message", answers.rows[is_error], kinds.codes, texts)


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


def _labels(buffer: Buffer, answers: Answers, values: Values, into: Filled) -> None:
    kinds = alike(buffer, values)
    found = [labels(buffer.data, span_of(values, first)) for first in kinds.firsts]
    into.coded("error_labels", answers.rows, kinds.codes, found)


_OTHERS: Mapping[bytes, Callable[[Buffer, Answers, Values, Filled], None]] = {
    b"cursor": _cursor,
    b"upserted": _upserted,
    b"values": _values,
    b"lastErrorObject": _last_error,
    b"errorLabels": _labels,
}
