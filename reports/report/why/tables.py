"""The tables that chains are made of. In: nothing. Out: WHY_TABLES; of them what the line of a report reads."""

from __future__ import annotations

from wirewitness.reports.protocols.kafka.questions.group_partitions import PARTITION_TABLES

FIRST_CAUSE_TABLES = (
    "expert_infos", "flows", "messages", "exchanges", "findings", "kafka_offset_commits", "kafka_group_events",
    "kafka_ownership", "kafka_members", "kafka_rebalances", "mqtt_connections",
)  # fmt: skip
WHY_TABLES = tuple(dict.fromkeys((
    "captures", "flows", "messages", "exchanges", "expert_infos", "tcp_waits", "findings", *PARTITION_TABLES,
    "kafka_offset_commits", "kafka_offset_fetches", "kafka_fetch_partitions", "kafka_produce_batches",
    "kafka_partitions", "kafka_truncations", "kafka_group_events",
    "kafka_ownership", "kafka_admin_changes", "kafka_fetch_ranges", "kafka_members", "kafka_rebalances",
    "kafka_request_times", "kafka_stable_offset_waits", "mongo_commands", "mqtt_connections",
    "mqtt_publishes", "mqtt_subscriptions",
    "mqtt_deliveries", "mqtt_offline_periods", "mqtt_sessions", "mqtt_active_subscriptions", "mqtt_retained",
)))  # fmt: skip
