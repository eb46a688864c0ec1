"""Frames that many connections left: regular exchanges are read together, all others one by one by the conversations.

In: frames of many connections. Out: for each of them a `Together`: rows, due at the places at which the conversation
would have made them, and the steps that the conversation takes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dissectors.core.blocks import Block
from dissectors.core.later import Rests
from dissectors.core.limits import Limits
from dissectors.core.model import Frame
from dissectors.core.protocol import Sink
from dissectors.kafka.columns.batch import batch
from dissectors.kafka.columns.blob import Ints
from dissectors.kafka.columns.errors import first_errors
from dissectors.kafka.columns.fetches import Fetches
from dissectors.kafka.columns.group_rows import commit_rows, heartbeat_rows
from dissectors.kafka.columns.groups import RECORDS_AT, Group, groups
from dissectors.kafka.columns.made import joined, rows_of
from dissectors.kafka.columns.pairs import Connection
from dissectors.kafka.columns.produces import batch_rows
from dissectors.kafka.columns.rows import exchange_rows, message_rows
from dissectors.kafka.columns.waits import LEFT_OUT
from dissectors.kafka.output import Output
from dissectors.kafka.rows.api_rows import FETCH, MAX_HELD_ROWS, PRODUCE, apis_with_rows
from dissectors.kafka.rows.fetch_sessions import Asked, FetchSessions
from dissectors.kafka.rows.fields import Request
from dissectors.kafka.rows.record_rows import TABLE as RECORDS
from dissectors.kafka.schema.api_keys import API_KEYS

# Rows of a group, and the number of the exchange that each belongs to.
RowMaker = Callable[[Group], tuple[Block, Ints]]
# What makes the rows of an API's own tables. APIs that are not here are read together where nobody wants such rows.
ROW_MAKERS: Mapping[int, tuple[str, RowMaker]] = {
    PRODUCE: ("kafka_produce_batches", batch_rows),
    8: ("kafka_offset_commits", commit_rows),
    12: ("kafka_group_events", heartbeat_rows),
}


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
        rows = out.sink.rows("kafka_fetch_partitions")
        if self._asked is None:
            self._asked = self._fetches.ask(self._number, conversation.sessions)
        else:
            self._fetches.answer(self._number, self._asked, conversation.sessions, rows)
            if rows is not None and len(rows) > MAX_HELD_ROWS:
                out.sink.drain("kafka_fetch_partitions")
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


class _Placed(NamedTuple):
    """Rows of one table in the order of the frames at which they are due. at: those frames."""

    block: Block
    at: Ints


class _Tables(NamedTuple):
    """Rows of all tables, and in front of which of them each frame stands at which any are given: `cuts`, a list for
    each table."""

    placed: Mapping[str, _Placed]
    cuts: Mapping[str, list[int]]

    @classmethod
    def cut(cls, placed: Mapping[str, _Placed], at: Ints) -> _Tables:
        """at: the frames at which rows are given."""
        return cls(placed, {name: np.searchsorted(rows.at, at).tolist() for name, rows in placed.items()})

    def give(self, number: int, out: Sink) -> None:
        """Append the rows of the frames from the cut with this number to the next one."""
        for name, cuts in self.cuts.items():
            first, last = cuts[number], cuts[number + 1]
            if last > first:
                out.block(name, self.placed[name].block, first, last)


class Together(NamedTuple):
    """What was made of one connection's frames. first: the number of its first cut in `tables`."""

    steps: list[Step]
    tables: _Tables
    first: int

    def follow(self, conversation: Steps, frames: Sequence[Frame], out: Output) -> None:
        """All rows of the connection's frames, those of single ones between those that were read together."""
        cut = self.first
        for place, act, gives_rows in self.steps:
            if gives_rows:
                self.tables.give(cut, out.sink)
                cut += 1
            act(conversation, frames[place], out)
        self.tables.give(cut, out.sink)


def together(connections: Sequence[Connection], limits: Limits, out: Sink) -> list[Together | None]:
    """What was made of the frames of each connection; None where all of them are read one by one."""
    found = batch(connections, limits)
    apis = apis_with_rows(out.wanted)
    made = {*ROW_MAKERS, FETCH}
    if RECORDS in out.wanted:
        made -= RECORDS_AT.keys()
    fit = frozenset(API_KEYS) - LEFT_OUT - (apis - made)
    rests = Rests() if out.later is None else out.later.rests
    read = [] if found is None else list(groups(found, fit, apis & RECORDS_AT.keys(), rests))
    if found is None or not read:
        return [None] * len(connections)
    ends = np.cumsum([len(connection.frames) for connection in connections])
    begins = ends - [len(connection.frames) for connection in connections]
    steps = _steps(read, begins, int(ends[-1]), apis, found.passed)
    cuts, first = _cuts(steps, begins, ends)
    tables = _Tables.cut(_tables(read, apis, out), cuts)
    untouched = set(range(len(connections))) - {number for group in read for number in group.connection.tolist()}
    return [None if number in untouched else Together(own, tables, first[number]) for number, own in enumerate(steps)]


def _cuts(steps: Sequence[Sequence[Step]], begins: Ints, ends: Ints) -> tuple[Ints, list[int]]:
    """The frames, of all connections, at which rows are given, and where those of each connection begin."""
    cuts: list[int] = []
    first: list[int] = []
    for own, begin, end in zip(steps, begins.tolist(), ends.tolist(), strict=True):
        first.append(len(cuts))
        cuts += [begin, *(begin + step.frame for step in own if step.gives_rows), end]
    return np.array(cuts, np.int64), first


def _steps(
    read: Sequence[Group], begins: Ints, frames: int, apis: frozenset[int], passed: Mapping[int, list[int]]
) -> list[list[Step]]:
    """The steps of every connection, in order."""
    steps: list[list[Step]] = [[] for _ in begins]
    alone = np.ones(frames, bool)
    for group in read:
        alone[group.requests.at] = False
        alone[group.responses.at] = False
    for place, correlation_ids in passed.items():
        if not alone[place]:  # else the conversation does it by itself
            number = int(np.searchsorted(begins, place, "right")) - 1
            steps[number].append(Step(place - int(begins[number]), _passed(correlation_ids), True))
    for group in read:
        _, firsts = np.unique(group.connection, return_index=True)
        for first in firsts.tolist():
            number = int(group.connection[first])
            steps[number].append(Step(int(group.requests.at[first] - begins[number]), _noted(group, first)))
        if group.api_key == FETCH and FETCH in apis:
            _fetch_steps(group, begins, steps)
    places = np.flatnonzero(alone)
    owners = np.searchsorted(begins, places, "right") - 1
    for number, place in zip(owners.tolist(), (places - begins[owners]).tolist(), strict=True):
        steps[number].append(Step(place, _read, True))
    for own in steps:
        own.sort(key=_by_frame)
    return steps


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


def _fetch_steps(group: Group, begins: Ints, steps: list[list[Step]]) -> None:
    fetches = Fetches(group)
    asked = (group.requests.at - begins[group.connection]).tolist()
    answered = (group.responses.at - begins[group.connection]).tolist()
    for exchange, connection in enumerate(group.connection.tolist()):
        fetch = _Fetch(fetches, exchange)
        steps[connection] += (Step(asked[exchange], fetch), Step(answered[exchange], fetch))


def _tables(read: Sequence[Group], apis: frozenset[int], out: Sink) -> dict[str, _Placed]:
    parts: dict[str, list[_Placed]] = {}
    for group in read:
        for table, placed in _rows(group, apis, out):
            parts.setdefault(table, []).append(placed)
    return {table: _in_order(placed) for table, placed in parts.items()}


def _rows(group: Group, apis: frozenset[int], out: Sink) -> Iterator[tuple[str, _Placed]]:
    asked, answered = group.requests.at, group.responses.at
    error_codes = first_errors(group.api_key, group.version, group.answered, len(group))
    if out.rows("messages") is not None:
        requests, responses = message_rows(group, error_codes)
        yield "messages", _Placed(requests, asked)
        yield "messages", _Placed(responses, answered)
    if out.rows("exchanges") is not None:
        yield "exchanges", _Placed(exchange_rows(group, error_codes), answered)
    if group.api_key in apis and group.api_key in ROW_MAKERS:
        table, make = ROW_MAKERS[group.api_key]
        if out.rows(table) is not None:
            block, owners = make(group)
            yield table, _Placed(block, answered[owners])


def _in_order(parts: Sequence[_Placed]) -> _Placed:
    at = np.concatenate([part.at for part in parts])
    block = joined([part.block for part in parts])
    if (at[1:] >= at[:-1]).all():
        return _Placed(block, at)
    order = np.argsort(at, kind="stable")
    return _Placed(rows_of(block, order), at[order])
