"""Rows of members that have epochs instead of generations: consumer groups of KIP-848, share groups, streams groups.

In: a heartbeat or a description of groups with its response (None when it was never answered). Out: rows appended to
the sink. Partitions of a share group belong to several members at once, and what a member of a streams group is given
are tasks; so their assignments have sources of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.fields import Request, Response
from wirewitness.dissectors.kafka.rows.group_events import (
    Part,
    add_assigned,
    add_event,
    id_parts,
    json_text,
    owned_by_id,
)
from wirewitness.dissectors.kafka.schema.primitives import Value

_TASKS = ("active_tasks", "standby_tasks", "warmup_tasks")


def consumer_heartbeat_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a ConsumerGroupHeartbeat (KIP-848)."""
    value = request.value
    if value is not None:
        told = {
            "protocol_name": value["server_assignor"],
            "rebalance_timeout_ms": _timeout(value),
            "topics": _topics(value["subscribed_topic_names"]),
            "topic_regex": value.get("subscribed_topic_regex"),
            "owned_partitions": owned_by_id(value["topic_partitions"]),
        }
        epoch, member_id = _beat(request, response, out, value, "consumer", told)
        _given(request, response, out, epoch, member_id, "consumer_heartbeat")


def share_heartbeat_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a ShareGroupHeartbeat (KIP-932)."""
    value = request.value
    if value is not None:
        told = {"topics": _topics(value["subscribed_topic_names"])}
        epoch, member_id = _beat(request, response, out, value, "share", told)
        _given(request, response, out, epoch, member_id, "share_heartbeat")


def streams_heartbeat_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events of a StreamsGroupHeartbeat (KIP-1071)."""
    value = request.value
    if value is None:
        return
    topology = value["topology"]
    told = {
        "rebalance_timeout_ms": _timeout(value),
        "topics": None if topology is None else _topics(_sources(topology)),
        "protocol_metadata": _streams_told(value, {} if response is None else response.value or {}),
    }
    _beat(request, response, out, value, "streams", told)


def _beat(
    request: Request, response: Response | None, out: Sink, value: Value, kind: str, told: dict[str, Any]
) -> tuple[int | None, str | None]:
    """The row of a heartbeat. Epoch and id of its member after it."""
    answer = {} if response is None or response.value is None else response.value
    member_id = answer.get("member_id") or value["member_id"] or None
    epoch = value["member_epoch"] if value["member_epoch"] < 0 else answer.get("member_epoch")
    add_event(
        request,
        response,
        out,
        f"{kind}_heartbeat",
        member={"member_id": member_id, "group_instance_id": value.get("instance_id")},
        generation=epoch,
        protocol_type=kind,
        heartbeat_interval_ms=answer.get("heartbeat_interval_ms") or None,
        rack_id=value["rack_id"],
        error_code=answer.get("error_code"),
        error_message=answer.get("error_message"),
        **told,
    )
    return epoch, member_id


def _given(
    request: Request, response: Response | None, out: Sink, epoch: int | None, member_id: str | None, source: str
) -> None:
    """The partitions that a heartbeat's answer gives; null there means the same as before."""
    answer = {} if response is None or response.value is None else response.value
    given = answer.get("assignment")
    if given is not None and answer.get("error_code") == 0:
        add_assigned(request, response, out, epoch, member_id, id_parts(given["topic_partitions"]), source)


def _timeout(value: Value) -> int | None:
    timeout: int = value["rebalance_timeout_ms"]
    return timeout if timeout >= 0 else None


def _topics(names: Iterable[str] | None) -> str | None:
    return None if names is None else ",".join(names)


def _streams_told(value: Value, answer: Value) -> str | None:
    """JSON: the tasks that an instance has and those that it is given, and what the broker says of the group."""
    told = {
        "process_id": value["process_id"],
        "has": _tasks(value),
        "given": _tasks(answer),
        "status": [[one["status_code"], one["status_detail"]] for one in answer.get("status") or ()] or None,
        "shutdown": value["shutdown_application"] or None,
    }
    told = {name: said for name, said in told.items() if said is not None}
    return json_text(told) if told else None


def _tasks(value: Value) -> dict[str, list[str]] | None:
    """Tasks as "subtopology_partition" by their kind; None where none are told."""
    told = {
        kind.removesuffix("_tasks"): [f"{one['subtopology_id']}_{part}" for one in tasks for part in one["partitions"]]
        for kind in _TASKS
        if (tasks := value.get(kind)) is not None
    }
    return told or None


def consumer_describe_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a ConsumerGroupDescribe answer (KIP-848)."""
    _described(request, response, out, "consumer", "describe")


def share_describe_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a ShareGroupDescribe answer (KIP-932)."""
    _described(request, response, out, "share", "share_describe")


def streams_describe_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_group_events and kafka_assignments of a StreamsGroupDescribe answer (KIP-1071)."""
    _described(request, response, out, "streams", "streams_describe")


def _described(request: Request, response: Response | None, out: Sink, kind: str, source: str) -> None:
    if response is None or response.value is None:
        return
    for group in response.value["groups"]:
        add_event(
            request,
            response,
            out,
            "describe",
            member={"member_id": None},
            group_id=group["group_id"],
            generation=group["group_epoch"],
            protocol_type=kind,
            protocol_name=group.get("assignor_name") or None,
            state=group["group_state"] or None,
            members=len(group["members"]),
            error_code=group["error_code"],
            error_message=group["error_message"],
        )
        sources = _sources_of(group.get("topology"))
        for member in group["members"]:
            given = member["assignment"]
            parts = _task_parts(given, sources) if kind == "streams" else id_parts(given["topic_partitions"])
            epoch = member["member_epoch"]
            add_assigned(request, response, out, epoch, member["member_id"], parts, source, group["group_id"])


def _sources(topology: Value) -> Iterator[str]:
    for names in _sources_of(topology).values():
        yield from names


def _sources_of(topology: Value | None) -> dict[str, list[str]]:
    """Subtopology -> the topics that it reads."""
    if topology is None:
        return {}
    return {
        one["subtopology_id"]: [*one["source_topics"], *(topic["name"] for topic in one["repartition_source_topics"])]
        for one in topology["subtopologies"] or ()
    }


def _task_parts(given: Value, sources: dict[str, list[str]]) -> Iterator[Part]:
    """What active tasks read: partition n of each of their subtopology's topics."""
    for task in given["active_tasks"]:
        for topic in sources.get(task["subtopology_id"], ()):
            for partition in task["partitions"]:
                yield topic, None, partition
