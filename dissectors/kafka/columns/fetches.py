"""What Fetches asked for and got, of many exchanges at once: rows of kafka_fetch_partitions.

In: a `Group` of Fetches. Out: for one exchange after the other what its session needs and its rows, the same as those
of `rows/data_rows.py`: what a Fetch asks for depends on those before it in its session, so this part is done one by
one, with all fields at hand.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from dissectors.core.blocks import values_of
from dissectors.core.model import Row
from dissectors.kafka.columns.group_rows import column, heads
from dissectors.kafka.columns.groups import Group
from dissectors.kafka.columns.read import Columns, Lists, Texts, lists
from dissectors.kafka.rows.data_rows import NO_BATCH
from dissectors.kafka.rows.fetch_sessions import Asked, FetchSessions, PartitionKey

_Slices = list[tuple[int, int]]


class Fetches:
    """The Fetches of a group, by number."""

    def __init__(self, group: Group) -> None:
        asked, answered = group.asked, group.answered
        topics = lists(asked, "topics")
        partitions = lists(topics.of, "partitions")
        self._wishes = list(
            zip(
                partition_keys(group, topics, partitions, "partition"),
                zip(
                    _numbers(partitions.of, "fetch_offset"), _numbers(partitions.of, "partition_max_bytes"), strict=True
                ),
                strict=True,
            )
        )
        self._wished = _slices(topics, partitions)
        self._forgotten: list[PartitionKey] = []
        self._forgot: _Slices | None = None
        gone = asked.get("forgotten_topics_data")
        if isinstance(gone, Lists) and gone.counts.any():
            numbers = lists(gone.of, "partitions")
            self._forgotten = partition_keys(group, gone, numbers, ".")
            self._forgot = _slices(gone, numbers)
        self._session_ids = _or(_plain(group, asked, "session_id"), 0)
        self._epochs = _or(_plain(group, asked, "session_epoch"), -1)
        self._answered_ids = _or(_plain(group, answered, "session_id"), 0)
        self._head = list(
            zip(
                *(values_of(one, 0, len(group)) for one in (*heads(group), group.client_ids)),
                *self._of_request(group),
                strict=True,
            )
        )
        topics = lists(answered, "responses")
        partitions = lists(topics.of, "partitions")
        self._keys = partition_keys(group, topics, partitions, "partition_index")
        self._parts = _parts(group, partitions.of)
        self._told = _slices(topics, partitions)

    def ask(self, number: int, sessions: FetchSessions) -> Asked:
        """The request was read."""
        first, last = self._wished[number]
        forgotten: list[PartitionKey] = []
        if self._forgot is not None:
            forgotten = self._forgotten[slice(*self._forgot[number])]
        place = self._session_ids[number], self._epochs[number]
        return sessions.asked(*place, forgotten, self._wishes[first:last])

    def answer(self, number: int, asked: Asked, sessions: FetchSessions, rows: list[Row] | None) -> None:
        """The response was read: the rows of the exchange."""
        sessions.answered(self._answered_ids[number], asked)
        if rows is None:
            return
        first, last = self._told[number]
        head, keys = self._head[number], self._keys[first:last]
        rows += [(*head, *key, *asked.of(key), *part) for key, part in zip(keys, self._parts[first:last], strict=True)]
        if asked.named:
            seen = set(keys)
            rows += [(*head, *key, *asked.of(key), *NO_BATCH) for key in asked.named if key not in seen]

    def _of_request(self, group: Group) -> list[list[Any]]:
        """replica_id to session_epoch."""
        asked = group.asked
        session_ids: list[Any] = [mine or None for mine in self._answered_ids]
        said = _plain(group, asked, "session_id")
        return [
            _or(_plain(group, asked, "replica_id"), -1),
            *(_plain(group, asked, name) for name in ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level")),
            [one or other for one, other in zip(session_ids, said, strict=True)],
            _plain(group, asked, "session_epoch"),
        ]


def _parts(group: Group, partitions: Columns) -> list[tuple[Any, ...]]:
    """high_watermark to error_code of each answered partition."""
    fields, batches = partitions["records"], group.batches
    assert isinstance(fields, Texts)
    assert batches is not None
    counts = np.bincount(batches.field, minlength=len(fields.size))
    records = np.zeros(len(counts), np.int64)
    np.add.at(records, batches.field, batches.number("count"))
    behind = batches.number("base_offset") + batches.number("last_offset_delta") + 1
    some = (counts > 0).tolist()
    lasts = (np.cumsum(counts) - 1).tolist()
    offsets = behind.tolist()
    return list(
        zip(
            _numbers(partitions, "high_watermark"),
            _numbers(partitions, "last_stable_offset"),
            _numbers(partitions, "log_start_offset"),
            np.maximum(fields.size, 0).tolist(),
            records.tolist(),
            [offsets[last] if any_ else None for last, any_ in zip(lasts, some, strict=True)],
            [any_ or None for any_ in some],
            _numbers(partitions, "error_code"),
            strict=False,
        )
    )


def partition_keys(group: Group, topics: Lists, partitions: Lists, index: str) -> list[PartitionKey]:
    """Topic and number of every partition; index: the field of the number."""
    names = group.strings.topic_keys(topics.of)
    numbers = _numbers(partitions.of, index)
    return [(*names[topic], number) for topic, number in zip(partitions.owners.tolist(), numbers, strict=True)]


def _slices(topics: Lists, partitions: Lists) -> _Slices:
    """For each exchange its first partition and the one behind its last."""
    behind = np.concatenate(([0], np.cumsum(partitions.counts)))[np.concatenate(([0], np.cumsum(topics.counts)))]
    return list(zip(behind[:-1].tolist(), behind[1:].tolist(), strict=True))


def _numbers(columns: Columns, name: str) -> Any:
    found = columns.get(name)
    return repeat(None) if found is None else found.tolist()  # type: ignore[union-attr]


def _plain(group: Group, columns: Columns, name: str) -> list[Any]:
    """A field of each exchange."""
    return list(values_of(column(group, columns, name), 0, len(group)))


def _or(values: list[Any], default: int) -> list[int]:
    return [default if value is None else value for value in values]
