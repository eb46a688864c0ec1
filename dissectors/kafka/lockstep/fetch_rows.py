"""Rows of kafka_fetch_partitions, of many exchanges at once: the same as those of `rows/data_rows.py`.

In: a `Group` of Fetches. Out: the rows, and which of them ask for what only the exchange's session knows. Of each
exchange the partitions that were answered come first, in their order, then those that it named and got nothing of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.column_ops import chosen
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.group_rows import NOTHING, column, heads, native
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.partitions import Partitions, partitions_of
from wirewitness.dissectors.kafka.lockstep.read import Columns, Texts, lists
from wirewitness.dissectors.kafka.lockstep.texts import TopicKey
from wirewitness.dissectors.kafka.rows.data_fields import FETCH_PARTITIONS

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
        Numbers(np.maximum(fields.size, 0)),
        Numbers(records),
        Numbers(behind, some),
        Numbers(some, some),
        column(group, partitions, "error_code"),
    ]
