"""Rows of what members of groups say most: commits and heartbeats. In: a `Group`. Out: rows, and whose they are.

The same rows as those of `rows/group_rows.py` and `rows/classic_groups.py`, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.blocks import Block, Coded, Column, Numbers, Same
from wirewitness.dissectors.core.lockstep.column_ops import chosen, optional
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.lockstep.read import Column as Field
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists, Texts, lists, numbers
from wirewitness.dissectors.kafka.lockstep.texts import TopicKey
from wirewitness.dissectors.kafka.rows.group_events import GROUP_PROTOCOLS
from wirewitness.dissectors.kafka.rows.group_fields import GROUP_EVENTS
from wirewitness.dissectors.kafka.schema.api_keys import api_name

NOTHING = Same(None)


def column(group: Group, columns: Columns, name: str) -> Column:
    """A field of each exchange; null where the version does not have it."""
    return of_field(group, columns.get(name))


def of_field(group: Group, found: Field) -> Column:
    """A field as a column of rows."""
    if isinstance(found, Texts):
        return group.strings.coded(found)
    return Numbers(native(found)) if isinstance(found, np.ndarray) else NOTHING


def native(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers as this machine has them; on the wire they are big-endian."""
    return values.astype(values.dtype.newbyteorder("="))


def heads(group: Group) -> list[Column]:
    """request_offset, response_offset, ts, ts_response, request_packet and response_packet of each exchange."""
    asked, answered = group.requests, group.responses
    columns = asked.offset, answered.offset, asked.ts_ns, answered.ts_ns, asked.packet_last, answered.packet_last
    return [Numbers(one) for one in columns]


def heartbeat_rows(group: Group) -> tuple[Block, Ints]:
    """kafka_group_events of Heartbeats."""
    known: dict[str, Column] = {
        "group_protocol": Same(GROUP_PROTOCOLS[group.api_key]),
        "event": Same("heartbeat"),
        "group_id": column(group, group.asked, "group_id"),
        "member_id": column(group, group.asked, "member_id"),
        "group_instance_id": column(group, group.asked, "group_instance_id"),
        "client_id": group.client_ids,
        "generation": column(group, group.asked, "generation_id"),
        "error_code": column(group, group.answered, "error_code"),
    }
    first = heads(group)
    rest = [known.get(name, NOTHING) for name in GROUP_EVENTS.names[len(first) :]]
    return Block([*first, *rest], len(group)), np.arange(len(group))


def commit_rows(group: Group) -> tuple[Block, Ints]:
    """kafka_offset_commits of OffsetCommits: a row for each partition."""
    topics = lists(group.asked, "topics")
    partitions = lists(topics.of, "partitions")
    of_topic = partitions.owners
    owners = topics.owners[of_topic]
    keys = group.strings.topic_keys(topics.of)
    of_exchange: list[Column] = [
        *heads(group),
        Same(api_name(group.api_key)),
        column(group, group.asked, "group_id"),
        column(group, group.asked, "member_id"),
        column(group, group.asked, "group_instance_id"),
        column(group, group.asked, "generation_id_or_member_epoch"),
        group.client_ids,
    ]
    each = partitions.of
    columns = (
        *(chosen(one, owners) for one in of_exchange),
        Coded(of_topic, [name for name, _ in keys]),
        Coded(of_topic, [topic_id for _, topic_id in keys]),
        column(group, each, "partition_index"),
        column(group, each, "committed_offset"),
        column(group, each, "committed_leader_epoch"),
        column(group, each, "committed_metadata"),
        NOTHING,
        NOTHING,
        optional(_errors(group, topics, partitions, keys)),
    )
    return Block(columns, len(owners)), owners


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
