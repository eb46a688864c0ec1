"""Rows of members of groups: what every group protocol makes of them.

In: an exchange and what its API says of a member. Out: rows of kafka_group_events and kafka_assignments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.blobs.member_blobs import MAX_JSON_BYTES
from wirewitness.dissectors.kafka.rows.fields import Request, Response, exchange_of, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_fields import ASSIGNMENTS, GROUP_EVENTS
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.schema.primitives import Value, uuid_text

# The protocol that members of a group speak, by API.
GROUP_PROTOCOLS: Mapping[int, str] = {
    **dict.fromkeys((11, 12, 13, 14, 15), "classic"),
    **dict.fromkeys((68, 69), "consumer"),
    **dict.fromkeys((76, 77), "share"),
    **dict.fromkeys((88, 89), "streams"),
}


def add_event(
    request: Request,
    response: Response | None,
    out: Sink,
    event: str,
    *,
    member: Value | None = None,
    group_id: str | None = None,
    generation: int | None = None,
    protocol_type: str | None = None,
    **told: str | int | None,
) -> None:
    """A row of kafka_group_events. member: who it is about, the sender if not given. told: further fields."""
    rows = out.rows("kafka_group_events")
    value = request.value
    if rows is None or value is None:
        return
    who = value if member is None else member
    rows.append(
        GROUP_EVENTS.row(
            **placed_exchange_of(request, response),
            group_protocol=GROUP_PROTOCOLS[request.api_key],
            group_id=group_id if group_id is not None else value.get("group_id"),
            event=event,
            member_id=who.get("member_id"),
            group_instance_id=who.get("group_instance_id"),
            client_id=request.client_id,
            generation=generation if generation is not None else value.get("generation_id"),
            protocol_type=protocol_type if protocol_type is not None else value.get("protocol_type"),
            **told,
        )
    )


# topic name, topic id as text, partition
Part = tuple[str | None, str | None, int | None]


def add_assigned(
    request: Request,
    response: Response | None,
    out: Sink,
    generation: int | None,
    member_id: str | None,
    parts: Iterable[Part],
    source: str,
    group_id: str | None = None,
) -> None:
    """One row for each partition; one row without partition when the member was given none.

    The row's time is the answer's: before that the assignment was not in force.
    """
    rows = out.rows("kafka_assignments")
    if rows is None or response is None or request.value is None:
        return
    in_force = {**exchange_of(request, response), "ts": response.ts_ns}
    group = group_id if group_id is not None else request.value.get("group_id")
    for topic, topic_id, partition in list(parts) or [(None, None, None)]:
        rows.append(
            ASSIGNMENTS.row(
                **in_force,
                group_id=group,
                generation=generation,
                member_id=member_id,
                topic=topic,
                topic_id=topic_id,
                partition=partition,
                source=source,
            )
        )


def id_parts(topics: Iterable[Value]) -> Iterator[Part]:
    for topic in topics:
        name, topic_id = topic_key(topic)
        for partition in topic["partitions"]:
            yield name, topic_id, partition


def owned_by_id(topics: Iterable[Value] | None) -> str | None:
    """The same by topic id."""
    if topics is None:
        return None
    return json_text({uuid_text(topic["topic_id"]): list(topic["partitions"]) for topic in topics})


def json_text(value: Mapping[str, Any]) -> str | None:
    line = json.dumps(value, separators=(",", ":"))
    return line if len(line) <= MAX_JSON_BYTES else None
