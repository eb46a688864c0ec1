"""The registry of every table: column, type, unit, meaning, where the value comes from.

pandas, Arrow, Parquet, `wirewitness tables` and the documentation are made from this one place. `docs/contract` names
may be added freely; changing or removing one needs a new SCHEMA_VERSION and a line in CHANGELOG.md.

A column's `source` says who fills it:

  row      the dissector (or the capture layer) put the value into the row under the same name
  flow     looked up by the row's flow when the table leaves the store, so that facts learned late still apply
  derived  computed for whole batches from other fields (ids, file names, latencies), see `analyser/build.py`
  context  joined from other rows of the capture, see `analyser/context.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import pyarrow as pa

SCHEMA_VERSION = 1

Kind = Literal["string", "int64", "float64", "bool", "time", "int64_list"]
ColumnSource = Literal["row", "flow", "derived", "context"]

ARROW_TYPES: dict[Kind, pa.DataType] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "time": pa.timestamp("ns", tz="UTC"),
    "int64_list": pa.list_(pa.int64()),
}
PANDAS_TYPES: dict[Kind, str] = {
    "string": "string",
    "int64": "Int64",
    "float64": "float64",
    "bool": "boolean",
    "time": "datetime64[ns, UTC]",
    "int64_list": "object",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `unit` is empty for names and codes; `secret` columns are masked where they are decoded."""

    name: str
    kind: Kind
    meaning: str
    source: ColumnSource = "row"
    unit: str = ""
    nullable: bool = True
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table: rows are in the `order` of these columns when they leave the store.

    lists: columns of which a raw row holds a list, with one element for each row that it becomes; `analyser/build.py`
    unfolds them.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    protocol: str | None = None
    lists: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """The column of that name; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name} has no column {name}")

    def column_names(self) -> tuple[str, ...]:
        """Names in their fixed order."""
        return tuple(column.name for column in self.columns)


@cache
def arrow_schema(name: str) -> pa.Schema:
    """Arrow schema of a registered table. KeyError for an unknown name."""
    fields = [pa.field(c.name, ARROW_TYPES[c.kind], c.nullable) for c in TABLES[name].columns]
    return pa.schema(fields)


def _ts(meaning: str, source: ColumnSource = "row") -> Column:
    return Column("ts", "time", meaning, source, unit="UTC", nullable=False)


_EXCHANGE_ID = Column("exchange_id", "string", "the exchange this row belongs to (exchanges.exchange_id)", "derived")
_FLOW_ID = Column(
    "flow_id", "string", "digest of endpoints, encapsulation and initial sequence numbers", "flow", nullable=False
)
_CLUSTER = Column("cluster_id", "string", "Kafka cluster, from Metadata or from brokers named together", "context")
_CLIENT_ADDRESS = Column("client_address", "string", "IP address of the client side", "flow")
_CLIENT_PORT = Column("client_port", "int64", "TCP port of the client side", "flow")
_SERVER_ADDRESS = Column("server_address", "string", "IP address of the server side", "flow")
_SERVER_PORT = Column("server_port", "int64", "TCP port of the server side", "flow")
_CLIENT_ID = Column("client_id", "string", "client id in the request header")
_ERROR_CODE = Column("error_code", "int64", "protocol error code, 0 is success; null when unanswered")
_ERROR_NAME = Column("error_name", "string", "the code's name in the protocol's documents", "derived")
_TOPIC = Column("topic", "string", "topic name; from the topic id where only that is on the wire", "context")
_TOPIC_ID = Column("topic_id", "string", "topic id where it is on the wire")
_PARTITION = Column("partition", "int64", "partition index", nullable=False)
_GROUP = Column("group_id", "string", "consumer group")
_MEMBER = Column("member_id", "string", "member id the coordinator gave to this member")
_REQUEST_TIME = "time of the packet that completes the request"

_FLOW_COLUMNS = (
    _FLOW_ID,
    Column("protocol", "string", "kafka, mqtt, mongo; null while not identified", "flow"),
)


def _packet(name: str, meaning: str) -> Column:
    return Column(name, "int64", f"{meaning}: number in its file, from 1 as Wireshark counts", "derived")


_CAPTURES = Table(
    "captures",
    "one row per capture file",
    (
        Column("file", "string", "path as given; - is standard input", nullable=False),
        Column("format", "string", "pcap or pcapng, with the compression it was read through"),
        Column("link_types", "string", "link layers seen, comma separated"),
        Column("packets", "int64", "packets read", nullable=False),
        Column("captured_bytes", "int64", "bytes captured of these packets", unit="bytes", nullable=False),
        Column("wire_bytes", "int64", "bytes these packets had on the wire", unit="bytes", nullable=False),
        Column("ts_first", "time", "time of the earliest packet", unit="UTC"),
        Column("ts_last", "time", "time of the latest packet", unit="UTC"),
        Column("tcp_segments", "int64", "packets that are TCP segments", nullable=False),
        Column("other_packets", "int64", "packets of other protocols", nullable=False),
        Column("undecoded_packets", "int64", "packets whose layers could not be read", nullable=False),
        Column("truncated_packets", "int64", "packets cut by the snap length", nullable=False),
        Column("snaplen", "int64", "snap length in the file header", unit="bytes"),
        Column("dropped_packets", "int64", "packets the kernel or interface dropped, where the file says so"),
        Column("remarks", "string", "damage and oddities met while reading, joined by '; '"),
    ),
    ("file",),
)

_FLOWS = Table(
    "flows",
    "one row per TCP connection seen",
    (
        *_FLOW_COLUMNS,
        Column("file", "string", "capture file of the first packet", "derived"),
        _packet("first_packet", "first packet seen"),
        Column("identified_by", "string", "content, port or user: what decided the protocol", "flow"),
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        _SERVER_ADDRESS,
        _SERVER_PORT,
        Column("encapsulation", "string", "VLANs and tunnels around the flow, outermost first", "flow"),
        Column("ts_first", "time", "time of the first packet", "flow", unit="UTC", nullable=False),
        Column("ts_last", "time", "time of the last packet", "flow", unit="UTC", nullable=False),
        Column("packets", "int64", "TCP packets of both directions", "flow", nullable=False),
        Column("data_segments", "int64", "packets with payload, copies not counted", "flow", nullable=False),
        Column("bytes_to_server", "int64", "stream bytes from client to server", "flow", "bytes", nullable=False),
        Column("bytes_to_client", "int64", "stream bytes from server to client", "flow", "bytes", nullable=False),
        Column("handshake_seen", "bool", "the SYN of both sides is in the capture", "flow", nullable=False),
        Column("handshake", "string", "complete, refused, unanswered or unexplained (SYN-ACK alone)", "flow"),
        Column("handshake_ms", "float64", "time from the first SYN to the first SYN-ACK", "flow", "ms"),
        Column("closed_by", "string", "client, server (who sent the first FIN or RST), or null while open", "flow"),
        Column("reset_by", "string", "client, server (who sent the first RST), or null", "flow"),
        Column("gap_bytes", "int64", "stream bytes missing from the capture", "flow", "bytes", nullable=False),
        Column("retransmitted_segments", "int64", "segments whose bytes had been sent before", "flow", nullable=False),
        Column("retransmitted_bytes", "int64", "stream bytes that were sent again", "flow", "bytes", nullable=False),
        Column("out_of_order_segments", "int64", "segments that came before their predecessor", "flow", nullable=False),
        Column("duplicate_packets", "int64", "packets captured twice (same IP id, ports, sequence)", "flow"),
        Column("truncated_packets", "int64", "segments cut by the snap length", "flow", nullable=False),
        Column("client_first_seq", "int64", "TCP sequence number of the client's first stream byte (offset 0)", "flow"),
        Column("server_first_seq", "int64", "TCP sequence number of the server's first stream byte (offset 0)", "flow"),
        Column("client_zero_window_ms", "float64", "how long the client's receive window was closed", "flow", "ms"),
        Column("server_zero_window_ms", "float64", "how long the server's receive window was closed", "flow", "ms"),
        Column("encrypted", "bool", "the flow speaks TLS", "flow", nullable=False),
        Column("sni", "string", "server name that the TLS client asked for", "flow"),
        Column(
            "duplicate_of", "string", "flow_id of the same connection seen at another point; only that one has rows"
        ),
        Column("hop_latency_ms", "float64", "latency of the way between the two points", unit="ms"),
        Column("clock_offset_ms", "float64", "how far this point's clock is ahead of the other's", unit="ms"),
    ),
    ("ts_first", "flow_id"),
)

_MESSAGES = Table(
    "messages",
    "one row per protocol message",
    (
        Column("message_id", "string", "flow id, direction (c or s) and stream offset", "derived", nullable=False),
        _FLOW_ID,
        Column("file", "string", "capture file of the packet that completes the message", "derived", nullable=False),
        _packet("packet_first", "packet with the first byte"),
        _packet("packet_last", "packet that completes the message, where Wireshark shows it"),
        _ts("time of the packet that completes the message"),
        Column("protocol", "string", "kafka, mqtt, mongo", "flow"),
        Column("direction", "string", "client_to_server or server_to_client", "derived"),
        Column("role", "string", "request, response or notification"),
        Column("operation", "string", "API, packet type or command name"),
        Column("version", "string", "protocol version of this message"),
        Column("correlation_id", "int64", "what pairs request and response in this protocol"),
        Column("client_id", "string", "client id; for a response that of its request"),
        Column("src_address", "string", "IP address of the sender", "flow"),
        Column("src_port", "int64", "TCP port of the sender", "flow"),
        Column("dst_address", "string", "IP address of the receiver", "flow"),
        Column("dst_port", "int64", "TCP port of the receiver", "flow"),
        Column("stream_offset", "int64", "offset of the first byte in its stream", unit="bytes", nullable=False),
        Column("length_bytes", "int64", "bytes of the message, length prefix included", unit="bytes", nullable=False),
        Column("complete", "bool", "false when a gap or the capture's end cut it", nullable=False),
        Column("error", "string", "why the message could not be decoded in full"),
        Column("summary", "string", "one line for people"),
    ),
    ("ts", "file", "packet_last", "stream_offset"),
)

_EXCHANGES = Table(
    "exchanges",
    "one row per request with its response, unanswered request, or orphan response",
    (
        Column("exchange_id", "string", "message id of the request, else of the response", "derived", nullable=False),
        _FLOW_ID,
        Column("protocol", "string", "kafka, mqtt, mongo", "flow"),
        _CLUSTER,
        Column("operation", "string", "API, packet type or command name"),
        Column("version", "string", "protocol version of the request"),
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        _SERVER_ADDRESS,
        _SERVER_PORT,
        Column("request_message_id", "string", "messages.message_id of the request", "derived"),
        Column("response_message_id", "string", "messages.message_id of the response", "derived"),
        Column("request_file", "string", "file of the request, of the response for an orphan", "derived"),
        _packet("request_packet", "packet that completes the request"),
        _packet("response_packet", "packet that completes the response"),
        _ts(_REQUEST_TIME + " (of the response for an orphan)"),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        Column("latency_ms", "float64", "ts_response minus ts", "derived", unit="ms"),
        Column(
            "status",
            "string",
            "ok (answered; an answer not decoded has no error_code), error, unanswered, orphan, one_way",
            nullable=False,
        ),
        Column("error_code", "int64", "first error code that is not 0, else 0; null when unanswered or undecoded"),
        _ERROR_NAME,
        Column("request_bytes", "int64", "size of the request, length prefix included", unit="bytes"),
        Column("response_bytes", "int64", "size of the response, length prefix included", unit="bytes"),
    ),
    ("ts", "request_file", "request_packet", "exchange_id"),
)

_EXPERT_INFOS = Table(
    "expert_infos",
    "remarks of capture layer and dissectors on bytes",
    (
        Column("message_id", "string", "the message it is about, where there is one", "derived"),
        Column("flow_id", "string", "the flow it is about", "flow"),
        Column("direction", "string", "client_to_server or server_to_client: whose bytes", "derived"),
        Column("file", "string", "capture file", "derived"),
        _packet("packet", "packet"),
        Column("ts", "time", "time of that packet", unit="UTC"),
        Column("severity", "string", "chat, note, warn or error", nullable=False),
        Column("group", "string", "capture, tcp, framing, malformed, undecoded, limit, protocol, bug", nullable=False),
        Column("code", "string", "stable name of the remark", nullable=False),
        Column("text", "string", "the remark for people", nullable=False),
        Column("span", "string", "stream offsets first-last it is about"),
    ),
    ("ts", "file", "packet", "code"),
)

_FINDINGS = Table(
    "findings",
    "conclusions of the detectors",
    (
        Column("finding_id", "string", "digest of code, subject and first evidence", nullable=False),
        Column("code", "string", "detector code", nullable=False),
        Column("name", "string", "detector name", nullable=False),
        Column("severity", "string", "info, warning or critical", nullable=False),
        Column("confidence", "string", "low, medium or high", nullable=False),
        Column("provisional", "bool", "later packets could overturn it", nullable=False),
        Column("subject", "string", "what it is about, key=value pairs", nullable=False),
        Column("sentence", "string", "the conclusion in one sentence", nullable=False),
        Column("next_step", "string", "what to do next", nullable=False),
        Column("ts_first", "time", "time of the first evidence", unit="UTC"),
        Column("ts_last", "time", "time of the last evidence", unit="UTC"),
        Column("evidence", "string", "JSON list of {file, packet, message_id}", nullable=False),
        Column("numbers", "string", "JSON object of the measured numbers", nullable=False),
    ),
    ("code", "subject", "finding_id"),
)

_OFFSET_COMMITS = Table(
    "kafka_offset_commits",
    "one row per partition of an OffsetCommit or TxnOffsetCommit",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        Column("api", "string", "OffsetCommit or TxnOffsetCommit", nullable=False),
        _CLUSTER,
        _GROUP,
        _MEMBER,
        Column("group_instance_id", "string", "static member name (KIP-345)"),
        Column("generation", "int64", "generation id or member epoch; -1 for a simple consumer"),
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("committed_offset", "int64", "next offset the group will read", nullable=False),
        Column("leader_epoch", "int64", "leader epoch of the last record; -1 unknown"),
        Column("metadata", "string", "text the client attached"),
        Column("producer_id", "int64", "producer id of TxnOffsetCommit"),
        Column("producer_epoch", "int64", "producer epoch of TxnOffsetCommit"),
        _ERROR_CODE,
        _ERROR_NAME,
        Column("owner_member_id", "string", "member the partition was assigned to at that time", "context"),
        Column("ownership_confidence", "string", "high from assignments, low from who fetches", "context"),
        Column("log_end_offset", "int64", "newest high watermark seen before that time", "context"),
        Column("client_gap_ts", "time", "latest gap before that time in a flow of this address", "context", unit="UTC"),
        _FLOW_ID,
        Column("file", "string", "file of the request", "derived"),
        _packet("request_packet", "packet that completes the request"),
        _packet("response_packet", "packet that completes the response"),
        Column("response_message_id", "string", "messages.message_id of the response", "derived"),
    ),
    ("ts", "file", "request_packet", "exchange_id", "topic", "partition"),
    "kafka",
)

_OFFSET_FETCHES = Table(
    "kafka_offset_fetches",
    "one row per partition answered in an OffsetFetch",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        _CLUSTER,
        _GROUP,
        Column("member_id", "string", "member id (from version 9)"),
        Column("member_epoch", "int64", "member epoch (from version 9)"),
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("committed_offset", "int64", "stored offset; -1 when there is none"),
        Column("leader_epoch", "int64", "stored leader epoch; -1 unknown"),
        Column("metadata", "string", "text stored with the offset"),
        _ERROR_CODE,
        _ERROR_NAME,
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_FETCH_PARTITIONS = Table(
    "kafka_fetch_partitions",
    "one row per partition that a Fetch asked for or answered (fetch sessions resolved, KIP-227)",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        Column("group_id", "string", "group of this client, from its group requests", "context"),
        Column("replica_id", "int64", "-1 for a consumer, else the broker that replicates"),
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("fetch_offset", "int64", "offset asked for; null when the session began before the capture"),
        Column("high_watermark", "int64", "end of what consumers may read"),
        Column("last_stable_offset", "int64", "end of decided transactions"),
        Column("log_start_offset", "int64", "oldest offset still there"),
        Column("records_bytes", "int64", "bytes of record batches returned", unit="bytes"),
        Column("records_count", "int64", "records in whole batches returned"),
        Column("next_offset", "int64", "offset after the last whole batch returned"),
        Column("crc_ok", "bool", "the checksums of all whole batches are right; null without any"),
        _ERROR_CODE,
        _ERROR_NAME,
        _FLOW_ID,
        Column("file", "string", "file of the request", "derived"),
        _packet("request_packet", "packet that completes the request"),
        _packet("response_packet", "packet that completes the response"),
        Column("response_message_id", "string", "messages.message_id of the response", "derived"),
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_PRODUCE_BATCHES = Table(
    "kafka_produce_batches",
    "one row per record batch of a Produce",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("base_offset", "int64", "offset the broker gave to the first record of the partition's data"),
        Column("records_count", "int64", "records in the batch"),
        Column("codec", "string", "none, gzip, snappy, lz4, zstd"),
        Column("batch_bytes", "int64", "size of the batch", unit="bytes"),
        Column(
            "uncompressed_bytes", "int64", "size before compression; null where nothing was decompressed", unit="bytes"
        ),
        Column("producer_id", "int64", "-1 without idempotence"),
        Column("producer_epoch", "int64", "producer epoch"),
        Column("base_sequence", "int64", "sequence of the first record"),
        Column("acks", "int64", "-1 all in-sync replicas, 1 leader, 0 none"),
        Column("transactional", "bool", "batch is part of a transaction"),
        Column("crc_ok", "bool", "its checksum is right; null where the batch is cut"),
        _ERROR_CODE,
        _ERROR_NAME,
        _FLOW_ID,
        Column("file", "string", "file of the request", "derived"),
        _packet("request_packet", "packet that completes the request"),
        _packet("response_packet", "packet that completes the response"),
        Column("response_message_id", "string", "messages.message_id of the response", "derived"),
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_RECORDS = Table(
    "kafka_records",
    "one row per record in a Produce or a Fetch answer; one without offset where a batch could not be read on",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        Column("api", "string", "Produce or Fetch", nullable=False),
        _TOPIC,
        _TOPIC_ID,
        _PARTITION,
        Column("offset", "int64", "offset in the partition; of a Produce from its answer, null without one"),
        Column("timestamp", "time", "time of the record, ms on the wire", unit="UTC"),
        Column("timestamp_type", "string", "create_time or log_append_time"),
        Column("key", "string", "key, as key_encoding says; null unless payload is asked for"),
        Column("key_encoding", "string", "utf8, or hex where it is no UTF-8; utf8_cut, hex_cut: the first MiB only"),
        Column("value", "string", "value, as value_encoding says; null unless payload is asked for"),
        Column("value_encoding", "string", "as key_encoding"),
        Column("headers", "string", "JSON list of [name, value, encoding]; null unless payload is asked for"),
        Column(
            "decoded",
            "string",
            "JSON: what a control record or one of __consumer_offsets, __transaction_state, __share_group_state says; "
            "null unless payload is asked for",
            "derived",
        ),
        Column("key_bytes", "int64", "size of the key; null for a null key", unit="bytes"),
        Column("value_bytes", "int64", "size of the value; null for a null value", unit="bytes"),
        Column("headers_count", "int64", "headers of the record"),
        Column("codec", "string", "none, gzip, snappy, lz4, zstd"),
        Column("producer_id", "int64", "-1 without idempotence"),
        Column("producer_epoch", "int64", "producer epoch"),
        Column("sequence", "int64", "sequence of the record; null without idempotence"),
        Column("transactional", "bool", "the batch is part of a transaction"),
        Column("control", "string", "of a control record: commit, abort, leader_change, ..."),
        Column("crc_ok", "bool", "the checksum of the record's batch is right"),
        Column("error", "string", "why the rest of a batch could not be read"),
        _FLOW_ID,
    ),
    ("ts", "exchange_id"),
    "kafka",
    lists=(
        "offset",
        "timestamp",
        "key",
        "key_encoding",
        "value",
        "value_encoding",
        "headers",
        "decoded",
        "key_bytes",
        "value_bytes",
        "headers_count",
        "sequence",
    ),
)

_GROUP_EVENTS = Table(
    "kafka_group_events",
    "one row per member and group request or answer: who joined, led, synced, left, was fenced",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        _CLUSTER,
        _GROUP,
        Column("event", "string", "join, sync, heartbeat, leave, describe, consumer_heartbeat", nullable=False),
        _MEMBER,
        Column("group_instance_id", "string", "static member name (KIP-345)"),
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        Column("generation", "int64", "generation id or member epoch after the exchange"),
        Column("protocol_type", "string", "consumer, connect, ..."),
        Column("protocol_name", "string", "assignor"),
        Column("leader_id", "string", "member that computes the assignment"),
        Column("session_timeout_ms", "int64", "session timeout of JoinGroup", unit="ms"),
        Column("rebalance_timeout_ms", "int64", "rebalance timeout of JoinGroup or heartbeat", unit="ms"),
        Column("topics", "string", "subscribed topics, comma separated"),
        Column("state", "string", "group state of describe answers"),
        Column("members", "int64", "members named in the answer (JoinGroup of the leader, describe)"),
        Column(
            "protocol_metadata",
            "string",
            "JSON: what the member said (join) or was given (sync) in its group's own protocol: "
            "consumer, connect, sr, streams",
        ),
        _ERROR_CODE,
        _ERROR_NAME,
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "member_id"),
    "kafka",
)

_ASSIGNMENTS = Table(
    "kafka_assignments",
    "one row per partition given to a member",
    (
        _EXCHANGE_ID,
        _ts("time from which the assignment is known (the answer's completion)"),
        _CLUSTER,
        _GROUP,
        Column("generation", "int64", "generation id or member epoch"),
        Column("member_id", "string", "owner"),
        _TOPIC,
        _TOPIC_ID,
        Column("partition", "int64", "partition index; null when the member was given nothing"),
        Column("source", "string", "sync_leader, sync_answer, consumer_heartbeat, describe", nullable=False),
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "member_id", "topic", "partition"),
    "kafka",
)

_BROKERS = Table(
    "kafka_brokers",
    "brokers and coordinators that clients were told of",
    (
        _EXCHANGE_ID,
        _ts("time of the answer"),
        _CLUSTER,
        Column("wire_cluster_id", "string", "cluster id in the answer itself"),
        Column("node_id", "int64", "broker id"),
        Column("host", "string", "advertised host"),
        Column("port", "int64", "advertised port"),
        Column("rack", "string", "rack"),
        Column("source", "string", "Metadata, DescribeCluster or FindCoordinator", nullable=False),
        Column("group_id", "string", "group that this coordinator serves"),
        Column("transactional_id", "string", "transactional id that this coordinator serves"),
        Column("is_controller", "bool", "named as the active controller; null where the answer does not tell"),
        Column("is_fenced", "bool", "broker is fenced (DescribeCluster from version 2)"),
        _CLIENT_ADDRESS,
        _SERVER_ADDRESS,
        _SERVER_PORT,
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "node_id"),
    "kafka",
)

_PARTITIONS = Table(
    "kafka_partitions",
    "partitions as Metadata and DescribeTopicPartitions show them, a row when something changed on its connection",
    (
        _EXCHANGE_ID,
        _ts("time of the answer"),
        _CLUSTER,
        Column("topic", "string", "topic name"),
        _TOPIC_ID,
        Column("partition", "int64", "partition index; null where the row is about the topic: made, or an error"),
        Column("leader_id", "int64", "broker that leads; -1 none"),
        Column("leader_epoch", "int64", "leader epoch; -1 unknown"),
        Column("replicas", "int64_list", "brokers that hold a replica"),
        Column("isr", "int64_list", "replicas in sync"),
        Column("offline_replicas", "int64_list", "replicas that are offline"),
        Column("eligible_leader_replicas", "int64_list", "replicas that may lead although not in sync (KIP-966)"),
        Column("last_known_elr", "int64_list", "eligible replicas that were last known (KIP-966)"),
        Column("source", "string", "Metadata, DescribeTopicPartitions or CreateTopics", nullable=False),
        _ERROR_CODE,
        _ERROR_NAME,
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_LIST_OFFSETS = Table(
    "kafka_list_offsets",
    "one row per partition of a ListOffsets",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        Column("replica_id", "int64", "-1 for a client"),
        _TOPIC,
        _PARTITION,
        Column("timestamp", "int64", "what was asked: -1 latest, -2 earliest, else Unix ms", unit="ms"),
        Column("isolation_level", "int64", "0 read uncommitted, 1 read committed (from version 2)"),
        Column("offset", "int64", "offset answered; -1 none"),
        Column("answered_timestamp", "int64", "timestamp of the record found; -1 none", unit="ms"),
        Column("leader_epoch", "int64", "leader epoch of the record found; -1 unknown"),
        _ERROR_CODE,
        _ERROR_NAME,
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_TRANSACTIONS = Table(
    "kafka_transactions",
    "one row per event of a transaction or of an idempotent producer's start",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        Column(
            "event",
            "string",
            "init_producer_id, add_partitions_to_txn, verify_partitions_in_txn, add_offsets_to_txn, "
            "txn_offset_commit, end_txn, write_txn_markers",
            nullable=False,
        ),
        Column("transactional_id", "string", "transactional id; null for an idempotent producer and for markers"),
        Column("producer_id", "int64", "producer id in the request; -1 none yet"),
        Column("producer_epoch", "int64", "producer epoch in the request; -1 none yet"),
        Column("answered_producer_id", "int64", "producer id given by InitProducerId or EndTxn (KIP-890)"),
        Column("answered_producer_epoch", "int64", "producer epoch given with it"),
        Column("group_id", "string", "consumer group whose offsets are part of it"),
        Column("topics", "string", "topics named, comma separated"),
        Column("partitions", "string", "partitions named as topic-partition, comma separated"),
        Column("partitions_count", "int64", "how many partitions are named"),
        Column("committed", "bool", "EndTxn and markers: true commits, false aborts"),
        Column("transaction_timeout_ms", "int64", "timeout that InitProducerId asks for", unit="ms"),
        _ERROR_CODE,
        _ERROR_NAME,
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "transactional_id", "producer_id"),
    "kafka",
)

_API_VERSIONS = Table(
    "kafka_api_versions",
    "one row per connection and API that the broker offers or the client used",
    (
        Column("exchange_id", "string", "the ApiVersions exchange; without one, the first use of the API", "derived"),
        _ts("time of that request"),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        _SERVER_ADDRESS,
        _SERVER_PORT,
        Column("software_name", "string", "client library, from ApiVersions 3 and later (KIP-511)"),
        Column("software_version", "string", "its version"),
        Column("api_key", "int64", "API key", nullable=False),
        Column("api_name", "string", "API name", nullable=False),
        Column("min_version", "int64", "lowest version the broker offers; null where it does not or nobody asked"),
        Column("max_version", "int64", "highest version the broker offers"),
        Column("used_version_min", "int64", "lowest version in requests of this connection; null while unused"),
        Column("used_version_max", "int64", "highest version in requests of this connection"),
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "api_key"),
    "kafka",
)

_ADMIN_CHANGES = Table(
    "kafka_admin_changes",
    "one row per topic, setting, right, quota, user, group or broker that somebody asked to change",
    (
        _EXCHANGE_ID,
        _ts(_REQUEST_TIME),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        Column("operation", "string", "API: CreateTopics, IncrementalAlterConfigs, ...", nullable=False),
        Column("validate_only", "bool", "only tried, nothing changes", nullable=False),
        Column("resource_type", "string", "topic, group, broker, user, quota, delegation_token, ...", nullable=False),
        Column("resource_name", "string", "name of it; null for any, for all, or where only a secret names it"),
        Column("change", "string", "what was to change; values of secret settings masked", nullable=False),
        _ERROR_CODE,
        _ERROR_NAME,
        Column("error_message", "string", "the broker's words"),
        _FLOW_ID,
    ),
    ("ts", "exchange_id", "resource_type", "resource_name"),
    "kafka",
)

_AUTHENTICATIONS = Table(
    "kafka_authentications",
    "one row per SASL authentication of a connection",
    (
        Column("exchange_id", "string", "its last exchange (exchanges.exchange_id)", "derived"),
        _ts("time of that request"),
        Column("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
        _CLUSTER,
        _CLIENT_ID,
        _CLIENT_ADDRESS,
        _CLIENT_PORT,
        _SERVER_ADDRESS,
        _SERVER_PORT,
        Column("mechanism", "string", "SASL mechanism of the handshake; without one, as the first token shows it"),
        Column("user_name", "string", "user of PLAIN and SCRAM; other mechanisms do not show it"),
        Column("delegation_token", "bool", "user_name is the id of a delegation token (KIP-48)"),
        Column("form", "string", "sasl_authenticate, or bare_tokens without Kafka headers", nullable=False),
        Column("round_trips", "int64", "tokens that were answered", nullable=False),
        Column("accepted", "bool", "the client is in; null where nothing tells"),
        Column("session_lifetime_ms", "int64", "time until it has to authenticate again (KIP-368)", unit="ms"),
        Column("reauthentication", "bool", "the connection was authenticated before", nullable=False),
        _ERROR_CODE,
        _ERROR_NAME,
        Column("error_message", "string", "the broker's words"),
        _FLOW_ID,
    ),
    ("ts", "exchange_id"),
    "kafka",
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _CAPTURES,
        _FLOWS,
        _MESSAGES,
        _EXCHANGES,
        _EXPERT_INFOS,
        _FINDINGS,
        _OFFSET_COMMITS,
        _OFFSET_FETCHES,
        _FETCH_PARTITIONS,
        _PRODUCE_BATCHES,
        _RECORDS,
        _GROUP_EVENTS,
        _ASSIGNMENTS,
        _BROKERS,
        _PARTITIONS,
        _LIST_OFFSETS,
        _TRANSACTIONS,
        _API_VERSIONS,
        _ADMIN_CHANGES,
        _AUTHENTICATIONS,
    )
}
