"""Scenarios of a producer and the brokers that it writes to."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, at, exchange
from tests.analyser.engine.rules.scenarios.kafka_connections import connection
from tests.analyser.engine.rules.scenarios.kafka_producers import produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

_SHOP = {"cluster_id": "c1", "client_id": "shop-1", "client_address": "10.1.0.5"}
_QUICK = 0.005


def writes(
    brokers: int = 3, *, slow: float = 0.6, each: int = 5, least: float = _QUICK, count: int = 100, **more: Any
) -> dict[str, list[Row]]:
    """shop-1 writes to so many brokers four times a second; at the first one some requests take `slow` seconds, one of
    `each`, and the others `least`. more: of the first broker's batches."""
    sent: list[Row] = []
    batches: list[Row] = []
    for number in range(brokers):
        for n in range(count):
            lasts = _QUICK if number else (slow if n % each == 0 else least)
            flow, second = f"b{number}", 1 + n / 4 + number / 20
            row = exchange(flow, second, "Produce", **_SHOP, protocol="kafka", lasts=lasts,
                           server_address=f"10.1.0.{100 + number}", server_port=9092)  # fmt: skip
            sent.append(row)
            own = {"acks": 1, "partition": number, "base_offset": 10 * n} | (more if number == 0 else {})
            batches.append(
                produced(second, n, flow=flow, client_id="shop-1", client_address="10.1.0.5", **own)
                | {"exchange_id": row["exchange_id"]}
            )
    return {"exchanges": sent, "kafka_produce_batches": batches}


def told(replicas: int) -> list[Row]:
    """How many replicas the topic has, as Metadata says."""
    return [
        {"exchange_id": "m0", "flow_id": "m0", "ts": at(0.5), "topic": "orders", "partition": 0, "leader_id": 1,
         "replicas": [*range(1, 1 + replicas)], "error_code": 0, "source": "Metadata", **_SHOP}
    ]  # fmt: skip


SLOW_FIRES: list[Scenario] = [
    fires("KAF215", "warning", "one of three brokers", **writes()),
    fires("KAF215", "warning", "acks=all, and one replica", **writes(acks=-1), kafka_partitions=told(1)),
]
SLOW_NEAR_MISSES: list[Scenario] = [
    silent("KAF215", "one of two brokers", **writes(2)),
    silent("KAF215", "one request of fifty", **writes(each=50)),
    silent("KAF215", "it is far away", **writes(slow=0.3, least=0.29)),
    silent("KAF215", "it gets larger batches", **writes(batch_bytes=70_000)),
    silent("KAF215", "acks=all waits for replicas", **writes(acks=-1), kafka_partitions=told(3)),
    silent("KAF215", "forty requests", **writes(count=40)),
    silent(
        "KAF215",
        "the way loses packets",
        **writes(),
        kafka_connections=[connection(0, 1, **_SHOP, server_address="10.1.0.100", retransmitted_segments=15)],
    ),
]
