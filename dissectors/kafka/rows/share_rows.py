"""Rows of ShareFetch and ShareAcknowledge (KIP-932): what members of share groups acquire and acknowledge.

In: a request with its response (None when it was never answered). Out: rows appended to the sink. A ShareFetch may
acknowledge too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.fields import Request, Response, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.rows.int64 import MOST
from wirewitness.dissectors.kafka.rows.share_fields import SHARE_ACKNOWLEDGES, SHARE_FETCHES, SHARE_OFFSETS
from wirewitness.dissectors.kafka.schema.api_keys import api_name
from wirewitness.dissectors.kafka.schema.primitives import Value

# Rows of what tells where share partitions start: their state as brokers keep it, and the offsets that tools ask for.
#
# In: a request with its response (None when it was never answered). Out: kafka_share_offsets rows, one for each
# partition. What is asked for stands beside what is answered: a write has its offset in the request, a read in the
# response. Source: KIP-932, KIP-1226, KIP-1043.

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


FETCHES, ACKNOWLEDGES = "kafka_share_fetches", "kafka_share_acknowledges"
TYPES = {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"}
# A batch says the type of each record: alternating ones would give a row for every byte.
MAX_RUNS = 256

Partitions = Mapping[tuple[str | None, int], Value]


def fetch_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_share_fetches and kafka_share_acknowledges of a ShareFetch."""
    _acquired(request, response, out)
    _acknowledged(request, response, out, "acknowledge_error")


def acknowledge_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_share_acknowledges of a ShareAcknowledge."""
    _acknowledged(request, response, out, "error")


def _acquired(request: Request, response: Response | None, out: Sink) -> None:
    rows = out.rows(FETCHES)
    value = request.value
    if rows is None or value is None or response is None or response.value is None:
        return
    head = {**_head(request, response, value), "lock_timeout_ms": response.value.get("acquisition_lock_timeout_ms")}
    for topic in response.value["responses"]:
        _, topic_id = topic_key(topic)
        for partition in topic["partitions"]:
            told = {
                **head,
                "topic_id": topic_id,
                "partition": partition["partition_index"],
                "error_code": partition["error_code"],
                "error_message": partition["error_message"],
            }
            for acquired in partition["acquired_records"]:
                first, last = acquired["first_offset"], acquired["last_offset"]
                rows.append(
                    SHARE_FETCHES.row(
                        **told,
                        first_offset=first,
                        last_offset=last,
                        records_count=last - first + 1 if 0 <= first <= last < MOST else None,
                        delivery_count=acquired["delivery_count"],
                    )
                )
            if partition["error_code"] and not partition["acquired_records"]:
                rows.append(SHARE_FETCHES.row(**told))


def _acknowledged(request: Request, response: Response | None, out: Sink, error: str) -> None:
    """error: how the fields of the answer begin that say whether it was taken."""
    rows = out.rows(ACKNOWLEDGES)
    value = request.value
    if rows is None or value is None:
        return
    head = {**_head(request, response, value), "api": api_name(request.api_key)}
    answer = None if response is None else response.value
    answers = _answers(answer)
    refused = (answer or {}).get("error_code") or None
    for topic in value["topics"]:
        _, topic_id = topic_key(topic)
        for partition in topic["partitions"]:
            index = partition["partition_index"]
            told = answers.get((topic_id, index), {})
            for batch in partition["acknowledgement_batches"]:
                for first, last, kind in _runs(batch):
                    rows.append(
                        SHARE_ACKNOWLEDGES.row(
                            **head,
                            topic_id=topic_id,
                            partition=index,
                            first_offset=first,
                            last_offset=last,
                            acknowledge_type=kind,
                            error_code=refused or told.get(f"{error}_code"),
                            error_message=(answer or {}).get("error_message") or told.get(f"{error}_message"),
                        )
                    )


def _head(request: Request, response: Response | None, value: Value) -> dict[str, str | int | None]:
    return {
        **placed_exchange_of(request, response),
        "group_id": value["group_id"],
        "member_id": value["member_id"],
        "client_id": request.client_id,
        "share_session_epoch": value["share_session_epoch"],
    }


def _answers(answer: Value | None) -> Partitions:
    """What is answered of each partition, by topic id."""
    return {
        (topic_key(topic)[1], partition["partition_index"]): partition
        for topic in (answer or {}).get("responses", ())
        for partition in topic["partitions"]
    }


def _runs(batch: Value) -> Iterator[tuple[int, int, str | None]]:
    """First offset, last offset and type of neighbours of one type. One type alone stands for the whole batch."""
    first, last, types = batch["first_offset"], batch["last_offset"], batch["acknowledge_types"]
    begins = [at for at, kind in enumerate(types) if at == 0 or kind != types[at - 1]]
    if len(begins) > MAX_RUNS or first + len(types) - 1 > MOST:
        yield first, last, "mixed"
        return
    if len(begins) < 2:
        yield first, last, _type(types[0]) if types else None
        return
    for at, end in zip(begins, [*begins[1:], len(types)], strict=True):
        yield first + at, first + end - 1, _type(types[at])


def _type(kind: int) -> str:
    return TYPES.get(kind, str(kind))
