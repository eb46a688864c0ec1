"""Connections of Kafka clients: to which cluster they belong, and what was asked on them."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import Row, exchange, tcp_flow
from tests.support.rows import connection_from_rows
from wirewitness.analyser.kafka.facts.connections_stage import add_connections
from wirewitness.analyser.tables.tables import TABLES


def connections(columns: str, **rows: list[Row]) -> list[tuple[Any, ...]]:
    """These columns of what the context makes of the rows."""
    con = connection_from_rows(rows)
    add_connections(con)
    assert tuple(con.sql("FROM kafka_connections").columns) == TABLES["kafka_connections"].column_names()
    return con.sql(f"SELECT {columns} FROM kafka_connections ORDER BY flow_id").fetchall()


def asked(flow_id: str, seconds: float, operation: str, **more: Any) -> Row:
    """An exchange of cluster c1 with the server 10.1.0.100:9092."""
    place = {"protocol": "kafka", "cluster_id": "c1", "server_address": "10.1.0.100", "server_port": 9092}
    made = exchange(flow_id, seconds, operation, **{**place, "client_id": "shop", **more})
    return made | {"response_message_id": None if made["ts_response"] is None else f"{flow_id}-s1"}


def test_how_long_a_consumer_lets_the_broker_wait_and_whether_a_quota_holds_it_up() -> None:
    fetched = [
        {"flow_id": flow_id, "exchange_id": "a-c1", "replica_id": replica_id, "max_wait_ms": wait, "partition": 0}
        for flow_id, replica_id, wait in (("a", -1, 500), ("a", -1, 900), ("a", None, 100), ("b", 2, 500))
    ]
    found = connections(
        "flow_id, max_wait_ms, throttled",
        flows=[tcp_flow("a"), tcp_flow("b")],
        exchanges=[asked("a", 1, "Fetch", throttle_time_ms=30), asked("a", 2, "Fetch", throttle_time_ms=0)],
        kafka_fetch_partitions=fetched,
    )
    assert found == [("a", 900, 1), ("b", None, 0)]


def test_until_when_a_throttled_connection_is_not_read() -> None:
    """From the response on; the longest of a connection counts, which need not be the last."""
    exchanges = [
        asked("a", 1, "Produce", throttle_time_ms=9000), asked("a", 2, "Produce", throttle_time_ms=500),
        asked("a", 3, "Produce", lasts=None), asked("b", 1, "Produce", throttle_time_ms=0),
        asked("c", 1, "Produce", throttle_time_ms=None),
    ]  # fmt: skip
    found = connections(
        "flow_id, epoch_ns(ts_muted_until)", flows=[tcp_flow(name) for name in "abc"], exchanges=exchanges
    )
    assert found == [("a", exchanges[0]["ts_response"] + 9_000_000_000), ("b", None), ("c", None)]


def told(host: str, port: int, cluster_id: str = "c1") -> Row:
    return {"cluster_id": cluster_id, "client_address": "10.1.0.1", "host": host, "port": port, "flow_id": "a"}


def unread(flow_id: str, address: str, port: int, **more: Any) -> Row:
    """A flow that nobody could read."""
    return tcp_flow(flow_id, protocol=None, server_address=address, server_port=port, **more)


def test_what_was_asked() -> None:
    exchanges = [
        asked("a", 1, "ApiVersions"), asked("a", 2, "Metadata"), asked("a", 3, "Fetch"),
        asked("a", 4, "DescribeGroups", status="error"), asked("a", 5, "Produce", lasts=None),
    ]  # fmt: skip
    columns = "client_id, requests, answered, unanswered, errors, work, others, first_operation, last_operation"
    found = connections(f"{columns}, last_status, served", flows=[tcp_flow("a")], exchanges=exchanges)
    assert found == [("shop", 5, 4, 1, 1, 2, 1, "ApiVersions", "Produce", "unanswered", True)]


def test_connections_that_nobody_could_read_belong_to_who_answers_there_or_sent_clients_there() -> None:
    flows = [
        tcp_flow("a"), unread("b", "10.1.0.100", 9092, client_opening="http"),
        unread("c", "10.1.0.101", 9999, handshake="refused"), unread("d", "10.1.0.102", 9093),
        unread("e", "10.1.0.103", 443), unread("f", "10.1.0.104", 29_092),
    ]  # fmt: skip
    found = connections(
        "flow_id, cluster_id, advertised, served",
        flows=flows,
        exchanges=[asked("a", 1, "Metadata")],
        kafka_brokers=[told("10.1.0.101", 9999), told("kafka-1.internal", 29_092)],
    )
    assert found == [
        ("a", "c1", False, True), ("b", "c1", False, True), ("c", "c1", True, False), ("d", None, False, False),
        ("f", "c1", True, False),
    ]  # fmt: skip


def test_an_address_that_two_clusters_tell_belongs_to_none() -> None:
    found = connections(
        "flow_id, cluster_id",
        flows=[unread("c", "127.0.0.1", 9092)],
        kafka_brokers=[told("127.0.0.1", 9092), told("127.0.0.1", 9092, "c2")],
    )
    assert found == [("c", None)]


def test_requests_of_one_packet_are_in_the_order_of_their_numbers() -> None:
    """In whatever order the rows come."""
    sent = [asked("a", 1, "Metadata", exchange_id=f"a-c-{number}", request_packet=7) for number in (9, 10, 11)]
    for exchanges in (sent, sent[::-1], [*sent[1:], sent[0]]):
        found = connections("first_exchange_id, last_exchange_id", flows=[tcp_flow("a")], exchanges=exchanges)
        assert found == [("a-c-9", "a-c-11")]
