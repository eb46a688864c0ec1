"""The tables of the stages of the context: which are made, or get columns, from which others, and by which keys.

They are all that a process needs to know of stages until one has to run (`stages.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

# Tables by their names: rows in memory, or the Parquet file that they are in.
Held = Mapping[str, pa.Table | Path]
NOTHING: Held = MappingProxyType({})


class StageTables(NamedTuple):
    """The tables of one stage.

    makes: its tables. reads: tables that it needs besides; their rows are decoded too, and it sees them as the stages
    before it left them. uses: tables that it reads only where somebody wants them anyway. new: those of `makes` that
    have no rows before; the others get columns, and keep what else stands in their rows.
    """

    makes: tuple[str, ...]
    reads: tuple[str, ...]
    uses: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


class Keyed(NamedTuple):
    """How some tables of a stage are made in shards of rows that belong together.

    keys: table -> the columns of its key, as SQL; other tables are seen whole. everywhere: of tables with keys, rows
    that all shards see. own: the key of the rows that are made, where some of them come out in other shards as well,
    of such rows.
    """

    makes: tuple[str, ...]
    keys: Mapping[str, str]
    everywhere: Mapping[str, str] = {}  # not a proxy, which cannot be pickled
    own: str | None = None


GAPS = StageTables(makes=("gaps",), reads=("flows", "expert_infos"), new=("gaps",))
TOPICS = StageTables(makes=("kafka_topics",), reads=("kafka_partitions", "kafka_admin_changes"), new=("kafka_topics",))
# What it reads of fetches is there before these get their columns.
LOG_ENDS = StageTables(
    makes=("kafka_log_ends",),
    reads=(
        "kafka_fetch_partitions", "kafka_list_offsets", "kafka_produce_batches", "kafka_transactions",
        "kafka_admin_changes", "kafka_topics",
    ),
    new=("kafka_log_ends",),
)  # fmt: skip
# It sees commits without what OFFSETS adds to them.
OWNERS = StageTables(
    makes=("kafka_generations", "kafka_ownership", "kafka_clients"),
    reads=("kafka_group_events", "kafka_assignments", "kafka_offset_commits", "gaps"),
    new=("kafka_generations", "kafka_ownership", "kafka_clients"),
)
OFFSETS = StageTables(
    makes=("kafka_offset_commits", "kafka_fetch_partitions"),
    reads=("kafka_ownership", "kafka_clients", "kafka_log_ends", "kafka_topics"),
    uses=("exchanges", "gaps"),
)
COMMITTED = StageTables(
    makes=("kafka_committed",),
    reads=(
        "kafka_offset_commits", "kafka_offset_fetches", "kafka_admin_changes", "kafka_topics",
        "kafka_fetch_partitions", "kafka_list_offsets",
    ),
    new=("kafka_committed",),
)  # fmt: skip
LAG = StageTables(makes=("kafka_lag",), reads=("kafka_committed", "kafka_log_ends", "kafka_topics"), new=("kafka_lag",))
READING = StageTables(
    makes=("kafka_fetch_ranges",),
    reads=(
        "kafka_fetch_partitions", "kafka_offset_commits", "kafka_offset_fetches", "kafka_list_offsets",
        "kafka_group_events", "kafka_admin_changes", "kafka_transactions", "kafka_produce_batches", "kafka_log_ends",
        "kafka_leader_epochs",
    ),
    uses=("gaps",),
    new=("kafka_fetch_ranges",),
)  # fmt: skip
GROUPS = StageTables(
    makes=("kafka_members", "kafka_rebalances"),
    reads=(
        "kafka_group_events", "kafka_generations", "kafka_ownership", "kafka_offset_commits", "flows", "expert_infos",
        "exchanges", "gaps",
    ),
    new=("kafka_members", "kafka_rebalances"),
)  # fmt: skip
STATES = StageTables(
    makes=("kafka_group_states",),
    reads=(
        "kafka_group_events", "kafka_members", "kafka_ownership", "kafka_offset_commits", "kafka_admin_changes",
        "kafka_partitions", "gaps",
    ),
    new=("kafka_group_states",),
)  # fmt: skip
_OF_PRODUCERS = (
    "kafka_transaction_spans", "kafka_refused_batches", "kafka_repeated_batches", "kafka_record_times",
    "kafka_stable_offset_waits",
)  # fmt: skip
PRODUCERS = StageTables(
    makes=_OF_PRODUCERS,
    reads=(
        "kafka_produce_batches", "kafka_transactions", "kafka_fetch_partitions", "kafka_partitions", "kafka_brokers",
    ),
    new=_OF_PRODUCERS,
)  # fmt: skip
ROUNDS = StageTables(
    makes=("kafka_value_rounds",),
    reads=("kafka_produce_batches", "kafka_fetch_partitions"),
    new=("kafka_value_rounds",),
)
VALUES_TWICE = StageTables(
    makes=("kafka_values_twice",),
    reads=("kafka_produce_batches", "kafka_fetch_partitions"),
    new=("kafka_values_twice",),
)
_OF_TOPIC_WRITERS = ("kafka_topic_writers", "kafka_key_places", "kafka_moved_keys")
TOPIC_WRITERS = StageTables(makes=_OF_TOPIC_WRITERS, reads=("kafka_produce_batches",), new=_OF_TOPIC_WRITERS)
ABORTED_READS = StageTables(
    makes=("kafka_aborted_reads",),
    reads=("kafka_produce_batches", "kafka_transaction_spans", "kafka_fetch_partitions"),
    new=("kafka_aborted_reads",),
)
# Versions have a row for each connection that speaks Kafka: without any, there is nothing to do.
CONNECTIONS = StageTables(
    makes=("kafka_connections",),
    reads=("exchanges", "kafka_api_versions", "kafka_brokers", "kafka_authentications", "kafka_fetch_partitions"),
    new=("kafka_connections",),
)
LEADERS = StageTables(
    makes=("kafka_leaders", "kafka_truncations"),
    reads=(
        "kafka_partitions", "kafka_leader_epochs", "kafka_fetch_partitions", "kafka_produce_batches", "kafka_topics",
    ),
    new=("kafka_leaders", "kafka_truncations"),
)  # fmt: skip
# As for connections, versions say that there is Kafka at all.
REFUSED = StageTables(
    makes=("kafka_refusals",),
    reads=(
        "exchanges", "kafka_api_versions", "kafka_partitions", "kafka_fetch_partitions", "kafka_share_fetches",
        "kafka_list_offsets", "kafka_leader_epochs", "kafka_offset_fetches", "kafka_group_events",
        "kafka_transactions",
    ),
    new=("kafka_refusals",),
)  # fmt: skip
PAUSES = StageTables(
    makes=("kafka_member_pauses",),
    reads=("kafka_offset_commits", "kafka_group_events", "kafka_fetch_partitions"),
    new=("kafka_member_pauses",),
)
SILENCES = StageTables(
    makes=("kafka_client_silences",),
    reads=("exchanges", "kafka_api_versions", "gaps"),
    new=("kafka_client_silences",),
)
CLIENT_REQUESTS = StageTables(
    makes=("kafka_client_requests",),
    reads=("exchanges", "kafka_api_versions", "kafka_group_events"),
    new=("kafka_client_requests",),
)
_OF_SESSIONS = (
    "mqtt_deliveries", "mqtt_offline_periods", "mqtt_sessions", "mqtt_active_subscriptions", "mqtt_retained",
)  # fmt: skip
DELIVERIES = StageTables(
    makes=("mqtt_publishes", *_OF_SESSIONS),
    reads=("mqtt_connections", "mqtt_subscriptions"),
    new=_OF_SESSIONS,
)
_OF_CLIENTS = (
    "mqtt_wills", "mqtt_dropped_filters", "mqtt_topic_rounds", "mqtt_client_subscribes", "mqtt_server_pauses",
    "mqtt_publisher_habits", "mqtt_names_used", "mqtt_topic_writers", "mqtt_workers", "mqtt_twin_publishers",
    "mqtt_publisher_contents", "mqtt_group_absences", "mqtt_lone_subscribers",
    "mqtt_retained_back", "mqtt_early_resends", "mqtt_kept_filters",
    "mqtt_late_subscribes",
    "mqtt_answers", "mqtt_repeated_transfers", "mqtt_births", "mqtt_lone_publishers",
)  # fmt: skip
MQTT_CLIENTS = StageTables(
    makes=_OF_CLIENTS,
    reads=(
        "mqtt_connections", "mqtt_subscriptions", "mqtt_publishes", "mqtt_deliveries", "mqtt_active_subscriptions",
        "mqtt_retained", "exchanges", "flows",
    ),
    new=_OF_CLIENTS,
)  # fmt: skip
CURSORS = StageTables(
    makes=("mongo_cursors", "mongo_transactions", "mongo_servers"),
    reads=("mongo_commands",),
    new=("mongo_cursors", "mongo_transactions", "mongo_servers"),
)
_OF_MONGO_CLIENTS = ("mongo_client_commands", "mongo_trends", "mongo_conflicts", "mongo_overwritten")
MONGO_USE = StageTables(makes=_OF_MONGO_CLIENTS, reads=("mongo_commands", "mongo_transactions"), new=_OF_MONGO_CLIENTS)
ENDS = StageTables(makes=("connection_ends",), reads=("flows", "exchanges"), new=("connection_ends",))

# What people call each stage.
TITLES = {
    GAPS.makes: "gaps of connections",
    TOPICS.makes: "topics and their ids",
    LOG_ENDS.makes: "starts and ends of logs",
    OWNERS.makes: "generations, owners and clients of groups",
    OFFSETS.makes: "owners, log ends and committers",
    COMMITTED.makes: "stored offsets",
    LAG.makes: "lag of stored offsets",
    READING.makes: "where clients of groups read",
    GROUPS.makes: "members and rebalances",
    STATES.makes: "states of groups",
    PRODUCERS.makes: "transactions and batches of producers",
    ROUNDS.makes: "values that come back",
    VALUES_TWICE.makes: "values that are there twice",
    TOPIC_WRITERS.makes: "what clients write to each topic",
    ABORTED_READS.makes: "who reads aborted transactions",
    SILENCES.makes: "silences of clients",
    CONNECTIONS.makes: "connections to Kafka",
    LEADERS.makes: "leaders and truncated logs",
    REFUSED.makes: "what brokers refused for good",
    CLIENT_REQUESTS.makes: "requests of each client",
    PAUSES.makes: "pauses of members",
    DELIVERIES.makes: "MQTT deliveries, sessions and retained messages",
    MQTT_CLIENTS.makes: "what MQTT's clients do over time",
    CURSORS.makes: "MongoDB cursors, transactions and servers",
    MONGO_USE.makes: "MongoDB commands of each application, and what they meet",
    ENDS.makes: "how connections ended",
}

# Of these tables the rows of one partition are looked at together.
OF_PARTITIONS = ("kafka_fetch_partitions", "kafka_offset_commits", "kafka_offset_fetches", "kafka_produce_batches")
# Of rows of one partition it is the same.
PARTITION = "hash(coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition)"
# The same of tables whose topic is the id where no name is known.
TOPIC_PARTITION = "hash(coalesce(cluster_id, ''), coalesce(topic, ''), partition)"
_GROUP, _CURSOR = "coalesce(cluster_id, ''), group_id", "server_address, server_port, cursor_id"
_OF_GROUPS = ("kafka_group_events", "kafka_offset_commits", "kafka_assignments")
# Stages that can be dealt, by the tables that they make.
KEYED = {
    GAPS.makes: [Keyed(GAPS.makes, {"expert_infos": "flow_id", "flows": "flow_id"})],
    # A change names several partitions.
    LOG_ENDS.makes: [
        Keyed(
            LOG_ENDS.makes,
            {
                "kafka_fetch_partitions": PARTITION,
                "kafka_produce_batches": PARTITION,
                "kafka_list_offsets": TOPIC_PARTITION,
            },
            own=TOPIC_PARTITION,
        )
    ],
    COMMITTED.makes: [
        Keyed(
            COMMITTED.makes,
            {
                **dict.fromkeys(("kafka_offset_commits", "kafka_offset_fetches", "kafka_fetch_partitions"), PARTITION),
                "kafka_list_offsets": TOPIC_PARTITION,
            },
        )
    ],
    LAG.makes: [Keyed(LAG.makes, dict.fromkeys(("kafka_committed", "kafka_log_ends"), TOPIC_PARTITION))],
    READING.makes: [
        Keyed(READING.makes, {**dict.fromkeys(OF_PARTITIONS, PARTITION), "kafka_log_ends": TOPIC_PARTITION})
    ],
    OWNERS.makes: [Keyed(OWNERS.makes, dict.fromkeys(_OF_GROUPS, _GROUP))],
    GROUPS.makes: [
        Keyed(GROUPS.makes, dict.fromkeys((*_OF_GROUPS[:2], "kafka_generations", "kafka_ownership"), _GROUP))
    ],
    # Deletions name groups of all shards.
    STATES.makes: [
        Keyed(STATES.makes, dict.fromkeys((*_OF_GROUPS[:2], "kafka_members", "kafka_ownership"), _GROUP), own=_GROUP)
    ],
    DELIVERIES.makes: [
        Keyed(
            DELIVERIES.makes,
            dict.fromkeys(("mqtt_publishes", "mqtt_connections", "mqtt_subscriptions"), "server_address"),
        )
    ],
    # A command that kills cursors names several of them.
    CURSORS.makes: [
        Keyed(("mongo_cursors",), {"mongo_commands": _CURSOR}, {"mongo_commands": "len(cursors_killed) > 0"}, _CURSOR),
        Keyed(("mongo_transactions",), {"mongo_commands": "lsid"}),
        Keyed(("mongo_servers",), {"mongo_commands": "server_address, server_port"}),
    ],
    ENDS.makes: [Keyed(ENDS.makes, dict.fromkeys(("flows", "exchanges"), "flow_id"))],
}
