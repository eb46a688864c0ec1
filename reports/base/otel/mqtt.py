"""Spans of MQTT's exchanges."""

from __future__ import annotations

from typing import Any

from opentelemetry.semconv._incubating.attributes import messaging_attributes as messaging
from opentelemetry.semconv.attributes import network_attributes

from wirewitness.reports.base.otel.span_attributes import OWN, TRACEPARENT, Row, Told


def _attributes(row: Row) -> dict[str, Any]:
    """A PUBLISH of the server is a delivery, for which the conventions have no type of operation of a client."""
    sends = row["operation"] == "PUBLISH" and row["direction"] == "client_to_server"
    return {
        network_attributes.NETWORK_PROTOCOL_VERSION: row["version"],
        messaging.MESSAGING_SYSTEM: "mqtt",
        messaging.MESSAGING_OPERATION_NAME: (row["operation"] or "").lower() or None,
        messaging.MESSAGING_OPERATION_TYPE: messaging.MessagingOperationTypeValues.SEND.value if sends else None,
        messaging.MESSAGING_CLIENT_ID: row["client_id"] or None,
        messaging.MESSAGING_DESTINATION_NAME: row.get("topic"),
        messaging.MESSAGING_MESSAGE_BODY_SIZE: row.get("payload_bytes"),
        f"{OWN}mqtt.qos": row.get("qos"),
    }


MQTT = Told(
    name="mqtt",
    attributes=_attributes,
    tables=("mqtt_publishes",),
    joins="left join mqtt_publishes p on p.message_id = e.exchange_id",
    columns={
        "topic": "p.topic",
        "qos": "p.qos",
        "payload_bytes": "p.payload_bytes",
        "traceparents": (
            f"case when regexp_matches(p.user_properties, '{TRACEPARENT}') "
            f"then [regexp_extract(p.user_properties, '{TRACEPARENT}', 1)] end"
        ),
    },
    codes_by_version=True,
)
