"""Small captures that other projects published: what their bytes say, read by hand, against our tables.

They are not part of this project and lie beside it; where they are missing the tests are skipped.
"""

from __future__ import annotations

from typing import Any

import pytest

import wirewitness
from tests.conftest import shared_capture
from tests.support.recorder import record
from tests.support.shares import every, share

TABLES = ("flows", "messages", "exchanges", "expert_infos", "kafka_group_events", "kafka_produce_batches")
MEMBER = "consumer-zzzz12-1-a8623cc8-5472-4736-812e-d9817d27dfca"

# Each as the exchanges table has it; all are answered without error.
EXCHANGES: dict[str, dict[str, Any]] = {
    # 00000031 0012 0003 00000002 000d "adminclient-1"; the response is 0x1b3 long with header 0
    "kafka_api_versions_v3.pcap": {
        "operation": "ApiVersions",
        "version": "3",
        "client_id": "adminclient-1",
        "client_address": "172.16.0.103",
        "client_port": 32906,
        "server_address": "172.16.0.105",
        "server_port": 9092,
        "request_packet": 1,
        "response_packet": 2,
        "latency_ms": 4.941,
        "request_bytes": 0x31 + 4,
        "response_bytes": 0x1B3 + 4,
    },
    # 0000005e 000d 0004 000000c9 0011 "consumer-zzzz12-1"; client and server have the same address
    "kafka_leave_group_v4.pcap": {
        "operation": "LeaveGroup",
        "version": "4",
        "client_id": "consumer-zzzz12-1",
        "client_address": "10.50.71.3",
        "client_port": 54280,
        "server_address": "10.50.71.3",
        "server_port": 36333,
        "request_packet": 1,
        "response_packet": 2,
        "latency_ms": 2.739,
        "request_bytes": 0x5E + 4,
        "response_bytes": 0x48 + 4,
    },
    # 00000134 0000 0007 00000001 0017 "kafka-python-producer-1"; a whole connection of nine packets
    "kafka_produce_v7_sw8.pcap": {
        "operation": "Produce",
        "version": "7",
        "client_id": "kafka-python-producer-1",
        "client_address": "10.32.10.221",
        "client_port": 54618,
        "server_address": "10.50.71.3",
        "server_port": 36333,
        "request_packet": 4,
        "response_packet": 6,
        "latency_ms": 28.415,
        "request_bytes": 0x134 + 4,
        "response_bytes": 0x41 + 4,
    },
}

# Highest versions for keys 0 to 51, then the keys above that the broker names, all with versions 0 to 0.
# fmt: off
HIGHEST = (
    9, 12, 7, 11, 5, 3, 7, 3, 8, 8, 4, 7, 4, 4, 5, 5, 4, 1, 3, 7, 6, 2, 4, 4, 3, 3,
    3, 1, 3, 2, 2, 2, 4, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 1, 0, 0, 0, 1, 1, 0, 0,
)
# fmt: on
SINGLE = (56, 57, 60, 61, 65, 66, 67)

# request and response bodies, whole
BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "kafka_api_versions_v3.pcap": (
        {"client_software_name": "apache-kafka-java", "client_software_version": "3.0.0"},
        {
            "error_code": 0,
            "api_keys": [
                {"api_key": key, "min_version": 0, "max_version": highest}
                for key, highest in (*enumerate(HIGHEST), *((key, 0) for key in SINGLE))
            ],
            "throttle_time_ms": 0,
            "supported_features": None,
            "finalized_features_epoch": 0,  # the one tagged field: 01 01 08 0000000000000000
            "finalized_features": None,
            "zk_migration_ready": None,
        },
    ),
    "kafka_leave_group_v4.pcap": (
        {"group_id": "zzzz12", "members": [{"member_id": MEMBER, "group_instance_id": None}]},
        {
            "throttle_time_ms": 0,
            "error_code": 0,
            "members": [{"member_id": MEMBER, "group_instance_id": None, "error_code": 0}],
        },
    ),
    "kafka_produce_v7_sw8.pcap": (
        {
            "transactional_id": None,
            "acks": 1,
            "timeout_ms": 30000,
            # the records begin at byte 80 of the frame and are 0xe8 long
            "topic_data": [{"name": "quickstart-events", "partition_data": [{"index": 0, "records": (80, 0xE8)}]}],
        },
        {
            "responses": [
                {
                    "name": "quickstart-events",
                    "partition_responses": [
                        {
                            "index": 0,
                            "error_code": 0,
                            "base_offset": 7,
                            "log_append_time_ms": -1,
                            "log_start_offset": 0,
                        }
                    ],
                }
            ],
            "throttle_time_ms": 0,
        },
    ),
}

NOT_KAFKA = (
    "mongo_legacy_duplicate_key_sll.pcap",
    "mongo_legacy_find.pcap",
    "mongo_op_msg_port_3717.pcap",
    "mongo_vlan_requests_only.pcap",
    "mqtt311_invalid_qos.pcap",
    "mqtt31_midstream.pcap",
    "mqtt31_unsub_qos1.pcap",
    "mqtt5_pub_qos2_ipv6.pcap",
    "mqtt_one_packet_multi_publish.pcap",
    "mqtt_roundtrip.pcap",
)


def read_tables(name: str) -> dict[str, list[dict[str, Any]]]:
    with wirewitness.read(shared_capture(name), tables=TABLES) as analysis:
        return {table: analysis.arrow(table).to_pylist() for table in TABLES}


@pytest.mark.parametrize("name", EXCHANGES)
def test_exchange(name: str) -> None:
    tables = read_tables(name)
    [row] = tables["exchanges"]
    expected = {**EXCHANGES[name], "protocol": "kafka", "status": "ok", "error_code": 0, "error_name": "NONE"}
    assert {column: row[column] for column in expected} == expected
    assert [message["role"] for message in tables["messages"]] == ["request", "response"]
    assert all(message["complete"] and message["error"] is None for message in tables["messages"])
    assert tables["expert_infos"] == []


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    [exchange] = record([shared_capture(name)]).exchanges
    assert (exchange.request, exchange.response) == BODIES[name]


@pytest.mark.parametrize(
    ("name", "identifier"), [("api_versions_v3", 2), ("leave_group_v4", 0xC9), ("produce_v7_sw8", 1)]
)
def test_correlation_id(name: str, identifier: int) -> None:
    messages = read_tables(f"kafka_{name}.pcap")["messages"]
    assert [message["correlation_id"] for message in messages] == [identifier, identifier]


def test_leave_group_is_an_event() -> None:
    [event] = read_tables("kafka_leave_group_v4.pcap")["kafka_group_events"]
    named = (event["event"], event["group_id"], event["member_id"], event["error_code"])
    assert named == ("leave", "zzzz12", MEMBER, 0)


def test_produce_is_a_batch() -> None:
    """One batch of 0xdc + 12 bytes with one record, neither compressed nor idempotent, stored at offset 7."""
    tables = read_tables("kafka_produce_v7_sw8.pcap")
    [batch] = tables["kafka_produce_batches"]
    expected = {
        "topic": "quickstart-events",
        "partition": 0,
        "base_offset": 7,
        "records_count": 1,
        "codec": "none",
        "batch_bytes": 0xDC + 12,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "acks": 1,
        "transactional": False,
        "error_code": 0,
    }
    assert {column: batch[column] for column in expected} == expected
    [flow] = tables["flows"]
    seen = (
        flow["packets"],
        flow["handshake_seen"],
        flow["closed_by"],
        flow["bytes_to_server"],
        flow["bytes_to_client"],
    )
    assert seen == (9, True, "client", 312, 69)


@pytest.mark.parametrize("name", EXCHANGES)
def test_known_by_its_bytes_on_any_port(name: str) -> None:
    [flow] = read_tables(name)["flows"]
    assert (flow["protocol"], flow["identified_by"]) == ("kafka", "content")


@pytest.mark.parametrize("name", NOT_KAFKA)
def test_other_protocols_are_not_kafka(name: str) -> None:
    tables = read_tables(name)
    assert tables["flows"]
    assert {flow["protocol"] for flow in tables["flows"]} & {"kafka"} == set()
    assert [row for row in tables["messages"] + tables["exchanges"] if row["protocol"] == "kafka"] == []


@pytest.mark.parametrize("name", NOT_KAFKA)
def test_forced_to_be_kafka_they_do_no_harm(name: str) -> None:
    """Whoever decodes another protocol as Kafka gets remarks, not a failure, and no decoded message."""
    ports = {1883, 3717, 27017, 27018, 30000}
    options = wirewitness.ReadOptions(decode_as=dict.fromkeys(ports, "kafka"))
    with wirewitness.read(shared_capture(name), options=options, tables=TABLES) as analysis:
        flows = analysis.arrow("flows").to_pylist()
        messages = analysis.arrow("messages").to_pylist()
    assert {flow["protocol"] for flow in flows if flow["bytes_to_server"] + flow["bytes_to_client"]} == {"kafka"}
    assert [message for message in messages if message["complete"] and message["error"] is None] == []


@pytest.mark.parametrize("name", share([*EXCHANGES, *NOT_KAFKA], every(3, [*EXCHANGES, *NOT_KAFKA])))
def test_every_table_can_be_made(name: str) -> None:
    """None raises; and three exchanges without error, or none at all, are no reason for a warning."""
    with wirewitness.read(shared_capture(name)) as analysis:
        rows = {table: analysis.arrow(table).num_rows for table in analysis.tables()}
        found = analysis.arrow("findings").to_pylist()
    assert rows["flows"] >= rows["captures"] == 1
    assert [finding["sentence"] for finding in found if finding["code"].startswith("KAF")] == []
