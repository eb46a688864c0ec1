"""Rows of members of classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups.

In: a request with its response (None when it was never answered). Out: rows appended to the sink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.blobs.consumer import Assignment, Subscription, assignment, subscription
from wirewitness.dissectors.kafka.blobs.member_blobs import told_assignment, told_subscription
from wirewitness.dissectors.kafka.blobs.reader import TopicPartitions
from wirewitness.dissectors.kafka.rows.fields import Request, Response, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_events import GROUP_PROTOCOLS, Part, add_assigned, add_event, json_text
from wirewitness.dissectors.kafka.rows.group_fields import GROUP_EVENTS
from wirewitness.dissectors.kafka.schema.primitives import Value


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
            group_protocol=GROUP_PROTOCOLS[request.api_key],
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
    add_event(request, response, out, "sync", protocol_name=protocol, protocol_metadata=given, error_code=error)
    if answer is None or error != 0 or kind not in (None, "consumer"):
        return
    plans = [(plan["member_id"], plan["assignment"], "sync_leader") for plan in value["assignments"]]
    plans.append((value["member_id"], answer["assignment"], "sync_answer"))
    for member_id, blob, source in plans:
        found = _assignment(blob)
        if found is not None:
            add_assigned(request, response, out, value["generation_id"], member_id, _parts(found), source)


def heartbeat_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events of a Heartbeat."""
    answer = None if response is None else response.value
    add_event(request, response, out, "heartbeat", error_code=None if answer is None else answer["error_code"])


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
        add_event(request, response, out, "leave", member=member, reason=member.get("reason"), error_code=code)


def describe_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a DescribeGroups answer."""
    if response is None or response.value is None:
        return
    for group in response.value["groups"]:
        named = {"group_id": group["group_id"], "member_id": None}
        add_event(
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
                add_assigned(request, response, out, None, member["member_id"], parts, "describe", group["group_id"])


def _parts(found: Assignment) -> Iterator[Part]:
    for topic in found.assigned_partitions:
        for partition in topic.partitions:
            yield topic.topic, None, partition


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
    return json_text(owned)
