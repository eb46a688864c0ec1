"""Tables of MQTT."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table, columns_of
from wirewitness.analyser.tables.mqtt_answers import ANSWER_TABLES
from wirewitness.analyser.tables.mqtt_clients import CLIENT_TABLES
from wirewitness.analyser.tables.mqtt_work import WORK_TABLES
from wirewitness.analyser.tables.owners import CLIENT_BESIDE
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    EXCHANGE_ID,
    FLOW_ID,
    SERVER_ADDRESS,
    SERVER_PORT,
    ts_column,
)
from wirewitness.dissectors.mqtt.rows import CONNECTIONS, PUBLISHES, SUBSCRIPTIONS

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
            "client_id_assigned": (*_SIDES[:2], *CLIENT_BESIDE, *_SIDES[2:]),
            "disconnect_reason_string": (
                Column(
                    "closed_by",
                    "string",
                    "client, server: who sent the first FIN or RST; null while open, behind `observed_until`",
                    "flow",
                ),
                Column("ts_closed", "time", "time of that FIN or RST", "flow", unit="UTC"),
                Column(
                    "observed_until", "time", "until when more of its flow would have been seen", "flow", unit="UTC"
                ),
                Column("gap_bytes", "int64", "bytes of its flow missing from the capture", "flow", unit="bytes"),
                Column("handshake_seen", "bool", "the flow's beginning is in the capture", "flow"),
                Column(
                    "acked_by_server",
                    "int64",
                    "stream bytes of the client that the server's TCP ACKed",
                    "flow",
                    "bytes",
                ),
                Column("acked_by_client", "int64", "likewise of the server's stream", "flow", "bytes"),
                Column(
                    "retransmitted_segments", "int64", "segments of its flow whose bytes had been sent before", "flow"
                ),
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
        Column("qos", "int64", "QoS of the publish", "context"),
        Column(
            "subscriber",
            "string",
            "whom it had to reach: subscriber_flow_id, or $share/NAME/FILTER of a shared subscription",
            "context",
        ),
        Column(
            "subscriber_flow_id",
            "string",
            "flow of the subscriber; of a group that did not get it the stalled member, if there is one",
            "context",
        ),
        Column("subscriber_client_id", "string", "client id of the subscriber", "context"),
        Column("subscriber_address", "string", "IP address of the subscriber", "context"),
        Column("share_name", "string", "name of the shared subscription", "context"),
        Column("topic_filter", "string", "filter that matches; null: subscribed before the capture", "context"),
        Column(
            "status",
            "string",
            "delivered (acknowledged; QoS 0: ACKed by TCP); sent (not acknowledged); missing (not within 10 s or "
            "more, or what its session kept was passed over by later ones); left (the subscriber left before); lost "
            "(its session was gone when it came back); expired (while it was away); not_kept (QoS 0, by publish or by "
            "subscription, while it was away: a session need not keep it); refused (the server did not take it); "
            "unknown (gaps, the capture ends, too many wait)",
            "context",
            nullable=False,
        ),
        Column(
            "cause",
            "string",
            "why it is missing, as far as that shows: packet_too_large, expired (its message expiry interval was over "
            "while it waited), else blocked_by",
            "context",
        ),
        Column(
            "blocked_by",
            "string",
            "what of its subscriber held it up, also where it expired: dead_path (TCP sends again and nothing comes "
            "back), zero_window, unfinished_qos2, unacknowledged (a second or more when it was published), slow (a "
            "second or more for each acknowledgement, in the median)",
            "context",
        ),
        Column("open_messages", "int64", "messages that its subscriber did not acknowledge, or late", "context"),
        Column("ts_blocked", "time", "since when it was held up", "context", unit="UTC"),
        Column("blocked_ms", "float64", "for how long", "context", unit="ms"),
        Column(
            "overtaken",
            "bool",
            "missing, and a later one of its topic, QoS and publisher came a second or more before the end: lost",
            "context",
        ),
        Column(
            "queued", "bool", "published before the connection of its subscriber began: its session kept it", "context"
        ),
        Column("delivered_message_id", "string", "messages.message_id of the server's PUBLISH", "context"),
        Column("ts_delivered", "time", "its time", "context", unit="UTC"),
        Column("copies", "int64", "how often the server sent it: more than once where filters overlap", "context"),
        Column("acknowledged_ms", "float64", "from the server's PUBLISH to PUBACK or PUBCOMP", "context", unit="ms"),
        Column("latency_ms", "float64", "from the publisher's PUBLISH to the server's", "context", unit="ms"),
        Column(
            "waited_ms",
            "float64",
            "how long a missing delivery was waited for: from its publish, or from the return of its subscriber",
            "context",
            unit="ms",
        ),
        SERVER_ADDRESS,
        SERVER_PORT,
        Column("file", "string", "capture file of `packet`", "context"),
        Column("packet", "int64", "packet of the publish: number in its file", "context"),
    ),
    # Groups of one filter, none of whose members got it, are told apart by their names; a publish that came to one flow
    # twice, or that its subscriber missed both when it left and when it came back, by what became of it.
    (
        *("ts", "message_id", "subscriber_flow_id", "topic_filter", "share_name"),
        *("delivered_message_id", "status", "waited_ms"),
    ),
    "mqtt",
)

_ABSENCES = Table(
    "mqtt_offline_periods",
    "one row per return of a client for whose subscriptions messages were published while it was away",
    (
        Column("flow_id", "string", "its connection before", "context", nullable=False),
        ts_column("time at which it left", "context"),
        Column("client_id", "string", "client id", "context"),
        Column("client_address", "string", "IP address of the connection before", "context"),
        Column("client_port", "int64", "its port", "context"),
        Column("version", "string", "3.1, 3.1.1 or 5.0", "context"),
        Column("clean_start", "bool", "clean session or clean start of the connection before", "context"),
        Column("session_expiry_s", "int64", "session expiry interval that held then (5.0)", "context", unit="s"),
        Column("disconnected_by", "string", "client, server: who sent DISCONNECT; null for neither", "context"),
        Column("closed_by", "string", "client, server: who closed the connection before", "context"),
        Column("gap_bytes", "int64", "bytes of both connections missing from the capture", "context", unit="bytes"),
        Column("next_flow_id", "string", "its connection after", "context", nullable=False),
        Column("ts_back", "time", "time of the CONNACK of the connection after", "context", "UTC", nullable=False),
        Column("next_client_address", "string", "IP address of the connection after", "context"),
        Column("next_client_port", "int64", "its port", "context"),
        Column("next_clean_start", "bool", "clean session or clean start of the connection after", "context"),
        Column("session_present", "bool", "the server still had its session", "context", nullable=False),
        Column(
            "messages",
            "int64",
            "messages of QoS 1 and 2 published meanwhile for subscriptions of QoS 1 and 2; lost where the session was",
            "context",
            nullable=False,
        ),
        Column(
            "expired",
            "int64",
            "of them, those whose message expiry interval was over and that never came (5.0)",
            "context",
            nullable=False,
        ),
        Column(
            "qos_0_subscription",
            "int64",
            "messages of QoS 1 and 2 for its subscriptions of QoS 0, which its session need not keep, that never came",
            "context",
        ),
        Column("qos_0_publish", "int64", "likewise of QoS 0, for subscriptions of QoS 1 and 2", "context"),
        Column("unacknowledged", "int64", "messages that it had got before and not acknowledged", "context"),
        Column("complete", "bool", "false: there may have been more messages", "context"),
        Column("topics", "string", "JSON list of up to 20 topics of the messages", "context", json=True),
        Column("first_message_id", "string", "mqtt_publishes.message_id of the first of them", "context"),
        Column("last_message_id", "string", "likewise of the last", "context"),
        Column("publisher_client_id", "string", "client id of who published the first", "context"),
        Column("publisher_address", "string", "its IP address", "context"),
        SERVER_ADDRESS,
        SERVER_PORT,
        Column("next_exchange_id", "string", "exchange of CONNECT and CONNACK of the connection after", "context"),
        Column("file", "string", "capture file of `packet`", "context"),
        Column("packet", "int64", "packet of the CONNECT of the connection after: number in its file", "context"),
    ),
    ("ts", "client_id", "flow_id"),
    "mqtt",
)

_SESSIONS = Table(
    "mqtt_sessions",
    "one row per session that a server keeps of a client, over all connections that resume it",
    (
        Column("flow_id", "string", "the connection that it began with, in the capture", "context", nullable=False),
        Column("last_flow_id", "string", "its last connection", "context", nullable=False),
        ts_column(
            "time of the CONNACK of `flow_id`; of the first message where CONNECT is not in the capture", "context"
        ),
        Column("ts_until", "time", "when it ended; null while it lasts, or where that is not known", "context", "UTC"),
        Column("ts_offline", "time", "when its last connection ended; null while it is open", "context", "UTC"),
        Column("client_id", "string", "client id", "context"),
        Column("client_address", "string", "IP address of its last connection", "context"),
        Column("client_port", "int64", "its port", "context"),
        Column("version", "string", "3.1, 3.1.1 or 5.0", "context"),
        Column("clean_start", "bool", "clean session or clean start of the CONNECT that it began with", "context"),
        Column("session_expiry_s", "int64", "session expiry interval of its last connection (5.0)", "context", "s"),
        Column(
            "started_by",
            "string",
            "connect (the server had none); earlier (it was there before `ts`); null where nothing shows it",
            "context",
        ),
        Column(
            "ended_by",
            "string",
            "connection (it ends with its connection: clean session, or no session expiry interval); expiry (its "
            "interval was over); clean_start (a later CONNECT asked for a new one); server (it had none any more, and "
            "none of these explains it); unknown; null while it lasts",
            "context",
        ),
        Column("connections", "int64", "its connections in the capture", "context", nullable=False),
        Column("resumed", "int64", "CONNACKs that said session present", "context", nullable=False),
        SERVER_ADDRESS,
        SERVER_PORT,
        Column("exchange_id", "string", "exchange of CONNECT and CONNACK of `flow_id`", "context"),
        Column("file", "string", "capture file of `packet`", "context"),
        Column("packet", "int64", "packet of that CONNECT: number in its file", "context"),
    ),
    ("ts", "client_id", "flow_id"),
    "mqtt",
)

_ACTIVE_SUBSCRIPTIONS = Table(
    "mqtt_active_subscriptions",
    "one row per granted subscription, from when until when it was in force: it belongs to a session, not a connection",
    (
        Column("flow_id", "string", "connection on which it was granted", "context", nullable=False),
        Column("session_flow_id", "string", "mqtt_sessions.flow_id of its session", "context"),
        ts_column("time of the SUBACK that granted it", "context"),
        Column(
            "ts_until", "time", "until when; null while it is in force, or where that is not known", "context", "UTC"
        ),
        Column("client_id", "string", "client id", "context"),
        Column("client_address", "string", "IP address of that connection", "context"),
        Column("client_port", "int64", "its port", "context"),
        Column("version", "string", "3.1, 3.1.1 or 5.0", "context"),
        Column("topic_filter", "string", "topic filter as sent", "context"),
        Column("share_name", "string", "name of the shared subscription; null for others", "context"),
        Column("matching_filter", "string", "what topics are matched with: without $share/NAME/", "context"),
        Column("qos", "int64", "QoS granted: messages come with it at most", "context"),
        Column("no_local", "bool", "not what this client publishes itself (5.0)", "context"),
        Column("retain_as_published", "bool", "the RETAIN flag stays as published (5.0)", "context"),
        Column("retain_handling", "int64", "retained messages: 0 send, 1 if it is new, 2 do not (5.0)", "context"),
        Column(
            "ended_by",
            "string",
            "unsubscribe; replaced (the same filter was granted with other options); session (it ended, see "
            "mqtt_sessions); unknown; null while it is in force",
            "context",
        ),
        SERVER_ADDRESS,
        SERVER_PORT,
        Column("exchange_id", "string", "exchange of SUBSCRIBE and SUBACK", "context"),
        Column("position", "int64", "place of the filter in its packet, from 0", "context"),
        Column("file", "string", "capture file of `packet`", "context"),
        Column("packet", "int64", "packet of the SUBSCRIBE: number in its file", "context"),
    ),
    ("ts", "file", "packet", "exchange_id", "position"),
    "mqtt",
)

_RETAINED = Table(
    "mqtt_retained",
    "one row per step of the retained message of a topic: what a server keeps, who set it, until when",
    (
        Column("topic", "string", "topic name", "context", nullable=False),
        ts_column("time from which it is kept", "context"),
        Column("ts_until", "time", "until when; null while it is kept", "context", "UTC"),
        Column(
            "set_by",
            "string",
            "publish; will (a will with Will Retain that the specification has the server publish); unseen (the "
            "server sent it as retained, nobody in the capture had set it, and `ts` is the first time)",
            "context",
            nullable=False,
        ),
        Column(
            "ended_by", "string", "replaced, cleared (an empty one), expired (5.0); null while it is kept", "context"
        ),
        Column("payload_bytes", "int64", "size of its payload; null where it could not be read", "context", "bytes"),
        Column("payload_crc32", "int64", "CRC-32 of its payload; null of wills", "context"),
        Column("qos", "int64", "QoS with which it was set", "context"),
        Column("sets", "int64", "how often it was set in a row", "context", nullable=False),
        Column("ts_last", "time", "the last time of these", "context", "UTC"),
        Column("client_id", "string", "client id of who set it first", "context"),
        Column("client_address", "string", "its IP address", "context"),
        Column("client_port", "int64", "its port", "context"),
        Column("flow_id", "string", "its connection", "context"),
        Column("message_id", "string", "messages.message_id of the PUBLISH; null of wills", "context"),
        Column("next_client_id", "string", "client id of who replaced or cleared it", "context"),
        Column("next_client_address", "string", "its IP address", "context"),
        Column("next_client_port", "int64", "its port", "context"),
        Column("next_message_id", "string", "messages.message_id of the PUBLISH that did", "context"),
        SERVER_ADDRESS,
        SERVER_PORT,
        Column("file", "string", "capture file of `packet`", "context"),
        Column("packet", "int64", "packet of the PUBLISH, or of the CONNECT with the will", "context"),
        Column("next_file", "string", "capture file of `next_packet`", "context"),
        Column("next_packet", "int64", "packet of the PUBLISH that replaced or cleared it", "context"),
    ),
    ("ts", "topic", "message_id", "flow_id"),
    "mqtt",
)

MQTT_TABLES = (
    _CONNECTIONS,
    _PUBLISHES,
    _SUBSCRIPTIONS,
    _DELIVERIES,
    _ABSENCES,
    _SESSIONS,
    _ACTIVE_SUBSCRIPTIONS,
    _RETAINED,
    *CLIENT_TABLES,
    *WORK_TABLES,
    *ANSWER_TABLES,
)
