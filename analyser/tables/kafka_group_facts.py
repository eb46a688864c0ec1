"""Tables that facts of Kafka's groups make: generations, owners, clients, members, rebalances.

Rows are made by `analyser/kafka/facts/ownership.py` and `group_stage.py`.
"""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_ID,
    CLUSTER,
    FLOW_ID,
    milliseconds,
    number,
    text,
    time,
)

_GROUP_ID = Column("group_id", "string", "consumer group", "context")
_TOPIC = (text("topic", "topic name, else its id"), text("topic_id", "topic id, where the assignment has one"))

_GENERATIONS = Table(
    "kafka_generations",
    "one row per generation (classic) or epoch (KIP-848 and later) of a group that was heard of",
    (
        CLUSTER,
        _GROUP_ID,
        number("incarnation", "0, and one more each time the group's generations began again", nullable=False),
        number("generation", "generation id or group epoch", nullable=False),
        time("ts", "when it was heard of first, in whatever request the broker took", nullable=False),
        time("ts_end", "when the next one was; null: it stands to the end"),
        text("protocol", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        Column("join_seen", "bool", "somebody joined it in the capture", "context", nullable=False),
        text("leader_id", "member that computed the assignment (classic)"),
        text("assignor", "assignor that the group chose"),
        number("members", "members that were heard of in it", nullable=False),
    ),
    ("ts", "cluster_id", "group_id", "generation"),
    "kafka",
)

_OWNERSHIP = Table(
    "kafka_ownership",
    "one row per time in which a member of a group had a partition, by what it was assigned",
    (
        CLUSTER,
        _GROUP_ID,
        *_TOPIC,
        number("partition", "partition index", nullable=False),
        text("member_id", "owner"),
        CLIENT_ID,
        CLIENT_ADDRESS,
        number("generation", "generation or member epoch of the assignment; null: described"),
        time("ts", "when the assignment was known first", nullable=False),
        time("ts_unsure", "from when on it may have ended unseen, as bytes or heartbeats are missing"),
        time("ts_end", "when it ended; null: it stands to the end"),
        text(
            "ended_by",
            "generation (another one began), renewed (the member got it again), revoked (its next assignment is "
            "without it), reassigned (another member got it), left (LeaveGroup, epoch -1), removed (25, 110), fenced "
            "(82), described (the next description is without it); a session timeout shows as generation",
        ),
        Column("shared", "bool", "of a share group, where several members have a partition", "context", nullable=False),
        text("source", "what told it first, as in kafka_assignments"),
        text("exchange_id", "exchange that told it first"),
    ),
    ("ts", "cluster_id", "group_id", "topic", "partition", "member_id"),
    "kafka",
)

_STATES = Table(
    "kafka_group_states",
    "one row per time in which a group was in a state, as the broker would name it",
    (
        CLUSTER,
        _GROUP_ID,
        time("ts", "when it began", nullable=False),
        time("ts_end", "when the next one did; null: it lasts to the end"),
        text(
            "state",
            "PreparingRebalance, CompletingRebalance, Stable, Empty, Dead, Assigning, Reconciling, NotReady; null: no "
            "packet tells",
        ),
        text("type", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        text("protocol_type", "consumer, connect, ..."),
        text("assignor", "assignor of the group"),
        number("generation", "generation or epoch"),
        number("members", "members in the capture; null: not known"),
        text("leader_id", "member that computed the assignment (classic)"),
    ),
    ("ts", "cluster_id", "group_id"),
    "kafka",
    on_request=True,
)

_CLIENTS = Table(
    "kafka_clients",
    "one row per client, group and member: as whom a client sent requests of a group",
    (
        CLUSTER,
        CLIENT_ADDRESS,
        CLIENT_ID,
        _GROUP_ID,
        text("member_id", "member id; null: it named none"),
        time("ts", "its first request as this", nullable=False),
        time("ts_last", "its last one", nullable=False),
    ),
    ("ts", "cluster_id", "client_address", "client_id", "group_id", "member_id"),
    "kafka",
)


_MEMBERS = Table(
    "kafka_members",
    "one row per membership of a client in a group: from when to when, and how it ended",
    (
        CLUSTER,
        _GROUP_ID,
        text("member_id", "member id"),
        text("group_instance_id", "name of a static member"),
        CLIENT_ID,
        CLIENT_ADDRESS,
        text("protocol", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        text("protocol_type", "consumer, connect, ...; null: not seen"),
        text("assignor", "assignor that the group chose, else those offered"),
        text("topics", "subscribed topics, comma separated, as it said last"),
        number("session_timeout_ms", "session timeout of its JoinGroup; KIP-848: not on the wire", "ms"),
        number("rebalance_timeout_ms", "how long it may take to join again", "ms"),
        number("first_generation", "first generation or member epoch that it was heard of in"),
        number("last_generation", "last generation or member epoch that it was heard of in"),
        text("partitions", "JSON: what it was assigned last, else what it committed; 500 at most", json=True),
        time("ts", "its first request in the capture", nullable=False),
        time("ts_joined", "when it became a member; null: before the capture, or never"),
        time("ts_last", "its last request but for LeaveGroup", nullable=False),
        text(
            "ended",
            "left, expired (a generation without it, no LeaveGroup), removed (it came back, or got 25, 110), "
            "fenced (82), replaced (its static name joined anew), active (at the end of the capture); null: not known",
        ),
        time("ts_ended", "when it left, or when the group went on without it"),
        text("reason", "why it left, as it said (KIP-800)"),
        text("removed_by", "client id of another that sent its LeaveGroup"),
        text("replaced_by", "member id that has its static name now"),
        milliseconds(
            "max_heartbeat_gap_ms",
            "longest time without a request; null: only one, or bytes are missing or another server took over in it",
        ),
        time("ts_silent", "begin of that silence"),
        text(
            "idle_side",
            "what hung then, or since a member expired, as TCP shows: network, process; null: not known",
        ),
        text("closed_by", "client, server: who closed the connection of its last request; null while open"),
        text("reset_by", "client, server: who reset it"),
        time("ts_closed", "when it was closed"),
        text("exchange_id", "its first request (exchanges.exchange_id)"),
        text("last_exchange_id", "its last request"),
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
        time("ts", "when it was set off", nullable=False),
        time("ts_joined", "when JoinGroup got its responses (classic groups)"),
        time("ts_end", "when the last member had its part"),
        text("protocol", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        text("assignor", "assignor of the new generation"),
        number("generation_before", "generation or epoch before; null: not seen"),
        number("generation", "generation or epoch that began"),
        text(
            "trigger",
            "joined, left, expired (a session timed out), subscription changed, topic changed, partitions given up "
            "(second step of a cooperative rebalance), leader or member (it joined again by itself); null: not known",
        ),
        text("trigger_member_id", "member that set it off"),
        text("trigger_client_id", "its client id"),
        text("trigger_address", "its address"),
        text("trigger_reason", "why it joined or left, as it said (KIP-800)"),
        number("members_before", "members of the generation before, as far as seen; null: none seen"),
        number("members_after", "members of the new generation, as far as seen"),
        text("leader_id", "member that computed the assignment"),
        milliseconds("wait_ms", "from the first JoinGroup to the responses"),
        text("waited_for", "late member (its JoinGroup came last), absent member (it never came); null: nobody"),
        text("waited_member_id", "that member"),
        text("waited_client_id", "its client id"),
        text("waited_address", "its address"),
        milliseconds(
            "waited_ms", "how long everybody waited for it alone; where its silence set it off, since its last one"
        ),
        time("ts_waited_last", "last request of the absent member"),
        Column("partitions_moved", "int64", "partitions that another member got", "context", nullable=False),
        text("moves", "JSON: topic, partition, member it came from and went to; 200 at most", json=True),
        text(
            "pauses",
            "JSON: for each member, ms from ts until it learned it, asked to join and had its part, and pause_ms from "
            "its JoinGroup to its part; 200 at most",
            json=True,
        ),
        text("exchange_id", "first JoinGroup of it (exchanges.exchange_id)"),
        text("last_exchange_id", "last JoinGroup of it"),
    ),
    ("ts", "cluster_id", "group_id", "generation"),
    "kafka",
)

_PAUSES = Table(
    "kafka_member_pauses",
    "one row per pause of a member: records in hand, heartbeats go on, and no commit for five of its usual gaps, twice "
    "as long as any other time",
    (
        time("ts", "since when it had records that it had not committed, at the earliest its commit before",
             nullable=False),
        time("ts_last", "time of its next commit", nullable=False),
        CLUSTER,
        _GROUP_ID,
        text("member_id", "member"),
        number("generation", "generation or member epoch of both commits", nullable=False),
        CLIENT_ID,
        CLIENT_ADDRESS,
        text("topic", "the only partition that the commit behind moved on: topic name, else its id; null: several"),
        number("partition", "its index"),
        number("committed_offset", "its committed offset in the pause"),
        number("partitions", "partitions that the member had committed before", nullable=False),
        milliseconds("usual_gap_ms", "middle time between two commits of the member"),
        number("heartbeats", "of the member that were answered in the pause", nullable=False),
        number("records_in_hand", "records beyond its commits that it was given first in the pause"),
        number("records_behind", "records from its commits up to the end of the logs after the pause; null: unknown"),
        text("exchange_id", "the commit before"),
        text("next_exchange_id", "the commit behind"),
        text("file", "file of the commit before"),
        number("request_packet", "packet that completes it: number in its file, from 1"),
    ),
    ("ts", "cluster_id", "group_id", "member_id"),
    "kafka",
)  # fmt: skip

_SILENCES = Table(
    "kafka_client_silences",
    "one row per client of groups that stood still several times: it sent nothing, not even a heartbeat, and waited "
    "for no response, while others went on",
    (
        text("exchange_id", "the request before the first silence"),
        time("ts", "begin of the first silence", nullable=False),
        time("ts_last", "end of the last one", nullable=False),
        CLUSTER,
        CLIENT_ID,
        CLIENT_ADDRESS,
        number("silences", "how many", nullable=False),
        milliseconds("longest_ms", "the longest one"),
        milliseconds("total_ms", "all together"),
        milliseconds("usual_beat_ms", "middle time between two heartbeats of the client"),
        milliseconds("seen_ms", "from its first request to its last one"),
        text("longest_exchange_id", "the request behind the longest one"),
    ),
    ("ts", "cluster_id", "client_address", "client_id"),
    "kafka",
)

KAFKA_GROUP_TABLES = (_GENERATIONS, _OWNERSHIP, _CLIENTS, _MEMBERS, _REBALANCES, _STATES, _PAUSES, _SILENCES)
