"""Messages that kio does not have: versions that Kafka 4.0 removed, and those that came with 4.4.

The Java client of the release named in each case wrote the bytes from the values beside them; here they are grouped
by field here. A line is hex, two spaces, the field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from dissectors.kafka.compile import decoder
from dissectors.kafka.schema import Direction
from tests.oracle.test_kio import with_records


class Case(NamedTuple):
    key: int
    version: int
    direction: Direction
    release: str
    hex: str
    value: dict[str, Any]

    @property
    def body(self) -> bytes:
        return bytes.fromhex("".join(line.strip().split("  ")[0] for line in self.hex.splitlines()))


CASES = [
    Case(
        0,
        0,
        "request",
        "3.9.1",
        """
        ffff  acks
        000005dc  timeout_ms
        00000001  topic_data (count)
        0006 6f7264657273    name
        00000001    partition_data (count)
        00000003      index
        00000005 0001020304      records
        """,
        {
            "acks": -1,
            "timeout_ms": 1500,
            "topic_data": [{"name": "orders", "partition_data": [{"index": 3, "records": b"\x00\x01\x02\x03\x04"}]}],
        },
    ),
    Case(
        0,
        0,
        "response",
        "3.9.1",
        """
        00000001  responses (count)
        0006 6f7264657273    name
        00000001    partition_responses (count)
        00000003      index
        0006      error_code
        00000000000003e8      base_offset
        """,
        {
            "responses": [
                {"name": "orders", "partition_responses": [{"index": 3, "error_code": 6, "base_offset": 1000}]}
            ]
        },
    ),
    Case(
        0,
        1,
        "request",
        "3.9.1",
        """
        ffff  acks
        000005dc  timeout_ms
        00000001  topic_data (count)
        0006 6f7264657273    name
        00000001    partition_data (count)
        00000003      index
        00000005 0001020304      records
        """,
        {
            "acks": -1,
            "timeout_ms": 1500,
            "topic_data": [{"name": "orders", "partition_data": [{"index": 3, "records": b"\x00\x01\x02\x03\x04"}]}],
        },
    ),
    Case(
        0,
        1,
        "response",
        "3.9.1",
        """
        00000001  responses (count)
        0006 6f7264657273    name
        00000001    partition_responses (count)
        00000003      index
        0006      error_code
        00000000000003e8      base_offset
        0000000c  throttle_time_ms
        """,
        {
            "responses": [
                {"name": "orders", "partition_responses": [{"index": 3, "error_code": 6, "base_offset": 1000}]}
            ],
            "throttle_time_ms": 12,
        },
    ),
    Case(
        0,
        2,
        "request",
        "3.9.1",
        """
        ffff  acks
        000005dc  timeout_ms
        00000001  topic_data (count)
        0006 6f7264657273    name
        00000001    partition_data (count)
        00000003      index
        00000005 0001020304      records
        """,
        {
            "acks": -1,
            "timeout_ms": 1500,
            "topic_data": [{"name": "orders", "partition_data": [{"index": 3, "records": b"\x00\x01\x02\x03\x04"}]}],
        },
    ),
    Case(
        0,
        2,
        "response",
        "3.9.1",
        """
        00000001  responses (count)
        0006 6f7264657273    name
        00000001    partition_responses (count)
        00000003      index
        0006      error_code
        00000000000003e8      base_offset
        0000018bcfe56800      log_append_time_ms
        0000000c  throttle_time_ms
        """,
        {
            "responses": [
                {
                    "name": "orders",
                    "partition_responses": [
                        {"index": 3, "error_code": 6, "base_offset": 1000, "log_append_time_ms": 1700000000000}
                    ],
                }
            ],
            "throttle_time_ms": 12,
        },
    ),
    Case(
        1,
        0,
        "request",
        "3.9.1",
        """
        ffffffff  replica_id
        000001f4  max_wait_ms
        00000001  min_bytes
        00000001  topics (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition
        00000000000003e8      fetch_offset
        00100000      partition_max_bytes
        """,
        {
            "replica_id": -1,
            "max_wait_ms": 500,
            "min_bytes": 1,
            "topics": [
                {
                    "topic": "orders",
                    "partitions": [{"partition": 3, "fetch_offset": 1000, "partition_max_bytes": 1048576}],
                }
            ],
        },
    ),
    Case(
        1,
        0,
        "response",
        "3.9.1",
        """
        00000001  responses (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition_index
        0006      error_code
        00000000000004b0      high_watermark
        00000005 0001020304      records
        """,
        {
            "responses": [
                {
                    "topic": "orders",
                    "partitions": [
                        {
                            "partition_index": 3,
                            "error_code": 6,
                            "high_watermark": 1200,
                            "records": b"\x00\x01\x02\x03\x04",
                        }
                    ],
                }
            ]
        },
    ),
    Case(
        1,
        1,
        "request",
        "3.9.1",
        """
        ffffffff  replica_id
        000001f4  max_wait_ms
        00000001  min_bytes
        00000001  topics (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition
        00000000000003e8      fetch_offset
        00100000      partition_max_bytes
        """,
        {
            "replica_id": -1,
            "max_wait_ms": 500,
            "min_bytes": 1,
            "topics": [
                {
                    "topic": "orders",
                    "partitions": [{"partition": 3, "fetch_offset": 1000, "partition_max_bytes": 1048576}],
                }
            ],
        },
    ),
    Case(
        1,
        1,
        "response",
        "3.9.1",
        """
        0000000c  throttle_time_ms
        00000001  responses (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition_index
        0006      error_code
        00000000000004b0      high_watermark
        00000005 0001020304      records
        """,
        {
            "throttle_time_ms": 12,
            "responses": [
                {
                    "topic": "orders",
                    "partitions": [
                        {
                            "partition_index": 3,
                            "error_code": 6,
                            "high_watermark": 1200,
                            "records": b"\x00\x01\x02\x03\x04",
                        }
                    ],
                }
            ],
        },
    ),
    Case(
        1,
        2,
        "request",
        "3.9.1",
        """
        ffffffff  replica_id
        000001f4  max_wait_ms
        00000001  min_bytes
        00000001  topics (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition
        00000000000003e8      fetch_offset
        00100000      partition_max_bytes
        """,
        {
            "replica_id": -1,
            "max_wait_ms": 500,
            "min_bytes": 1,
            "topics": [
                {
                    "topic": "orders",
                    "partitions": [{"partition": 3, "fetch_offset": 1000, "partition_max_bytes": 1048576}],
                }
            ],
        },
    ),
    Case(
        1,
        2,
        "response",
        "3.9.1",
        """
        0000000c  throttle_time_ms
        00000001  responses (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition_index
        0006      error_code
        00000000000004b0      high_watermark
        00000005 0001020304      records
        """,
        {
            "throttle_time_ms": 12,
            "responses": [
                {
                    "topic": "orders",
                    "partitions": [
                        {
                            "partition_index": 3,
                            "error_code": 6,
                            "high_watermark": 1200,
                            "records": b"\x00\x01\x02\x03\x04",
                        }
                    ],
                }
            ],
        },
    ),
    Case(
        1,
        3,
        "request",
        "3.9.1",
        """
        ffffffff  replica_id
        000001f4  max_wait_ms
        00000001  min_bytes
        03200000  max_bytes
        00000001  topics (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition
        00000000000003e8      fetch_offset
        00100000      partition_max_bytes
        """,
        {
            "replica_id": -1,
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 52428800,
            "topics": [
                {
                    "topic": "orders",
                    "partitions": [{"partition": 3, "fetch_offset": 1000, "partition_max_bytes": 1048576}],
                }
            ],
        },
    ),
    Case(
        1,
        3,
        "response",
        "3.9.1",
        """
        0000000c  throttle_time_ms
        00000001  responses (count)
        0006 6f7264657273    topic
        00000001    partitions (count)
        00000003      partition_index
        0006      error_code
        00000000000004b0      high_watermark
        00000005 0001020304      records
        """,
        {
            "throttle_time_ms": 12,
            "responses": [
                {
                    "topic": "orders",
                    "partitions": [
                        {
                            "partition_index": 3,
                            "error_code": 6,
                            "high_watermark": 1200,
                            "records": b"\x00\x01\x02\x03\x04",
                        }
                    ],
                }
            ],
        },
    ),
    Case(
        2,
        0,
        "request",
        "3.9.1",
        """
        ffffffff  replica_id
        00000001  topics (count)
        0006 6f7264657273    name
        00000001    partitions (count)
        00000003      partition_index
        fffffffffffffffe      timestamp
        00000002      max_num_offsets
        """,
        {
            "replica_id": -1,
            "topics": [
                {"name": "orders", "partitions": [{"partition_index": 3, "timestamp": -2, "max_num_offsets": 2}]}
            ],
        },
    ),
    Case(
        2,
        0,
        "response",
        "3.9.1",
        """
        00000001  topics (count)
        0006 6f7264657273    name
        00000001    partitions (count)
        00000003      partition_index
        0006      error_code
        00000002      old_style_offsets (count)
        00000000000004b0        [0]
        0000000000000000        [1]
        """,
        {
            "topics": [
                {
                    "name": "orders",
                    "partitions": [{"partition_index": 3, "error_code": 6, "old_style_offsets": [1200, 0]}],
                }
            ]
        },
    ),
    Case(
        8,
        0,
        "request",
        "3.9.1",
        """
        0007 62696c6c696e67  group_id
        00000001  topics (count)
        0006 6f7264657273    name
        00000001    partitions (count)
        00000003      partition_index
        00000000000003de      committed_offset
        0004 6e6f7465      committed_metadata
        """,
        {
            "group_id": "billing",
            "topics": [
                {
                    "name": "orders",
                    "partitions": [{"partition_index": 3, "committed_offset": 990, "committed_metadata": "note"}],
                }
            ],
        },
    ),
    Case(
        8,
        0,
        "response",
        "3.9.1",
        """
        00000001  topics (count)
        0006 6f7264657273    name
        00000001    partitions (count)
        00000003      partition_index
        0006      error_code
        """,
        {"topics": [{"name": "orders", "partitions": [{"partition_index": 3, "error_code": 6}]}]},
    ),
    Case(
        8,
        1,
        "request",
        "3.9.1",
        """
        0007 62696c6c696e67  group_id
        00000007  generation_id_or_member_epoch
        0003 6d2d31  member_id
        00000001  topics (count)
        0006 6f7264657273    name
        00000001    partitions (count)
        00000003      partition_index
        00000000000003de      committed_offset
        0000018bcfe56801      commit_timestamp
        0004 6e6f7465      committed_metadata
        """,
        {
            "group_id": "billing",
            "generation_id_or_member_epoch": 7,
            "member_id": "m-1",
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {
                            "partition_index": 3,
                            "committed_offset": 990,
                            "commit_timestamp": 1700000000001,
                            "committed_metadata": "note",
                        }
                    ],
                }
            ],
        },
    ),
    Case(
        8,
        1,
        "response",
        "3.9.1",
        """
        00000001  topics (count)
        0006 6f7264657273    name
        00000001    partitions (count)
        00000003      partition_index
        0006      error_code
        """,
        {"topics": [{"name": "orders", "partitions": [{"partition_index": 3, "error_code": 6}]}]},
    ),
    Case(
        9,
        0,
        "request",
        "3.9.1",
        """
        0007 62696c6c696e67  group_id
        00000001  topics (count)
        0006 6f7264657273    name
        00000002    partition_indexes (count)
        00000003      [0]
        00000004      [1]
        """,
        {"group_id": "billing", "topics": [{"name": "orders", "partition_indexes": [3, 4]}]},
    ),
    Case(
        9,
        0,
        "response",
        "3.9.1",
        """
        00000001  topics (count)
        0006 6f7264657273    name
        00000001    partitions (count)
        00000003      partition_index
        00000000000003de      committed_offset
        0004 6e6f7465      metadata
        0006      error_code
        """,
        {
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {"partition_index": 3, "committed_offset": 990, "metadata": "note", "error_code": 6}
                    ],
                }
            ]
        },
    ),
    Case(
        18,
        5,
        "request",
        "4.4.0",
        """
        0b 6c696272646b61666b61  client_software_name
        06 322e352e30  client_software_version
        04 632d31  cluster_id
        00000004  node_id
        00  tagged fields
        """,
        {"client_software_name": "librdkafka", "client_software_version": "2.5.0", "cluster_id": "c-1", "node_id": 4},
    ),
    Case(
        18,
        5,
        "response",
        "4.4.0",
        """
        0006  error_code
        02  api_keys (count)
        0012    api_key
        0000    min_version
        0005    max_version
        00    tagged fields
        0000000c  throttle_time_ms
        04  tagged fields
        00 0d 02  supported_features
        07 6f7264657273    name
        0000    min_version
        0005    max_version
        00    tagged fields
        01 08 0000000000000005  finalized_features_epoch
        02 0d 02  finalized_features
        07 6f7264657273    name
        0003    max_version_level
        0001    min_version_level
        00    tagged fields
        03 01 01  zk_migration_ready
        """,
        {
            "error_code": 6,
            "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 5}],
            "throttle_time_ms": 12,
            "supported_features": [{"name": "orders", "min_version": 0, "max_version": 5}],
            "finalized_features_epoch": 5,
            "finalized_features": [{"name": "orders", "max_version_level": 3, "min_version_level": 1}],
            "zk_migration_ready": True,
        },
    ),
    Case(
        28,
        6,
        "request",
        "4.4.0",
        """
        05 74782d31  transactional_id
        08 62696c6c696e67  group_id
        000000000000004d  producer_id
        0002  producer_epoch
        00000007  generation_id_or_member_epoch
        04 6d2d31  member_id
        05 696e7374  group_instance_id
        02  topics (count)
        0102030405060708090a0b0c0d0e0f10    topic_id
        02    partitions (count)
        00000003      partition_index
        00000000000003de      committed_offset
        00000009      committed_leader_epoch
        05 6e6f7465      committed_metadata
        00      tagged fields
        00    tagged fields
        00  tagged fields
        """,
        {
            "transactional_id": "tx-1",
            "group_id": "billing",
            "producer_id": 77,
            "producer_epoch": 2,
            "generation_id_or_member_epoch": 7,
            "member_id": "m-1",
            "group_instance_id": "inst",
            "topics": [
                {
                    "topic_id": b"\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10",
                    "partitions": [
                        {
                            "partition_index": 3,
                            "committed_offset": 990,
                            "committed_leader_epoch": 9,
                            "committed_metadata": "note",
                        }
                    ],
                }
            ],
        },
    ),
    Case(
        28,
        6,
        "response",
        "4.4.0",
        """
        0000000c  throttle_time_ms
        02  topics (count)
        0102030405060708090a0b0c0d0e0f10    topic_id
        02    partitions (count)
        00000003      partition_index
        0006      error_code
        00      tagged fields
        00    tagged fields
        00  tagged fields
        """,
        {
            "throttle_time_ms": 12,
            "topics": [
                {
                    "topic_id": b"\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10",
                    "partitions": [{"partition_index": 3, "error_code": 6}],
                }
            ],
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key}-v{case.version}-{case.direction}")
def test_decodes_what_the_java_client_encodes(case: Case) -> None:
    decode = decoder(case.key, case.version, case.direction)
    assert decode is not None
    buf = b"\x01" + case.body + b"\xff" * 100
    value, behind = decode(buf, 1, 1 + len(case.body))
    assert with_records(value, buf) == case.value
    assert behind == 1 + len(case.body)
