"""The tables that say which cluster a flow belongs to and what topic ids are called, by the columns that do."""

from __future__ import annotations

BROKERS, TOPICS = "kafka_brokers", "kafka_partitions"
NAMED_BY: dict[str, tuple[str, ...]] = {
    BROKERS: ("flow_id", "wire_cluster_id", "host", "port", "client_address", "server_address", "server_port"),
    TOPICS: ("topic_id", "topic"),
}
# Of Kafka: what names of topic ids are inferred from, where nothing names them.
INFERRED_FROM = ("kafka_offset_commits", "kafka_offset_fetches", "kafka_fetch_partitions", "kafka_produce_batches")
