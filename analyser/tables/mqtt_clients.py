"""Tables of what MQTT's clients do over time: wills, filters that are gone, messages that come back."""

from __future__ import annotations

from dataclasses import replace

from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    FLOW_ID,
    SERVER_ADDRESS,
    SERVER_PORT,
    ts_column,
)


def text(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning, "context")


def count(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "int64", meaning, "context", unit=unit)


def flag(name: str, meaning: str) -> Column:
    return Column(name, "bool", meaning, "context")


def moment(name: str, meaning: str) -> Column:
    return Column(name, "time", meaning, "context", unit="UTC")


# What a capture may not show of a connection.
_UNKNOWN = {"client_address", "client_port", "version", "server_address", "server_port"}


def table(
    name: str, meaning: str, columns: tuple[Column, ...], order: tuple[str, ...], protocol: str, unknown: str = ""
) -> Table:
    """A table whose rows have all columns but those of `unknown`, names with blanks between, and of _UNKNOWN."""
    may_miss = _UNKNOWN | {*unknown.split()}
    return Table(
        name, meaning, tuple(one if one.name in may_miss else replace(one, nullable=False) for one in columns), order,
        protocol,
    )  # fmt: skip


CLIENT = (
    text("client_id", "client id"),
    CLIENT_ADDRESS,
    CLIENT_PORT,
    text("version", "3.1, 3.1.1 or 5.0"),
)
SERVER = (SERVER_ADDRESS, SERVER_PORT)
_PLACE = (text("file", "capture file of `packet`"), count("packet", "packet of the CONNECT: number in its file"))

_WILLS = table(
    "mqtt_wills",
    "one row per will that a server had to publish: when, who saw it, who came after its client, what became of it",
    (
        FLOW_ID,
        ts_column("when it was due: its connection ended without DISCONNECT, and its delay was over", "context"),
        text("topic", "topic of the will"),
        flag("retain", "the will is to be retained"),
        Column("payload_bytes", "int64", "size of its payload", "context", unit="bytes"),
        *CLIENT,
        count("births", "messages of its client id on that topic before"),
        moment("ts_sent", "when the server sent it to a subscriber; null: nobody was seen to get it"),
        text("sent_message_id", "messages.message_id of that PUBLISH"),
        text("next_flow_id", "the connection after of its client id, or the only other one with this will topic"),
        text("next_client_id", "its client id"),
        text("next_client_address", "its IP address"),
        count("next_client_port", "its port"),
        moment("ts_next", "its CONNACK"),
        moment("ts_next_until", "until when it lived, or was seen"),
        text("newer_message_id", "what that connection had published on the topic when the will came over it"),
        moment("ts_newer", "its time"),
        moment("ts_corrected", "next message of a client on the topic; null: none"),
        count("served", "how often the server sent it as retained until then, from 3 s after that connection began"),
        text("served_message_id", "messages.message_id of the first of these"),
        moment("ts_served", "its time"),
        *SERVER,
        *_PLACE,
    ),
    ("ts", "flow_id"),
    "mqtt",
    "client_id retain payload_bytes births ts_sent sent_message_id next_flow_id next_client_id "
    "next_client_address next_client_port ts_next ts_next_until newer_message_id ts_newer ts_corrected "
    "served_message_id ts_served file packet",
)
_DROPPED_FILTERS = table(
    "mqtt_dropped_filters",
    "one row per connection and topic filter that its client id had on the one before and has no more",
    (
        FLOW_ID,
        ts_column("its CONNACK", "context"),
        moment("ts_until", "until when it lived, or was seen"),
        *CLIENT,
        flag("clean_start", "clean session or clean start of the connection"),
        flag("session_present", "the server had a session for it"),
        text("flow_before", "flow_id of the connection on which it had the filter"),
        text("topic_filter", "topic filter as sent"),
        text("matching_filter", "what topics are matched with"),
        count("qos", "QoS that had been granted"),
        count("filters_now", "filters that the connection subscribed to"),
        count("filters_new", "of these, filters that the connection before did not have"),
        count("messages", "messages of others that matched it from the CONNACK on"),
        count("messages_late", "of these, those after the time at which it would have subscribed again"),
        text("topic", "topic of such a message"),
        text("first_message_id", "mqtt_publishes.message_id of the first of them"),
        text("last_message_id", "likewise of the last"),
        text("exchange_id", "exchange of the SUBSCRIBE on the connection before"),
        *SERVER,
        *_PLACE,
    ),
    ("ts", "flow_id", "topic_filter"),
    "mqtt",
    "clean_start session_present topic first_message_id last_message_id exchange_id file packet",
)
_TOPIC_ROUNDS = table(
    "mqtt_topic_rounds",
    "one row per client and topic on which it published again what it had got on another topic, round and round",
    (
        text("message_id", "messages.message_id of its first copy"),
        ts_column("time of its first copy", "context"),
        moment("ts_last", "time of its last copy"),
        text("topic", "first topic of all on which these go round: rows with the same belong together"),
        text("to_topic", "topic of its copies; the first of them where each is longer than the one before"),
        text("from_topic", "topic on which it had got them; likewise"),
        count("topics", "topics of its copies"),
        count("values_count", "different payloads"),
        count("copies_count", "copies"),
        count("rounds_most", "the most of one payload and topic"),
        Column("handled_ms", "float64", "middle time from getting it to publishing it", "context", unit="ms"),
        *CLIENT,
        *SERVER,
        text("file", "capture file of `packet`"),
        count("packet", "packet of the first copy: number in its file"),
    ),
    ("ts", "message_id", "to_topic"),
    "mqtt",
    "message_id client_id file packet",
)
_CLIENT_SUBSCRIBES = table(
    "mqtt_client_subscribes",
    "one row per client (client id and address) that subscribed: how often, and what of it changed nothing",
    (
        ts_column("time of the first SUBSCRIBE", "context"),
        moment("ts_last", "time of the last one"),
        *CLIENT,
        count("subscribes", "its SUBSCRIBE packets"),
        count("without_effect", "of these, those whose filters it had already on that connection, options and all"),
        count("again", "of these, those whose filters it had just given up"),
        count("connections", "connections that they went on"),
        text("topic_filter", "a filter of the first of those without effect, or asked for again"),
        count("retained", "retained messages that the server sent to this client"),
        text("exchange_id", "exchange of the first of those without effect, else of the first one"),
        text("last_exchange_id", "exchange of the last one"),
        *SERVER,
    ),
    ("ts", "client_address", "client_id"),
    "mqtt",
    "client_id topic_filter exchange_id last_exchange_id",
)

_SERVER_PAUSES = table(
    "mqtt_server_pauses",
    "one row per time in which a server sent nothing to anybody while two clients or more waited for it",
    (
        ts_column("time of the first request that waited, or since when the server was silent", "context"),
        moment("ts_until", "its next message to anybody; without one, the end of the capture"),
        Column("waited_ms", "float64", "time between them", "context", unit="ms"),
        Column("usual_ms", "float64", "middle time until its responses in the capture", "context", unit="ms"),
        count("clients", "clients that waited"),
        count("heard", "of these, those whose requests the server's TCP confirmed at once"),
        count("addresses", "addresses of these clients"),
        count("requests", "their requests"),
        count("answered", "of these, those that it answered afterwards"),
        Column("names", "string", "JSON list of client ids, or addresses, 20 at most", "context", json=True),
        text("operations", "packet types that waited"),
        text("exchange_id", "exchange of the first one"),
        text("last_exchange_id", "exchange of the last one"),
        *SERVER,
    ),
    ("ts", "server_address", "server_port"),
    "mqtt",
    "usual_ms",
)
_PUBLISHER_HABITS = table(
    "mqtt_publisher_habits",
    "one row per client id and topic that it published on at least five times: how, what changed, and its likes",
    (
        ts_column("time of its first message there", "context"),
        moment("ts_last", "time of its last one"),
        *CLIENT,
        text("topic", "topic name"),
        text("topic_before", "topic of this client until then that differs by case or empty levels only; null: none"),
        text("topic_after", "the one topic on which this client published after it had left this one; null: none"),
        moment("ts_after", "its first message there"),
        text("shape", "topic with its digits as 0 and the client id as <id>: likes have the same"),
        text("plain_shape", "shape without case and empty levels"),
        text(
            "usual_shape",
            "of shapes that are the same but for these, or with the id where it has nothing, the one of most clients",
        ),
        count("usual_clients", "clients that have it"),
        count("likes", "other clients with this shape"),
        count("messages", "its messages, without those sent again"),
        count("retained", "of these, those with RETAIN"),
        count("retain_turns", "how often RETAIN changed from one to the next"),
        count("always_retained", "client ids and topics of this shape with RETAIN all the time"),
        count("before_turn", "messages before the change, where there was one"),
        flag("retains_now", "RETAIN of its last message"),
        moment("ts_turned", "time of the first change"),
        Column("gap_ms", "float64", "middle time from one message to the next", "context", unit="ms"),
        Column("longest_gap_ms", "float64", "the longest", "context", unit="ms"),
        Column("usual_gap_ms", "float64", "middle one of this shape", "context", unit="ms"),
        Column(
            "began_gap_ms",
            "float64",
            "middle one of the first quarter of that time, of 40 messages or more",
            "context",
            "ms",
        ),
        Column("ended_gap_ms", "float64", "middle one of the last quarter", "context", unit="ms"),
        count("same_again", "messages with the payload of the one before"),
        Column("same_gap_ms", "float64", "middle time from the one before to these", "context", unit="ms"),
        Column("other_gap_ms", "float64", "middle time to messages with another payload", "context", unit="ms"),
        Column("between_gaps", "float64", "share of gaps well between began_gap_ms and ended_gap_ms", "context"),
        Column("rising", "float64", "correlation of the payload's size with the number of the message", "context"),
        Column("began_bytes", "float64", "middle size of the payload in its first quarter", "context", unit="bytes"),
        Column("ended_bytes", "float64", "middle size in its last quarter", "context", unit="bytes"),
        Column(
            "around_rising",
            "float64",
            "correlation of what the packet has besides its payload (header, topic, properties) with that number",
            "context",
        ),
        Column("began_around_bytes", "float64", "middle size of that in the first quarter", "context", unit="bytes"),
        Column("ended_around_bytes", "float64", "middle size in the last quarter", "context", unit="bytes"),
        text("first_kind", "mqtt_publishes.payload_kind of its first message"),
        text("last_kind", "likewise of its last one"),
        count("kind_turns", "how often that changed from one message to the next"),
        count("before_kind_turn", "messages before the first change; null: none"),
        moment("ts_kind_turned", "time of the first change"),
        text("kind_turned_message_id", "mqtt_publishes.message_id of the first after it"),
        count("json", "messages with JSON"),
        count("json_cut", "messages that begin as JSON and do not end so"),
        moment("ts_cut", "the first of these"),
        text("cut_message_id", "its mqtt_publishes.message_id"),
        count("likes_of_kind", "others with this shape that sent first_kind only"),
        count("likes_json", "others with this shape that sent JSON only"),
        count("likes_retained", "messages with RETAIN of others with this shape"),
        count("likes_again", "their messages with the payload of the one before"),
        text(
            "successor", "client id that came in its place at its address: nearly the same, when it was gone; or null"
        ),
        text(
            "aside_message_id",
            "what it published or got about its last message here, on a topic of fewer than five; null: nothing",
        ),
        text("flow_id", "connection of its last message"),
        moment("ts_heard", "last message of the client on that connection, of any kind"),
        flag("whole", "that connection has no gaps"),
        moment("ts_last_of_shape", "last message of this shape"),
        text("message_id", "mqtt_publishes.message_id of its first message"),
        text("last_message_id", "likewise of its last one"),
        text("turned_message_id", "likewise of the first after RETAIN changed"),
        *SERVER,
    ),
    ("ts", "client_id", "topic"),
    "mqtt",
    "topic_before topic_after ts_after usual_shape before_turn ts_turned began_gap_ms ended_gap_ms same_gap_ms "
    "other_gap_ms between_gaps rising began_bytes ended_bytes around_rising began_around_bytes ended_around_bytes "
    "first_kind last_kind before_kind_turn ts_kind_turned kind_turned_message_id likes_json ts_cut cut_message_id "
    "successor aside_message_id "
    "ts_heard message_id last_message_id turned_message_id",
)

_NAMES_USED = table(
    "mqtt_names_used",
    "one row per client that used 20 names or more, topics with RETAIN or topic filters, not all at once",
    (
        ts_column("when it used the first one first", "context"),
        moment("ts_last", "when it used the last one first"),
        *CLIENT,
        text("kind", "retained topic, or filter"),
        count("names", "different names"),
        count("used_once", "of these, those that it used once"),
        count("given_up", "of these, those that it cleared or unsubscribed from"),
        text("first_name", "the first of them"),
        text("last_name", "the last of them"),
        Column("steady", "float64", "correlation of their number with time: 1 is one after the other", "context"),
        text("first_id", "message or exchange of the first one"),
        text("last_id", "message or exchange of the last one"),
        *SERVER,
    ),
    ("ts", "client_id", "kind"),
    "mqtt",
    "steady first_id last_id",
)
_TOPIC_WRITERS = table(
    "mqtt_topic_writers",
    "one row per topic whose retained message several clients set in turn, each to something else",
    (
        ts_column("first message with RETAIN", "context"),
        moment("ts_last", "last message with RETAIN"),
        text("topic", "topic name"),
        count("sets", "messages with RETAIN"),
        count("turns", "how often another client set another content than the one before"),
        count("writers", "client ids that set it"),
        *CLIENT,
        count("own_sets", "messages of this client, the one with most"),
        text("other_client_id", "client id of the one with most after it"),
        text("other_client_address", "its IP address"),
        count("other_client_port", "its port"),
        count("other_sets", "its messages"),
        text("message_id", "mqtt_publishes.message_id of the first that changed what another client had set"),
        text("last_message_id", "likewise of the last"),
        *SERVER,
    ),
    ("ts", "topic"),
    "mqtt",
    "other_client_address other_client_port message_id last_message_id",
)

CLIENT_TABLES = (
    _WILLS,
    _DROPPED_FILTERS,
    _TOPIC_ROUNDS,
    _CLIENT_SUBSCRIBES,
    _SERVER_PAUSES,
    _PUBLISHER_HABITS,
    _NAMES_USED,
    _TOPIC_WRITERS,
)
