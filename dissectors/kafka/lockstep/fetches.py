"""Fetches that are read together, and their sessions. In: a `Group` of Fetches. Out: rows, and what is done one by one.

What a Fetch asks for depends on those before it in its session, so each Fetch of a session is a step of its
conversation: it tells the session, and writes into the rows what only the session knows. All others need no step.
"""

from __future__ import annotations

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Numbers
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.fetch_rows import WISHES_AT, Made, fetch_rows, named
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.partitions import Partitions, partitions_of
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists
from wirewitness.dissectors.kafka.lockstep.record_rows import record_rows
from wirewitness.dissectors.kafka.lockstep.texts import TopicKey
from wirewitness.dissectors.kafka.rows.fetch_sessions import Asked, FetchSessions, PartitionKey, Wish


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
        self._firsts = np.searchsorted(at, self._group.due).tolist()

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
            for column, value in zip(self._columns, asked.of(key), strict=True):
                if value is not None:
                    column.values[self._firsts[number] + row] = value
                    column.valid[self._firsts[number] + row] = True


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
