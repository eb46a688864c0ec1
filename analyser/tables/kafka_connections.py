"""Tables of connections of Kafka clients, and of where these were led: leaders of partitions, truncated logs."""

from __future__ import annotations

from dataclasses import replace

from wirewitness.analyser.tables.core import CORE_TABLES
from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    CLUSTER,
    FLOW_ID,
    SERVER_ADDRESS,
    SERVER_PORT,
    ts_column,
)

# Columns that are those of the flow.
OF_FLOWS = (
    "protocol", "file", "first_packet", "ts_last", "observed_until", "ts_closed", "closed_by", "reset_by", "handshake",
    "handshake_ms", "bytes_to_server", "bytes_to_client", "acked_by_server", "acked_by_client", "gap_bytes",
    "retransmitted_segments", "unheard_sends_to_server", "ts_unheard_to_server", "ts_last_from_server", "encrypted",
    "client_opening", "server_opening", "client_tls_alert", "server_tls_alert",
)  # fmt: skip
_FLOWS = next(table for table in CORE_TABLES if table.name == "flows")


def _context(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning, "context")


def _count(name: str, meaning: str) -> Column:
    return Column(name, "int64", meaning, "context", nullable=False)


CONNECTIONS = Table(
    "kafka_connections",
    "one row per TCP connection that speaks Kafka, or goes to an address where others do or to which clients were sent",
    (
        ts_column("time of the first packet", "context"),
        FLOW_ID,
        CLUSTER,
        _context("client_id", "client id of its first request that names one"),
        CLIENT_ADDRESS,
        CLIENT_PORT,
        SERVER_ADDRESS,
        SERVER_PORT,
        *(replace(_FLOWS.column(name), source="context") for name in OF_FLOWS),
        _count("requests", "requests of the client"),
        _count("answered", "of these, requests with a response"),
        _count("unanswered", "of these, requests that should have one and have none"),
        _count("errors", "responses with an error code"),
        _count("work", "requests that write, read, commit, join a group or keep membership"),
        _count("others", "further requests, but for versions, addresses, logins, telemetry and producer ids"),
        _count("throttled", "responses that say that a quota makes the client wait"),
        Column(
            "ts_muted_until",
            "time",
            "until when the broker reads nothing more of it, as such a response says (KIP-219)",
            "context",
            unit="UTC",
        ),
        Column(
            "max_wait_ms", "int64", "the longest that a Fetch of a consumer on it lets the broker wait", "context", "ms"
        ),
        _context("first_operation", "API of the first request"),
        _context("last_operation", "API of the last request"),
        _context("first_exchange_id", "exchange of the first request"),
        _context("last_exchange_id", "exchange of the last request"),
        _context("last_status", "status of the last exchange"),
        Column("ts_last_request", "time", "time of the last request", "context", unit="UTC"),
        Column("all_seen_until", "time", "time of the last packet of all rows of this table", "context", unit="UTC"),
        _context("mechanism", "SASL mechanism of its last authentication"),
        _context("user_name", "user of that"),
        Column("accepted", "bool", "the broker accepted the user; null without authentication", "context"),
        Column("advertised", "bool", "Metadata and the like advertised this address and port", "context"),
        Column("served", "bool", "Kafka is spoken at this address and port, on any connection", "context"),
    ),
    ("ts", "flow_id"),
    "kafka",
)


def _number(name: str, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "int64", meaning, "context", nullable=nullable)


def _time(name: str, meaning: str) -> Column:
    return Column(name, "time", meaning, "context", unit="UTC")


_TOPIC = (_context("topic", "topic name, else its id"), _number("partition", "partition index", nullable=False))
_ISR_BEFORE = Column("isr_before", "int64_list", "replicas in sync that were last reported before it led", "context")
_UNCLEAN = Column(
    "unclean", "bool", "the leader was not among these (unclean election); null: none were reported", "context"
)
LEADERS = Table(
    "kafka_leaders",
    "one row per term of a partition's leader: from when to when which broker was reported to lead, in which epoch",
    (
        ts_column("when an answer first reported it", "context"),
        _time("ts_until", "when the next term was first reported; null: to the end of the capture"),
        CLUSTER,
        _TOPIC[0],
        _context("topic_id", "topic id, where an answer has one"),
        _TOPIC[1],
        _number("leader_id", "broker that leads; -1 none"),
        _number("leader_epoch", "leader epoch; null before Metadata version 7"),
        Column("replicas", "int64_list", "brokers that hold a replica, as last reported in the term", "context"),
        Column("isr", "int64_list", "replicas in sync, as last reported in the term", "context"),
        _ISR_BEFORE,
        _UNCLEAN,
        _context("source", "API of the answer: Metadata, DescribeTopicPartitions, CreateTopics, Fetch, Produce"),
        _context("exchange_id", "exchange that first reported it"),
        FLOW_ID,
        _context("file", "file of that exchange"),
        _number("response_packet", "packet that completes its response"),
    ),
    ("ts", "topic", "partition", "leader_epoch"),
    "kafka",
)
REFUSALS = Table(
    "kafka_refusals",
    "one row per client, API, resource and error code that no later try heals, but for Produce, commits and logins",
    (
        ts_column("time of the first request that was refused", "context"),
        _time("ts_last", "time of the last one"),
        CLUSTER,
        _context("client_id", "client id"),
        CLIENT_ADDRESS,
        SERVER_ADDRESS,
        SERVER_PORT,
        _context("operation", "API of the first one"),
        _context("resource_type", "topic, group or transactional id; null: the response names no resource"),
        _context("resource", "its name, or the id of a topic whose name is not known"),
        _number("error_code", "error code"),
        _count("refusals", "requests that were refused"),
        _time("ts_succeeded", "first success of this client for this resource after the first refusal; null: none"),
        _context("exchange_id", "exchange of the first one"),
        _context("last_exchange_id", "exchange of the last one"),
    ),
    ("ts", "client_address", "client_id", "operation", "resource", "error_code"),
    "kafka",
)
CLIENT_REQUESTS = Table(
    "kafka_client_requests",
    "one row per client (address and client id) and API that it sent",
    (
        ts_column("time of the first request", "context"),
        replace(_time("ts_last", "time of the last one"), nullable=False),
        CLUSTER,
        _context("client_id", "client id"),
        CLIENT_ADDRESS,
        replace(_context("operation", "API"), nullable=False),
        _count("requests", "its requests"),
        _count("succeeded", "of these, those with a response without error"),
        _count("errors", "of these, those with an error code"),
        _count("connections", "connections that they went on"),
        _number(
            "without_effect",
            "JoinGroup: of these, those that brought a member into its generation again, or that were refused for "
            "their member id more than twice on one connection; null for other APIs",
        ),
        Column("median_latency_ms", "float64", "middle time until the response", "context", "ms"),
        Column("least_response_bytes", "int64", "Fetch: size of the smallest response", "context", "bytes"),
        Column("p90_response_bytes", "int64", "Fetch: nine of ten responses are not larger", "context", "bytes"),
        Column("longest_gap_ms", "float64", "Produce: longest time from one request to the next", "context", "ms"),
        _context("exchange_id", "exchange of the first one"),
        _context("last_exchange_id", "exchange of the last one"),
    ),
    ("ts", "client_address", "client_id", "operation"),
    "kafka",
)
TRUNCATIONS = Table(
    "kafka_truncations",
    "one row per answer that shows that a partition's log was cut: what had been read or stored behind it is gone",
    (
        ts_column("time of the request", "context"),
        CLUSTER,
        *_TOPIC,
        _number("truncated_at", "the log's end then: where the old epoch ends, or where the next batch was stored"),
        _number("end_before", "end of the log before, at least: the reader's position, or what answers had reported"),
        _context("source", "OffsetForLeaderEpoch, Fetch (its diverging epoch) or Produce"),
        _number("leader_id", "broker that led from then on; null: not reported"),
        _number("leader_epoch", "its leader epoch"),
        _time("ts_leader", "when it was first reported"),
        _ISR_BEFORE,
        _UNCLEAN,
        _context("client_id", "client id of who learned it"),
        CLIENT_ADDRESS,
        _context("exchange_id", "the exchange"),
        FLOW_ID,
        _context("file", "file of the request"),
        _number("request_packet", "its packet"),
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)
