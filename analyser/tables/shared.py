"""Columns that tables of several protocols have in common."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, ColumnSource
from wirewitness.dissectors.registry import PROTOCOLS

PROTOCOL_NAMES = ", ".join(PROTOCOLS)


def ts_column(meaning: str, source: ColumnSource = "row") -> Column:
    """The time of a row, never null."""
    return Column("ts", "time", meaning, source, unit="UTC", nullable=False)


EXCHANGE_ID = Column("exchange_id", "string", "the exchange this row belongs to (exchanges.exchange_id)", "derived")
FLOW_ID = Column(
    "flow_id", "string", "digest of endpoints, encapsulation and initial sequence numbers", "flow", nullable=False
)
CLUSTER = Column(
    "cluster_id",
    "string",
    "cluster of the server, by its own name or by servers named together",
    "context",
)
CLIENT_ADDRESS = Column("client_address", "string", "IP address of the client side", "flow")
CLIENT_PORT = Column("client_port", "int64", "TCP port of the client side", "flow")
SERVER_ADDRESS = Column("server_address", "string", "IP address of the server side", "flow")
SERVER_PORT = Column("server_port", "int64", "TCP port of the server side", "flow")
CLIENT_ID = Column("client_id", "string", "client id in the request header")
ERROR_CODE = Column("error_code", "int64", "protocol error code, 0 is success; null when unanswered")
ERROR_NAME = Column("error_name", "string", "the code's name in the protocol's documents", "derived")

# Where an exchange of Kafka is: its flow and packets.
PLACE: tuple[Column | str, ...] = (
    FLOW_ID,
    Column("file", "string", "file of the request", "derived"),
    "request_packet",
    "response_packet",
    Column("response_message_id", "string", "messages.message_id of the response", "derived"),
)

# Where a request log has what a packet has elsewhere.
LINE = Column("line", "int64", "line of the request log in its file, from 1; null where there are packets", "derived")

FLOW_COLUMNS = (
    FLOW_ID,
    Column("protocol", "string", f"{PROTOCOL_NAMES}; null while not identified", "flow"),
)


def packet_column(name: str, meaning: str) -> Column:
    """A packet number."""
    return Column(name, "int64", f"{meaning}: number in its file, from 1 as Wireshark counts", "derived")


def text(name: str, meaning: str, *, json: bool = False) -> Column:
    """A text that other rows tell."""
    return Column(name, "string", meaning, "context", json=json)


def number(name: str, meaning: str, unit: str = "", *, nullable: bool = True) -> Column:
    """A number that other rows tell."""
    return Column(name, "int64", meaning, "context", unit=unit, nullable=nullable)


def time(name: str, meaning: str, *, nullable: bool = True) -> Column:
    """A time that other rows tell."""
    return Column(name, "time", meaning, "context", unit="UTC", nullable=nullable)


def milliseconds(name: str, meaning: str) -> Column:
    """A span of time that other rows tell, with its fractions."""
    return Column(name, "float64", meaning, "context", unit="ms")
