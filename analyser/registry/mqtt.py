"""Tables of MQTT."""

from __future__ import annotations

from analyser.registry.model import Column, Table, columns_of
from analyser.registry.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    EXCHANGE_ID,
    FLOW_ID,
    SERVER_ADDRESS,
    SERVER_PORT,
    ts_column,
)
from dissectors.mqtt.rows import CONNECTIONS, PUBLISHES, SUBSCRIPTIONS

_SIDES = (CLIENT_ADDRESS, CLIENT_PORT, SERVER_ADDRESS, SERVER_PORT)

_CONNECTIONS = Table(
    "mqtt_connections",
    "one row per flow that speaks MQTT, also where its CONNECT is not in the capture",
    columns_of(
        CONNECTIONS,
        {
            "": (
                Column("exchange_id", "string", "the exchange of CONNECT and CONNACK; null without both", "derived"),
                FLOW_ID,
            ),
            "client_id_assigned": _SIDES,
            "disconnect_reason_string": (
                Column("closed_by", "string", "client, server: who sent the first FIN or RST; null while open", "flow"),
                Column("ts_closed", "time", "time of that FIN or RST", "flow", unit="UTC"),
                Column(
                    "observed_until", "time", "until when more of its flow would have been seen", "flow", unit="UTC"
                ),
                Column("gap_bytes", "int64", "bytes of its flow missing from the capture", "flow", unit="bytes"),
                Column("handshake_seen", "bool", "the flow's beginning is in the capture", "flow"),
            ),
            "pings_unanswered": (Column("file", "string", "capture file of `packet`", "derived"),),
        },
    ),
    ("ts", "file", "packet", "flow_id"),
    "mqtt",
    lasting=True,
)

_PUBLISHES = Table(
    "mqtt_publishes",
    "one row per PUBLISH of either direction, with the steps of its handshake",
    columns_of(
        PUBLISHES,
        {
            "": (
                Column(
                    "message_id", "string", "messages.message_id of the PUBLISH, exchanges.exchange_id too", "derived"
                ),
                FLOW_ID,
            ),
            "client_id": (*_SIDES, "direction"),
            "in_flight": (
                Column(
                    "first_message_id", "string", "the message of which this one is the re-send on this flow", "derived"
                ),
            ),
            "payload_encoding": (
                Column(
                    "expected_deliveries",
                    "int64",
                    "live subscriptions in the capture that its topic matches",
                    "context",
                ),
                Column("deliveries", "int64", "of them, those to which the server sent it in the capture", "context"),
                Column("file", "string", "capture file of `packet`", "derived"),
            ),
        },
    ),
    ("ts", "file", "packet", "message_id"),
    "mqtt",
    topics_of="message_id",
)

_SUBSCRIPTIONS = Table(
    "mqtt_subscriptions",
    "one row per topic filter of SUBSCRIBE and UNSUBSCRIBE",
    columns_of(
        SUBSCRIPTIONS,
        {
            "": (EXCHANGE_ID, FLOW_ID),
            "client_id": _SIDES,
            "user_properties": (
                Column("response_message_id", "string", "messages.message_id of the response", "derived"),
                Column("file", "string", "file of the request", "derived"),
            ),
        },
    ),
    ("ts", "file", "request_packet", "exchange_id", "position"),
    "mqtt",
    lasting=True,
)

_DELIVERIES = Table(
    "mqtt_deliveries",
    "one row per publish of a client and subscriber that got it, or had to: found by topic filter and content",
    (
        Column("message_id", "string", "mqtt_publishes.message_id of the publish", "context", nullable=False),
        Column("flow_id", "string", "flow of the publisher", "context", nullable=False),
        ts_column("time of the publish", "context"),
        Column("topic", "string", "topic name", "context", nullable=False),
        Column("client_id", "string", "client id of the publisher", "context"),
        Column("client_address", "string", "IP address of the publisher", "context"),
        Column(
            "subscriber_flow_id", "string", "flow of the subscriber; null: no member of the group got it", "context"
        ),
        Column("subscriber_client_id", "string", "client id of the subscriber", "context"),
        Column("subscriber_address", "string", "IP address of the subscriber", "context"),
        Column("share_name", "string", "name of the shared subscription", "context"),
        Column("topic_filter", "string", "filter that matches; null: subscribed before the capture", "context"),
        Column(
            "status",
            "string",
            "delivered; missing (not within a minute, or not before the capture ends); left (the subscriber left "
            "before); unknown (the subscriber's flow has gaps, or too many messages wait)",
            "context",
            nullable=False,
        ),
        Column("delivered_message_id", "string", "messages.message_id of the server's PUBLISH", "context"),
        Column("ts_delivered", "time", "its time", "context", unit="UTC"),
        Column("latency_ms", "float64", "from the publisher's PUBLISH to the server's", "context", unit="ms"),
        Column("waited_ms", "float64", "how long a delivery that is missing was waited for", "context", unit="ms"),
        SERVER_ADDRESS,
        SERVER_PORT,
    ),
    ("ts", "message_id", "subscriber_flow_id", "topic_filter"),
    "mqtt",
)

MQTT_TABLES = (_CONNECTIONS, _PUBLISHES, _SUBSCRIPTIONS, _DELIVERIES)
