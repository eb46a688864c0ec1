"""Scenarios of the rules about how much is sent and asked for: batches, fetches, quotas, share groups."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import ANSWER, Row, at
from tests.analyser.engine.rules.scenarios.kafka_producers import produced
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

WORKER = {"client_id": "worker-1", "client_address": "10.1.0.5"}
OTHER = {"client_id": "worker-2", "client_address": "10.1.0.6"}


def exchange(seconds: float, operation: str, throttle_time_ms: int, **more: Any) -> Row:
    """One answered request of worker-1, throttled for so long."""
    row = {
        "exchange_id": f"work-c{round(seconds * 1_000_000)}", "flow_id": "work", "protocol": "kafka",
        "direction": "client_to_server", "cluster_id": "c1", "ts": at(seconds), "ts_response": at(seconds) + ANSWER,
        "operation": operation, "status": "ok", "error_code": 0, "throttle_time_ms": throttle_time_ms, **WORKER,
        "server_address": "10.1.0.100", "server_port": 9092, "request_file": "incident.pcapng",
        "response_packet": round(seconds * 1000) + 2, "response_message_id": f"work-s{round(seconds * 1_000_000)}",
    }  # fmt: skip
    return row | more


def acquired(seconds: float, first: int, last: int, deliveries: int, **more: Any) -> Row:
    """Records of tasks-0 that worker-1 of share group jobs acquired for the time that `deliveries` says."""
    row = {
        "exchange_id": f"work-f{round(seconds * 1_000_000)}", "flow_id": "work", "ts": at(seconds),
        "ts_response": at(seconds) + ANSWER, "cluster_id": "c1", "group_id": "jobs", "member_id": "w1", **WORKER,
        "lock_timeout_ms": 30_000, "topic_id": "id-tasks", "topic": "tasks", "partition": 0, "first_offset": first,
        "last_offset": last, "records_count": last - first + 1, "delivery_count": deliveries, "error_code": 0,
        "file": "incident.pcapng", "response_packet": round(seconds * 1000) + 2,
        "response_message_id": f"work-s{round(seconds * 1_000_000)}",
    }  # fmt: skip
    return row | more


def acknowledged(seconds: float, first: int, last: int, kind: str, **more: Any) -> Row:
    """What worker-1 says of records of tasks-0."""
    row = {
        "exchange_id": f"work-a{round(seconds * 1_000_000)}", "flow_id": "work", "ts": at(seconds),
        "ts_response": at(seconds) + ANSWER, "api": "ShareAcknowledge", "cluster_id": "c1", "group_id": "jobs",
        "member_id": "w1", **WORKER, "topic_id": "id-tasks", "topic": "tasks", "partition": 0, "first_offset": first,
        "last_offset": last, "acknowledge_type": kind, "error_code": 0, "file": "incident.pcapng",
        "request_packet": round(seconds * 1000) + 1,
    }  # fmt: skip
    return row | more


def read(seconds: float, offset: int, end: int, *, records: int = 5, size: int = 1200, **more: Any) -> Row:
    """An answer to worker-1 of group billing with so many records of orders-0; the log's end was there."""
    row = {
        "exchange_id": f"work-f{round(seconds * 1_000_000)}", "flow_id": "work", "ts": at(seconds),
        "ts_response": at(seconds) + ANSWER, "cluster_id": "c1", **WORKER, "replica_id": -1, "group_id": "billing",
        "topic": "orders", "partition": 0, "fetch_offset": offset, "next_offset": offset + records,
        "high_watermark": end, "records_count": records, "records_bytes": size, "partition_max_bytes": 1000,
        "max_bytes": 50 << 20, "error_code": 0, "file": "incident.pcapng",
        "response_packet": round(seconds * 1000) + 2, "response_message_id": f"work-s{round(seconds * 1_000_000)}",
    }  # fmt: skip
    return row | more


def again(*, released: bool, times: int = 5, last: str = "release") -> dict[str, list[Row]]:
    """Record 20 comes so often, every two seconds; what is said of it in between, and at last."""
    told = [acknowledged(2 * n + 1, 20, 20, "release") for n in range(times - 1)] if released else []
    return {
        "kafka_share_fetches": [acquired(0, 10, 30, 1), *(acquired(2 * n, 20, 20, n + 1) for n in range(1, times))],
        "kafka_share_acknowledges": [
            acknowledged(0.5, 10, 19, "accept"), *told, acknowledged(2 * times, 20, 20, last)
        ],
    }  # fmt: skip


def keyed(hot: int, others: int, *, size: int = 700, parts: int = 4) -> list[Row]:
    """Batches of ten records for orders: so many for partition 0, and for each other one, all mixed."""
    rows = [(n / hot, 0) for n in range(hot)] + [(n / others, p) for p in range(1, parts) for n in range(others)]
    return [
        produced(60 * at_share + part / 100, n, partition=part, batch_bytes=size)
        for n, (at_share, part) in enumerate(sorted(rows))
    ]


def unkeyed() -> list[Row]:
    """The same number of batches without keys: each partition has its turn, and partition 0 had more by chance."""
    turns = [0, 0, 0, 1, 0, 0, 2, 0, 0, 3]
    return [
        produced(turn * 6 + n / 10, 20 * turn + n, partition=part) for turn, part in enumerate(turns) for n in range(20)
    ]


def partition_told(index: int) -> Row:
    """Metadata tells worker-1 of a partition of orders."""
    return {"exchange_id": f"meta-c{index}", "flow_id": "work", "ts": at(0), "cluster_id": "c1", "topic": "orders",
            "topic_id": "id-orders", "partition": index, "leader_id": 1, "replicas": [1], "isr": [1],
            "error_code": 0, "source": "Metadata"}  # fmt: skip


def lagging(growth: int) -> list[Row]:
    """Reads of orders-0 that fall behind by so many in a minute, and of orders-1 that do not."""
    own = [read(t, 0, t * growth // 60, partition_max_bytes=1 << 20) for t in range(0, 61, 10)]
    return own + [read(t + 1, 0, 5, partition=1, partition_max_bytes=1 << 20) for t in range(0, 61, 10)]


def singles(per_second: int, seconds: int, records: int = 1) -> list[Row]:
    """So many Produce requests a second, each with so few records; partitions in turn."""
    return [
        produced(s + n / per_second, s * per_second + n, records_count=records, batch_bytes=80, partition=n % 3)
        for s in range(seconds)
        for n in range(per_second)
    ]


KAFKA_TRAFFIC_FIRES: list[Scenario] = [
    fires("KAF304", "warning", "a quota holds a producer up", exchanges=[
        exchange(0, "Produce", 0), exchange(1, "Produce", 700), exchange(2, "Produce", 900),
    ]),
    fires("KAF304", "info", "a quota holds a client up for a moment", exchanges=[exchange(1, "Fetch", 30)]),
    fires("KAF318", "critical", "a record is released until it is archived", **again(released=True)),
    fires("KAF318", "critical", "a record whose lock runs out five times while others are handled",
          kafka_share_fetches=[*(acquired(35 * n, 20, 20, n + 1) for n in range(5)), acquired(180, 31, 40, 1)],
          kafka_share_acknowledges=[acknowledged(181, 31, 40, "accept")]),
    fires("KAF318", "warning", "a record whose lock runs out, and that is rejected in the end",
          **again(released=False, times=3, last="reject")),
    fires("KAF318", "warning", "a record that two members release in turn and one accepts",
          kafka_share_fetches=[acquired(0, 20, 20, 1), acquired(2, 20, 20, 2, **OTHER), acquired(4, 20, 20, 3)],
          kafka_share_acknowledges=[
              acknowledged(1, 20, 20, "release"), acknowledged(3, 20, 20, "release", **OTHER),
              acknowledged(5, 20, 20, "accept"),
          ]),
    fires("KAF317", "info", "a limit below the size of a batch", kafka_fetch_partitions=[
        read(n / 10, 5 * n, 5 * n + 5) for n in range(120)
    ]),
    fires("KAF317", "warning", "full answers while the log runs away", kafka_fetch_partitions=[
        read(n / 10, 5 * n, 15 * n + 10, size=1000) for n in range(120)
    ]),
    fires("KAF317", "warning", "a small limit keeps a consumer behind", kafka_fetch_partitions=[
        read(n / 10, 5 * n, 5 * n + 900, size=1000) for n in range(120)
    ]),
    fires("KAF317", "warning", "a small limit makes a consumer ask all the time", kafka_fetch_partitions=[
        read(n / 100, 5 * n, 5 * n + 5) for n in range(400)
    ]),
    fires("KAF204", "info", "nobody asks whether records are stored", kafka_produce_batches=[
        produced(n, 10 * n, acks=0, base_offset=None, error_code=None, error_name=None) for n in range(3)
    ]),
    fires("KAF202", "info", "records one by one, sixty a second", kafka_produce_batches=singles(60, 12)),
    fires("KAF209", "info", "one key in ten records", kafka_produce_batches=keyed(200, 5)),
    fires("KAF209", "warning", "and its consumer falls behind",
          kafka_produce_batches=keyed(200, 5), kafka_fetch_partitions=lagging(1500)),
    fires("KAF209", "info", "every record in one partition of three",
          kafka_produce_batches=[produced(n / 2, n, batch_bytes=20_000) for n in range(120)],
          kafka_partitions=[partition_told(n) for n in range(3)]),
]  # fmt: skip

KAFKA_TRAFFIC_NEAR_MISSES: list[Scenario] = [
    silent("KAF304", "answers that tell no time", exchanges=[exchange(n, "Produce", 0) for n in range(5)]),
    silent("KAF318", "a record that comes twice", **again(released=True, times=2, last="accept")),
    silent("KAF318", "releases of one record whose answers were not captured",
           kafka_share_fetches=[
               acquired(2 * n, 20, 20, 1, delivery_count=None, lock_timeout_ms=None, first_offset=None,
                        last_offset=None, ts_response=None, error_code=None) for n in range(6)
           ],
           kafka_share_acknowledges=[
               acknowledged(2 * n + 1, 20, 20, "release", error_code=None, ts_response=None) for n in range(6)
           ]),
    silent("KAF318", "many records, each released once",
           kafka_share_fetches=[acquired(n, n, n, 1 + n % 2) for n in range(20)],
           kafka_share_acknowledges=[
               acknowledged(n + 0.5, n, n, "release" if n % 2 else "accept") for n in range(20)
           ]),
    silent("KAF317", "a consumer that catches up with the usual limit", kafka_fetch_partitions=[
        read(n / 10, 500 * n, 100_000, records=500, size=1 << 20, partition_max_bytes=1 << 20) for n in range(120)
    ]),
    silent("KAF317", "batches above the usual limit are caught up on", ("KAF317", "info"), kafka_fetch_partitions=[
        read(n / 10, 5 * n, 9000, size=3 << 20, partition_max_bytes=1 << 20) for n in range(120)
    ]),
    silent("KAF317", "some answers with one large record", kafka_fetch_partitions=[
        read(n / 10, 5 * n, 5 * n + 5, partition_max_bytes=1000 if n < 90 else 1 << 20) for n in range(150)
    ]),
    silent("KAF317", "a follower with a small limit", kafka_fetch_partitions=[
        read(n / 10, 5 * n, 5 * n + 5, replica_id=2) for n in range(120)
    ]),
    silent("KAF204", "acks=1", kafka_produce_batches=[produced(n, 10 * n, acks=1) for n in range(3)]),
    silent("KAF202", "records one by one, but few", kafka_produce_batches=singles(40, 20)),
    silent("KAF202", "many requests with full batches", kafka_produce_batches=singles(60, 12, records=100)),
    silent("KAF202", "a short burst", kafka_produce_batches=singles(200, 4)),
    silent("KAF209", "an uneven topic, but no more than twice", kafka_produce_batches=keyed(100, 50)),
    silent("KAF209", "without keys one partition has more turns by chance", kafka_produce_batches=unkeyed()),
    silent("KAF209", "a topic with one partition", kafka_produce_batches=[
        produced(n / 2, n, batch_bytes=20_000) for n in range(120)
    ], kafka_partitions=[partition_told(0)]),
    silent("KAF209", "too few records to tell", kafka_produce_batches=keyed(60, 3)),
]  # fmt: skip
