"""Tables of Kafka's groups: where members read, share groups, stored offsets, members and rebalances.

Facts make the rows of `kafka_fetch_ranges` (`analyser/kafka/facts/fetch_stage.py`), `kafka_members` and
`kafka_rebalances` (`group_stage.py`); the others come from messages and log segments.
"""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table, columns_of
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_ID,
    CLIENT_PORT,
    CLUSTER,
    ERROR_NAME,
    EXCHANGE_ID,
    FLOW_ID,
    PLACE,
    ts_column,
)
from wirewitness.dissectors.core.fields import Fields
from wirewitness.dissectors.kafka.rows.share_fields import SHARE_ACKNOWLEDGES, SHARE_FETCHES, SHARE_OFFSETS
from wirewitness.dissectors.kafka.rows.stored_fields import STORED_OFFSETS


def _time(name: str, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "time", meaning, "context", unit="UTC", nullable=nullable)


def _text(name: str, meaning: str, *, json: bool = False) -> Column:
    return Column(name, "string", meaning, "context", json=json)


def _number(name: str, meaning: str, unit: str = "", *, nullable: bool = True) -> Column:
    return Column(name, "int64", meaning, "context", unit=unit, nullable=nullable)


def _ms(name: str, meaning: str) -> Column:
    return Column(name, "float64", meaning, "context", unit="ms")


# The table of where clients of groups began to read.


READING_RUNS = Table(
    "kafka_fetch_ranges",
    "one row per run of reading: a client of a group fetches a partition, each time where its last response led to",
    (
        ts_column("time of the run's first fetch that was not refused", "context"),
        _time("ts_last", "time of its last one", nullable=False),
        _text("exchange_id", "exchange of the first"),
        CLUSTER,
        _text("group_id", "group of the client, from its group requests"),
        _text("topic", "topic name, else its id"),
        _text("topic_id", "topic id, where the request has one"),
        _number("partition", "partition index", nullable=False),
        _text("client_id", "client id of the reader"),
        _text("client_address", "IP address of the reader"),
        _text("member_id", "member that the client was last, else first after it, by its group requests"),
        _number("first_offset", "offset of the first fetch; null when its session began before the capture"),
        _number("next_offset", "offset after the last batch that the run was given, else the one asked for"),
        _number("fetches", "fetches of the run that name the partition or whose response has it", nullable=False),
        _number("records_count", "records that it was given"),
        _number("log_start_offset", "oldest offset still there at its begin"),
        _number("log_end_offset", "highest end of the log that was reported to it"),
        Column(
            "started_by",
            "string",
            "first (of the reader in the capture), offset (not the one that its last response led to), topic id "
            "(another one), connection (another one)",
            "context",
            nullable=False,
        ),
        _time("ts_before", "time of the reader's last fetch of the partition before"),
        _number("fetch_offset_before", "offset of that fetch"),
        _number("next_offset_before", "offset that it led to; null when its response is missing"),
        _number("group_offset_before", "highest offset that fetches of the whole group had led to"),
        _time("ts_stored", "when the group's offset was stored, or reported first; up to the begin or its OffsetFetch"),
        _number("stored_offset", "the offset stored then, by a consumer and not by a tool"),
        _text("stored_client_id", "client id of who stored it; null when only a response reports it"),
        _text("stored_client_address", "its IP address"),
        _text("stored_member_id", "its member id"),
        _text("stored_exchange_id", "its commit"),
        _time("ts_change", "when somebody changed the group, the topic or the offsets after that, and before the run"),
        _text("change", "reset, offsets deleted, group deleted, topic deleted, records deleted, partitions added"),
        _number("change_offset", "the offset that it was reset to, or up to which records were deleted"),
        _text("change_client_id", "client id of who did it"),
        _text("change_client_address", "its IP address"),
        _text("change_exchange_id", "its exchange"),
        _time("ts_answered", "time of the reader's last OffsetFetch of the partition since its last fetch"),
        _number("answered_offset", "what it got; -1 when none is stored"),
        _time("ts_out_of_range", "time of a fetch since then that was refused with OFFSET_OUT_OF_RANGE (1)"),
        _number("out_of_range_offset", "its offset"),
        _time("ts_listed", "time of the reader's ListOffsets since then that returned the run's first offset"),
        Column(
            "listed_timestamp", "int64", "what it asked: -1 latest, -2 earliest, else Unix ms", "context", unit="ms"
        ),
        _number("last_log_end_offset", "the last known end of the log (kafka_log_ends)"),
        _time("ts_last_log_end", "when a response reported on it last"),
        _number("earlier_log_end_offset", "the end of the log that was known ten seconds before that"),
        Column(
            "transactional", "bool", "transactions write to the partition; null when no producer is seen", "context"
        ),
        _time("client_gap_ts", "latest gap before the begin in a flow of this address"),
        _time("ts_last_gap", "latest gap in a flow of this address in the whole capture"),
        FLOW_ID,
        _text("file", "file of the first fetch"),
        _number("request_packet", "its packet"),
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)


# Tables of Kafka's share groups (KIP-932). Their topics are named by id alone on the wire.


def _table(name: str, meaning: str, fields: Fields) -> Table:
    others = {
        "": (EXCHANGE_ID,),
        "ts_response": (CLUSTER,),
        "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
        "topic_id": (Column("topic", "string", "topic name, where a response named the id", "context"),),
        "error_code": (ERROR_NAME, "error_message", *PLACE),
    }
    return Table(
        name, meaning, columns_of(fields, others), ("ts", "exchange_id", "topic", "partition", "first_offset"), "kafka"
    )


SHARE_TABLES = (
    _table(
        "kafka_share_fetches",
        "one row per range of records that a member of a share group acquired, or partition refused with an error",
        SHARE_FETCHES,
    ),
    _table(
        "kafka_share_acknowledges",
        "one row per range of records that a member of a share group acknowledged, in a ShareAcknowledge or ShareFetch",
        SHARE_ACKNOWLEDGES,
    ),
    Table(
        "kafka_share_offsets",
        "one row per partition of which the start in a share group was asked for, set, or kept by brokers",
        columns_of(
            SHARE_OFFSETS,
            {
                "": (EXCHANGE_ID,),
                "api": (CLUSTER,),
                "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
                "error_code": (ERROR_NAME, "error_message", *PLACE),
            },
        ),
        ("ts", "exchange_id", "topic", "topic_id", "partition"),
        "kafka",
    ),
)


# The table of what brokers keep in `__consumer_offsets`.

STORED_OFFSETS_TABLE = Table(
    "kafka_stored_offsets",
    "one row per offset that a broker stored or deleted, from log segments of __consumer_offsets",
    columns_of(
        STORED_OFFSETS,
        {"log_offset": (Column("file", "string", "file of the segment", "derived", nullable=False),)},
    ),
    ("ts", "log_partition", "log_offset"),
    "kafka",
)


_GROUP_ID = Column("group_id", "string", "consumer group", "context")


_MEMBERS = Table(
    "kafka_members",
    "one row per membership of a client in a group: from when to when, and how it ended",
    (
        CLUSTER,
        _GROUP_ID,
        _text("member_id", "member id"),
        _text("group_instance_id", "name of a static member"),
        CLIENT_ID,
        CLIENT_ADDRESS,
        _text("protocol", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        _text("protocol_type", "consumer, connect, ...; null: not seen"),
        _text("assignor", "assignor that the group chose, else those offered"),
        _text("topics", "subscribed topics, comma separated, as it said last"),
        _number("session_timeout_ms", "session timeout of its JoinGroup; KIP-848: not on the wire", "ms"),
        _number("rebalance_timeout_ms", "how long it may take to join again", "ms"),
        _number("first_generation", "first generation or member epoch that it was heard of in"),
        _number("last_generation", "last generation or member epoch that it was heard of in"),
        _text("partitions", "JSON: what it was assigned last, else what it committed; 500 at most", json=True),
        _time("ts", "its first request in the capture", nullable=False),
        _time("ts_joined", "when it became a member; null: before the capture, or never"),
        _time("ts_last", "its last request but for LeaveGroup", nullable=False),
        _text(
            "ended",
            "left, expired (a generation without it, no LeaveGroup), removed (it came back, or got 25, 110), "
            "fenced (82), replaced (its static name joined anew), active (at the end of the capture); null: not known",
        ),
        _time("ts_ended", "when it left, or when the group went on without it"),
        _text("reason", "why it left, as it said (KIP-800)"),
        _text("removed_by", "client id of another that sent its LeaveGroup"),
        _text("replaced_by", "member id that has its static name now"),
        _ms(
            "max_heartbeat_gap_ms",
            "longest time without a request; null: only one, or bytes are missing or another server took over in it",
        ),
        _time("ts_silent", "begin of that silence"),
        _text(
            "idle_side",
            "what hung then, or since a member expired, as TCP shows: network, process; null: not known",
        ),
        _text("closed_by", "client, server: who closed the connection of its last request; null while open"),
        _text("reset_by", "client, server: who reset it"),
        _time("ts_closed", "when it was closed"),
        _text("exchange_id", "its first request (exchanges.exchange_id)"),
        _text("last_exchange_id", "its last request"),
        FLOW_ID,
    ),
    ("ts", "cluster_id", "group_id", "member_id"),
    "kafka",
)

_REBALANCES = Table(
    "kafka_rebalances",
    "one row per rebalance of a group: what set it off, whom it waited for, what moved",
    (
        CLUSTER,
        _GROUP_ID,
        _time("ts", "when it was set off", nullable=False),
        _time("ts_joined", "when JoinGroup got its responses (classic groups)"),
        _time("ts_end", "when the last member had its part"),
        _text("protocol", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        _text("assignor", "assignor of the new generation"),
        _number("generation_before", "generation or epoch before; null: not seen"),
        _number("generation", "generation or epoch that began"),
        _text(
            "trigger",
            "joined, left, expired (a session timed out), subscription changed, topic changed, partitions given up "
            "(second step of a cooperative rebalance), leader or member (it joined again by itself); null: not known",
        ),
        _text("trigger_member_id", "member that set it off"),
        _text("trigger_client_id", "its client id"),
        _text("trigger_address", "its address"),
        _text("trigger_reason", "why it joined or left, as it said (KIP-800)"),
        _number("members_before", "members of the generation before, as far as seen; null: none seen"),
        _number("members_after", "members of the new generation, as far as seen"),
        _text("leader_id", "member that computed the assignment"),
        _ms("wait_ms", "from the first JoinGroup to the responses"),
        _text("waited_for", "late member (its JoinGroup came last), absent member (it never came); null: nobody"),
        _text("waited_member_id", "that member"),
        _text("waited_client_id", "its client id"),
        _text("waited_address", "its address"),
        _ms("waited_ms", "how long everybody waited for it alone; if its silence set it off, since its last request"),
        _time("ts_waited_last", "last request of the absent member"),
        Column("partitions_moved", "int64", "partitions that another member got", "context", nullable=False),
        _text("moves", "JSON: topic, partition, member it came from and went to; 200 at most", json=True),
        _text(
            "pauses",
            "JSON: for each member, ms from ts until it learned it, asked to join and had its part, and pause_ms from "
            "its JoinGroup to its part; 200 at most",
            json=True,
        ),
        _text("exchange_id", "first JoinGroup of it (exchanges.exchange_id)"),
        _text("last_exchange_id", "last JoinGroup of it"),
    ),
    ("ts", "cluster_id", "group_id", "generation"),
    "kafka",
)

KAFKA_GROUP_TABLES = (_MEMBERS, _REBALANCES)
