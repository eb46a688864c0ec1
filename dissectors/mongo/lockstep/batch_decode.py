"""Frames that many connections left: plain exchanges are read together, all others one by one by the conversations.

In: frames of many connections and what is known of these. Out: for each of them a `Together`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, in_columns
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.filled import Filled
from wirewitness.dissectors.mongo.lockstep.hellos import Known, Left, known
from wirewitness.dissectors.mongo.lockstep.pairs import certain_pairs
from wirewitness.dissectors.mongo.lockstep.plain import bodies
from wirewitness.dissectors.mongo.lockstep.reading import Reading
from wirewitness.dissectors.mongo.lockstep.rows import Placed, Told, fill_known
from wirewitness.dissectors.mongo.rows import MONGO_COMMANDS, Facts


class Steps(Protocol):
    """What a conversation does by itself."""

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

    def follow(self, frames: Sequence[Frame], conversation: Steps, out: Sink) -> None:
        """All rows of the connection's frames, those of single ones between those that were read together."""
        for number, (first, until) in enumerate(self.alone):
            self._give(number, out)
            conversation.knows(self.known[number])
            conversation.one_by_one(frames[first:until], out)
        self._give(len(self.alone), out)
        if len(self.known) > len(self.alone):
            conversation.knows(self.known[-1])

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
