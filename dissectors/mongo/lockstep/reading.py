"""Reads the plain messages of many exchanges, those of one layout together.

In: pairs of plain messages. Out: the pairs that could be read, and what they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.filled import Codes, Filled
from wirewitness.dissectors.mongo.lockstep.layouts import Layout, layouts
from wirewitness.dissectors.mongo.lockstep.pairs import Pairs
from wirewitness.dissectors.mongo.lockstep.plain import NO_SECTION, Bodies
from wirewitness.dissectors.mongo.lockstep.query_shapes import can_be_shaped
from wirewitness.dissectors.mongo.lockstep.query_shapes import fill as fill_shapes
from wirewitness.dissectors.mongo.lockstep.requests import Requests, collections, command_of, is_awaitable, texts
from wirewitness.dissectors.mongo.lockstep.requests import fill as fill_requests
from wirewitness.dissectors.mongo.lockstep.responses import ENTERED, Answers, Outcomes, is_plain, outcomes
from wirewitness.dissectors.mongo.lockstep.responses import fill as fill_answers
from wirewitness.dissectors.mongo.lockstep.rows import Exchanges
from wirewitness.dissectors.mongo.output import request_line
from wirewitness.dissectors.mongo.replies import FINE

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
