"""Rows about the cluster: brokers, coordinators and partitions that clients were told of.

In: an answered Metadata, DescribeCluster, DescribeTopicPartitions, CreateTopics or FindCoordinator. Out: rows appended
to the sink.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.rows.cluster_fields import BROKERS, PARTITIONS
from wirewitness.dissectors.kafka.rows.fields import Request, Response, placed_exchange_of
from wirewitness.dissectors.kafka.rows.group_rows import topic_key
from wirewitness.dissectors.kafka.schema.primitives import Value

_GROUP_KEY, _TRANSACTION_KEY = 0, 1


class KnownPartitions:
    """What Metadata answers on one flow have said, so that only changes become rows. full: the limit was reached."""

    __slots__ = ("_known", "_limits", "full")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.full = False

    def changed(self, key: tuple[Any, ...], state: tuple[Any, ...]) -> bool:
        """Remember `state`; True when it differs from what was known (or nothing more can be remembered)."""
        if self._known.get(key) == state:
            return False
        if key in self._known or len(self._known) < self._limits.max_known_partitions:
            self._known[key] = state
        else:
            self.full = True
        return True


def metadata_rows(request: Request, response: Response | None, out: Sink, known: KnownPartitions) -> None:
    """kafka_brokers and kafka_partitions of a Metadata answer."""
    if response is None or response.value is None:
        return
    value = response.value
    told = [
        (broker["node_id"], broker["host"], broker["port"], broker.get("rack"), None) for broker in value["brokers"]
    ]
    _brokers(request, response, out, "Metadata", value, told)
    _partitions(request, response, out, "Metadata", known)


def describe_cluster_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_brokers of a DescribeCluster answer; asked of a controller they are controllers (KIP-919)."""
    if response is None or response.value is None:
        return
    value = response.value
    told = [
        (broker["broker_id"], broker["host"], broker["port"], broker["rack"], broker.get("is_fenced"))
        for broker in value["brokers"]
    ]
    _brokers(request, response, out, "DescribeCluster", value, told)


def describe_partitions_rows(request: Request, response: Response | None, out: Sink, known: KnownPartitions) -> None:
    """kafka_partitions of a DescribeTopicPartitions answer (KIP-966)."""
    _partitions(request, response, out, "DescribeTopicPartitions", known)


def created_topic_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_partitions of a CreateTopics answer: name and id of each topic made, no partition."""
    rows = out.rows("kafka_partitions")
    if rows is None or response is None or response.value is None or (request.value or {}).get("validate_only"):
        return
    exchange = {**placed_exchange_of(request, response), "client_id": request.client_id}
    for topic in response.value["topics"]:
        if topic["error_code"] == 0:
            name, topic_id = topic_key(topic)
            rows.append(PARTITIONS.row(**exchange, topic=name, topic_id=topic_id, error_code=0, source="CreateTopics"))


# node id, host, port, rack, fenced
_Broker = tuple[int, str, int, str | None, bool | None]


def _brokers(
    request: Request, response: Response, out: Sink, source: str, value: Value, told: Iterable[_Broker]
) -> None:
    rows = out.rows("kafka_brokers")
    if rows is None:
        return
    exchange = {**placed_exchange_of(request, response), "client_id": request.client_id}
    controller = value.get("controller_id")
    for node_id, host, port, rack, fenced in told:
        rows.append(
            BROKERS.row(
                **exchange,
                wire_cluster_id=value.get("cluster_id"),
                node_id=node_id,
                host=host,
                port=port,
                rack=rack,
                source=source,
                is_controller=None if controller is None or controller < 0 else node_id == controller,
                is_fenced=fenced,
            )
        )


def _partitions(request: Request, response: Response | None, out: Sink, source: str, known: KnownPartitions) -> None:
    """What changed; a topic that is answered with an error has a row without a partition."""
    rows = out.rows("kafka_partitions")
    if rows is None or response is None or response.value is None:
        return
    exchange = {**placed_exchange_of(request, response), "client_id": request.client_id}
    for topic in response.value["topics"]:
        name, topic_id = topic_key(topic)
        named = {**exchange, "topic": name, "topic_id": topic_id, "source": source}
        if topic["error_code"] and known.changed((name, topic_id, None), (topic["error_code"],)):
            rows.append(PARTITIONS.row(**named, error_code=topic["error_code"]))
        for partition in topic["partitions"]:
            state = {
                "leader_id": partition["leader_id"],
                "leader_epoch": partition.get("leader_epoch"),
                "replicas": partition["replica_nodes"],
                "isr": partition["isr_nodes"],
                "error_code": partition["error_code"],
                "offline_replicas": partition.get("offline_replicas"),
                "eligible_leader_replicas": partition.get("eligible_leader_replicas"),
                "last_known_elr": partition.get("last_known_elr"),
            }
            index = partition["partition_index"]
            if known.changed((name, topic_id, index), tuple(state.values())):
                rows.append(PARTITIONS.row(**named, partition=index, **state))


def coordinator_rows(request: Request, response: Response | None, out: Sink) -> None:
    """kafka_brokers of a FindCoordinator answer."""
    rows = out.rows("kafka_brokers")
    if rows is None or response is None or response.value is None:
        return
    value, asked = response.value, request.value or {}
    found = value["coordinators"] if "coordinators" in value else [{**value, "key": asked.get("key")}]
    exchange = {**placed_exchange_of(request, response), "client_id": request.client_id}
    kind = asked.get("key_type", _GROUP_KEY)
    for coordinator in found:
        if coordinator["error_code"] or not coordinator["host"]:
            continue
        rows.append(
            BROKERS.row(
                **exchange,
                node_id=coordinator["node_id"],
                host=coordinator["host"],
                port=coordinator["port"],
                source="FindCoordinator",
                group_id=coordinator["key"] if kind == _GROUP_KEY else None,
                transactional_id=coordinator["key"] if kind == _TRANSACTION_KEY else None,
            )
        )
