"""Fields of the rows that the group APIs give: commits, stored offsets, events of groups, assignments."""

from __future__ import annotations

from wirewitness.dissectors.core.fields import Field, Fields, ts
from wirewitness.dissectors.kafka.rows.common_fields import (
    CLIENT_ID,
    ERROR_CODE,
    ERROR_MESSAGE,
    GROUP_ID,
    GROUP_INSTANCE_ID,
    MEMBER_ID,
    PARTITION,
    REQUEST_OFFSET,
    REQUEST_PACKET,
    RESPONSE_OFFSET,
    RESPONSE_PACKET,
    TOPIC,
    TOPIC_ID,
    TS,
    TS_RESPONSE,
    UNSHOWN_TS_RESPONSE,
)

OFFSET_COMMITS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    Field("api", "string", "OffsetCommit or TxnOffsetCommit", nullable=False),
    GROUP_ID,
    MEMBER_ID,
    GROUP_INSTANCE_ID,
    Field("generation", "int64", "generation id or member epoch; -1 for a simple consumer"),
    CLIENT_ID,
    TOPIC,
    TOPIC_ID,
    PARTITION,
    Field("committed_offset", "int64", "next offset the group will read", nullable=False),
    Field("leader_epoch", "int64", "leader epoch of the last record; -1 unknown"),
    Field("metadata", "string", "text the client attached"),
    Field("producer_id", "int64", "producer id of TxnOffsetCommit"),
    Field("producer_epoch", "int64", "producer epoch of TxnOffsetCommit"),
    ERROR_CODE,
)

OFFSET_FETCHES = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    GROUP_ID,
    Field("member_id", "string", "member id (from version 9)"),
    Field("member_epoch", "int64", "member epoch (from version 9)"),
    CLIENT_ID,
    TOPIC,
    TOPIC_ID,
    PARTITION,
    Field("committed_offset", "int64", "stored offset; -1 when there is none"),
    Field("leader_epoch", "int64", "stored leader epoch; -1 unknown"),
    Field("metadata", "string", "text stored with the offset"),
    Field("require_stable", "bool", "wait for offsets of open transactions, error 88 (from version 7, KIP-447)"),
    ERROR_CODE,
)

GROUP_EVENTS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    TS,
    TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    GROUP_ID,
    Field(
        "group_protocol", "string", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)", nullable=False
    ),
    Field(
        "event",
        "string",
        "join, sync, heartbeat, leave, describe, consumer_heartbeat, share_heartbeat, streams_heartbeat",
        nullable=False,
    ),
    MEMBER_ID,
    GROUP_INSTANCE_ID,
    CLIENT_ID,
    Field("generation", "int64", "generation id or member epoch after the exchange"),
    Field("protocol_type", "string", "consumer, connect, ..."),
    Field("protocol_name", "string", "assignor"),
    Field("protocols_offered", "string", "assignors that JoinGroup offers, the one liked best first, comma separated"),
    Field("leader_id", "string", "member that computes the assignment"),
    Field("session_timeout_ms", "int64", "session timeout of JoinGroup", unit="ms"),
    Field("rebalance_timeout_ms", "int64", "rebalance timeout of JoinGroup or heartbeat", unit="ms"),
    Field("heartbeat_interval_ms", "int64", "how often the broker wants heartbeats (KIP-848)", unit="ms"),
    Field("topics", "string", "subscribed topics, comma separated", content=True),
    Field("topic_regex", "string", "subscribed topics as an expression (KIP-848)"),
    Field(
        "owned_partitions",
        "string",
        "JSON: topic or topic id to partitions that the member says it owns as it joins or beats; null: not said",
        json=True,
    ),
    Field("rack_id", "string", "rack of the member"),
    Field("reason", "string", "why the member joins or leaves (KIP-800)"),
    Field("state", "string", "group state of describe responses"),
    Field("members", "int64", "members named in the response (JoinGroup of the leader, describe)"),
    Field(
        "protocol_metadata",
        "string",
        "JSON: what the member said (join) or was given (sync) in its group's own protocol: consumer, "
        "connect, sr, streams; of streams_heartbeat the tasks it has and is given",
    ),
    ERROR_CODE,
    ERROR_MESSAGE,
)

ASSIGNMENTS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    ts("time from which the assignment is known (the response's completion)"),
    UNSHOWN_TS_RESPONSE,
    GROUP_ID,
    Field("generation", "int64", "generation id or member epoch"),
    Field("member_id", "string", "owner"),
    TOPIC,
    TOPIC_ID,
    Field("partition", "int64", "partition index; null when the member was given nothing"),
    Field(
        "source",
        "string",
        "sync_leader, sync_answer, consumer_heartbeat, describe; where members share partitions or have tasks "
        "share_heartbeat, share_describe, streams_describe",
        nullable=False,
    ),
)
