"""Frames that many connections left: plain exchanges are read together, all others one by one by the decoders.

In: frames of many connections and what is known of these. Out: for each of them a `Together`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints, in_columns
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.filled import Codes, Filled
from wirewitness.dissectors.mongo.lockstep.hellos import Known, Left, known
from wirewitness.dissectors.mongo.lockstep.layouts import Layout, layouts
from wirewitness.dissectors.mongo.lockstep.pairs import Pairs, certain_pairs
from wirewitness.dissectors.mongo.lockstep.plain import NO_SECTION, Bodies, bodies
from wirewitness.dissectors.mongo.lockstep.query_shapes import can_be_shaped
from wirewitness.dissectors.mongo.lockstep.query_shapes import fill as fill_shapes
from wirewitness.dissectors.mongo.lockstep.requests import Requests, collections, command_of, is_awaitable, texts
from wirewitness.dissectors.mongo.lockstep.requests import fill as fill_requests
from wirewitness.dissectors.mongo.lockstep.responses import ENTERED, Answers, Outcomes, is_plain, outcomes
from wirewitness.dissectors.mongo.lockstep.responses import fill as fill_answers
from wirewitness.dissectors.mongo.lockstep.rows import Exchanges, Placed, Told, fill_known
from wirewitness.dissectors.mongo.output import request_line
from wirewitness.dissectors.mongo.replies import FINE
from wirewitness.dissectors.mongo.rows import MONGO_COMMANDS, Facts

# Reads the plain messages of many exchanges, those of one layout together.
#
# In: pairs of plain messages. Out: the pairs that could be read, and what they say.

# Messages of one layout that are fewer than these are read one by one.
LEAST = 20
_FINDS = ("findAndModify", "findandmodify")


class _Commands(NamedTuple):
    """Requests of one layout. section: what is behind the body, see `Bodies`."""

    name: str
    section: int
    layout: Layout


class Reading:
    """pairs: those that are read here, of commands and with layouts that many have."""

    def __init__(self, frames: Frames, buffer: Buffer, pairs: Pairs, asked: Bodies, answered: Bodies) -> None:
        self._frames, self._buffer, self._asked = frames, buffer, asked
        self._requests = list(_commands(buffer, asked, np.flatnonzero(asked.plain & answered.plain)))
        fit = _of(len(asked.plain), [one.layout for one in self._requests])
        self._replies = [
            layout for layout in _layouts(buffer, answered, np.flatnonzero(fit), ENTERED) if is_plain(layout)
        ]
        taken = _of(len(fit), self._replies)
        self._requests = [one._replace(layout=one.layout.only(taken[one.layout.rows])) for one in self._requests]
        self._row = np.cumsum(taken) - 1
        self.pairs = Pairs(pairs.asked[taken], pairs.answered[taken])

    def exchanges(self, filled: Filled | None, *, with_lines: bool) -> Exchanges:
        """What all of them say. filled: their rows of `mongo_commands`, where wanted. with_lines: for people."""
        size = len(self.pairs.asked)
        commands, lines, awaitable = Codes(size), Codes(size), np.zeros(size, bool)
        for name, section, layout in self._requests:
            if not layout.size:
                continue
            rows = self._row[layout.rows]
            commands.same(rows, name)
            awaitable[rows] = is_awaitable(name, layout)
            if with_lines or filled is not None:
                databases = texts(self._buffer, layout.fields.get(b"$db"), len(rows))
                lines.add(rows, databases.kinds.codes, [request_line(name, one) for one in databases.texts])
            if filled is not None:
                asked = self._requests_of(name, section, layout, rows)
                named = collections(self._buffer, asked)
                filled.coded("database", rows, databases.kinds.codes, databases.texts)
                filled.coded("collection", rows, named.kinds.codes, named.texts)
                fill_requests(self._buffer, asked, filled)
                fill_shapes(self._buffer, asked, databases, named, filled)
        return Exchanges(self.pairs, awaitable, commands.column, lines.column, self._outcomes(commands, filled))

    def _requests_of(self, name: str, section: int, layout: Layout, rows: Ints) -> Requests:
        frames, places = self._frames, self.pairs.asked[rows]
        sequence = documents = None
        if section != NO_SECTION:
            sequence, documents = self._asked.listed.rows(layout.rows), self._asked.documents[layout.rows]
        return Requests(name, layout, rows, sequence, documents, frames.start[places], frames.end[places])

    def _outcomes(self, commands: Codes, filled: Filled | None) -> Outcomes:
        codes, values = np.zeros(len(self.pairs.asked), np.int64), [FINE]
        finds = np.array([name in _FINDS for name in commands.values], bool)[commands.codes]
        for layout in self._replies:
            rows = self._row[layout.rows]
            found = outcomes(self._buffer, layout)
            codes[rows] = found.codes + len(values)
            values.extend(found.values)
            if filled is not None:
                fill_answers(self._buffer, Answers(layout, rows, finds[rows]), found, filled)
        return Outcomes(codes, values)


def _commands(buffer: Buffer, asked: Bodies, rows: Ints) -> Iterator[_Commands]:
    """The requests among these that are read here."""
    for found in _layouts(buffer, asked, rows, frozenset()):
        name = command_of(found)
        if name is None:
            continue
        sections = asked.section[found.rows]
        for section in np.unique(sections).tolist():
            if can_be_shaped(name, found.fields, section):
                yield _Commands(name, section, found.only(sections == section))


def _layouts(buffer: Buffer, of: Bodies, rows: Ints, enter: frozenset[bytes]) -> Iterator[Layout]:
    """The layouts of the bodies with these numbers."""
    for found in layouts(buffer, of.start[rows], of.end[rows], enter, LEAST):
        yield found._replace(rows=rows[found.rows])


def _of(count: int, found: list[Layout]) -> Flags:
    """Which of so many are in one of these layouts?"""
    flags = np.zeros(count, bool)
    for layout in found:
        flags[layout.rows] = True
    return flags


class Steps(Protocol):
    """What a decoder does by itself."""

    def knows(self, facts: Facts) -> None:
        """This is known of client and server now."""

    def one_by_one(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames."""


class Together(NamedTuple):
    """What was made of one connection's frames. taken: how many were read together.

    alone: stretches of its frames that are read one by one, from the first one to before the last one.
    known: what is known of the connection before each of them, and behind all frames if the last one is not among them.
    tables: rows of all connections. due: of each table the bounds of what is due before, between and behind these.
    """

    taken: int
    alone: Sequence[tuple[int, int]]
    known: Sequence[Facts]
    tables: Mapping[str, Placed]
    due: Mapping[str, Sequence[int]]

    def follow(self, frames: Sequence[Frame], decoder: Steps, out: Sink) -> None:
        """All rows of the connection's frames, those of single ones between those that were read together."""
        for number, (first, until) in enumerate(self.alone):
            self._give(number, out)
            decoder.knows(self.known[number])
            decoder.one_by_one(frames[first:until], out)
        self._give(len(self.alone), out)
        if len(self.known) > len(self.alone):
            decoder.knows(self.known[-1])

    def _give(self, number: int, out: Sink) -> None:
        for table, bounds in self.due.items():
            first, until = bounds[number], bounds[number + 1]
            if until > first:
                out.block(table, self.tables[table].block, first, until)


class Read(NamedTuple):
    """Exchanges of many connections that were read together.

    alone: frames, of all connections, that are in none of them. known: what is known at each frame. tables: the rows.
    """

    alone: Flags
    known: Known
    tables: Mapping[str, Placed]


def together(lefts: Sequence[Left], limits: Limits, out: Sink) -> list[Together | None]:
    """What was made of the frames of each connection; None where all of them are read one by one."""
    frames = in_columns([left.frames for left in lefts])
    found = read(frames, Buffer(frames.data), lefts, limits, out)
    return of_connections(found, frames, np.ones(len(lefts), bool))


def read(frames: Frames, buffer: Buffer, lefts: Sequence[Left], limits: Limits, out: Sink) -> Read | None:
    """What can be read together of these frames; None for nothing. lefts: what is known of each connection."""
    pairs = certain_pairs(frames, buffer, [left.waits for left in lefts], limits)
    asked, answered = bodies(frames, buffer, pairs.asked, True), bodies(frames, buffer, pairs.answered, False)
    facts = known(frames, buffer, pairs, asked, answered, lefts)
    asked.plain[pairs.answered >= facts.until[frames.connection[pairs.answered]]] = False
    reading = Reading(frames, buffer, pairs, asked, answered)
    size = len(reading.pairs.asked)
    if not size:
        return None
    filled = None if out.rows("mongo_commands") is None else Filled(MONGO_COMMANDS, size)
    if filled is not None:
        fill_known(facts, reading.pairs, filled)
    with_messages = out.rows("messages") is not None
    told = Told(frames, buffer, facts, reading.exchanges(filled, with_lines=with_messages))
    tables: dict[str, Placed] = {}
    if with_messages:
        tables["messages"] = told.messages()
    if out.rows("exchanges") is not None:
        tables["exchanges"] = told.exchanges()
    if filled is not None:
        tables["mongo_commands"] = told.commands(filled)
    alone = np.ones(len(frames), bool)
    alone[reading.pairs.asked] = alone[reading.pairs.answered] = False
    return Read(alone, facts, tables)


def of_connections(found: Read | None, frames: Frames, own: Flags) -> list[Together | None]:
    """For each connection, if it is `own`, its rows and what is left; None too where all of its frames are."""
    if found is None:
        return [None] * len(own)
    return [
        _of_connection(found, begin, end) if is_own else None
        for begin, end, is_own in zip(frames.begins.tolist(), frames.ends.tolist(), own.tolist(), strict=True)
    ]


def _of_connection(read: Read, begin: int, end: int) -> Together | None:
    """Of the frames from `begin` to `end`."""
    alone, known, tables = read
    edges = np.flatnonzero(np.diff(np.concatenate(((False,), alone[begin:end], (False,))).astype(np.int8)))
    firsts, untils = edges[::2], edges[1::2]
    stretches = list(zip(firsts.tolist(), untils.tolist(), strict=True))
    if stretches == [(0, end - begin)]:
        return None
    places = np.concatenate(((begin,), firsts + begin, (end,)))
    due = {table: np.searchsorted(placed.due, places).tolist() for table, placed in tables.items()}
    # A stretch may begin with a hello, of which nothing is known before it, and nothing else when it is read again.
    last = [] if alone[end - 1] else [end - 1]
    facts = [known.facts[number] for number in known.at(np.array([*(firsts + begin), *last], np.int64)).tolist()]
    return Together(end - begin - int(alone[begin:end].sum()), stretches, facts, tables, due)
