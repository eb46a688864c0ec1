"""Admin requests and their answers as changes: what was to change, of what, with which result."""

from __future__ import annotations

from typing import Any

import pytest

from wirewitness.dissectors.core.secrets import is_secret_name as is_secret
from wirewitness.dissectors.kafka.rows.admin_rows import CHANGES
from wirewitness.dissectors.kafka.schema import harmless_settings
from wirewitness.dissectors.kafka.schema.primitives import NO_TOPIC_ID
from wirewitness.dissectors.kafka.schema.secret_settings import shown

ID = bytes(range(16))
ACL = {"resource_type": 2, "resource_name": "orders", "principal": "User:bob", "host": "*", "operation": 4}
ANY_ACL = {"resource_type_filter": 1, "resource_name_filter": None, "principal_filter": None, "host_filter": None}
TOKEN = {"error_code": 0, "principal_type": "User", "principal_name": "bob", "token_id": "t-1", "hmac": b"***"}

CASES = [
    pytest.param(
        19,
        {
            "topics": [
                {
                    "name": "orders",
                    "num_partitions": 6,
                    "replication_factor": 3,
                    "assignments": [],
                    "configs": [{"name": "cleanup.policy", "value": "compact"}],
                },
                {
                    "name": "bills",
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [{"partition_index": 0, "broker_ids": [1, 2]}],
                    "configs": [],
                },
            ]
        },
        {
            "topics": [
                {"name": "orders", "error_code": 36, "error_message": "there"},
                {"name": "bills", "error_code": 0},
            ]
        },
        [
            ("topic", "orders", "create partitions=6 replication_factor=3 cleanup.policy=compact", 36, "there"),
            ("topic", "bills", "create replicas[0]=1,2", 0, None),
        ],
        id="CreateTopics",
    ),
    pytest.param(
        20,
        {"topic_names": ["orders"]},
        {"responses": [{"name": "orders", "error_code": 41}]},
        [("topic", "orders", "delete", 41, None)],
        id="DeleteTopics by name",
    ),
    pytest.param(
        20,
        {"topics": [{"name": None, "topic_id": ID}, {"name": "bills", "topic_id": NO_TOPIC_ID}]},
        {
            "responses": [
                {"name": "orders", "topic_id": ID, "error_code": 0, "error_message": None},
                {"name": "bills", "topic_id": NO_TOPIC_ID, "error_code": 3, "error_message": "no"},
            ]
        },
        [
            ("topic", "orders", "delete topic_id=AAECAwQFBgcICQoLDA0ODw", 0, None),
            ("topic", "bills", "delete", 3, "no"),
        ],
        id="DeleteTopics by id",
    ),
    pytest.param(
        21,
        {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, "offset": 500}]}]},
        {"topics": [{"name": "orders", "partitions": [{"partition_index": 0, "error_code": 0}]}]},
        [("topic", "orders", "delete records 0<500", 0, None)],
        id="DeleteRecords",
    ),
    pytest.param(
        37,
        {"topics": [{"name": "orders", "count": 12, "assignments": None}]},
        {"results": [{"name": "orders", "error_code": 37, "error_message": "fewer"}]},
        [("topic", "orders", "partitions=12", 37, "fewer")],
        id="CreatePartitions",
    ),
    pytest.param(
        43,
        {"election_type": 1, "topic_partitions": [{"topic": "orders", "partitions": [0, 2]}]},
        {
            "error_code": 0,
            "replica_election_results": [
                {"topic": "orders", "partition_result": [{"error_code": 0}, {"error_code": 84, "error_message": "no"}]}
            ],
        },
        [("topic", "orders", "elect unclean leaders of 0,2", 84, "no")],
        id="ElectLeaders",
    ),
    pytest.param(
        43,
        {"topic_partitions": None},
        None,
        [("cluster", None, "elect preferred leaders of all partitions", None, None)],
        id="ElectLeaders of all, unanswered",
    ),
    pytest.param(
        45,
        {
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {"partition_index": 0, "replicas": [1, 2]},
                        {"partition_index": 1, "replicas": None},
                    ],
                }
            ]
        },
        {"error_code": 0, "error_message": None, "responses": []},
        [("topic", "orders", "replicas 0:[1,2] 1:cancel", 0, None)],
        id="AlterPartitionReassignments",
    ),
    pytest.param(
        34,
        {"dirs": [{"path": "/d2", "topics": [{"name": "orders", "partitions": [1]}]}]},
        {"results": [{"topic_name": "orders", "partitions": [{"partition_index": 1, "error_code": 57}]}]},
        [("topic", "orders", "move partitions 1 to /d2", 57, None)],
        id="AlterReplicaLogDirs",
    ),
    pytest.param(
        44,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": "orders",
                    "configs": [
                        {"name": "retention.ms", "config_operation": 0, "value": "60000"},
                        {"name": "cleanup.policy", "config_operation": 1, "value": None},
                    ],
                },
                {
                    "resource_type": 4,
                    "resource_name": "1",
                    "configs": [
                        {"name": "listener.name.x.ssl.key.password", "config_operation": 0, "value": "hunter2"}
                    ],
                },
            ]
        },
        {"responses": [{"resource_type": 4, "resource_name": "1", "error_code": 29, "error_message": "denied"}]},
        [
            ("topic", "orders", "set retention.ms=60000, delete cleanup.policy", None, None),
            ("broker", "1", "set listener.name.x.ssl.key.password=***", 29, "denied"),
        ],
        id="IncrementalAlterConfigs",
    ),
    pytest.param(
        33,
        {"resources": [{"resource_type": 2, "resource_name": "orders", "configs": []}]},
        {"responses": [{"resource_type": 2, "resource_name": "orders", "error_code": 0, "error_message": None}]},
        [("topic", "orders", "replace by none", 0, None)],
        id="AlterConfigs",
    ),
    pytest.param(
        30,
        {"creations": [{**ACL, "resource_pattern_type": 4, "permission_type": 3}, {**ACL, "permission_type": 2}]},
        {"results": [{"error_code": 0, "error_message": None}]},
        [
            ("topic", "orders", "add ALLOW WRITE for User:bob from * (PREFIXED)", 0, None),
            ("topic", "orders", "add DENY WRITE for User:bob from * (LITERAL)", None, None),
        ],
        id="CreateAcls",
    ),
    pytest.param(
        31,
        {"filters": [{**ANY_ACL, "operation": 1, "permission_type": 99}]},
        {"filter_results": [{"error_code": 0, "error_message": None, "matching_acls": [{}, {}]}]},
        [("any", None, "remove 99 ANY for anybody from anywhere (LITERAL), 2 matched", 0, None)],
        id="DeleteAcls",
    ),
    pytest.param(
        51,
        {
            "deletions": [{"name": "old", "mechanism": 1}],
            "upsertions": [
                {"name": "bob", "mechanism": 2, "iterations": 8192, "salt": b"***", "salted_password": b"***"}
            ],
        },
        {"results": [{"user": "old", "error_code": 91, "error_message": "?"}, {"user": "bob", "error_code": 0}]},
        [
            ("user", "old", "remove SCRAM-SHA-256", 91, "?"),
            ("user", "bob", "set SCRAM-SHA-512 iterations=8192", 0, None),
        ],
        id="AlterUserScramCredentials",
    ),
    pytest.param(
        49,
        {
            "entries": [
                {
                    "entity": [
                        {"entity_type": "user", "entity_name": "bob"},
                        {"entity_type": "client-id", "entity_name": None},
                    ],
                    "ops": [
                        {"key": "producer_byte_rate", "value": 1048576.0, "remove": False},
                        {"key": "request_percentage", "value": 0.0, "remove": True},
                    ],
                }
            ]
        },
        {
            "entries": [
                {
                    "error_code": 0,
                    "error_message": None,
                    "entity": [
                        {"entity_type": "client-id", "entity_name": None},
                        {"entity_type": "user", "entity_name": "bob"},
                    ],
                }
            ]
        },
        [
            (
                "quota",
                "client-id=<default>,user=bob",
                "set producer_byte_rate=1048576, remove request_percentage",
                0,
                None,
            )
        ],
        id="AlterClientQuotas",
    ),
    pytest.param(
        38,
        {"renewers": [{"principal_type": "User", "principal_name": "eve"}], "max_lifetime_ms": 1000},
        TOKEN,
        [("delegation_token", "t-1", "create owner=User:bob renewers=User:eve max_lifetime_ms=1000", 0, None)],
        id="CreateDelegationToken",
    ),
    pytest.param(
        39,
        {"hmac": b"***", "renew_period_ms": 5},
        {"error_code": 62},
        [("delegation_token", None, "renew renew_period_ms=5", 62, None)],
        id="RenewDelegationToken",
    ),
    pytest.param(
        40,
        {"hmac": b"***", "expiry_time_period_ms": -1},
        None,
        [("delegation_token", None, "expire expiry_time_period_ms=-1", None, None)],
        id="ExpireDelegationToken",
    ),
    pytest.param(
        42,
        {"groups_names": ["billing", "ledger"]},
        {"results": [{"group_id": "ledger", "error_code": 68}, {"group_id": "billing", "error_code": 0}]},
        [("group", "billing", "delete", 0, None), ("group", "ledger", "delete", 68, None)],
        id="DeleteGroups",
    ),
    pytest.param(
        47,
        {"group_id": "billing", "topics": [{"name": "orders", "partitions": [{"partition_index": 4}]}]},
        {"error_code": 86, "topics": []},
        [("group", "billing", "delete offsets of orders 4", 86, None)],
        id="OffsetDelete",
    ),
    pytest.param(
        91,
        {
            "group_id": "share",
            "topics": [{"topic_name": "orders", "partitions": [{"partition_index": 0, "start_offset": 7}]}],
        },
        {
            "error_code": 0,
            "error_message": None,
            "responses": [{"topic_name": "orders", "partitions": [{"error_code": 3, "error_message": "no"}]}],
        },
        [("group", "share", "start offsets of orders 0:7", 3, "no")],
        id="AlterShareGroupOffsets",
    ),
    pytest.param(
        92,
        {"group_id": "share", "topics": [{"topic_name": "orders"}]},
        {"error_code": 0, "error_message": None, "responses": []},
        [("group", "share", "delete start offsets of orders", 0, None)],
        id="DeleteShareGroupOffsets",
    ),
    pytest.param(
        57,
        {"feature_updates": [{"feature": "kraft.version", "max_version_level": 1, "upgrade_type": 1}]},
        {"error_code": 0, "error_message": None},
        [("feature", "kraft.version", "max_version_level=1 (upgrade)", 0, None)],
        id="UpdateFeatures",
    ),
    pytest.param(
        64,
        {"broker_id": 3},
        {"error_code": 102, "error_message": "?"},
        [("broker", "3", "unregister", 102, "?")],
        id="UnregisterBroker",
    ),
    pytest.param(
        94, {"controller_id": 3}, None, [("controller", "3", "unregister", None, None)], id="UnregisterController"
    ),
    pytest.param(
        80,
        {"voter_id": 4, "listeners": [{"name": "CONTROLLER", "host": "c4", "port": 9093}]},
        {"error_code": 0, "error_message": None},
        [("raft_voter", "4", "add CONTROLLER://c4:9093", 0, None)],
        id="AddRaftVoter",
    ),
    pytest.param(81, {"voter_id": 4}, None, [("raft_voter", "4", "remove", None, None)], id="RemoveRaftVoter"),
]


@pytest.mark.parametrize(("key", "asked", "answer", "expected"), CASES)
def test_changes(key: int, asked: dict[str, Any], answer: dict[str, Any] | None, expected: list[Any]) -> None:
    assert [tuple(change) for change in CHANGES[key](asked, answer)] == expected


def test_every_api_has_a_case() -> None:
    assert {case.values[0] for case in CASES} == set(CHANGES)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("retention.ms", False),
        ("min.insync.replicas", False),
        ("ssl.keystore.type", False),
        ("ssl.keystore.location", False),
        ("ssl.keystore.key", True),
        ("ssl.keystore.password", True),
        ("ssl.keystore.certificate.chain", True),
        ("ssl.truststore.certificates", True),
        ("sasl.jaas.config", True),
        ("listener.name.internal.scram-sha-512.sasl.jaas.config", True),
        ("delegation.token.secret.key", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("confluent.apiKey", True),
        ("access_token", True),
        ("PASSWORD", True),
        ("listener.name.internal.ssl.keystore.type", False),
        ("producer.override.linger.ms", False),
        ("message.format.version", False),
    ],
)
def test_secret_settings(name: str, secret: bool) -> None:
    assert is_secret(name) is secret
    assert shown(name, "value") == ("***" if secret else "value")


@pytest.mark.parametrize(
    "name", ["x", "connection.url", "retention.msx", "producer.x", "listener.name.a.x", "", "kinit.cmd"]
)
def test_settings_that_nobody_knows(name: str) -> None:
    """Whatever their names say, for people write passwords into any of them."""
    assert not is_secret(name)
    assert shown(name, "value") == "***"
    assert shown(name, "DEBUG") == "DEBUG"  # the level of a logger, which is called after its class


def test_what_is_documented_as_a_password_is_not_harmless() -> None:
    assert [name for name in harmless_settings._NAMES if name.endswith((".password", "jaas.config", ".secret"))] == []
    assert len(harmless_settings._NAMES) > 600


def test_a_password_in_a_url_is_masked() -> None:
    url = "sasl.oauthbearer.token.endpoint.url"
    assert shown(url, "https://bob:hunter2@sr:8081/a") == "https://bob:***@sr:8081/a"
    assert shown("retention.ms", None) == "null"
