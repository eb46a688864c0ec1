"""Tables of what MQTT's clients make of what they get, and of clients that publish the same."""

from __future__ import annotations

from dataclasses import replace

from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.mqtt_clients import CLIENT, SERVER, count, moment, text
from wirewitness.analyser.tables.shared import FLOW_ID, ts_column

# What a capture may not show of a connection.
_UNKNOWN = {"client_address", "client_port", "version", "server_address", "server_port"}


def _table(
    name: str, meaning: str, columns: tuple[Column, ...], order: tuple[str, ...], protocol: str, unknown: str = ""
) -> Table:
    """A table whose rows have all columns but those of `unknown`, names with blanks between, and of _UNKNOWN."""
    may_miss = _UNKNOWN | {*unknown.split()}
    return Table(
        name, meaning, tuple(one if one.name in may_miss else replace(one, nullable=False) for one in columns), order,
        protocol,
    )  # fmt: skip


_WORKERS = _table(
    "mqtt_workers",
    "one row per client and topic filter by which five messages or more came to it: what it got, what it published",
    (
        ts_column("first message that it got", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        text("topic_filter", "what topics are matched with: without $share/NAME/"),
        text("share_name", "name of the shared subscription; null for others"),
        text("filter_shape", "the filter with its client id as <id>, and 0 for digits"),
        count("got", "messages that it got by this filter"),
        count("published", "messages that it published from the first one on, on any topic"),
        text("result_shape", "shape of the topics on which it published most of them, likewise"),
        count("results", "messages that it published on topics of that shape"),
        text("message_id", "mqtt_publishes.message_id of the first message that it got"),
        text("last_message_id", "likewise of the last one"),
        text("result_message_id", "likewise of its last result"),
        *SERVER,
    ),
    ("ts", "client_id", "topic_filter", "share_name"),
    "mqtt",
    "share_name result_shape result_message_id",
)
_TWIN_PUBLISHERS = _table(
    "mqtt_twin_publishers",
    "one row per pair of client ids that publish the same payloads on the same topics at about the same time",
    (
        ts_column("first message that both published", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        text("other_client_id", "the other client id"),
        text("other_client_address", "its IP address"),
        count("other_client_port", "its port"),
        text("topic", "topic of these, the first by name"),
        count("topics", "topics of these"),
        count("common", "payloads that both published, within five of the longer of their usual gaps"),
        count("messages", "messages of the client on topics of both while both published"),
        count("contents", "different ones of these"),
        count("other_messages", "likewise of the other one"),
        count("other_contents", "different ones of these"),
        count("first_here", "of the common ones, those that the client published first"),
        Column("apart_ms", "float64", "middle time between both", "context", unit="ms"),
        Column("gap_ms", "float64", "the longer of their middle times from one message to the next", "context", "ms"),
        Column("ahead", "float64", "how many more the client had published there before one of these", "context"),
        text("message_id", "mqtt_publishes.message_id of the first"),
        text("other_message_id", "likewise of the same from the other one"),
        text("last_message_id", "likewise of the last from the other one"),
        *SERVER,
    ),
    ("ts", "client_id", "other_client_id"),
    "mqtt",
    "other_client_address other_client_port",
)
_PUBLISHER_CONTENTS = _table(
    "mqtt_publisher_contents",
    "one row per client and topic with ten messages or more: whether payloads go on changing, and keep their size",
    (
        ts_column("first message", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        text("topic", "topic name"),
        text("shape", "the topic with its client id as <id>, and 0 for digits; others with this shape are its likes"),
        count("messages", "messages with a payload, those sent again with DUP aside"),
        count("contents", "different payloads"),
        count("spread", "size of the largest less that of the smallest", unit="bytes"),
        count("longest_run", "the most messages in a row with one payload"),
        count("last_run", "messages at the end that have the same payload"),
        count("longest_before", "the most in a row before these; 0: none"),
        moment("ts_run", "when these began"),
        text("run_message_id", "mqtt_publishes.message_id of the first of them"),
        count("before_turn", "messages before the new connection from which on sizes are others; null: none"),
        moment("ts_turned", "its first message"),
        text("turned_message_id", "its mqtt_publishes.message_id"),
        count("least_before", "smallest payload before that", unit="bytes"),
        count("most_before", "largest one before that", unit="bytes"),
        count("least_since", "smallest one since", unit="bytes"),
        count("most_since", "largest one since", unit="bytes"),
        text("last_message_id", "mqtt_publishes.message_id of its last message"),
        *SERVER,
    ),
    ("ts", "client_id", "topic"),
    "mqtt",
    "before_turn ts_turned turned_message_id least_before most_before least_since most_since",
)
_GROUP_ABSENCES = _table(
    "mqtt_group_absences",
    "one row per group of a shared subscription that had no member for a time, with messages for it meanwhile",
    (
        ts_column("first message that met no member", "context"),
        moment("ts_last", "the last one"),
        text("share_name", "name of the shared subscription"),
        text("topic_filter", "what topics are matched with: without $share/NAME/"),
        count("members", "client ids that were members in the capture"),
        text("member_ids", "up to five of them"),
        count("absences", "times without a member that had such messages, each between two members"),
        count("messages", "messages of QoS 1 or 2 for the filter in these times"),
        Column("longest_ms", "float64", "the longest of these times", "context", unit="ms"),
        text("topic", "topic of these, the first by name"),
        count("topics", "topics of these"),
        text("publisher", "client id, or address, of one who published them"),
        text("message_id", "mqtt_publishes.message_id of the first of them"),
        text("last_message_id", "likewise of the last one"),
        *SERVER,
    ),
    ("ts", "share_name", "topic_filter"),
    "mqtt",
    "publisher",
)
_LONE_SUBSCRIBERS = _table(
    "mqtt_lone_subscribers",
    "one row per client that is alone at a server without messages, while its filter's pass at another server",
    (
        ts_column("time of the SUBACK", "context"),
        moment("ts_last", "last message for the filter at the other server meanwhile"),
        *CLIENT,
        text("topic_filter", "what topics are matched with"),
        text("topic", "topic of a message there"),
        text("other_server_address", "IP address of the server where they pass"),
        count("other_server_port", "its port"),
        text("other_client_id", "client id of the one who got most of them there, by the same filter"),
        text("other_client_address", "its IP address"),
        count("messages", "messages that it got meanwhile"),
        text("message_id", "mqtt_publishes.message_id of the first of them"),
        text("last_message_id", "likewise of the last one"),
        text("exchange_id", "exchange of its SUBSCRIBE"),
        *SERVER,
    ),
    ("ts", "client_id", "topic_filter"),
    "mqtt",
    "other_client_address other_server_address other_server_port exchange_id",
)
_RETAINED_BACK = _table(
    "mqtt_retained_back",
    "one row per topic of which a server sends an earlier retained message in place of the last one",
    (
        ts_column("when it sent the earlier one first", "context"),
        moment("ts_last", "when it did so last"),
        text("topic", "topic name"),
        count("served", "how often it did"),
        count("subscribers", "client ids that got it"),
        moment("ts_set", "when the last one had been set"),
        *CLIENT[:3],
        moment("ts_old", "when the earlier one had been set"),
        text("to_client_id", "client id of the first that got it"),
        text("to_client_address", "its IP address"),
        text("message_id", "mqtt_publishes.message_id of the first that the server sent so"),
        text("set_message_id", "likewise of the last one that a client had set"),
        text("old_message_id", "likewise of the earlier one, when it was set"),
        *SERVER,
    ),
    ("ts", "topic"),
    "mqtt",
    "client_id to_client_id to_client_address set_message_id old_message_id",
)
_EARLY_RESENDS = _table(
    "mqtt_early_resends",
    "one row per connection on which a client sent five messages or more again, although it had not come back",
    (
        ts_column("first one sent again", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        FLOW_ID,
        text("topic", "topic of the first one"),
        count("messages", "its messages of QoS 1 and 2 on that connection, each counted once"),
        count("sent_again", "PUBLISH packets with DUP that repeat one of these"),
        count("unfinished", "messages without an acknowledgement"),
        text("message_id", "mqtt_publishes.message_id of the first one sent again"),
        text("last_message_id", "likewise of the last one"),
        *SERVER,
    ),
    ("ts", "flow_id"),
    "mqtt",
    "client_id topic",
)
_KEPT_FILTERS = _table(
    "mqtt_kept_filters",
    "one row per connection and filter that its session keeps, that it did not ask for, and by which messages came",
    (
        ts_column("when the client was back: CONNACK with session present", "context"),
        moment("ts_last", "last message by that filter"),
        *CLIENT,
        FLOW_ID,
        text("topic_filter", "what topics are matched with"),
        text("new_filter", "a filter that it asked for on this connection, the first by name"),
        moment("ts_asked", "when it had asked for the old one"),
        text("topic", "topic of a message by the old filter"),
        count("messages", "messages by the old filter that were published after it was back"),
        count("likes", "other clients that unsubscribed from the old filter and subscribed to that new one"),
        text("like_client_id", "client id of one of these"),
        text("exchange_id", "exchange of its SUBSCRIBE on this connection"),
        text("old_exchange_id", "exchange of the SUBSCRIBE for the old one"),
        text("like_exchange_id", "exchange of the UNSUBSCRIBE of a like"),
        text("message_id", "messages.message_id of the first PUBLISH by the old filter"),
        text("last_message_id", "likewise of the last one"),
        *SERVER,
    ),
    ("ts", "flow_id", "topic_filter"),
    "mqtt",
    "like_client_id like_exchange_id old_exchange_id exchange_id",
)
_LATE_SUBSCRIBES = _table(
    "mqtt_late_subscribes",
    "one row per client and filter that was granted, on three connections or more, after a message for it had come",
    (
        ts_column("first of these messages", "context"),
        moment("ts_last", "last SUBACK"),
        *CLIENT,
        text("topic_filter", "the filter, which is a topic"),
        count("missed", "connections on which a message came after its first publish and before the SUBACK, to nobody"),
        count("connections", "connections on which it asked for the filter, without a session from before"),
        count("got", "messages on that topic that the server sent to it, on any connection"),
        text("publisher", "client id of one who published these messages"),
        Column("late_ms", "float64", "middle time from the message to the SUBACK", "context", unit="ms"),
        text("message_id", "mqtt_publishes.message_id of the first of these messages"),
        text("last_message_id", "likewise of the last one"),
        text("exchange_id", "exchange of the first SUBSCRIBE that came too late"),
        *SERVER,
    ),
    ("ts", "client_id", "topic_filter"),
    "mqtt",
    "publisher exchange_id",
)

WORK_TABLES = (
    _WORKERS, _TWIN_PUBLISHERS, _PUBLISHER_CONTENTS, _GROUP_ABSENCES, _LONE_SUBSCRIBERS, _RETAINED_BACK,
    _EARLY_RESENDS, _KEPT_FILTERS, _LATE_SUBSCRIBES,
)  # fmt: skip
