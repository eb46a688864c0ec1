"""Fields of the rows that tell what a cluster is: brokers, partitions, versions of APIs."""

from __future__ import annotations

from wirewitness.dissectors.core.fields import Field, Fields, ts
from wirewitness.dissectors.kafka.rows.common_fields import (
    CLIENT_ID,
    ERROR_CODE,
    REQUEST_OFFSET,
    REQUEST_PACKET,
    RESPONSE_OFFSET,
    RESPONSE_PACKET,
    TOPIC_ID,
    UNSHOWN_TS_RESPONSE,
)

BROKERS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    ts("time of the response"),
    UNSHOWN_TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    CLIENT_ID,
    Field("wire_cluster_id", "string", "cluster id in the response itself"),
    Field("node_id", "int64", "broker id"),
    Field("host", "string", "advertised host"),
    Field("port", "int64", "advertised port"),
    Field("rack", "string", "rack"),
    Field("source", "string", "Metadata, DescribeCluster or FindCoordinator", nullable=False),
    Field("group_id", "string", "group that this coordinator serves"),
    Field("transactional_id", "string", "transactional id that this coordinator serves"),
    Field("is_controller", "bool", "named as the active controller; null where the response does not say"),
    Field("is_fenced", "bool", "broker is fenced (DescribeCluster from version 2)"),
)

PARTITIONS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    ts("time of the response"),
    UNSHOWN_TS_RESPONSE,
    REQUEST_PACKET,
    RESPONSE_PACKET,
    CLIENT_ID,
    Field("topic", "string", "topic name"),
    TOPIC_ID,
    Field("partition", "int64", "partition index; null where the row is about the topic: made, or an error"),
    Field("leader_id", "int64", "broker that leads; -1 none"),
    Field("leader_epoch", "int64", "leader epoch; -1 unknown"),
    Field("replicas", "int64_list", "brokers that hold a replica"),
    Field("isr", "int64_list", "replicas in sync"),
    ERROR_CODE,
    Field("offline_replicas", "int64_list", "replicas that are offline"),
    Field("eligible_leader_replicas", "int64_list", "replicas that may lead although not in sync (KIP-966)"),
    Field("last_known_elr", "int64_list", "eligible replicas that were last known (KIP-966)"),
    Field("source", "string", "Metadata, DescribeTopicPartitions or CreateTopics", nullable=False),
)

API_VERSIONS = Fields(
    REQUEST_OFFSET,
    RESPONSE_OFFSET,
    ts("time of that request"),
    UNSHOWN_TS_RESPONSE,
    CLIENT_ID,
    Field("software_name", "string", "client library, from ApiVersions 3 and later (KIP-511)"),
    Field("software_version", "string", "its version"),
    Field("api_key", "int64", "API key", nullable=False),
    Field("api_name", "string", "API name", nullable=False),
    Field("min_version", "int64", "lowest version the broker offers; null where it does not or nobody asked"),
    Field("max_version", "int64", "highest version the broker offers"),
    Field("used_version_min", "int64", "lowest version in requests of this connection; null while unused"),
    Field("used_version_max", "int64", "highest version in requests of this connection"),
)
