"""Rows of what members of groups say most: commits and heartbeats. In: a `Group`. Out: rows, and whose they are.

The same rows as those of `rows/group_rows.py` and `rows/classic_groups.py`, in the same order.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from dissectors.core.model import Row
from dissectors.kafka.columns.blob import Ints
from dissectors.kafka.columns.groups import Group
from dissectors.kafka.columns.read import Columns, Lists, Texts, lists, numbers
from dissectors.kafka.columns.texts import TopicKey
from dissectors.kafka.rows.group_events import GROUP_PROTOCOLS
from dissectors.kafka.rows.group_fields import GROUP_EVENTS
from dissectors.kafka.schema.api_keys import api_name

_NOTHING = repeat(None)


def column(group: Group, columns: Columns, name: str) -> list[Any]:
    """The values of a field for each exchange, None where the version does not have it."""
    found = columns.get(name)
    if isinstance(found, Texts):
        return group.strings.of(found)
    return found.tolist() if isinstance(found, np.ndarray) else [None] * len(group)


def heads(group: Group) -> list[list[Any]]:
    """request_offset, response_offset, ts, ts_response, request_packet and response_packet of each exchange."""
    asked, answered = group.requests, group.responses
    columns = asked.offset, answered.offset, asked.ts_ns, answered.ts_ns, asked.packet_last, answered.packet_last
    return [one.tolist() for one in columns]


def heartbeat_rows(group: Group) -> tuple[list[Row], Ints]:
    """kafka_group_events of Heartbeats."""
    known = {
        "group_protocol": repeat(GROUP_PROTOCOLS[group.api_key]),
        "event": repeat("heartbeat"),
        "group_id": column(group, group.asked, "group_id"),
        "member_id": column(group, group.asked, "member_id"),
        "group_instance_id": column(group, group.asked, "group_instance_id"),
        "client_id": group.client_ids,
        "generation": column(group, group.asked, "generation_id"),
        "error_code": column(group, group.answered, "error_code"),
    }
    first = heads(group)
    rest = [known.get(name, _NOTHING) for name in GROUP_EVENTS.names[len(first) :]]
    return list(zip(*first, *rest, strict=False)), np.arange(len(group))


def commit_rows(group: Group) -> tuple[list[Row], Ints]:
    """kafka_offset_commits of OffsetCommits: a row for each partition."""
    topics = lists(group.asked, "topics")
    partitions = lists(topics.of, "partitions")
    of_topic = partitions.owners
    owners = topics.owners[of_topic]
    keys = group.strings.topic_keys(topics.of)
    of_exchange = [
        *heads(group),
        [api_name(group.api_key)] * len(group),
        column(group, group.asked, "group_id"),
        column(group, group.asked, "member_id"),
        column(group, group.asked, "group_instance_id"),
        column(group, group.asked, "generation_id_or_member_epoch"),
        group.client_ids,
    ]
    exchange_numbers, topic_numbers = owners.tolist(), of_topic.tolist()
    each = partitions.of
    with_epoch = "committed_leader_epoch" in each
    rows = zip(
        *([values[number] for number in exchange_numbers] for values in of_exchange),
        [keys[number][0] for number in topic_numbers],
        [keys[number][1] for number in topic_numbers],
        numbers(each, "partition_index"),
        numbers(each, "committed_offset"),
        numbers(each, "committed_leader_epoch") if with_epoch else repeat(None),
        group.strings.of(each["committed_metadata"]),
        repeat(None),
        repeat(None),
        _errors(group, topics, partitions, keys),
        strict=False,
    )
    return list(rows), owners


def _errors(group: Group, topics: Lists, partitions: Lists, keys: list[TopicKey]) -> list[int | None]:
    """The error code of each committed partition; of several answers about one the last counts."""
    answered = lists(group.answered, "topics")
    told = lists(answered.of, "partitions")
    codes, indexes = numbers(told.of, "error_code"), numbers(told.of, "partition_index")
    answered_keys = group.strings.topic_keys(answered.of)
    committed = numbers(partitions.of, "partition_index")
    in_order = (
        np.array_equal(topics.sizes, answered.sizes)
        and np.array_equal(partitions.sizes, told.sizes)
        and keys == answered_keys
        and committed == indexes
    )
    if in_order and not any(codes):
        return list(codes)
    found = dict(zip(_places(answered, told, answered_keys, indexes), codes, strict=True))
    return [found.get(place) for place in _places(topics, partitions, keys, committed)]


def _places(topics: Lists, partitions: Lists, keys: list[TopicKey], indexes: list[int]) -> list[tuple[Any, ...]]:
    """(exchange, topic, partition) of every partition."""
    of_topic = partitions.owners
    exchanges = topics.owners[of_topic].tolist()
    return [
        (exchange, keys[topic], index)
        for exchange, topic, index in zip(exchanges, of_topic.tolist(), indexes, strict=True)
    ]
