"""Rows of what tells where share partitions start: their state as brokers keep it, and the offsets that tools ask for.

In: a request with its response (None when it was never answered). Out: kafka_share_offsets rows, one for each
partition. What is asked for stands beside what is answered: a write has its offset in the request, a read in the
response. Source: KIP-932, KIP-1226, KIP-1043.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.fields import Request, Response, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.rows.share_fields import SHARE_OFFSETS
from wirewitness.dissectors.kafka.schema.api_keys import api_name
from wirewitness.dissectors.kafka.schema.primitives import Value

OFFSETS = "kafka_share_offsets"
_TOLD = ("start_offset", "lag", "leader_epoch", "state_epoch", "delivery_complete_count")
_Named = tuple[str | None, str | None]


def offset_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_share_offsets of one exchange."""
    rows = out.rows(OFFSETS)
    if rows is None or request.value is None:
        return
    answer = None if response is None else response.value
    same = {
        **placed_exchange_of(request, response),
        "client_id": request.client_id,
        "api": api_name(request.api_key),
    }
    for group_id, asked, answered in _groups(request.value, answer):
        rows.extend(SHARE_OFFSETS.row(**same, group_id=group_id, **told) for told in _partitions(asked, answered))


def _groups(asked: Value, answer: Value | None) -> Iterator[tuple[str, Value, Value | None]]:
    """Group id, what is asked of it and what is answered: several of each in DescribeShareGroupOffsets."""
    if "groups" not in asked:
        yield asked["group_id"], asked, answer
        return
    answers = {group["group_id"]: group for group in (answer or {}).get("groups", ())}
    for group in asked["groups"]:
        yield group["group_id"], group, answers.get(group["group_id"])


def _partitions(asked: Value, answer: Value | None) -> Iterator[dict[str, Any]]:
    """What is told of each partition, in the order of the request; those that only the answer names come behind."""
    wanted = dict(_by_partition(asked.get("topics") or ()))
    answer = answer or {}
    found = dict(_by_partition(answer.get("topics") or answer.get("responses") or answer.get("results") or ()))
    names: dict[str | None, _Named] = {name: (name, one) for (name, one), _ in found if name is not None}
    refused = answer.get("error_code") or None
    keys = {_as_answered(key, names): value for key, value in wanted.items()}
    for key in dict.fromkeys((*keys, *found)):
        (topic, topic_id), partition = key
        told = found.get(key, {})
        one = {**keys.get(key, {}), **told}
        batches = one.get("state_batches")
        yield {
            "topic": topic,
            "topic_id": topic_id,
            "partition": partition,
            **{name: one.get(name) for name in _TOLD},
            "batches_count": None if batches is None else len(batches),
            "error_code": refused or told.get("error_code"),
            "error_message": answer.get("error_message") or told.get("error_message"),
        }


def _by_partition(topics: Iterable[Value]) -> Iterator[tuple[tuple[_Named, int | None], Mapping[str, Any]]]:
    """Topic (name, id) and index of each partition; None for a topic without any."""
    for topic in topics:
        named = topic_key(topic)
        if "partitions" not in topic:
            yield (named, None), topic
        for partition in topic.get("partitions", ()):
            if isinstance(partition, int):
                yield (named, partition), {}
            else:
                index = partition["partition_index"] if "partition_index" in partition else partition["partition"]
                yield (named, index), partition


def _as_answered(key: tuple[_Named, int | None], names: Mapping[str | None, _Named]) -> tuple[_Named, int | None]:
    """A topic that is asked for by name alone, with the id that the answer tells."""
    (name, topic_id), partition = key
    return (names.get(name, (name, topic_id)) if topic_id is None else (name, topic_id)), partition
