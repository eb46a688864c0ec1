"""Partitions that messages of many exchanges name. In: arrays of topics. Out: one row of numbers for each partition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists, lists
from wirewitness.dissectors.kafka.lockstep.texts import TopicKey
from wirewitness.dissectors.kafka.rows.fetch_sessions import PartitionKey


class Partitions(NamedTuple):
    """exchange: whose each one is, never less than before. topic: a code. of: the fields of their structs."""

    exchange: Ints
    topic: Ints
    number: Ints
    of: Columns

    def places(self, topics: list[TopicKey]) -> list[tuple[int, PartitionKey]]:
        """Whose each one is, and its key. topics: by code."""
        return list(zip(self.exchange.tolist(), self.keys(slice(None), topics), strict=True))

    def keys(self, rows: Ints | slice, topics: list[TopicKey]) -> list[PartitionKey]:
        """Topic and number of these. topics: by code."""
        return [
            (*topics[code], number)
            for code, number in zip(self.topic[rows].tolist(), self.number[rows].tolist(), strict=True)
        ]


def partitions_of(group: Group, topics: Lists, inner: str, index: str, codes: dict[TopicKey, int]) -> Partitions:
    """The partitions in the arrays `inner` of the topics; index: the field of their number.

    codes: of topics, by their keys; those that are not there yet are added.
    """
    partitions = lists(topics.of, inner)
    of_topics = [codes.setdefault(key, len(codes)) for key in group.strings.topic_keys(topics.of)]
    numbers = partitions.of[index]
    assert isinstance(numbers, np.ndarray)
    of_topic = partitions.owners
    exchange = topics.owners[of_topic]
    return Partitions(exchange, np.array(of_topics, np.int64)[of_topic], numbers.astype(np.int64), partitions.of)
