"""Spans of Kafka's exchanges."""

from __future__ import annotations

from typing import Any

from opentelemetry.semconv._incubating.attributes import messaging_attributes as messaging

from wirewitness.reports.base.otel.span_attributes import MOST_LINKS, OWN, TRACEPARENT, Row, Told

# Kafka APIs that move messages; the others are named, but have no type of operation.
_TYPES = {
    "Produce": messaging.MessagingOperationTypeValues.SEND.value,
    "Fetch": messaging.MessagingOperationTypeValues.RECEIVE.value,
    "ShareFetch": messaging.MessagingOperationTypeValues.RECEIVE.value,
    "OffsetCommit": messaging.MessagingOperationTypeValues.SETTLE.value,
    "TxnOffsetCommit": messaging.MessagingOperationTypeValues.SETTLE.value,
    "ShareAcknowledge": messaging.MessagingOperationTypeValues.SETTLE.value,
}
# One row for each exchange: a topic or partition is only told where it is the only one.
_PARTS = """
    parts as (
        select exchange_id, topic, partition, group_id, null::bigint as records, null::bigint as first_offset
        from kafka_offset_commits
        union all
        select exchange_id, topic, partition, group_id, null, null from kafka_offset_fetches
        union all
        select exchange_id, topic, partition, group_id, records_count, null from kafka_fetch_partitions
        union all
        select exchange_id, topic, partition, null, records_count, base_offset from kafka_produce_batches
        union all
        select exchange_id, null, null, group_id, null, null from kafka_group_events where event <> 'describe'
    ),
    kafka as (
        select exchange_id, count(distinct topic) as topics, any_value(topic) as topic,
               count(distinct coalesce(topic, '') || ':' || partition) as partitions,
               any_value(partition) as partition, sum(records)::bigint as records,
               any_value(first_offset) as first_offset, any_value(group_id) as group_id
        from parts group by exchange_id
    )"""
# What the application's own instrumentation put into the headers of records.
_TRACES = f"""
    kafka_traces as (
        select exchange_id, list_sort(list(distinct traceparent))[1:{MOST_LINKS}] as traceparents
        from (select exchange_id, regexp_extract(headers, '{TRACEPARENT}', 1) as traceparent from kafka_records)
        where traceparent <> '' group by exchange_id
    )"""
# KIP-394: a member's first JoinGroup is answered with the id that it is to join with.
_MEMBER_ID_REQUIRED = 79


def _attributes(row: Row) -> dict[str, Any]:
    partition, records = row.get("partition"), row.get("records")
    return {
        messaging.MESSAGING_SYSTEM: messaging.MessagingSystemValues.KAFKA.value,
        messaging.MESSAGING_OPERATION_NAME: row["operation"],
        messaging.MESSAGING_OPERATION_TYPE: _TYPES.get(row["operation"]),
        messaging.MESSAGING_CLIENT_ID: row["client_id"] or None,
        messaging.MESSAGING_DESTINATION_NAME: row.get("topic"),
        messaging.MESSAGING_DESTINATION_PARTITION_ID: None if partition is None else str(partition),
        messaging.MESSAGING_CONSUMER_GROUP_NAME: row.get("group_id") or None,
        messaging.MESSAGING_BATCH_MESSAGE_COUNT: None if records == 1 else records,
        "messaging.kafka.offset": row.get("first_offset"),
        "messaging.kafka.cluster.id": row["cluster_id"],
        f"{OWN}kafka.api_version": _number(row["version"]),
    }


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


KAFKA = Told(
    name="kafka",
    attributes=_attributes,
    tables=(
        "kafka_offset_commits",
        "kafka_offset_fetches",
        "kafka_fetch_partitions",
        "kafka_produce_batches",
        "kafka_group_events",
        "kafka_records",
    ),
    subqueries=(_PARTS, _TRACES),
    joins="left join kafka k using (exchange_id) left join kafka_traces using (exchange_id)",
    columns={
        "topic": "case when k.topics = 1 then k.topic end",
        "partition": "case when k.topics = 1 and k.partitions = 1 then k.partition end",
        "first_offset": "case when k.records = 1 then k.first_offset end",
        "records": "k.records",
        "group_id": "k.group_id",
        "traceparents": "kafka_traces.traceparents",
    },
    no_errors=frozenset({("JoinGroup", _MEMBER_ID_REQUIRED)}),
)
