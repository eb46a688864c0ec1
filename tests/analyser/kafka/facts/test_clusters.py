"""Which cluster a flow belongs to, and what a topic id is called."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.support.rows import arrow_from_rows
from wirewitness.analyser.engine.facts.topics import topic_names
from wirewitness.analyser.kafka.facts import clusters as module
from wirewitness.analyser.kafka.facts.clusters import cluster_of_flows

Row = dict[str, Any]


def flow(flow_id: str, server: str, *, client: str = "10.0.0.1", protocol: str = "kafka") -> Row:
    address, port = server.split(":")
    return {
        "flow_id": flow_id,
        "protocol": protocol,
        "client_address": client,
        "server_address": address,
        "server_port": int(port),
    }


def told(of: Row, broker: str, cluster: str | None = None) -> Row:
    """`of` was told of a broker, by Metadata (with a cluster id from version 2 on) or FindCoordinator."""
    host, port = broker.rsplit(":", 1)
    same = {key: of[key] for key in ("flow_id", "client_address", "server_address", "server_port")}
    source = "Metadata" if cluster else "FindCoordinator"
    return {**same, "host": host, "port": int(port), "wire_cluster_id": cluster, "source": source}


def clusters(flows: list[Row], brokers: list[Row]) -> dict[str, str]:
    return cluster_of_flows(arrow_from_rows("flows", flows), arrow_from_rows("kafka_brokers", brokers))


def test_metadata_names_the_flows_to_all_its_brokers() -> None:
    flows = [flow("boot", "10.1.0.1:9092"), flow("data", "10.1.0.2:9092"), flow("other", "10.9.9.9:9092")]
    brokers = [told(flows[0], b, "prod") for b in ("10.1.0.1:9092", "10.1.0.2:9092")]
    found = clusters(flows, brokers)
    assert found["boot"] == found["data"] == "prod"
    assert found["other"].startswith("component:")


def test_coordinators_and_old_metadata_join_endpoints_without_an_id() -> None:
    flows = [flow("boot", "10.1.0.1:9092"), flow("coordinator", "10.1.0.2:9092"), flow("alone", "10.1.0.3:9092")]
    found = clusters(flows, [told(flows[0], "10.1.0.2:9092")])
    assert found["boot"] == found["coordinator"] != found["alone"]
    assert found["boot"].startswith("component:")
    again = clusters(list(reversed(flows)), [told(flows[0], "10.1.0.2:9092")])
    assert again == found, "the name does not depend on the order of rows"


def test_one_clients_brokers_and_anothers_are_one_cluster_when_they_shard_a_broker() -> None:
    flows = [flow("a", "10.1.0.1:9092"), flow("b", "10.1.0.3:9092", client="10.0.0.2")]
    found = clusters(flows, [told(flows[0], "10.1.0.2:9092"), told(flows[1], "10.1.0.2:9092")])
    assert found["a"] == found["b"]


def test_two_clusters_that_advertise_the_same_name_do_not_mix() -> None:
    flows = [flow("a", "10.1.0.1:9092"), flow("b", "10.2.0.1:9092"), flow("c", "10.1.0.9:9092")]
    brokers = [told(flows[0], "kafka-0:9092", "prod"), told(flows[1], "kafka-0:9092", "staging")]
    found = clusters(flows, brokers)
    assert (found["a"], found["b"]) == ("prod", "staging")
    assert found["c"] not in ("prod", "staging")


def test_mirror_maker_talks_to_two_clusters() -> None:
    maker = "10.0.0.7"
    flows = [
        flow("source", "10.1.0.1:9092", client=maker), flow("target", "10.2.0.1:9093", client=maker),
        flow("source2", "10.1.0.2:9092", client=maker), flow("target2", "10.2.0.2:9093", client=maker),
    ]  # fmt: skip
    brokers = [
        *(told(flows[0], f"src-{n}:9092", "east") for n in range(2)),
        *(told(flows[1], f"dst-{n}:9093", "west") for n in range(2)),
    ]
    found = clusters(flows, brokers)
    assert found == {"source": "east", "target": "west", "source2": "east", "target2": "west"}


def test_a_port_that_two_clusters_told_the_client_decides_nothing() -> None:
    flows = [flow("a", "10.1.0.1:9092"), flow("b", "10.2.0.1:9092"), flow("c", "10.3.0.1:9092")]
    brokers = [told(flows[0], "src:9092", "east"), told(flows[1], "dst:9092", "west")]
    assert clusters(flows, brokers)["c"].startswith("component:")


def test_another_client_was_told_nothing_of_the_port() -> None:
    flows = [flow("a", "10.1.0.1:9092"), flow("b", "10.1.0.2:9092", client="10.0.0.2")]
    assert clusters(flows, [told(flows[0], "kafka-1:9092", "prod")])["b"] != "prod"


def test_a_load_balancer_in_front_of_two_clusters_keeps_them_apart() -> None:
    flows = [flow("a", "10.5.0.1:9092"), flow("b", "10.5.0.1:9092"), flow("c", "10.5.0.1:9092")]
    brokers = [told(flows[0], "10.1.0.1:9092", "east"), told(flows[1], "10.2.0.1:9092", "west")]
    found = clusters([*flows, flow("e", "10.1.0.1:9092"), flow("w", "10.2.0.1:9092")], brokers)
    assert (found["a"], found["b"]) == ("east", "west")
    assert found["c"].startswith("component:")
    assert found["e"] != found["w"]


def test_other_protocols_and_nothing() -> None:
    assert clusters([flow("m", "10.1.0.1:1883", protocol="mqtt")], []) == {}
    assert clusters([], []) == {}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("id1", "payments"), ("id1", "payments"), ("id2", None), (None, "orders")], {"id1": "payments"}),
        ([("id1", "payments"), ("id1", "orders")], {}),
        ([], {}),
    ],
    ids=["known", "two names are damage", "none"],
)
def test_topic_names(rows: list[tuple[str | None, str | None]], expected: dict[str, str]) -> None:
    partitions = [{"topic_id": topic_id, "topic": topic, "partition": 0} for topic_id, topic in rows]
    assert topic_names(arrow_from_rows("kafka_partitions", partitions)) == expected


@pytest.mark.parametrize("most", [1, 1 << 62], ids=["numbers made dense", "numbers that fit"])
def test_different_rows_are_each_there_once(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_NUMBERS", most)
    values = [
        ("a", 1, "x"),
        ("a", 1, None),
        ("a", 1, "x"),
        (None, 1, "x"),
        ("b", 2, "x"),
        ("a", 1, None),
        ("a", 2, "x"),
    ]
    names = ("text", "number", "other")
    rows = [dict(zip(names, one, strict=True)) for one in values]
    table = pa.concat_tables([pa.Table.from_pylist(rows[:4]), pa.Table.from_pylist(rows[4:])])
    coded = table.set_column(0, "text", table["text"].dictionary_encode())
    for some in (table, coded, table.slice(0, 0)):
        found = [*module._different(some, names)]
        assert len(found) == len({*found})
        assert {*found} == {*values[: some.num_rows]}
