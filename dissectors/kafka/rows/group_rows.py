"""Rows of the group APIs: commits, stored offsets, group events and assignments.

In: a request with its response (None when it was never answered). Out: rows appended to the sink. Field names are the
message definitions' own; `group_fields.py` says what rows hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from dissectors.core.errors import DecodeError
from dissectors.core.protocol import Sink
from dissectors.kafka.blobs.consumer import Assignment, Subscription, assignment, subscription
from dissectors.kafka.blobs.member_blobs import MAX_JSON_BYTES, told_assignment, told_subscription
from dissectors.kafka.blobs.reader import TopicPartitions
from dissectors.kafka.rows.fields import Request, Response, exchange_key, exchange_of, placed_exchange_of
from dissectors.kafka.rows.group_fields import ASSIGNMENTS, GROUP_EVENTS, OFFSET_FETCHES
from dissectors.kafka.schema.api_keys import api_name
from dissectors.kafka.schema.primitives import METADATA_TOPIC, METADATA_TOPIC_ID, NO_TOPIC_ID, Value, uuid_text

# The protocol that members of a group speak, by API.
_GROUP_PROTOCOLS: Mapping[int, str] = {
    **dict.fromkeys((11, 12, 13, 14, 15), "classic"),
    **dict.fromkeys((68, 69), "consumer"),
}


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


def join_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events of a JoinGroup."""
    rows = out.rows("kafka_group_events")
    value = request.value
    if rows is None or value is None:
        return
    answer = {} if response is None or response.value is None else response.value
    subscribed = _subscribed(value, answer.get("protocol_name"))
    offered = ",".join(protocol["name"] for protocol in value["protocols"])
    rows.append(
        GROUP_EVENTS.row(
            **placed_exchange_of(request, response),
            group_id=value["group_id"],
            group_protocol=_GROUP_PROTOCOLS[request.api_key],
            event="join",
            member_id=answer.get("member_id") or value["member_id"],
            group_instance_id=value.get("group_instance_id"),
            client_id=request.client_id,
            generation=answer.get("generation_id"),
            protocol_type=value["protocol_type"],
            protocol_name=answer.get("protocol_name") or offered,
            protocols_offered=offered,
            leader_id=answer.get("leader") or None,
            session_timeout_ms=value["session_timeout_ms"],
            rebalance_timeout_ms=value.get("rebalance_timeout_ms"),
            topics=None if subscribed is None else ",".join(subscribed.topics),
            owned_partitions=None if subscribed is None else _owned(subscribed.owned_partitions),
            rack_id=None if subscribed is None else subscribed.rack_id,
            reason=value.get("reason"),
            members=len(answer["members"]) if answer.get("members") else None,
            protocol_metadata=_joined_with(value, answer.get("protocol_name")),
            error_code=answer.get("error_code"),
        )
    )


def sync_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a SyncGroup.

    The leader's plan counts only when the coordinator took it (error 0).
    """
    value = request.value
    if value is None:
        return
    answer = None if response is None else response.value
    error = None if answer is None else answer["error_code"]
    protocol = value.get("protocol_name") or (answer or {}).get("protocol_name")
    kind = value.get("protocol_type") or (answer or {}).get("protocol_type")
    given = None if answer is None else told_assignment(kind, protocol, answer["assignment"])
    _event(request, response, out, "sync", protocol_name=protocol, protocol_metadata=given, error_code=error)
    if answer is None or error != 0 or kind not in (None, "consumer"):
        return
    plans = [(plan["member_id"], plan["assignment"], "sync_leader") for plan in value["assignments"]]
    plans.append((value["member_id"], answer["assignment"], "sync_answer"))
    for member_id, blob, source in plans:
        found = _assignment(blob)
        if found is not None:
            _assigned(request, response, out, value["generation_id"], member_id, _parts(found), source)


def heartbeat_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events of a Heartbeat."""
    answer = None if response is None else response.value
    _event(request, response, out, "heartbeat", error_code=None if answer is None else answer["error_code"])


def leave_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events of a LeaveGroup, one for each member that leaves."""
    value = request.value
    if value is None:
        return
    answer = {} if response is None or response.value is None else response.value
    codes = {member["member_id"]: member["error_code"] for member in answer.get("members", ())}
    error = answer.get("error_code")
    members = value.get("members") or [{"member_id": value.get("member_id"), "group_instance_id": None}]
    for member in members:
        code = error or codes.get(member["member_id"], error)
        _event(request, response, out, "leave", member=member, reason=member.get("reason"), error_code=code)


def describe_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a DescribeGroups answer."""
    if response is None or response.value is None:
        return
    for group in response.value["groups"]:
        named = {"group_id": group["group_id"], "member_id": None}
        _event(
            request,
            response,
            out,
            "describe",
            member=named,
            group_id=group["group_id"],
            protocol_type=group["protocol_type"] or None,
            protocol_name=group["protocol_data"] or None,
            state=group["group_state"] or None,
            members=len(group["members"]),
            error_code=group["error_code"],
            error_message=group.get("error_message"),
        )
        if group["protocol_type"] != "consumer":
            continue
        for member in group["members"]:
            found = _assignment(member["member_assignment"])
            if found is not None:
                parts = _parts(found)
                _assigned(request, response, out, None, member["member_id"], parts, "describe", group["group_id"])


def consumer_heartbeat_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a ConsumerGroupHeartbeat (KIP-848)."""
    value = request.value
    if value is None:
        return
    answer = {} if response is None or response.value is None else response.value
    member_id = answer.get("member_id") or value["member_id"] or None
    epoch = answer.get("member_epoch")
    if value["member_epoch"] < 0:
        epoch = value["member_epoch"]
    _event(
        request,
        response,
        out,
        "consumer_heartbeat",
        member={"member_id": member_id, "group_instance_id": value["instance_id"]},
        generation=epoch,
        protocol_type="consumer",
        protocol_name=value["server_assignor"],
        rebalance_timeout_ms=value["rebalance_timeout_ms"] if value["rebalance_timeout_ms"] >= 0 else None,
        heartbeat_interval_ms=answer.get("heartbeat_interval_ms") or None,
        topics=",".join(value["subscribed_topic_names"]) if value["subscribed_topic_names"] is not None else None,
        topic_regex=value.get("subscribed_topic_regex"),
        owned_partitions=_owned_by_id(value["topic_partitions"]),
        rack_id=value["rack_id"],
        error_code=answer.get("error_code"),
        error_message=answer.get("error_message"),
    )
    given = answer.get("assignment")
    if given is not None and answer.get("error_code") == 0:
        parts = _id_parts(given["topic_partitions"])
        _assigned(request, response, out, epoch, member_id, parts, "consumer_heartbeat")


def consumer_describe_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a ConsumerGroupDescribe answer (KIP-848)."""
    if response is None or response.value is None:
        return
    for group in response.value["groups"]:
        _event(
            request,
            response,
            out,
            "describe",
            member={"member_id": None},
            group_id=group["group_id"],
            generation=group["group_epoch"],
            protocol_type="consumer",
            protocol_name=group["assignor_name"] or None,
            state=group["group_state"] or None,
            members=len(group["members"]),
            error_code=group["error_code"],
            error_message=group["error_message"],
        )
        for member in group["members"]:
            parts = _id_parts(member["assignment"]["topic_partitions"])
            epoch = member["member_epoch"]
            _assigned(request, response, out, epoch, member["member_id"], parts, "describe", group["group_id"])


def _event(
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
            group_protocol=_GROUP_PROTOCOLS[request.api_key],
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


Part = tuple[str | None, str | None, int | None]


def _assigned(
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


def _parts(found: Assignment) -> Iterator[Part]:
    for topic in found.assigned_partitions:
        for partition in topic.partitions:
            yield topic.topic, None, partition


def _id_parts(topics: Iterable[Value]) -> Iterator[Part]:
    for topic in topics:
        name, topic_id = topic_key(topic)
        for partition in topic["partitions"]:
            yield name, topic_id, partition


def _assignment(blob: bytes) -> Assignment | None:
    """None for an empty blob (the member was given nothing to say) or one that is not of the consumer protocol."""
    try:
        return assignment(blob) if blob else None
    except DecodeError:
        return None


def _protocol(value: Value, chosen: str | None) -> Value | None:
    """The protocol of a JoinGroup that the group chose, else the one that the member likes best."""
    offered = value["protocols"]
    return next((one for one in offered if one["name"] == chosen), offered[0] if offered else None)


def _joined_with(value: Value, chosen: str | None) -> str | None:
    """The metadata of that protocol."""
    protocol = _protocol(value, chosen)
    return (
        None if protocol is None else told_subscription(value["protocol_type"], protocol["name"], protocol["metadata"])
    )


def _subscribed(value: Value, chosen: str | None) -> Subscription | None:
    """What a consumer wants, as it says for the protocol that `_protocol` names."""
    protocol = _protocol(value, chosen)
    if value["protocol_type"] != "consumer" or protocol is None:
        return None
    try:
        return subscription(protocol["metadata"])
    except DecodeError:
        return None


def _owned(parts: Iterable[TopicPartitions] | None) -> str | None:
    """The partitions as JSON; null where none are told, or more than a row holds."""
    if parts is None:
        return None
    owned: dict[str, list[int]] = {}
    for one in parts:
        owned.setdefault(one.topic, []).extend(one.partitions)
    return _json(owned)


def _owned_by_id(topics: Iterable[Value] | None) -> str | None:
    """The same by topic id."""
    if topics is None:
        return None
    return _json({uuid_text(topic["topic_id"]): list(topic["partitions"]) for topic in topics})


def _json(value: dict[str, list[int]]) -> str | None:
    line = json.dumps(value, separators=(",", ":"))
    return line if len(line) <= MAX_JSON_BYTES else None
