"""What a decoder does by itself, where some of its exchanges are read together with those of others.

In: the groups of exchanges that are read together. Out: for each connection its steps, at the frames at which they are
due: to decode a frame that is in no group, to remember a version, to follow a fetch session, to let requests pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.kafka.lockstep.batch import Batch
from wirewitness.dissectors.kafka.lockstep.fetches import Fetches
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.output import Output
from wirewitness.dissectors.kafka.rows.fetch_sessions import Asked, FetchSessions
from wirewitness.dissectors.kafka.rows.fields import Request


class Steps(Protocol):
    """What a decoder does by itself."""

    @property
    def sessions(self) -> FetchSessions:
        """What its Fetches ask for."""

    def one_by_one(self, frames: Sequence[Frame], out: Output) -> None:
        """Decode frames."""

    def pass_over(self, correlation_ids: Sequence[int], out: Output) -> None:
        """A newer request was answered than these, of which some may wait."""

    def note(self, request: Request, frame: Frame, out: Output) -> None:
        """Remember the version of a request."""

    def tell_limits(self, frame: Frame, out: Output) -> None:
        """Say that limits were reached."""


class _Fetch:
    """A Fetch whose session has to be told of it: when it is asked, then when it is answered."""

    __slots__ = ("_asked", "_fetches", "_number")

    def __init__(self, fetches: Fetches, number: int) -> None:
        self._fetches, self._number = fetches, number
        self._asked: Asked | None = None

    def __call__(self, decoder: Steps, frame: Frame, out: Output) -> None:
        if self._asked is None:
            self._asked = self._fetches.ask(self._number, decoder.sessions)
        else:
            self._fetches.answer(self._number, self._asked, decoder.sessions)
        decoder.tell_limits(frame, out)


class Step(NamedTuple):
    """What is to be done at the frame with this number among those of the connection.

    gives_rows: they stand behind those of the frames before.
    """

    at: int
    act: Callable[[Steps, Frame, Output], None]
    gives_rows: bool = False


def _read(decoder: Steps, frame: Frame, out: Output) -> None:
    decoder.one_by_one((frame,), out)


def steps_of(
    read: Sequence[Group],
    alone: Flags,
    passed: Mapping[int, list[int]],
    begins: Ints,
    fetches: Mapping[int, Fetches],
    own: Flags,
) -> list[list[Step]]:
    """The steps of every connection, in order; none of those that are not `own`. At a response the older requests pass
    before it is told.

    alone: frames, of all connections, that are in no group. passed: see `passed_over`. begins: each connection's first
    frame. fetches: of the groups with these numbers.
    """
    steps: list[list[Step]] = [[] for _ in begins]
    for group in read:
        _, firsts = np.unique(group.connection, return_index=True)
        for first in firsts[own[group.connection[firsts]]].tolist():
            number = int(group.connection[first])
            place = int(group.requests.at[first] - begins[number])
            steps[number].append(Step(place, _noted(group, first)))
    answers = []
    for number, own_fetches in fetches.items():
        for connection, ask, answer in _fetch_steps(read[number], own_fetches, begins, own):
            steps[connection].append(ask)
            answers.append((connection, answer))
    for place, correlation_ids in passed.items():
        number = int(np.searchsorted(begins, place, "right")) - 1
        if own[number]:
            place -= int(begins[number])
            steps[number].append(Step(place, _passed(correlation_ids), True))
    for connection, answer in answers:
        steps[connection].append(answer)
    places = np.flatnonzero(alone)
    owners = np.searchsorted(begins, places, "right") - 1
    places, owners = places[own[owners]], owners[own[owners]]
    for number, place in zip(owners.tolist(), (places - begins[owners]).tolist(), strict=True):
        steps[number].append(Step(place, _read, True))
    for of_one in steps:
        of_one.sort(key=_by_place)
    return steps


def passed_over(found: Batch, alone: Flags) -> dict[int, list[int]]:
    """The requests that wait no longer, by the place of a response that is read together with others.

    alone: frames that are read one by one. To the decoder such a response may be one without request (a Produce
    that wanted none); then it is the connection's next exchange that ends the wait.
    """
    passed: dict[int, list[int]] = {}
    due = found.responses.at
    for place, correlation_ids in found.passed.items():
        if alone[place]:
            connection = found.connection[np.searchsorted(due, place)]
            later = due[(found.connection == connection) & (due > place) & ~alone[due]]
            if not len(later):
                continue
            place = int(later.min())
        passed.setdefault(place, []).extend(correlation_ids)
    return passed


def _by_place(step: Step) -> int:
    return step.at


def _passed(correlation_ids: list[int]) -> Callable[[Steps, Frame, Output], None]:
    return lambda decoder, _, out: decoder.pass_over(correlation_ids, out)


def _noted(group: Group, number: int) -> Callable[[Steps, Frame, Output], None]:
    side = group.requests
    place = int(side.offset[number]), int(side.size[number]), int(side.packet_last[number]), int(side.ts_ns[number])
    client_ids = group.client_ids
    ids = int(group.correlation_ids[number]), client_ids.values[int(client_ids.codes[number])]
    request = Request(group.api_key, group.version, *ids, *place, None)
    return lambda decoder, frame, out: decoder.note(request, frame, out)


def _fetch_steps(group: Group, fetches: Fetches, begins: Ints, own: Flags) -> Iterator[tuple[int, Step, Step]]:
    """The connection of each Fetch of a session, its request's step and its response's."""
    exchanges = np.array(fetches.in_session, np.int64)
    exchanges = exchanges[own[group.connection[exchanges]]]
    connection = group.connection[exchanges]
    places = (group.requests.at, group.responses.at)
    columns = (exchanges, connection, *(place[exchanges] - begins[connection] for place in places))
    for exchange, number, asked, answered in zip(*(column.tolist() for column in columns), strict=True):
        fetch = _Fetch(fetches, exchange)
        yield number, Step(asked, fetch), Step(answered, fetch)
