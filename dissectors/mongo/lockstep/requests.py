"""What many requests of one layout ask for, as columns of `mongo_commands`: the rules are those of `commands.py`.

In: requests with equal keys and types. Out: their columns are filled.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.mongo.bson_fields import STRING, Span, boolean, integer, integers, text
from wirewitness.dissectors.mongo.command_names import MAX_NAME, named
from wirewitness.dissectors.mongo.command_options import OPTIONS
from wirewitness.dissectors.mongo.commands import FIND_FLAGS, MAX_CURSOR_IDS, awaits_news, names_collection
from wirewitness.dissectors.mongo.handshake import HELLO_PARTS, hello_facts, is_hello
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.filled import Filled
from wirewitness.dissectors.mongo.lockstep.layouts import Layout, Values
from wirewitness.dissectors.mongo.lockstep.numbers import booleans
from wirewitness.dissectors.mongo.lockstep.numbers import integers as many_integers
from wirewitness.dissectors.mongo.lockstep.same_values import Kinds, alike, together

# Read one by one: they hold credentials, or are rare and have many parts.
_LEFT_OUT = frozenset({"saslStart", "authenticate", "explain", "bulkWrite"})


class Requests(NamedTuple):
    """Requests of one layout. name: of their command. rows: of the table to fill.

    sequence, documents: of each its section of documents, and how many they are; None where they have none.
    starts, ends: of the messages.
    """

    name: str
    layout: Layout
    rows: Ints
    sequence: Values | None
    documents: Ints | None
    starts: Ints
    ends: Ints


class Named(NamedTuple):
    """A column of texts that many requests share. kinds: of the requests; texts: of each kind."""

    kinds: Kinds
    texts: list[str | None]


def command_of(layout: Layout) -> str | None:
    """The command of these requests; None where they are read one by one."""
    name, _ = named(next(iter(layout.fields))[:MAX_NAME])
    return None if name in _LEFT_OUT else name


def is_awaitable(name: str, layout: Layout) -> bool:
    """Are they hellos that a server may answer when news come?"""
    return awaits_news(is_hello(name), layout.fields)


def texts(buffer: Buffer, values: Values | None, count: int) -> Named:
    """The strings of a field, as `text` gives them; None where there is no such field."""
    if values is None or values.kind != STRING:
        return Named(Kinds(np.zeros(count, np.int64), [0]), [None])
    kinds = alike(buffer, values)
    return Named(kinds, [text(buffer.data, span_of(values, first)) for first in kinds.firsts])


def span_of(values: Values, row: int) -> Span:
    """One of these values."""
    return values.kind, int(values.start[row]), int(values.end[row])


def collections(buffer: Buffer, asked: Requests) -> Named:
    """The collection of each request; None for commands on a database."""
    fields = asked.layout.fields
    first = next(iter(fields.values()))
    values = fields.get(b"collection") if asked.name == "getMore" else first if names_collection(asked.name) else None
    return texts(buffer, values, len(asked.rows))


def fill(buffer: Buffer, asked: Requests, into: Filled) -> None:
    """Options and cursors: all but database, collection and query shape."""
    rows, fields, name = asked.rows, asked.layout.fields, asked.name
    columns = {column for key in fields if (column := OPTIONS.get(key, ("", None))[0])}
    for key, values in fields.items():
        option = OPTIONS.get(key)
        if option is not None:
            _fill_option(buffer, values, into, rows, *option)
    into.same("command", rows, name)
    into.same("unacknowledged", rows, False)
    if name == "getMore":
        into.numbers("cursor_id", rows, *many_integers(buffer, next(iter(fields.values()))))
        limit = fields.get(b"maxTimeMS")
        if limit is None:
            into.same("await_time_ms", rows, None)
        else:
            into.numbers("await_time_ms", rows, *many_integers(buffer, limit))
        into.same("max_time_ms", rows, None)
    elif name == "find":
        for column in FIND_FLAGS:
            if column not in columns:
                into.same(column, rows, False)
    elif name == "killCursors":
        killed = fields.get(b"cursors")
        if killed is None:
            into.same("cursors_killed", rows, [])
        else:
            kinds = alike(buffer, killed)
            ids = [integers(buffer.data, span_of(killed, first), MAX_CURSOR_IDS) for first in kinds.firsts]
            into.coded("cursors_killed", rows, kinds.codes, ids)
    elif is_hello(name):
        _fill_hello(buffer, asked, into)


def _fill_hello(buffer: Buffer, asked: Requests, into: Filled) -> None:
    """What clients say of themselves."""
    parts = [values for key, values in asked.layout.fields.items() if key in HELLO_PARTS]
    kinds = together([alike(buffer, values) for values in parts], len(asked.rows))
    facts = [
        hello_facts(buffer.data, {key: span_of(values, first) for key, values in asked.layout.fields.items()})
        for first in kinds.firsts
    ]
    for column in dict.fromkeys(chain.from_iterable(facts)):
        told = np.array([column in one for one in facts], bool)[kinds.codes]
        into.coded(column, asked.rows[told], kinds.codes[told], [one.get(column) for one in facts])


def _fill_option(
    buffer: Buffer, values: Values, into: Filled, rows: Ints, column: str, read: Callable[[bytes, Span], Any]
) -> None:
    if read is integer:
        into.numbers(column, rows, *many_integers(buffer, values))
    elif read is boolean:
        into.numbers(column, rows, *booleans(buffer, values))
    else:
        kinds = alike(buffer, values)
        into.coded(column, rows, kinds.codes, [read(buffer.data, span_of(values, first)) for first in kinds.firsts])
