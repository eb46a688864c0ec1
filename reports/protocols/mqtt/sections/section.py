"""What MQTT adds to a report: clients, topics, handshakes, deliveries. In: an analysis; out: sections, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wirewitness.dissectors.mqtt.dissector import MQTT
from wirewitness.reports.base.formats.document import Block, Heading, Section, protocol_section
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.sections.summary import Summary, summary_blocks
from wirewitness.reports.protocols.mqtt.questions.rows import BEFORE_CAPTURE

TABLES_READ = ("mqtt_connections", "mqtt_publishes", "mqtt_subscriptions", "mqtt_deliveries")
_IN_JSON = 1000

_CLIENTS = """
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
_HANDSHAKES = """
    select direction, qos, coalesce(handshake, 'unknown') as handshake, count(*) as messages,
           median(completed_ms) as median_ms, max(completed_ms) as max_ms
    from mqtt_publishes where qos > 0 group by all order by direction, qos, messages desc, handshake"""
_DELIVERIES = f"""
    select coalesce(topic_filter, '{BEFORE_CAPTURE}') as topic_filter, share_name,
           count(distinct subscriber_flow_id) as subscribers,
           count(*) filter (status = 'delivered') as delivered, count(*) filter (status = 'missing') as missing,
           count(*) filter (status = 'sent') as sent, count(*) filter (status in ('lost', 'expired')) as lost,
           count(*) filter (status in ('left', 'unknown', 'refused')) as not_known,
           median(latency_ms) as median_ms, quantile_cont(latency_ms, 0.99) as p99_ms, max(latency_ms) as max_ms
    from mqtt_deliveries group by all order by missing desc, delivered desc, topic_filter, share_name"""

CLIENTS = Summary(
    "clients", "Clients", _CLIENTS, "mqtt_connections",
    (
        Column("client_id", "Client", heading="CLIENT ID"), Column("client_address", "Address"),
        Column("versions", "Version", "text", 62, spare=2), Column("transports", "Transport", "text", "small", spare=4),
        Column("user_names", "User", spare=1), Column("connections", "Connections", "count"),
        Column("refused", "Refused", "count"), Column("broken_off", "Dropped", "count", heading="DROPPED"),
        Column("keep_alive_s", "Keep alive s", "plain", heading="KEEP-ALIVE S", spare=3),
        Column("published", "Published", "count"),
        Column("received", "Received", "count"),
    ),
)  # fmt: skip
TOPICS = Summary(
    "topics", "Topics, by bytes", _TOPICS, "mqtt_publishes",
    (
        Column("topic", "Topic"), Column("published", "Published"), Column("per_second", "Per s", spare=1),
        Column("published_bytes", "Bytes"), Column("qos", "QoS", spare=2), Column("publishers", "Publishers"),
        Column("sent_on", "Forwarded", heading="FORWARDED"), Column("receivers", "Receivers", spare=3),
    ),
)  # fmt: skip
HANDSHAKES = Summary(
    "handshakes", "Handshakes of QoS 1 and 2", _HANDSHAKES, "mqtt_publishes",
    (
        Column("direction", "Direction"), Column("qos", "QoS"), Column("handshake", "Handshake"),
        Column("messages", "Messages"), Column("median_ms", "Median ms"), Column("max_ms", "Max ms"),
    ),
)  # fmt: skip
DELIVERIES = Summary(
    "deliveries", "Deliveries, by subscription", _DELIVERIES, "mqtt_deliveries",
    (
        Column("topic_filter", "Filter"), Column("share_name", "Shared as"),
        Column("subscribers", "Subscribers", "count"), Column("delivered", "Delivered", "count"),
        Column("sent", "Not acknowledged", "count", heading="NOT-ACKNOWLEDGED"), Column("missing", "Missing", "count"),
        Column("lost", "Lost", "count"), Column("not_known", "Not known", "count", heading="NOT-KNOWN"),
        Column("median_ms", "Median ms", "ms", spare=2), Column("p99_ms", "p99 ms", "ms", spare=3),
        Column("max_ms", "Max ms", "ms", spare=1),
    ),
)  # fmt: skip
_PARTS = (CLIENTS, TOPICS, HANDSHAKES, DELIVERIES)


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
