"""Scenarios of the rules about what changes in a cluster: admin requests, topics, leaders, versions."""

from __future__ import annotations

from typing import Any

from tests.analyser.detectors.scenarios.build import (
    ANSWER,
    Row,
    at,
    fetch,
    group_event,
    simple_commit,
)
from tests.analyser.detectors.scenarios.kafka_producers import SERVER, produced, refused
from tests.analyser.detectors.scenarios.scenario import Scenario, fires, silent

ADMIN = {"client_id": "operator", "client_address": "10.1.0.50"}


def change(seconds: float, operation: str, kind: str, name: str, what: str, **more: Any) -> Row:
    """One answered request of the operator."""
    row = {
        "exchange_id": f"admin-c{round(seconds * 1_000_000)}",
        "flow_id": "admin",
        "ts": at(seconds),
        "ts_response": at(seconds) + ANSWER,
        "cluster_id": "c1",
        **ADMIN,
        "operation": operation,
        "validate_only": False,
        "resource_type": kind,
        "resource_name": name,
        "change": what,
        "error_code": 0,
    }
    return row | more


def named(seconds: float, topic_id: str, client: str = "m1", **more: Any) -> Row:
    """Metadata of payments-0 as a client is told."""
    row = {
        "exchange_id": f"{client}-m{round(seconds * 1_000_000)}",
        "flow_id": client,
        "ts": at(seconds),
        "cluster_id": "c1",
        "client_id": client,
        "client_address": "10.1.0.1",
        "topic": "payments",
        "topic_id": topic_id,
        "partition": 0,
        "leader_id": 1,
        "leader_epoch": 0,
        "replicas": [1],
        "isr": [1],
        "error_code": 0,
        "source": "Metadata",
    }
    return row | more


def reads(first: float, offset: int, times: int, **more: Any) -> list[Row]:
    """Fetches of billing-1 that are answered with ten records each."""
    return [
        fetch(first + n, offset + n * 10, records_count=10, next_offset=offset + n * 10 + 10, error_code=0, **more)
        for n in range(times)
    ]


JOINED = [group_event(0, "join", "m1", generation=5)]
GONE = (3, "UNKNOWN_TOPIC_OR_PARTITION")
PAYMENTS = {"topic": "payments"}

CHANGES_FIRES: list[Scenario] = [
    fires(
        "KAF309", "info", "somebody changes settings and quotas",
        kafka_admin_changes=[
            change(n, "IncrementalAlterConfigs", "topic", f"orders-{n}", "set retention.ms=1000") for n in range(3)
        ],
    ),
    fires(
        "KAF309", "info", "a topic that nobody uses is deleted",
        kafka_admin_changes=[change(1, "DeleteTopics", "topic", "orders", "delete")],
    ),
    fires(
        "KAF309", "info", "a request that is refused",
        kafka_admin_changes=[
            change(1, "DeleteTopics", "topic", "orders", "delete", error_code=29, error_name="DENIED")
        ],
        kafka_produce_batches=[produced(2)],
        flows=SERVER,
    ),
    fires(
        "KAF309", "warning", "a topic is deleted under its producer",
        kafka_admin_changes=[change(1, "DeleteTopics", "topic", "orders", "delete")],
        kafka_produce_batches=[produced(0), *(refused(n, n * 10, *GONE) for n in (2, 3))],
        flows=SERVER,
    ),
    fires(
        "KAF316", "critical", "a topic is made anew while its last records are unread",
        kafka_partitions=[named(0, "id-1"), named(30, "id-2")],
        kafka_fetch_partitions=[
            *reads(1, 0, 5, topic_id="id-1", high_watermark=80, last_stable_offset=80, log_start_offset=0),
            *reads(31, 0, 3, topic_id="id-2", high_watermark=30, last_stable_offset=30, log_start_offset=0),
        ],
        kafka_group_events=JOINED,
    ),
    fires(
        "KAF316", "warning", "a topic is made anew, all of it was read",
        kafka_partitions=[named(0, "id-1"), named(30, "id-2")],
        kafka_fetch_partitions=[
            *reads(1, 0, 5, topic_id="id-1", high_watermark=50, last_stable_offset=50, log_start_offset=0),
            *reads(31, 0, 3, topic_id="id-2", high_watermark=30, last_stable_offset=30, log_start_offset=0),
        ],
        kafka_group_events=JOINED,
    ),
    fires(
        "KAF316", "info", "a topic is made anew that nobody uses",
        kafka_partitions=[named(0, "id-1"), named(30, "id-2", source="CreateTopics", partition=None)],
    ),
]  # fmt: skip
CHANGES_NEAR_MISSES: list[Scenario] = [
    silent(
        "KAF309", "a request that only tries",
        kafka_admin_changes=[change(1, "CreateTopics", "topic", "orders", "create", validate_only=True)],
    ),
    silent(
        "KAF309", "a consumer without a group stores its offsets",
        kafka_offset_commits=[simple_commit(n, n * 10) for n in range(5)],
    ),
    silent(
        "KAF316", "partitions are added",
        kafka_partitions=[named(0, "id-1"), named(30, "id-1", partition=1), named(30, "id-1")],
    ),
    silent(
        "KAF316", "two clusters that cannot be told apart: the ids alternate",
        kafka_partitions=[named(n, f"id-{n % 2}", "ab"[n % 2]) for n in range(6)],
    ),
]  # fmt: skip
