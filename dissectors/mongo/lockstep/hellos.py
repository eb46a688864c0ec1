"""What is known of client and server at each exchange: hellos and their replies change it.

In: pairs of frames, and what each connection knows already. Out: `Known`. What follows a hello that is not as usual is
read by the decoder itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Frames, Ints
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.mongo.bson_fields import Span, inner
from wirewitness.dissectors.mongo.command_facts import of_client, of_server
from wirewitness.dissectors.mongo.handshake import ANSWER_PARTS, HELLO_PARTS
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values
from wirewitness.dissectors.mongo.lockstep.literals import of_document_but
from wirewitness.dissectors.mongo.lockstep.pairs import Pairs, Waits
from wirewitness.dissectors.mongo.lockstep.plain import Bodies, may_be_hello
from wirewitness.dissectors.mongo.lockstep.requests import span_of
from wirewitness.dissectors.mongo.lockstep.same_values import Literals, alike
from wirewitness.dissectors.mongo.messages import Message
from wirewitness.dissectors.mongo.opcodes import OP_MSG
from wirewitness.dissectors.mongo.replies import outcome
from wirewitness.dissectors.mongo.rows import Facts


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
    facts: Facts
    hellos: frozenset[int]


# All else in hellos and their replies is of no account here.
_OF_HELLO, _OF_ANSWER = of_document_but(HELLO_PARTS), of_document_but(ANSWER_PARTS)


def known(
    frames: Frames, buffer: Buffer, pairs: Pairs, asked: Bodies, answered: Bodies, lefts: Sequence[Left]
) -> Known:
    """What is known at each frame."""
    plain = asked.plain & answered.plain
    requests = np.flatnonzero(frames.direction == CLIENT_TO_SERVER)
    hellos = requests[may_be_hello(frames, buffer, requests)]
    pair_of = np.full(len(frames), -1)
    pair_of[pairs.asked[plain]] = np.flatnonzero(plain)
    until = frames.ends.copy()
    unusual = hellos[pair_of[hellos] < 0]
    np.minimum.at(until, frames.connection[unusual], unusual)
    _answered_later(frames, buffer, [left.hellos for left in lefts], until)
    pair = pair_of[hellos[pair_of[hellos] >= 0]]
    told = _told(buffer, asked.of(pair), _OF_HELLO, _of_client)
    pair = pair[np.array([learnt is not None for learnt in told], bool)]
    answers = _told(buffer, answered.of(pair), _OF_ANSWER, _of_server)
    steps: list[_Step] = [(begin, number, None) for number, begin in enumerate(frames.begins.tolist())]
    for places, of_places in (
        (pairs.asked[pair], [learnt for learnt in told if learnt is not None]),
        (pairs.answered[pair], answers),
    ):
        owners = frames.connection[places]
        certain = (places < until[owners]).tolist()
        steps += compress(zip(places.tolist(), owners.tolist(), of_places, strict=True), certain)
    steps.sort(key=_in_order)
    facts: list[Facts] = []
    for _, number, learnt in steps:
        facts.append(lefts[number].facts if learnt is None else {**facts[-1], **learnt})
    return Known(facts, np.array([place for place, _, _ in steps], np.int64), until)


# The place of a frame, its connection, and what it tells; None for what the connection knows before.
_Step = tuple[int, int, Facts | None]


def _in_order(step: _Step) -> tuple[int, bool]:
    """What is known before comes before what the first frame tells."""
    return step[0], step[2] is not None


def _told(
    buffer: Buffer, documents: Values, literals: Literals, read: Callable[[bytes, Span], Facts | None]
) -> list[Facts | None]:
    """What each of these documents tells."""
    kinds = alike(buffer, documents, literals)
    told = [read(buffer.data, span_of(documents, first)) for first in kinds.firsts]
    return [told[code] for code in kinds.codes.tolist()]


def _of_client(data: bytes, body: Span) -> Facts | None:
    """None where the document is broken before there is a command in it."""
    fields = inner(data, body)
    return of_client(data, fields) if fields else None


def _of_server(data: bytes, body: Span) -> Facts:
    message = Message(OP_MSG, 0, data, body[1], body[2], inner(data, body), body[1])
    return of_server(message, outcome(message, to_command=True))


def _answered_later(frames: Frames, buffer: Buffer, hellos: Sequence[frozenset[int]], until: Ints) -> None:
    """Replies to hellos of before."""
    for number, ids in enumerate(hellos):
        if ids:
            mine = slice(int(frames.begins[number]), int(frames.ends[number]))
            answers = np.isin(buffer.int32(frames.start[mine] + 8), list(ids))
            found = np.flatnonzero(answers & (frames.direction[mine] != CLIENT_TO_SERVER))
            if len(found):
                until[number] = min(int(until[number]), mine.start + int(found[0]))
