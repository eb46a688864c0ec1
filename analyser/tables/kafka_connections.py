"""The table of connections of Kafka clients."""

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
