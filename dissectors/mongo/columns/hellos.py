"""What is known of client and server at each exchange: hellos and their replies change it.

In: pairs of frames, and what each connection knows already. Out: `Known`. What follows a hello that is not as usual is
read by the conversation itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from dissectors.core.columns.frames import Flags, Frames, Ints
from dissectors.core.decompression import Allowance
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, Frame
from dissectors.mongo.columns.buffer import Buffer
from dissectors.mongo.columns.pairs import Pairs, Waits
from dissectors.mongo.columns.plain import may_be_hello
from dissectors.mongo.commands import Command, command_in
from dissectors.mongo.facts import ConnectionFacts
from dissectors.mongo.receiving import Received, receive
from dissectors.mongo.replies import outcome
from dissectors.mongo.rows import Facts


class Known(NamedTuple):
    """facts: what was known, of one connection after the other. since: the frame with which each was, these rise.

    until: by connection the first frame from which on nothing is certain, among the frames of all.
    """

    facts: list[Facts]
    since: Ints
    until: Ints

    def at(self, places: Ints) -> Ints:
        """The number of what is known behind each of these frames."""
        found: Ints = np.searchsorted(self.since, places, "right") - 1
        return found


class Left(NamedTuple):
    """A connection and the frames that it left. hellos: ids of hellos whose reply has not come yet."""

    frames: Sequence[Frame]
    waits: Waits
    facts: ConnectionFacts
    hellos: frozenset[int]


def known(frames: Frames, buffer: Buffer, pairs: Pairs, plain: Flags, lefts: Sequence[Left], limits: Limits) -> Known:
    """What is known at each frame. plain: which pairs are of plain messages."""
    requests = np.flatnonzero(frames.direction == CLIENT_TO_SERVER)
    hellos = requests[may_be_hello(frames, buffer, requests)]
    pair_of = np.full(len(frames), -1)
    pair_of[pairs.asked[plain]] = np.flatnonzero(plain)
    until = frames.ends.copy()
    unusual = hellos[pair_of[hellos] < 0]
    np.minimum.at(until, frames.connection[unusual], unusual)
    _answered_later(frames, buffer, [left.hellos for left in lefts], until)
    pair = pair_of[hellos[pair_of[hellos] >= 0]]
    facts: list[Facts] = []
    since: list[int] = []
    reader = _Reader(frames, lefts, limits)
    owner = frames.connection[pairs.asked[pair]]
    bounds = np.searchsorted(owner, np.arange(len(until) + 1)).tolist()
    asked, answered = pairs.asked[pair].tolist(), pairs.answered[pair].tolist()
    for number, begin in enumerate(frames.begins.tolist()):
        facts.append(lefts[number].facts.connection)
        since.append(begin)
        mine = slice(bounds[number], bounds[number + 1])
        if mine.start == mine.stop:
            continue
        for place, learnt in reader.read(number, asked[mine], answered[mine], int(until[number])):
            since.append(place)
            facts.append(learnt)
    return Known(facts, np.array(since, np.int64), until)


def _answered_later(frames: Frames, buffer: Buffer, hellos: Sequence[frozenset[int]], until: Ints) -> None:
    """Replies to hellos of before."""
    for number, ids in enumerate(hellos):
        if ids:
            mine = slice(int(frames.begins[number]), int(frames.ends[number]))
            answers = np.isin(buffer.int32(frames.start[mine] + 8), list(ids))
            found = np.flatnonzero(answers & (frames.direction[mine] != CLIENT_TO_SERVER))
            if len(found):
                until[number] = min(int(until[number]), mine.start + int(found[0]))


class _Reader:
    def __init__(self, frames: Frames, lefts: Sequence[Left], limits: Limits) -> None:
        self._begins = frames.begins
        self._lefts = lefts
        self._allowance = Allowance(limits)  # is not drawn from: nothing that is read here is compressed

    def read(self, number: int, asked: list[int], answered: list[int], until: int) -> list[tuple[int, Facts]]:
        """What a connection knows behind each hello and each reply to one, in order, before the frame `until`."""
        facts = self._lefts[number].facts.apart()
        steps: list[tuple[int, Command | None, Received]] = []
        for request, reply in zip(asked, answered, strict=True):
            received = self._received(number, request)
            command = command_in(received.message)
            if command.hello and reply < until:
                steps += ((request, command, received), (reply, None, self._received(number, reply)))
            elif command.hello and request < until:
                steps.append((request, command, received))
        found: list[tuple[int, Facts]] = []
        for place, command_of_it, received in sorted(steps, key=itemgetter(0)):
            if command_of_it is not None:
                facts.hello(command_of_it, received)
            else:
                facts.hello_answered(received, outcome(received.message, to_command=True))
            found.append((place, facts.connection))
        return found

    def _received(self, number: int, place: int) -> Received:
        received = receive(self._lefts[number].frames[place - int(self._begins[number])], self._allowance)
        assert received is not None  # a plain message has a header
        return received
