"""Rows about the cluster: brokers, coordinators and partitions that clients were told of.

In: an answered Metadata or FindCoordinator. Out: rows appended to the sink.
"""

from __future__ import annotations

from typing import Any

from dissectors.core.limits import Limits
from dissectors.core.protocol import Sink
from dissectors.kafka.group_rows import topic_key
from dissectors.kafka.rows import Request, Response, exchange_key

_GROUP_KEY = 0


class KnownPartitions:
    """What Metadata answers on one flow have said, so that only changes become rows."""

    __slots__ = ("_known", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def changed(self, key: tuple[Any, ...], state: tuple[Any, ...]) -> bool:
        """Remember `state`; True when it differs from what was known (or nothing more can be remembered)."""
        if self._known.get(key) == state:
            return False
        if key in self._known or len(self._known) < self._limits.max_fetch_session_partitions:
            self._known[key] = state
        return True


def metadata_rows(request: Request, response: Response | None, out: Sink, known: KnownPartitions) -> None:
    """kafka_brokers and kafka_partitions of a Metadata answer."""
    if response is None or response.value is None:
        return
    key = exchange_key(request, response)
    value = response.value
    brokers = out.rows("kafka_brokers")
    if brokers is not None:
        for broker in value["brokers"]:
            brokers.append(
                (
                    *key,
                    value.get("cluster_id"),
                    broker["node_id"],
                    broker["host"],
                    broker["port"],
                    broker.get("rack"),
                    "Metadata",
                    None,
                )
            )
    partitions = out.rows("kafka_partitions")
    if partitions is None:
        return
    for topic in value["topics"]:
        names = topic_key(topic)
        for partition in topic["partitions"]:
            state = (
                partition["leader_id"],
                partition.get("leader_epoch"),
                partition["replica_nodes"],
                partition["isr_nodes"],
                partition["error_code"],
            )
            part = (*names, partition["partition_index"])
            if known.changed(part, state):
                partitions.append((*key, *part, *state))


def coordinator_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_brokers of a FindCoordinator answer."""
    rows = out.rows("kafka_brokers")
    if rows is None or response is None or response.value is None:
        return
    value, asked = response.value, request.value or {}
    found = value["coordinators"] if "coordinators" in value else [{**value, "key": asked.get("key")}]
    key = exchange_key(request, response)
    for coordinator in found:
        if coordinator["error_code"] or not coordinator["host"]:
            continue
        name = coordinator["key"] if asked.get("key_type", _GROUP_KEY) == _GROUP_KEY else None
        rows.append(
            (
                *key,
                None,
                coordinator["node_id"],
                coordinator["host"],
                coordinator["port"],
                None,
                "FindCoordinator",
                name,
            )
        )
