"""Frames that many connections left: regular exchanges are read together, all others one by one by the decoders.

In: frames of many connections. Out: for each of them a `Together`: rows, due at the places at which the decoder
would have made them, and the steps that the decoder takes by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.deferred import rests_of
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.column_ops import joined, rows_of
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints, in_columns
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.lockstep.batch import batch
from wirewitness.dissectors.kafka.lockstep.fetches import Fetches
from wirewitness.dissectors.kafka.lockstep.group_rows import commit_rows, heartbeat_rows
from wirewitness.dissectors.kafka.lockstep.groups import RECORDS_AT, Group, Records, groups
from wirewitness.dissectors.kafka.lockstep.long_polls import LEFT_OUT
from wirewitness.dissectors.kafka.lockstep.pairs import Connection, Known
from wirewitness.dissectors.kafka.lockstep.produces import batch_rows, produced, produced_records
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists
from wirewitness.dissectors.kafka.lockstep.records import OpenedOnce
from wirewitness.dissectors.kafka.lockstep.rows import exchange_rows, message_rows
from wirewitness.dissectors.kafka.lockstep.scalar_steps import Step, Steps, passed_over, steps_of
from wirewitness.dissectors.kafka.output import Output
from wirewitness.dissectors.kafka.rows.api_rows import FETCH, PRODUCE, apis_with_rows
from wirewitness.dissectors.kafka.rows.record_rows import TABLE as RECORDS
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS

# The first error code of each of many responses: columns in, codes out, looked for as in `rows/errors_in.py`.


class _Codes(NamedTuple):
    """Where the codes of a struct stand: in its own fields, and inside arrays of it."""

    own: tuple[str, ...]
    inside: tuple[tuple[str, _Codes], ...]


@lru_cache(maxsize=1024)
def _codes(api_key: int, version: int) -> _Codes:
    api = schema.api(api_key)
    return _Codes((), ()) if api is None else _in_struct(api.response, version)


def _in_struct(fields: tuple[schema.Field, ...], version: int) -> _Codes:
    present = [field for field in fields if field.versions.has(version) and field.tag is None]
    own = [f.name for f in present if f.name.endswith("error_code") and f.type == "int16" and not f.array]
    inside = [(f.name, _in_struct(f.fields, version)) for f in present if f.fields]
    return _Codes(tuple(own), tuple((name, codes) for name, codes in inside if codes.own or codes.inside))


def first_errors(api_key: int, version: int, response: Columns, count: int) -> Ints:
    """The first code that is not 0 of each of `count` responses, else 0."""
    return _first(_codes(api_key, version), response, count)


def _first(codes: _Codes, columns: Columns, count: int) -> Ints:
    found = np.zeros(count, np.int64)
    for name in codes.own:
        column = columns[name]
        assert isinstance(column, np.ndarray)
        found = np.where(found == 0, column.astype(np.int64), found)
    for name, inner in codes.inside:
        lists = columns[name]
        assert isinstance(lists, Lists)
        owners = lists.owners
        inside = _first(inner, lists.of, len(owners))
        at = np.flatnonzero(inside)
        rows, first = np.unique(owners[at], return_index=True)
        found[rows] = np.where(found[rows] == 0, inside[at[first]], found[rows])
    return found


FETCHED, SENT = "kafka_fetch_partitions", "kafka_produce_batches"
# Rows of a group, and the number of the exchange that each belongs to.
RowMaker = Callable[[Group], tuple[Block, Ints]]
# What makes the rows of an API's own tables. APIs that are not here are read together where nobody wants such rows.
ROW_MAKERS: Mapping[int, tuple[str, RowMaker]] = {
    8: ("kafka_offset_commits", commit_rows),
    12: ("kafka_group_events", heartbeat_rows),
}


class Placed(NamedTuple):
    """Rows of one table in the order of the frames at which they are due. at: those frames."""

    block: Block
    at: Ints


class _Tables(NamedTuple):
    """Rows of all tables, and in front of which of them each frame stands at which any are given: `cuts`, a list for
    each table."""

    placed: Mapping[str, Placed]
    cuts: Mapping[str, list[int]]

    @classmethod
    def cut(cls, placed: Mapping[str, Placed], at: Ints) -> _Tables:
        """at: the frames at which rows are given."""
        return cls(placed, {name: np.searchsorted(rows.at, at).tolist() for name, rows in placed.items()})

    def give(self, number: int, out: Sink) -> None:
        """Append the rows of the frames from the cut with this number to the next one."""
        for name, cuts in self.cuts.items():
            first, last = cuts[number], cuts[number + 1]
            if last > first:
                out.block(name, self.placed[name].block, first, last)


class Read(NamedTuple):
    """Exchanges of many connections that were read together.

    alone: frames, of all connections, that are in none of them. apis: keys of which Kafka's own rows are wanted.
    placed: the rows of each table. passed: see `passed_over`. fetches: of the groups with these numbers.
    """

    groups: Sequence[Group]
    alone: Flags
    apis: frozenset[int]
    placed: Mapping[str, Placed]
    passed: Mapping[int, list[int]]
    fetches: Mapping[int, Fetches]


class Together(NamedTuple):
    """What was made of one connection's frames. taken: how many are read together. first: the number of its first cut
    in `tables`."""

    taken: int
    steps: list[Step]
    tables: _Tables
    first: int

    def follow(self, decoder: Steps, frames: Sequence[Frame], out: Output) -> None:
        """All rows of the connection's frames, those of single ones between those that were read together."""
        cut = self.first
        for at, act, gives_rows in self.steps:
            if gives_rows:
                self.tables.give(cut, out.sink)
                cut += 1
            act(decoder, frames[at], out)
        self.tables.give(cut, out.sink)


def together(
    connections: Sequence[Connection], limits: Limits, payload: frozenset[str], out: Sink
) -> list[Together | None]:
    """What was made of the frames of each connection; None where all of them are read one by one.

    payload: see `payload_columns`.
    """
    frames = in_columns([connection.frames for connection in connections])
    found = read(frames, Known.of(connections), limits, payload, out)
    if found is None:
        return [None] * len(connections)
    return prepared(found, frames, np.ones(len(connections), bool))


def read(frames: Frames, known: Known, limits: Limits, payload: frozenset[str], out: Sink) -> Read | None:
    """What can be read together of these frames; None for nothing."""
    found = batch(frames, known, limits)
    if found is None:
        return None
    apis = apis_with_rows(out.wanted)
    fit = frozenset(API_KEYS) - LEFT_OUT - (apis - {*ROW_MAKERS, *RECORDS_AT})
    opener, held_fit = None, np.ones(len(found.connection), bool)
    if RECORDS in out.wanted:
        opener = OpenedOnce(found.blob, limits)
        held_fit = _may_be_held(frames, known, limits)[found.connection]
    records = Records(apis & RECORDS_AT.keys(), opener, held_fit)
    read_groups = list(groups(found, fit, records, rests_of(out)))
    if not read_groups:
        return None
    alone = np.ones(len(frames), bool)
    for group in read_groups:
        alone[group.requests.at] = False
        alone[group.responses.at] = False
    fetches = {
        number: Fetches(group, limits)
        for number, group in enumerate(read_groups)
        if group.api_key == FETCH and FETCH in apis
    }
    placed = _tables(read_groups, apis, fetches, payload, out)
    return Read(read_groups, alone, apis, placed, passed_over(found, alone), fetches)


def prepared(found: Read, frames: Frames, own: Flags) -> list[Together | None]:
    """For each connection, if it is `own`, its rows and steps; None too where all of its frames are read one by one."""
    steps = steps_of(found.groups, found.alone, found.passed, frames.begins, found.fetches, own)
    cuts, first = _cuts(steps, frames.begins, frames.ends)
    tables = _Tables.cut(found.placed, cuts)
    taken = np.bincount(frames.connection[~found.alone], minlength=len(own)) * own
    return [
        Together(of_one, steps_of_one, tables, begin) if of_one else None
        for of_one, steps_of_one, begin in zip(taken.tolist(), steps, first, strict=True)
    ]


def _cuts(steps: Sequence[Sequence[Step]], begins: Ints, ends: Ints) -> tuple[Ints, list[int]]:
    """The frames, of all connections, at which rows are given, and where those of each connection begin."""
    cuts: list[int] = []
    first: list[int] = []
    for own, begin, end in zip(steps, begins.tolist(), ends.tolist(), strict=True):
        first.append(len(cuts))
        cuts += [begin, *(begin + step.at for step in own if step.gives_rows), end]
    return np.array(cuts, np.int64), first


def _tables(
    read: Sequence[Group], apis: frozenset[int], fetches: Mapping[int, Fetches], payload: frozenset[str], out: Sink
) -> dict[str, Placed]:
    parts: dict[str, list[Placed]] = {}
    for group in read:
        for table, placed in chain(_rows(group, apis, out), _produced(group, apis, payload, out)):
            parts.setdefault(table, []).append(placed)
    if out.rows(FETCHED) is not None:
        for number, own in fetches.items():
            block, owners = own.rows()
            parts.setdefault(FETCHED, []).append(Placed(block, read[number].responses.at[owners]))
    if out.rows(RECORDS) is not None:
        for number, own in fetches.items():
            block, owners = own.record_rows(payload)
            parts.setdefault(RECORDS, []).append(Placed(block, read[number].responses.at[owners]))
    tables = {table: _in_order(placed) for table, placed in parts.items()}
    if FETCHED in tables:
        for own in fetches.values():
            own.placed(tables[FETCHED].block, tables[FETCHED].at)
    return tables


def _rows(group: Group, apis: frozenset[int], out: Sink) -> Iterator[tuple[str, Placed]]:
    asked, due = group.requests.at, group.responses.at
    error_codes = first_errors(group.api_key, group.version, group.answered, len(group))
    if out.rows("messages") is not None:
        requests, responses = message_rows(group, error_codes)
        yield "messages", Placed(requests, asked)
        yield "messages", Placed(responses, due)
    if out.rows("exchanges") is not None:
        yield "exchanges", Placed(exchange_rows(group, error_codes), due)
    if group.api_key in apis and group.api_key in ROW_MAKERS:
        table, make = ROW_MAKERS[group.api_key]
        if out.rows(table) is not None:
            block, owners = make(group)
            yield table, Placed(block, due[owners])


def _produced(group: Group, apis: frozenset[int], payload: frozenset[str], out: Sink) -> Iterator[tuple[str, Placed]]:
    if group.api_key != PRODUCE or PRODUCE not in apis:
        return
    made, due = produced(group), group.responses.at
    if out.rows(SENT) is not None:
        block, owners = batch_rows(group, made)
        yield SENT, Placed(block, due[owners])
    if out.rows(RECORDS) is not None:
        block, owners = produced_records(group, made, payload)
        yield RECORDS, Placed(block, due[owners])


def _may_be_held(frames: Frames, known: Known, limits: Limits) -> Flags:
    """Connections whose Produces may all wait at a time, for then no limit is reached, whatever is answered when."""
    asked = np.bincount(frames.connection, frames.size * (frames.direction == CLIENT_TO_SERVER), len(known.sizes))
    fit: Flags = known.held + asked <= limits.max_held_records_bytes
    return fit


def _in_order(parts: Sequence[Placed]) -> Placed:
    at = np.concatenate([part.at for part in parts])
    block = joined([part.block for part in parts])
    if (at[1:] >= at[:-1]).all():
        return Placed(block, at)
    order = np.argsort(at, kind="stable")
    return Placed(rows_of(block, order), at[order])
