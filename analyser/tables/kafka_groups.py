"""Tables of Kafka's groups that are made of other tables: members and rebalances.

`analyser/kafka/facts/group_stage.py` makes their rows.
"""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.shared import CLIENT_ADDRESS, CLIENT_ID, CLUSTER, FLOW_ID

_GROUP_ID = Column("group_id", "string", "consumer group", "context")


def _text(name: str, meaning: str, *, json: bool = False) -> Column:
    return Column(name, "string", meaning, "context", json=json)


def _number(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "int64", meaning, "context", unit=unit)


def _ms(name: str, meaning: str) -> Column:
    return Column(name, "float64", meaning, "context", unit="ms")


def _time(name: str, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "time", meaning, "context", unit="UTC", nullable=nullable)


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
            "left, vanished (a generation without it, no LeaveGroup), removed (it came back, or was told: 25, 110), "
            "fenced (82), replaced (its static name joined anew), there (at the end of the capture); null: not known",
        ),
        _time("ts_ended", "when it left, or when the group went on without it"),
        _text("reason", "why it left, as it said (KIP-800)"),
        _text("removed_by", "client id of another that sent its LeaveGroup"),
        _text("replaced_by", "member id that has its static name now"),
        _ms(
            "longest_silence_ms",
            "longest time without a request; null: only one, or bytes are missing or another server took over in it",
        ),
        _time("ts_silent", "begin of that silence"),
        _text(
            "silent_side",
            "what stood then, or since a member vanished, as TCP tells: network, process; null: not known",
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
        _time("ts_joined", "when JoinGroup was answered (classic groups)"),
        _time("ts_end", "when the last member had its part"),
        _text("protocol", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
        _text("assignor", "assignor of the new generation"),
        _number("generation_before", "generation or epoch before; null: not seen"),
        _number("generation", "generation or epoch that began"),
        _text(
            "trigger",
            "joined, left, vanished (a session timed out), subscription changed, topic changed, partitions given up "
            "(second step of a cooperative rebalance), leader or member (it joined again by itself); null: not known",
        ),
        _text("trigger_member_id", "member that set it off"),
        _text("trigger_client_id", "its client id"),
        _text("trigger_address", "its address"),
        _text("trigger_reason", "why it joined or left, as it said (KIP-800)"),
        _number("members_before", "members of the generation before, as far as seen; null: none seen"),
        _number("members_after", "members of the new generation, as far as seen"),
        _text("leader_id", "member that computed the assignment"),
        _ms("wait_ms", "from the first JoinGroup to the answers"),
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
            "JSON: for each member, ms from ts until it was told, asked to join and had its part, and pause_ms from "
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
