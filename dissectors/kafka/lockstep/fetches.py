"""Fetches that are read together, and their sessions. In: a `Group` of Fetches. Out: rows, and what is done one by one.

What a Fetch asks for depends on those before it in its session, so each Fetch of a session is a step of its
decoder: it tells the session, and writes into the rows what only the session knows. All others need no step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.column_ops import chosen
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.group_rows import NOTHING, column, heads, native
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.partitions import Partitions, partitions_of
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists, Texts, lists
from wirewitness.dissectors.kafka.lockstep.record_rows import record_rows
from wirewitness.dissectors.kafka.lockstep.texts import TopicKey
from wirewitness.dissectors.kafka.rows.data_fields import FETCH_PARTITIONS
from wirewitness.dissectors.kafka.rows.fetch_sessions import Asked, FetchSessions, PartitionKey, Wish

# Rows of kafka_fetch_partitions, of many exchanges at once: the same as those of `rows/data_rows.py`.
#
# In: a `Group` of Fetches. Out: the rows, and which of them ask for what only the exchange's session knows. Of each
# exchange the partitions that were answered come first, in their order, then those that it named and got nothing of.

# Where a row says what was asked for, in the order of a `Wish`.
WISHES_AT = FETCH_PARTITIONS.names.index("fetch_offset"), FETCH_PARTITIONS.names.index("partition_max_bytes")


class Named(NamedTuple):
    """The partitions that requests and their answers name. topics: the key of each code."""

    asked: Partitions
    answered: Partitions
    topics: list[TopicKey]


class Made(NamedTuple):
    """Rows, and the exchange of each. unknown: answered partitions whose own request did not name them.

    A row of `block` for each answered partition in their order, then those of the others.
    """

    block: Block
    owners: Ints
    unknown: Ints


def named(group: Group) -> Named:
    """The partitions of all exchanges."""
    codes: dict[TopicKey, int] = {}
    asked = partitions_of(group, lists(group.asked, "topics"), "partitions", "partition", codes)
    answered = partitions_of(group, lists(group.answered, "responses"), "partitions", "partition_index", codes)
    return Named(asked, answered, list(codes))


def fetch_rows(group: Group, names: Named) -> Made:
    """All rows. What a session knows is null in them."""
    asked, answered = names.asked, names.answered
    wish, unknown, unanswered = _matched(*_places(asked, answered))
    owners, topic, number = (
        np.concatenate((told, wished[unanswered])) for told, wished in zip(answered[:3], asked[:3], strict=True)
    )
    columns = (
        *(chosen(one, owners) for one in _of_exchange(group)),
        *(Coded(topic, [key[part] for key in names.topics]) for part in range(2)),
        Numbers(number),
        *(_wishes(asked.of, FETCH_PARTITIONS.names[place], wish) for place in WISHES_AT),
        *(_and_nothing(one, len(answered.exchange), len(unanswered)) for one in _parts(group, answered.of)),
    )
    return Made(Block(columns, len(owners)), owners, unknown)


def _places(asked: Partitions, answered: Partitions) -> tuple[Ints, Ints]:
    """A number for each different (exchange, topic, partition): of those asked for, and of those answered."""
    exchange, topic, number = (np.concatenate(pair) for pair in zip(asked[:3], answered[:3], strict=True))
    different, codes = np.unique(topic << 32 | (number & 0xFFFFFFFF), return_inverse=True)
    places = exchange * len(different) + codes
    return places[: len(asked.exchange)], places[len(asked.exchange) :]


def _matched(wished: Ints, told: Ints) -> tuple[Ints, Ints, Ints]:
    """For each row the wish that it is about, -1 where there is none; rows without; and the wishes without answer.

    Of several wishes for one partition the last counts, at the place of the first.
    """
    different, firsts = np.unique(wished, return_index=True)
    lasts = len(wished) - 1 - np.unique(wished[::-1], return_index=True)[1]
    at = np.minimum(np.searchsorted(different, told), max(len(different) - 1, 0))
    known = different[at] == told if len(different) else np.zeros(len(told), bool)
    of_answers = np.full(len(told), -1)
    of_answers[known] = lasts[at[known]]
    silent = np.flatnonzero(~np.isin(different, told))
    silent = silent[np.argsort(firsts[silent])]
    return np.concatenate((of_answers, lasts[silent])), np.flatnonzero(~known), firsts[silent]


def _of_exchange(group: Group) -> list[Column]:
    """request_offset to session_epoch."""
    asked = group.asked
    replica_id = column(group, asked, "replica_id")
    return [
        *heads(group),
        group.client_ids,
        Same(-1) if replica_id is NOTHING else replica_id,
        *(column(group, asked, name) for name in ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level")),
        _session_ids(group),
        column(group, asked, "session_epoch"),
    ]


def _session_ids(group: Group) -> Column:
    """That of the answer, or else of the request."""
    mine, said = group.answered.get("session_id"), group.asked.get("session_id")
    if not isinstance(mine, np.ndarray):
        return column(group, group.asked, "session_id")
    if not isinstance(said, np.ndarray):
        return Numbers(native(mine), mine != 0)
    return Numbers(native(np.where(mine != 0, mine, said)))


def _wishes(asked: Columns, name: str, wish: Ints) -> Numbers:
    """A field of what was asked for; arrays of its own, since what a session knows is written into them."""
    found, valid = asked[name], wish >= 0
    assert isinstance(found, np.ndarray)
    values = np.zeros(len(wish), np.int64)
    values[valid] = found[wish[valid]]
    return Numbers(values, valid)


def _and_nothing(column: Column, rows: int, more: int) -> Column:
    """The column with nulls behind it. rows: those it has."""
    if isinstance(column, Same) or not more:
        return column
    assert isinstance(column, Numbers)
    valid = np.ones(rows, bool) if column.valid is None else column.valid
    return Numbers(
        np.concatenate((column.values, np.zeros(more, column.values.dtype))),
        np.concatenate((valid, np.zeros(more, bool))),
    )


def _parts(group: Group, partitions: Columns) -> list[Column]:
    """high_watermark to error_code of each answered partition."""
    fields, batches = partitions["records"], group.batches
    assert isinstance(fields, Texts)
    assert batches is not None
    count = len(fields.size)
    counts = np.bincount(batches.field, minlength=count)
    records, behind = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(records, batches.field, batches.number("count"))
    # The last batch of a field is written last.
    behind[batches.field] = batches.number("base_offset") + batches.number("last_offset_delta") + 1
    some = counts > 0
    return [
        *(column(group, partitions, name) for name in ("high_watermark", "last_stable_offset", "log_start_offset")),
        *(NOTHING,) * 4,  # a leader and a diverging epoch are tagged fields, which are irregular
        Numbers(np.maximum(fields.size, 0)),
        Numbers(records),
        Numbers(behind, some),
        Numbers(some, some),
        column(group, partitions, "error_code"),
    ]


class Fetches:
    """The Fetches of a group, by number. in_session: those that are steps, in their order."""

    def __init__(self, group: Group, limits: Limits) -> None:
        self._group = group
        self._named = named(group)
        self._session_ids = _numbers(group, group.asked, "session_id", 0)
        self._epochs = _numbers(group, group.asked, "session_epoch", -1)
        self._answered_ids = _numbers(group, group.answered, "session_id", 0)
        alone = (self._session_ids == 0) & (self._epochs <= 0) & (self._answered_ids == 0)
        wishes = np.bincount(self._named.asked.exchange, minlength=len(group))
        self.in_session = np.flatnonzero(~alone | (wishes > limits.max_fetch_session_partitions)).tolist()
        self._wishes = _Wishes(group, self._named.asked, self._named.topics) if self.in_session else None
        self._unknown: dict[int, list[tuple[int, PartitionKey]]] = {}
        self._columns: tuple[Numbers, ...] = ()
        self._firsts: list[int] = []

    def rows(self) -> tuple[Block, Ints]:
        """The rows, and the exchange of each; null in them is what sessions know."""
        made = fetch_rows(self._group, self._named)
        self._remember(made)
        return made.block, made.owners

    def _remember(self, made: Made) -> None:
        answered = self._named.answered
        inside = made.unknown - np.searchsorted(answered.exchange, answered.exchange[made.unknown])
        keys = answered.keys(made.unknown, self._named.topics)
        for exchange, row, key in zip(answered.exchange[made.unknown].tolist(), inside.tolist(), keys, strict=True):
            self._unknown.setdefault(exchange, []).append((row, key))

    def record_rows(self, payload: frozenset[str]) -> tuple[Block, Ints]:
        """kafka_records, and the exchange of each row."""
        batches = self._group.batches
        assert batches is not None
        bases = Numbers(batches.number("base_offset"))
        return record_rows(self._group, self._named.answered, self._named.topics, bases, payload)

    def placed(self, block: Block, at: Ints) -> None:
        """The rows stand in this block now, those of other groups among them. at: the frame at which each is due."""
        columns = [block.columns[place] for place in WISHES_AT]
        self._columns = tuple(column for column in columns if isinstance(column, Numbers))
        self._firsts = np.searchsorted(at, self._group.responses.at).tolist()

    def ask(self, number: int, sessions: FetchSessions) -> Asked:
        """The request of one of a session was read."""
        assert self._wishes is not None
        place = int(self._session_ids[number]), int(self._epochs[number])
        return sessions.asked(*place, self._wishes.forgotten(number), self._wishes.of(number))

    def answer(self, number: int, asked: Asked, sessions: FetchSessions) -> None:
        """The response was read: its rows, which nobody has taken yet, become complete."""
        sessions.answered(int(self._answered_ids[number]), asked)
        if not self._columns:
            return
        for row, key in self._unknown.get(number, ()):
            for target, value in zip(self._columns, asked.of(key), strict=True):
                if value is not None:
                    target.values[self._firsts[number] + row] = value
                    target.valid[self._firsts[number] + row] = True


class _Wishes:
    """What each exchange asks for, and what it takes out of its session, as a session takes them."""

    def __init__(self, group: Group, asked: Partitions, topics: list[TopicKey]) -> None:
        numbers = [asked.of[name] for name in ("fetch_offset", "partition_max_bytes")]
        assert all(isinstance(column, np.ndarray) for column in numbers)
        self._wishes: list[tuple[PartitionKey, Wish]] = list(
            zip(
                asked.keys(slice(None), topics),
                zip(*(column.tolist() for column in numbers), strict=True),  # type: ignore[union-attr]
                strict=True,
            )
        )
        self._wished = _edges(asked.exchange, len(group))
        self._forgotten: list[PartitionKey] = []
        self._forgot: list[int] | None = None
        gone = group.asked.get("forgotten_topics_data")
        if isinstance(gone, Lists) and gone.counts.any():
            codes: dict[TopicKey, int] = {}
            partitions = partitions_of(group, gone, "partitions", ".", codes)
            self._forgotten = partitions.keys(slice(None), list(codes))
            self._forgot = _edges(partitions.exchange, len(group))

    def of(self, number: int) -> list[tuple[PartitionKey, Wish]]:
        """What this exchange names."""
        return self._wishes[self._wished[number] : self._wished[number + 1]]

    def forgotten(self, number: int) -> list[PartitionKey]:
        """What it takes out of its session."""
        return [] if self._forgot is None else self._forgotten[self._forgot[number] : self._forgot[number + 1]]


def _edges(exchange: Ints, count: int) -> list[int]:
    """Where the partitions of each exchange begin; the last one is where they end."""
    return list(np.searchsorted(exchange, np.arange(count + 1)).tolist())


def _numbers(group: Group, columns: Columns, name: str, default: int) -> Ints:
    """A field of each exchange; the default where the version does not have it."""
    found = columns.get(name)
    return found.astype(np.int64) if isinstance(found, np.ndarray) else np.full(len(group), default, np.int64)
