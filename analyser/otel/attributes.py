"""One exchange to the name, attributes and status of a span, by the semantic conventions of the installed package.

In: a row of exchanges, with or without columns of other tables. Out: a `Span`, still without the SDK's types. Payload
is never in it, and a statement is its query shape, without values. What the conventions have no name for is under
`wirewitness.`: error codes with the protocol whose codes they are, and where to find the packets.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from opentelemetry.semconv._incubating.attributes import db_attributes as db_more
from opentelemetry.semconv._incubating.attributes import messaging_attributes as messaging
from opentelemetry.semconv.attributes import db_attributes as db
from opentelemetry.semconv.attributes import error_attributes, network_attributes, server_attributes

Value = str | int | bool
Row = Mapping[str, Any]

OWN = "wirewitness."
# Kafka APIs that move messages; the others are named, but have no type of operation.
_KAFKA_TYPES = {
    "Produce": messaging.MessagingOperationTypeValues.SEND.value,
    "Fetch": messaging.MessagingOperationTypeValues.RECEIVE.value,
    "ShareFetch": messaging.MessagingOperationTypeValues.RECEIVE.value,
    "OffsetCommit": messaging.MessagingOperationTypeValues.SETTLE.value,
    "TxnOffsetCommit": messaging.MessagingOperationTypeValues.SETTLE.value,
    "ShareAcknowledge": messaging.MessagingOperationTypeValues.SETTLE.value,
}


class Span(NamedTuple):
    """What a span says. Times are Unix ns. error: what went wrong. event: what there was instead of an answer.

    trace_id and span_id are made of the exchange's id, which is made of content: a capture has the same ones always.
    """

    name: str
    trace_id: int
    span_id: int
    start_ns: int
    end_ns: int
    attributes: dict[str, Value]
    error: str | None
    event: str | None


def span(row: Row) -> Span:
    """The span of one exchange."""
    status, start_ns = row["status"], row["ts"]
    made: dict[str, Any] = {
        server_attributes.SERVER_ADDRESS: row["server_address"],
        server_attributes.SERVER_PORT: row["server_port"],
        network_attributes.NETWORK_PEER_ADDRESS: row["server_address"],
        network_attributes.NETWORK_PEER_PORT: row["server_port"],
        network_attributes.NETWORK_LOCAL_ADDRESS: row["client_address"],
        network_attributes.NETWORK_LOCAL_PORT: row["client_port"],
        network_attributes.NETWORK_TRANSPORT: network_attributes.NetworkTransportValues.TCP.value,
        network_attributes.NETWORK_PROTOCOL_NAME: row["protocol"],
        network_attributes.NETWORK_PROTOCOL_VERSION: row["version"] if row["protocol"] == "mqtt" else None,
        **_OF_PROTOCOL.get(row["protocol"], _other)(row),
        **_errors(row),
        f"{OWN}status": status,
        f"{OWN}exchange_id": row["exchange_id"],
        f"{OWN}flow_id": row["flow_id"],
        f"{OWN}direction": row["direction"],
        f"{OWN}file": row["request_file"],
        f"{OWN}request.packet": row["request_packet"],
        f"{OWN}response.packet": row["response_packet"],
        f"{OWN}request.bytes": row["request_bytes"],
        f"{OWN}response.bytes": row["response_bytes"],
        f"{OWN}awaitable": row["awaitable"],
    }
    attributes = {name: value for name, value in made.items() if value is not None}
    return Span(
        _name(row, attributes),
        _identifier(row["exchange_id"], 16),
        _identifier(row["exchange_id"], 8),
        start_ns,
        _end_ns(row),
        attributes,
        _description(row) if status == "error" else None,
        _EVENTS.get(status),
    )


# What there is instead of an answer, as an event at the span's end.
_EVENTS = {"unanswered": f"{OWN}unanswered", "orphan": f"{OWN}request_not_captured"}


def _end_ns(row: Row) -> int:
    """Time of the response; where none came, until when one would have been seen."""
    start: int = row["ts"]
    end = row["ts_response"]
    if end is None and row["status"] == "unanswered":
        end = row.get("observed_until")
    return max(start, start if end is None else end)


def _identifier(exchange_id: str, size: int) -> int:
    """An id of that many bytes; never 0, which stands for none."""
    return int.from_bytes(blake2b(exchange_id.encode(), digest_size=size).digest()) or 1


def _name(row: Row, attributes: Mapping[str, Value]) -> str:
    """Operation and what it is done to: a topic, a collection, a database."""
    operation = attributes.get(db.DB_OPERATION_NAME) or attributes.get(messaging.MESSAGING_OPERATION_NAME)
    target = (
        attributes.get(messaging.MESSAGING_DESTINATION_NAME)
        or attributes.get(db.DB_COLLECTION_NAME)
        or attributes.get(db.DB_NAMESPACE)
    )
    return " ".join(str(part) for part in (operation or row["operation"] or row["protocol"], target) if part)


def _kafka(row: Row) -> dict[str, Any]:
    partition, records = row.get("partition"), row.get("records")
    return {
        messaging.MESSAGING_SYSTEM: messaging.MessagingSystemValues.KAFKA.value,
        messaging.MESSAGING_OPERATION_NAME: row["operation"],
        messaging.MESSAGING_OPERATION_TYPE: _KAFKA_TYPES.get(row["operation"]),
        messaging.MESSAGING_CLIENT_ID: row["client_id"] or None,
        messaging.MESSAGING_DESTINATION_NAME: row.get("topic"),
        messaging.MESSAGING_DESTINATION_PARTITION_ID: None if partition is None else str(partition),
        messaging.MESSAGING_CONSUMER_GROUP_NAME: row.get("group_id") or None,
        messaging.MESSAGING_BATCH_MESSAGE_COUNT: None if records == 1 else records,
        "messaging.kafka.offset": row.get("first_offset"),
        "messaging.kafka.cluster.id": row["cluster_id"],
        f"{OWN}kafka.api_version": _number(row["version"]),
    }


def _mqtt(row: Row) -> dict[str, Any]:
    """A PUBLISH of the server is a delivery, for which the conventions have no type of operation of a client."""
    sends = row["operation"] == "PUBLISH" and row["direction"] == "client_to_server"
    return {
        messaging.MESSAGING_SYSTEM: "mqtt",
        messaging.MESSAGING_OPERATION_NAME: (row["operation"] or "").lower() or None,
        messaging.MESSAGING_OPERATION_TYPE: messaging.MessagingOperationTypeValues.SEND.value if sends else None,
        messaging.MESSAGING_CLIENT_ID: row["client_id"] or None,
        messaging.MESSAGING_DESTINATION_NAME: row.get("topic"),
        messaging.MESSAGING_MESSAGE_BODY_SIZE: row.get("payload_bytes"),
        f"{OWN}mqtt.qos": row.get("qos"),
    }


def _mongo(row: Row) -> dict[str, Any]:
    code = row["error_code"]
    return {
        db.DB_SYSTEM_NAME: db_more.DbSystemNameValues.MONGODB.value,
        db.DB_OPERATION_NAME: row["operation"],
        db.DB_NAMESPACE: row.get("database"),
        db.DB_COLLECTION_NAME: row.get("collection"),
        db.DB_QUERY_TEXT: row.get("query_shape"),
        db.DB_RESPONSE_STATUS_CODE: str(code) if code else None,
        db_more.DB_RESPONSE_RETURNED_ROWS: row.get("documents_returned"),
        f"{OWN}mongo.opcode": row["version"],
    }


def _other(row: Row) -> dict[str, Any]:
    return {f"{OWN}operation": row["operation"]}


_OF_PROTOCOL = {"kafka": _kafka, "mqtt": _mqtt, "mongo": _mongo}


def _errors(row: Row) -> dict[str, Any]:
    """error.type only where it failed, as the conventions want; the code, its name and whose code it is."""
    code = row["error_code"]
    if not code:
        return {}
    domain = " ".join(filter(None, (row["protocol"], row["version"] if row["protocol"] == "mqtt" else None)))
    own = {f"{OWN}error.code": code, f"{OWN}error.name": row["error_name"], f"{OWN}error.domain": domain}
    if row["status"] == "error":
        own[error_attributes.ERROR_TYPE] = row["error_name"] or str(code)
    return own


def _description(row: Row) -> str:
    code, name = row["error_code"], row["error_name"]
    if code is None:
        return str(name or "error")
    return f"{name} ({code})" if name else f"error {code}"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
