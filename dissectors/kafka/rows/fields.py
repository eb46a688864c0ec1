"""The rows that the Kafka conversation makes: the names of their fields, in the order of the tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

from dissectors.core.remarks import Remark
from dissectors.kafka.schema.primitives import Value

_EXCHANGE = ("request_offset", "response_offset", "ts", "ts_response")

KAFKA_ROWS: dict[str, tuple[str, ...]] = {
    "kafka_offset_commits": (
        *_EXCHANGE,
        "request_packet",
        "response_packet",
        "api",
        "group_id",
        "member_id",
        "group_instance_id",
        "generation",
        "client_id",
        "topic",
        "topic_id",
        "partition",
        "committed_offset",
        "leader_epoch",
        "metadata",
        "producer_id",
        "producer_epoch",
        "error_code",
    ),
    "kafka_offset_fetches": (
        *_EXCHANGE,
        "group_id",
        "member_id",
        "member_epoch",
        "client_id",
        "topic",
        "topic_id",
        "partition",
        "committed_offset",
        "leader_epoch",
        "metadata",
        "error_code",
    ),
    "kafka_fetch_partitions": (
        *_EXCHANGE,
        "request_packet",
        "response_packet",
        "client_id",
        "replica_id",
        "topic",
        "topic_id",
        "partition",
        "fetch_offset",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "records_bytes",
        "records_count",
        "next_offset",
        "crc_ok",
        "error_code",
    ),
    "kafka_produce_batches": (
        *_EXCHANGE,
        "request_packet",
        "response_packet",
        "client_id",
        "topic",
        "topic_id",
        "partition",
        "base_offset",
        "records_count",
        "codec",
        "batch_bytes",
        "uncompressed_bytes",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "acks",
        "transactional",
        "crc_ok",
        "error_code",
    ),
    # One row for a batch, see analyser/rows/record_arrays.py. data: its records, one behind the other; records: where
    # they are, if they were read already. base_offset: of the first record in the log; first_offset: its name in the
    # batch.
    "kafka_records": (
        *_EXCHANGE,
        "client_id",
        "api",
        "topic",
        "topic_id",
        "partition",
        "timestamp_type",
        "codec",
        "producer_id",
        "producer_epoch",
        "transactional",
        "control",
        "crc_ok",
        "error",
        "data",
        "records_count",
        "records",
        "base_offset",
        "first_offset",
        "base_timestamp_ms",
        "fixed_timestamp_ms",
        "base_sequence",
        "payload",
    ),
    "kafka_group_events": (
        *_EXCHANGE,
        "group_id",
        "event",
        "member_id",
        "group_instance_id",
        "client_id",
        "generation",
        "protocol_type",
        "protocol_name",
        "leader_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "topics",
        "state",
        "members",
        "protocol_metadata",
        "error_code",
    ),
    "kafka_assignments": (
        *_EXCHANGE,
        "group_id",
        "generation",
        "member_id",
        "topic",
        "topic_id",
        "partition",
        "source",
    ),
    "kafka_brokers": (
        *_EXCHANGE,
        "wire_cluster_id",
        "node_id",
        "host",
        "port",
        "rack",
        "source",
        "group_id",
        "transactional_id",
        "is_controller",
        "is_fenced",
    ),
    "kafka_partitions": (
        *_EXCHANGE,
        "topic",
        "topic_id",
        "partition",
        "leader_id",
        "leader_epoch",
        "replicas",
        "isr",
        "error_code",
        "offline_replicas",
        "eligible_leader_replicas",
        "last_known_elr",
        "source",
    ),
    "kafka_list_offsets": (
        *_EXCHANGE,
        "client_id",
        "replica_id",
        "topic",
        "partition",
        "timestamp",
        "offset",
        "error_code",
        "isolation_level",
        "answered_timestamp",
        "leader_epoch",
    ),
    "kafka_transactions": (
        *_EXCHANGE,
        "client_id",
        "event",
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "answered_producer_id",
        "answered_producer_epoch",
        "group_id",
        "topics",
        "partitions",
        "partitions_count",
        "committed",
        "transaction_timeout_ms",
        "error_code",
    ),
    "kafka_api_versions": (
        *_EXCHANGE,
        "client_id",
        "software_name",
        "software_version",
        "api_key",
        "api_name",
        "min_version",
        "max_version",
        "used_version_min",
        "used_version_max",
    ),
    "kafka_authentications": (
        *_EXCHANGE,
        "client_id",
        "mechanism",
        "user_name",
        "delegation_token",
        "form",
        "round_trips",
        "accepted",
        "session_lifetime_ms",
        "reauthentication",
        "error_code",
        "error_message",
    ),
    "kafka_admin_changes": (
        *_EXCHANGE,
        "client_id",
        "operation",
        "validate_only",
        "resource_type",
        "resource_name",
        "change",
        "error_code",
        "error_message",
    ),
}


class Request(NamedTuple):
    """A decoded request while it waits for its response. `value` is None where the body could not be decoded."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    offset: int
    length: int
    packet: int
    ts_ns: int
    value: Value | None
    extra: Any = None


class Response(NamedTuple):
    """The response to it. data: the buffer that record spans in `value` point into; remarks: where to add some."""

    offset: int
    packet: int
    ts_ns: int
    value: Value | None
    data: bytes
    remarks: list[Remark] | None = None

    def remark(self, remark: Remark) -> None:
        """Tell something about this response, if anybody listens."""
        if self.remarks is not None:
            self.remarks.append(remark)


def exchange_key(request: Request, response: Response | None) -> tuple[int, int | None, int, int | None]:
    """The first fields of every row: request_offset, response_offset, ts, ts_response."""
    if response is None:
        return request.offset, None, request.ts_ns, None
    return request.offset, response.offset, request.ts_ns, response.ts_ns
