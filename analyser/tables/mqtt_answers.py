"""Tables of MQTT's requests and answers: who answers how, what is asked for again, who talks to nobody."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column
from wirewitness.analyser.tables.mqtt_clients import CLIENT, SERVER, count, flag, moment, table, text
from wirewitness.analyser.tables.shared import ts_column

_ANSWERS = table(
    "mqtt_answers",
    "one row per client and kind of requests that it got with correlation data, and answers on their response topics",
    (
        ts_column("its first answer", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        text("shape", "topic of the requests with its client id as <id>, and 0 for digits"),
        text("topic", "topic of the requests, the first by name"),
        text("response_topic", "response topic of these, the first by name"),
        text("asker", "client id of who asked last"),
        count("requests", "requests that came to it, all with correlation data"),
        count("asked_again", "of them, those that the same client published again after that"),
        count("answers", "messages that it published on the response topic of a request that it had got"),
        count("without_correlation", "of them, those without correlation data"),
        text("message_id", "mqtt_publishes.message_id of the first request that came to it"),
        text("answer_message_id", "likewise of its first answer without correlation data; of its first, else"),
        text("last_message_id", "likewise of its last answer"),
        *SERVER,
    ),
    ("ts", "client_id", "shape"),
    "mqtt",
    "asker",
)

_REPEATED_TRANSFERS = table(
    "mqtt_repeated_transfers",
    "one row per client and kind of topics by which five messages or more came to it three times, or fewer ten times",
    (
        ts_column("first of these messages", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        text("shape", "their topics with its client id as <id>, and 0 for digits"),
        text("topic", "topic of the first one"),
        count("contents", "different messages: topic and payload"),
        count("rounds", "how often each came, in the middle"),
        count("messages", "messages in all, retained ones and those sent again with DUP aside"),
        count("bytes", "size of their payloads", unit="bytes"),
        text("sender", "client id of who published the first one"),
        text("asked_topic", "topic of what it published last before most of the rounds; null: no such topic"),
        count("asked", "messages that it published on that topic"),
        count("asked_contents", "different payloads of these"),
        Column("after_ms", "float64", "middle time from that message to a round", "context", unit="ms"),
        Column("each_ms", "float64", "mean time from one round to the next", "context", unit="ms"),
        Column("in_order", "float64", "share of messages after which the same one follows as mostly", "context"),
        count("likes", "other client ids that got half as many different messages of this shape, or more"),
        count("likes_rounds", "how often each of these came to them, at most"),
        text("message_id", "mqtt_publishes.message_id of the first message"),
        text("last_message_id", "likewise of the last one"),
        text("asked_message_id", "likewise of what it published last on asked_topic"),
        *SERVER,
    ),
    ("ts", "client_id", "shape"),
    "mqtt",
    "sender asked_topic asked asked_contents after_ms each_ms in_order likes_rounds asked_message_id",
)

_BIRTHS = table(
    "mqtt_births",
    "one row per edge node of Sparkplug B with a birth (NBIRTH): how many, and how many on a command",
    (
        ts_column("first birth", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        text("node", "group and edge node, by the topic"),
        text("topic", "topic of its births"),
        count("births", "births"),
        count("asked", "of them, those on a connection that had one, right after a command for the node"),
        count("data", "messages NDATA and DDATA of the node"),
        count("commands", "messages NCMD for the node"),
        text("host", "client id of who sent most of the commands before births; null: none"),
        Column("late_ms", "float64", "middle time from the command to the birth", "context", unit="ms"),
        count("likes", "other nodes of the server with a birth"),
        count("likes_asked", "births of these on a command"),
        text("message_id", "mqtt_publishes.message_id of the first birth on a command; null: none"),
        text("command_message_id", "likewise of the command before it"),
        text("last_message_id", "likewise of the last birth"),
        *SERVER,
    ),
    ("ts", "node", "client_id"),
    "mqtt",
    "client_id host late_ms message_id command_message_id",
)

_LONE_PUBLISHERS = table(
    "mqtt_lone_publishers",
    "one row per client that publishes at a server where nobody subscribes, for a filter in force at another server",
    (
        ts_column("first of these messages", "context"),
        moment("ts_last", "the last one"),
        *CLIENT,
        text("topic", "topic of these, the first by name"),
        count("topics", "topics of these"),
        count("messages", "messages that it published for that filter while it was in force"),
        text("topic_filter", "filter at the other server"),
        text("other_server_address", "IP address of the other server"),
        count("other_server_port", "its port"),
        text("other_client_id", "client id of who has that filter there"),
        text("other_client_address", "its IP address"),
        count("got", "messages that this one got by it, of clients of its server"),
        flag("shares_address", "the address of the publisher has clients at the other server, too"),
        text("message_id", "mqtt_publishes.message_id of the first message"),
        text("last_message_id", "likewise of the last one"),
        text("exchange_id", "exchange of the SUBSCRIBE at the other server"),
        *SERVER,
    ),
    ("ts", "client_id", "topic_filter"),
    "mqtt",
    "other_client_id other_client_address other_server_address other_server_port exchange_id",
)

ANSWER_TABLES = (_ANSWERS, _REPEATED_TRANSFERS, _BIRTHS, _LONE_PUBLISHERS)
