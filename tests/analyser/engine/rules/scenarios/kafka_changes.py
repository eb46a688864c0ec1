"""Scenarios of the rules about what changes in a cluster: admin requests, topics, leaders, versions."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import ANSWER, Row, at, exchange, fetch, group_event, simple_commit
from tests.analyser.engine.rules.scenarios.build_offsets import epoch_end
from tests.analyser.engine.rules.scenarios.kafka_producers import SERVER, produced, refused
from tests.analyser.engine.rules.scenarios.scenario import Scenario, fires, silent

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


def asked(seconds: float, operation: str = "Metadata", flow_id: str = "a", **more: Any) -> Row:
    """One Kafka exchange of billing-1."""
    who = {"client_id": "billing-1", "client_address": "10.1.0.1", "cluster_id": "c1"}
    where = {"protocol": "kafka", "server_address": "10.1.0.100", "server_port": 9092, "error_code": 0}
    return exchange(flow_id, seconds, operation, **who, **where, **more)


def version(api: str, used: tuple[int, int] | None, offered: tuple[int, int] = (4, 18), **more: Any) -> Row:
    """What billing-1 was offered and what it used."""
    low, high = used or (None, None)
    row = {
        "exchange_id": "a-v1", "flow_id": "a", "ts": at(0), "cluster_id": "c1", "client_id": "billing-1",
        "client_address": "10.1.0.1", "server_address": "10.1.0.100", "server_port": 9092, "api_key": 1,
        "api_name": api, "min_version": offered[0], "max_version": offered[1], "used_version_min": low,
        "used_version_max": high, "software_name": "sarama", "software_version": "1.0",
    }  # fmt: skip
    return row | more


def in_sync(seconds: float, *isr: int, client: str = "m1", **more: Any) -> Row:
    """What a client is told of payments-0, whose replicas are 1, 2 and 3."""
    return named(seconds, "id-1", client, replicas=[1, 2, 3], isr=list(isr), **more)


JOINED = [group_event(0, "join", "m1", generation=5)]
GONE = (3, "UNKNOWN_TOPIC_OR_PARTITION")
PAYMENTS = {"topic": "payments"}

# The leader of payments-0 goes, and another one leads that was not in sync.
ELECTED = [
    named(0, "id-1", replicas=[1, 2], isr=[1, 2]), named(5, "id-1", replicas=[1, 2], isr=[1]),
    named(20.1, "id-1", leader_id=2, leader_epoch=1, replicas=[1, 2], isr=[2]),
]  # fmt: skip


def not_made(times: int, code: int) -> list[Row]:
    """A topic that the controller does not make."""
    return [change(n, "CreateTopics", "topic", "orders", "create", error_code=code) for n in range(times)]


def stored(second: float, base: int, **more: Any) -> Row:
    """A batch of ten records that its leader had, with an offset."""
    row = produced(
        second, round(second * 10), topic="payments", base_offset=base, ts_response=at(second + 0.01), acks=1
    )
    return row | {"last_offset": base + 9} | more


def consumed(*, goes_on: int) -> list[Row]:
    """A consumer that reads each second what was stored, 300 records in all, and where it goes on in the end."""
    reads = [(n + 0.5, 100 + n * 10) for n in range(20)]
    return [
        fetch(second, offset, next_offset=offset + 10, records_count=10, error_code=0, high_watermark=offset + 10)
        for second, offset in [*reads, (20.5, goes_on)]
    ]


_OLD = [stored(n, 100 + n * 10) for n in range(20)]

CHANGES_FIRES: list[Scenario] = [
    fires(
        "KAF320", "critical", "a consumer finds its epoch to end below where it is, and goes back there",
        kafka_partitions=ELECTED, kafka_leader_epochs=[epoch_end(20.2, 250)],
        kafka_fetch_partitions=consumed(goes_on=250),
    ),
    fires(
        "KAF320", "critical", "the new leader stores a batch where the old one had another",
        kafka_partitions=ELECTED, kafka_produce_batches=[*_OLD, stored(21, 250), stored(22, 260)],
    ),
    fires(
        "KAF309", "info", "somebody changes settings and quotas",
        kafka_admin_changes=[
            change(n, "IncrementalAlterConfigs", "topic", f"orders-{n}", "set retention.ms=1000") for n in range(3)
        ],
    ),
    fires("KAF309", "warning", "refused three times for good", kafka_admin_changes=not_made(3, 38)),
    fires("KAF309", "info", "refused once", kafka_admin_changes=not_made(1, 38)),
    fires("KAF309", "info", "there already at each start", kafka_admin_changes=not_made(9, 36)),
    fires("KAF309", "info", "the controller moves", kafka_admin_changes=not_made(9, 41)),
    fires("KAF309", "warning", "a group that has members is to be deleted", kafka_admin_changes=[
        change(n, "DeleteGroups", "group", "billing", "delete", error_code=68) for n in range(3)]),
    fires("KAF309", "warning", "the topic of all offsets is deleted",
          kafka_admin_changes=[change(1, "DeleteTopics", "topic", "__consumer_offsets", "delete")]),
    fires(
        "KAF309", "warning", "a topic for each task",
        kafka_admin_changes=[
            change(n + later, operation, "topic", f"task-{n}", operation)
            for n in range(12) for later, operation in ((0, "CreateTopics"), (0.5, "DeleteTopics"))
        ],
    ),
    fires(
        "KAF309", "info", "a test makes three topics and removes them",
        kafka_admin_changes=[
            change(n + later, operation, "topic", f"test-{n}", operation)
            for n in range(3) for later, operation in ((0, "CreateTopics"), (0.5, "DeleteTopics"))
        ],
    ),
    fires(
        "KAF309", "info", "a tool makes a topic that is a broker's",
        kafka_admin_changes=[change(1, "CreateTopics", "topic", "__consumer_offsets", "create")],
    ),
    fires(
        "KAF309", "info", "a client with a number for a name makes a topic",
        kafka_admin_changes=[change(1, "CreateTopics", "topic", "orders", "create", client_id="1")],
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
    fires(
        "KAF301", "info", "metadata twice a second for a minute",
        exchanges=[asked(n / 2) for n in range(120)],
    ),
    fires(
        "KAF301", "warning", "a leader that does not come to rest",
        kafka_partitions=[named(n * 20, "id-1", leader_id=1 + n % 2, leader_epoch=n) for n in range(6)],
    ),
    fires(
        "KAF305", "critical", "a version that the broker does not take any more",
        kafka_api_versions=[version("Fetch", (2, 2)), version("ApiVersions", (3, 3), (0, 4))],
        exchanges=[asked(1, "Fetch", version="2", lasts=None)],
    ),
    fires(
        "KAF305", "critical", "a client of Kafka 0.9 gives up after Metadata",
        kafka_api_versions=[
            version("Fetch", None), version("Metadata", (0, 0), (0, 13)), version("ApiVersions", (3, 3), (0, 4)),
        ],
    ),
    fires(
        "KAF305", "warning", "refused again and again",
        exchanges=[asked(n, "OffsetCommit", version="0", status="error") | {"error_code": 35} for n in range(4)],
    ),
    fires(
        "KAF305", "info", "Fetch 3: the broker converts",
        kafka_api_versions=[version("Fetch", (3, 3), (0, 11))],
    ),
    fires(
        "KAF308", "warning", "broker 3 leaves and comes back three times",
        kafka_partitions=[in_sync(n * 20, *((1, 2) if n % 2 else (1, 2, 3))) for n in range(7)],
    ),
    fires(
        "KAF308", "critical", "all followers leave and come back three times",
        kafka_partitions=[in_sync(n * 20, *((1,) if n % 2 else (1, 2, 3))) for n in range(7)],
    ),
]  # fmt: skip
CHANGES_NEAR_MISSES: list[Scenario] = [
    silent(
        "KAF320", "the new leader has all, and a consumer finds its epoch to end where it reads",
        kafka_partitions=ELECTED, kafka_leader_epochs=[epoch_end(20.2, 300)],
        kafka_fetch_partitions=consumed(goes_on=300),
        kafka_produce_batches=[*_OLD, *(stored(n, 100 + n * 10) for n in range(21, 24))],
    ),
    silent(
        "KAF320", "a batch that is sent again to the new leader is answered with its first offset",
        kafka_partitions=ELECTED,
        kafka_produce_batches=[*_OLD, stored(21, 290, base_sequence=190), stored(22, 300)],
    ),
    silent(
        "KAF320", "a topic that is deleted and made anew begins again", ("KAF309", "info"),
        kafka_partitions=ELECTED[:2],
        kafka_admin_changes=[change(15, "DeleteTopics", "topic", "payments", "delete")],
        kafka_leader_epochs=[epoch_end(14, 300)],
        kafka_produce_batches=[*_OLD[:15], stored(21, 5), stored(22, 15)],
    ),
    silent(
        "KAF320", "a consumer begins at the earliest offset after it asked for its epoch",
        kafka_partitions=ELECTED, kafka_leader_epochs=[epoch_end(20.2, 250)],
        kafka_fetch_partitions=consumed(goes_on=0), kafka_produce_batches=_OLD,
    ),
    silent(
        "KAF309", "a broker has its own topic made",
        kafka_admin_changes=[
            change(n, "CreateTopics", "topic", name, "create", client_id="1")
            for n, name in enumerate(("__consumer_offsets", "__transaction_state", "__share_group_state"))
        ],
    ),
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
    silent(
        "KAF301", "a rolling restart: each leader moves once and back",
        kafka_partitions=[
            named(n * 20 + p, "id-1", partition=p, leader_id=(1, 2, 1)[n], leader_epoch=n)
            for n in range(3) for p in range(3)
        ],
        exchanges=[asked(n) for n in range(29)],
    ),
    silent(
        "KAF301", "a client that asks without a pause for the second in which a leader moves",
        exchanges=[*(asked(n / 40) for n in range(40)), *(asked(n, "Fetch") | {"error_code": 74} for n in range(1, 5))],
    ),
    silent(
        "KAF301", "a topic that does not exist: another rule",
        exchanges=[asked(n / 2, status="error") | {"error_code": 3} for n in range(120)],
    ),
    silent(
        "KAF301", "a connection for each message",
        exchanges=[asked(n / 2, flow_id=f"f{n}") for n in range(120)],
    ),
    silent(
        "KAF305", "ApiVersions in a newer version: how a client finds its version",
        kafka_api_versions=[version("ApiVersions", (4, 5), (0, 4)), version("Fetch", (12, 12))],
        exchanges=[asked(0, "ApiVersions", status="error") | {"error_code": 35}],
    ),
    silent(
        "KAF305", "an old client at an old broker",
        kafka_api_versions=[version("Fetch", (2, 2), (0, 2)), version("Metadata", (0, 0), (0, 1))],
    ),
    silent(
        "KAF308", "a rolling restart: each broker is out once",
        kafka_partitions=[
            in_sync(n * 20, *isr) for n, isr in enumerate([(1, 2, 3), (2, 3), (1, 2, 3), (1, 3), (1, 2, 3), (1, 2),
                                                           (1, 2, 3)])
        ],
    ),
    silent(
        "KAF308", "brokers that learn of it a little later",
        kafka_partitions=[
            in_sync(0, 1, 2, 3), in_sync(10, 1, 2), in_sync(10.5, 1, 2, 3, client="b"), in_sync(11, 1, 2),
            in_sync(11.5, 1, 2, 3, client="c"), in_sync(12, 1, 2), in_sync(12.5, 1, 2, 3, client="d"),
        ],
    ),
]  # fmt: skip
