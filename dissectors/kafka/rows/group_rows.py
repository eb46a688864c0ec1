"""Rows of what groups store: commits and stored offsets; `group_events.py` has those of members.

In: a request with its response (None when it was never answered). Out: rows appended to the sink. Field names are the
message definitions' own; `group_fields.py` says what rows hold.
"""

from __future__ import annotations

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_key, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_fields import OFFSET_FETCHES
from wirewitness.dissectors.kafka.schema.api_keys import api_name
from wirewitness.dissectors.kafka.schema.primitives import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NO_TOPIC_ID,
    Value,
    uuid_text,
)


def topic_key(topic: Value) -> tuple[str | None, str | None]:
    """(name, topic id as text) of a topic struct; whichever the version carries."""
    raw = topic.get("topic_id")
    name = topic["name"] if "name" in topic else topic.get("topic", topic.get("topic_name"))
    if raw == METADATA_TOPIC_ID:
        name = METADATA_TOPIC
    return name or None, uuid_text(raw) if raw and raw != NO_TOPIC_ID else None


def commit_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_offset_commits of an OffsetCommit or TxnOffsetCommit."""
    rows = out.rows("kafka_offset_commits")
    value = request.value
    if rows is None or value is None:
        return
    errors: dict[tuple[str | None, str | None, int], int] = {}
    if response is not None and response.value is not None:
        for topic in response.value["topics"]:
            key = topic_key(topic)
            for partition in topic["partitions"]:
                errors[(*key, partition["partition_index"])] = partition["error_code"]
    head = (
        *exchange_key(request, response),
        request.packet,
        None if response is None else response.packet,
        api_name(request.api_key),
        value["group_id"],
        value.get("member_id"),
        value.get("group_instance_id"),
        value.get("generation_id_or_member_epoch"),
        request.client_id,
    )
    producer = (value.get("producer_id"), value.get("producer_epoch"))
    for topic in value["topics"]:
        key = topic_key(topic)
        for partition in topic["partitions"]:
            index = partition["partition_index"]
            rows.append(
                (
                    *head,
                    *key,
                    index,
                    partition["committed_offset"],
                    partition.get("committed_leader_epoch"),
                    partition["committed_metadata"],
                    *producer,
                    errors.get((*key, index)),
                )
            )


def offset_fetch_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_offset_fetches of an answered OffsetFetch."""
    rows = out.rows("kafka_offset_fetches")
    if rows is None or response is None or response.value is None:
        return
    asked = request.value or {}
    members = {group["group_id"]: group for group in asked.get("groups", ())}
    value = response.value
    groups = value["groups"] if "groups" in value else [{**value, "group_id": asked.get("group_id")}]
    exchange = placed_exchange_of(request, response)
    for group in groups:
        member = members.get(group["group_id"], {})
        for topic in group["topics"]:
            name, topic_id = topic_key(topic)
            for partition in topic["partitions"]:
                rows.append(
                    OFFSET_FETCHES.row(
                        **exchange,
                        group_id=group["group_id"],
                        member_id=member.get("member_id"),
                        member_epoch=member.get("member_epoch"),
                        client_id=request.client_id,
                        topic=name,
                        topic_id=topic_id,
                        partition=partition["partition_index"],
                        committed_offset=partition["committed_offset"],
                        leader_epoch=partition.get("committed_leader_epoch"),
                        metadata=partition["metadata"],
                        require_stable=asked.get("require_stable"),
                        error_code=partition["error_code"] or group.get("error_code") or 0,
                    )
                )
