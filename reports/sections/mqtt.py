"""What MQTT adds to a report: clients, topics, handshakes, deliveries. In: an analysis; out: sections, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dissectors.mqtt.dissector import MQTT
from reports.formats.document import Block, Heading, Section, protocol_section
from reports.questions.causes import Finding
from reports.questions.source import Source, rows
from reports.sections.summary import Summary, summary_blocks

TABLES_READ = ("mqtt_connections", "mqtt_publishes", "mqtt_subscriptions", "mqtt_deliveries")
_IN_JSON = 1000

CLIENTS = """
    select client_id, client_address, string_agg(distinct version, ', ' order by version) as versions,
           string_agg(distinct transport, ', ' order by transport) as transports,
           string_agg(distinct user_name, ', ' order by user_name) as user_names,
           count(*) as connections, count(*) filter (error_code <> 0) as refused,
           max(keep_alive_s) as keep_alive_s,
           sum(publishes_from_client)::bigint as published, sum(publishes_from_server)::bigint as received,
           count(*) filter (closed_by is not null and disconnected_by is distinct from 'client') as broken_off
    from mqtt_connections group by client_id, client_address
    order by connections desc, published desc, client_id, client_address"""
# The rate is that of the time between the first and the last message of the topic.
_TOPICS = """
    with topics as (
        select topic, count(*) filter (direction = 'client_to_server') as published,
               count(*) filter (direction = 'server_to_client') as sent_on,
               sum(payload_bytes) filter (direction = 'client_to_server')::bigint as published_bytes,
               sum(payload_bytes)::bigint as payload_bytes,
               count(distinct client_id) filter (direction = 'client_to_server') as publishers,
               count(distinct flow_id) filter (direction = 'server_to_client') as receivers,
               string_agg(distinct qos::varchar, ', ' order by qos::varchar) as qos,
               (epoch_ns(max(ts)) - epoch_ns(min(ts))) / 1e9 as seconds
        from mqtt_publishes group by topic)
    select topic, published,
           case when seconds >= 1 and published > 1 then round(published / seconds, 2) end as per_second,
           published_bytes, publishers, qos, sent_on, receivers, payload_bytes from topics
    order by payload_bytes desc nulls last, published desc, topic"""
HANDSHAKES = """
    select direction, qos, coalesce(handshake, 'unknown') as handshake, count(*) as messages,
           median(completed_ms) as median_ms, max(completed_ms) as max_ms
    from mqtt_publishes where qos > 0 group by all order by direction, qos, messages desc, handshake"""
DELIVERIES = """
    select coalesce(topic_filter, '(subscribed before the capture)') as topic_filter, share_name,
           count(distinct subscriber_flow_id) as subscribers,
           count(*) filter (status = 'delivered') as delivered, count(*) filter (status = 'missing') as missing,
           count(*) filter (status in ('left', 'unknown')) as not_known,
           median(latency_ms) as median_ms, quantile_cont(latency_ms, 0.99) as p99_ms, max(latency_ms) as max_ms
    from mqtt_deliveries group by all order by missing desc, delivered desc, topic_filter, share_name"""

_PARTS = (
    Summary(
        "clients", "Clients", CLIENTS, "mqtt_connections",
        {
            "client_id": "CLIENT ID", "client_address": "ADDRESS", "versions": "VERSION", "transports": "TRANSPORT",
            "user_names": "USER", "connections": "CONNECTIONS", "refused": "REFUSED", "broken_off": "BROKEN OFF",
            "keep_alive_s": "KEEP ALIVE S", "published": "PUBLISHED", "received": "RECEIVED",
        },
    ),
    Summary(
        "topics", "Topics, by bytes", _TOPICS, "mqtt_publishes",
        {
            "topic": "TOPIC", "published": "PUBLISHED", "per_second": "PER S", "published_bytes": "BYTES", "qos": "QOS",
            "publishers": "PUBLISHERS", "sent_on": "SENT ON", "receivers": "RECEIVERS",
        },
    ),
    Summary(
        "handshakes", "Handshakes of QoS 1 and 2", HANDSHAKES, "mqtt_publishes",
        {
            "direction": "DIRECTION", "qos": "QOS", "handshake": "HANDSHAKE", "messages": "MESSAGES",
            "median_ms": "MEDIAN MS", "max_ms": "MAX MS",
        },
    ),
    Summary(
        "deliveries", "Deliveries, by subscription", DELIVERIES, "mqtt_deliveries",
        {
            "topic_filter": "FILTER", "share_name": "SHARED AS", "subscribers": "SUBSCRIBERS", "delivered": "DELIVERED",
            "missing": "MISSING", "not_known": "NOT KNOWN", "median_ms": "MEDIAN MS", "p99_ms": "P99 MS",
            "max_ms": "MAX MS",
        },
    ),
)  # fmt: skip


def sections(source: Source, _: Sequence[Finding]) -> list[Section]:
    """One section; none without MQTT traffic."""
    if not rows(source, "select 1 as one from mqtt_connections limit 1"):
        return []
    blocks: list[Block] = []
    for part in _PARTS:
        found = rows(source, part.query)
        if found:
            blocks += [Heading(part.title), *summary_blocks(part, found)]
    return [protocol_section(MQTT.title, blocks)]


def values(source: Source) -> dict[str, Any]:
    """`mqtt`: clients, topics, handshakes, deliveries; at most 1,000 rows of each."""
    return {"mqtt": {part.key: rows(source, f"{part.query} limit {_IN_JSON}") for part in _PARTS}}
