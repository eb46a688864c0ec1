"""What a conversation does by itself, where some of its exchanges are read together with those of others.

In: the groups of exchanges that are read together. Out: for each connection its steps, at the frames at which they are
due: to decode a frame that is in no group, to remember a version, to follow a fetch session, to let requests pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dissectors.core.model import Frame
from dissectors.kafka.columns.batch import Batch
from dissectors.kafka.columns.blob import Flags, Ints
from dissectors.kafka.columns.fetches import Fetches
from dissectors.kafka.columns.groups import Group
from dissectors.kafka.output import Output
from dissectors.kafka.rows.fetch_sessions import Asked, FetchSessions
from dissectors.kafka.rows.fields import Request


class Steps(Protocol):
    """What a conversation does by itself."""

    @property
    def sessions(self) -> FetchSessions:
        """What its Fetches ask for."""

    def one_by_one(self, frames: Sequence[Frame], out: Output) -> None:
        """Decode frames."""

    def pass_over(self, correlation_ids: Sequence[int], out: Output) -> None:
        """Those of these requests that wait do so no longer."""

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

    def __call__(self, conversation: Steps, frame: Frame, out: Output) -> None:
        if self._asked is None:
            self._asked = self._fetches.ask(self._number, conversation.sessions)
        else:
            self._fetches.answer(self._number, self._asked, conversation.sessions)
        conversation.tell_limits(frame, out)


class Step(NamedTuple):
    """What is to be done at the frame with this number among those of the connection.

    gives_rows: they stand behind those of the frames before.
    """

    frame: int
    act: Callable[[Steps, Frame, Output], None]
    gives_rows: bool = False


def _read(conversation: Steps, frame: Frame, out: Output) -> None:
    conversation.one_by_one((frame,), out)


def steps_of(
    read: Sequence[Group],
    alone: Flags,
    passed: Mapping[int, list[int]],
    begins: Ints,
    fetches: Mapping[int, Fetches],
    own: Flags,
) -> list[list[Step]]:
    """The steps of every connection, in order; none of those that are not `own`.

    alone: frames, of all connections, that are in no group. passed: see `passed_over`. begins: each connection's first
    frame. fetches: of the groups with these numbers.
    """
    steps: list[list[Step]] = [[] for _ in begins]
    for place, correlation_ids in passed.items():
        number = int(np.searchsorted(begins, place, "right")) - 1
        if own[number]:
            steps[number].append(Step(place - int(begins[number]), _passed(correlation_ids), True))
    for group in read:
        _, firsts = np.unique(group.connection, return_index=True)
        for first in firsts[own[group.connection[firsts]]].tolist():
            number = int(group.connection[first])
            steps[number].append(Step(int(group.requests.at[first] - begins[number]), _noted(group, first)))
    for number, own_fetches in fetches.items():
        _fetch_steps(read[number], own_fetches, begins, own, steps)
    places = np.flatnonzero(alone)
    owners = np.searchsorted(begins, places, "right") - 1
    places, owners = places[own[owners]], owners[own[owners]]
    for number, place in zip(owners.tolist(), (places - begins[owners]).tolist(), strict=True):
        steps[number].append(Step(place, _read, True))
    for of_one in steps:
        of_one.sort(key=_by_frame)
    return steps


def passed_over(found: Batch, alone: Flags) -> dict[int, list[int]]:
    """The requests that wait no longer, by the place of the response that is read together with others.

    alone: frames that are read one by one. To the conversation such a response may be one without request (a Produce
    that wanted none); then it is the connection's next response that ends the wait.
    """
    due: dict[int, list[int]] = {}
    responses = found.responses.at
    for place, correlation_ids in found.passed.items():
        if alone[place]:
            connection = found.connection[np.searchsorted(responses, place)]
            later = responses[(found.connection == connection) & (responses > place) & ~alone[responses]]
            if not len(later):
                continue
            place = int(later.min())
        due.setdefault(place, []).extend(correlation_ids)
    return due


def _by_frame(step: Step) -> int:
    return step.frame


def _passed(correlation_ids: list[int]) -> Callable[[Steps, Frame, Output], None]:
    return lambda conversation, _, out: conversation.pass_over(correlation_ids, out)


def _noted(group: Group, number: int) -> Callable[[Steps, Frame, Output], None]:
    side = group.requests
    place = int(side.offset[number]), int(side.size[number]), int(side.packet_last[number]), int(side.ts_ns[number])
    client_ids = group.client_ids
    ids = int(group.correlation_ids[number]), client_ids.values[int(client_ids.codes[number])]
    request = Request(group.api_key, group.version, *ids, *place, None)
    return lambda conversation, frame, out: conversation.note(request, frame, out)


def _fetch_steps(group: Group, fetches: Fetches, begins: Ints, own: Flags, steps: list[list[Step]]) -> None:
    asked = (group.requests.at - begins[group.connection]).tolist()
    answered = (group.responses.at - begins[group.connection]).tolist()
    connections = group.connection.tolist()
    for exchange in fetches.in_session:
        if not own[connections[exchange]]:
            continue
        fetch = _Fetch(fetches, exchange)
        steps[connections[exchange]] += (Step(asked[exchange], fetch), Step(answered[exchange], fetch))
