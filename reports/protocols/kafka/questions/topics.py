"""Topics, partitions, brokers and clients of Kafka as the wire shows them. In: a source; out: SELECTs and small rows.

Rates count what clients move; fetches of replicas (replica_id 0 and above) are the brokers' own.
"""

from __future__ import annotations

from typing import Any

from wirewitness.analyser.kafka.facts.log_ends import DELETED_TOPICS, LIVES, LOG_STEPS, ends_of_bins, with_life
from wirewitness.analyser.tables.queries import UNAWAITED_MS, literal
from wirewitness.reports.base.questions.failures import IS_UNANSWERED
from wirewitness.reports.base.questions.source import Source, rows
from wirewitness.reports.base.questions.workloads import OWNERS

_BY_CLIENTS = "coalesce(replica_id, -1) < 0"

# One row for each topic that was described, written, read or committed.
TOPICS = f"""
    with described as (
        select cluster_id, coalesce(topic, topic_id) as topic, count(distinct partition) as partitions,
               count(distinct leader_id) as leaders, max(len(replicas)) as replicas,
               count(distinct partition) filter (len(isr) < len(replicas)) as under_replicated
        from kafka_partitions group by all),
    written as (
        select cluster_id, coalesce(topic, topic_id) as topic, sum(records_count)::bigint as records_written,
               sum(batch_bytes)::bigint as bytes_written, count(distinct (client_address, client_id)) as writers,
               count(*) filter (error_code <> 0) as write_errors, count(distinct partition) as partitions
        from kafka_produce_batches group by all),
    fetched as (
        select cluster_id, coalesce(topic, topic_id) as topic, sum(records_count)::bigint as records_read,
               sum(records_bytes)::bigint as bytes_read, count(distinct (client_address, client_id)) as readers,
               count(*) filter (error_code <> 0) as read_errors, count(distinct partition) as partitions
        from kafka_fetch_partitions where {_BY_CLIENTS} group by all),
    stored as (
        select cluster_id, coalesce(topic, topic_id) as topic, count(distinct group_id) as groups
        from kafka_offset_commits group by all),
    names as (
        select cluster_id, topic from described union select cluster_id, topic from written
        union select cluster_id, topic from fetched union select cluster_id, topic from stored)
    select n.cluster_id, n.topic, coalesce(d.partitions, greatest(w.partitions, f.partitions)) as partitions,
           d.replicas, d.leaders, d.under_replicated, w.records_written, w.bytes_written, w.writers, f.records_read,
           f.bytes_read, f.readers, s.groups,
           coalesce(w.write_errors, 0) + coalesce(f.read_errors, 0) as errors
    from names n
    left join described d on d.cluster_id is not distinct from n.cluster_id and d.topic = n.topic
    left join written w on w.cluster_id is not distinct from n.cluster_id and w.topic = n.topic
    left join fetched f on f.cluster_id is not distinct from n.cluster_id and f.topic = n.topic
    left join stored s on s.cluster_id is not distinct from n.cluster_id and s.topic = n.topic
    where n.topic is not null"""

# The newest description of each partition, how often its leader changed, and what moved. Of a topic that was deleted
# only what was told of a new one of its name counts, but for what moved.
_DESCRIBED = with_life(
    """
    select *, coalesce(cluster_id, '') as cluster, epoch_ns(ts) as at_ns from (
        select * replace (coalesce(topic, topic_id) as topic) from kafka_partitions where partition is not null)""",
    "lives",
)
_STEPS = f"(select *, 0 as bin, true as here from ({LOG_STEPS}))"
PARTITION_TABLES = (
    "kafka_partitions", "kafka_produce_batches", "kafka_fetch_partitions", "kafka_log_ends", "kafka_topics",
)  # fmt: skip
PARTITIONS_OF_TOPICS = f"""
    with lives as ({LIVES}),
    gone as (
        select nullif(cluster, '') as cluster_id, topic, max(at_ns) as gone_ns, max(incarnation) as gone_life
        from ({DELETED_TOPICS}) group by all),
    described as (
        select cluster_id, topic, partition, max_by(leader_id, ts) filter (there) as leader_id,
               max_by(leader_epoch, ts) filter (there) as leader_epoch, max_by(replicas, ts) filter (there) as replicas,
               max_by(isr, ts) filter (there) as isr, min(len(isr)) filter (there) as least_isr,
               count(distinct leader_epoch) filter (there and leader_epoch is not null) as leader_epochs,
               bool_or(there) as there
        from (select told.*, coalesce(incarnation >= gone_life, true) as there from ({_DESCRIBED}) as told
              left join gone on told.cluster_id is not distinct from gone.cluster_id and told.topic = gone.topic)
        group by all),
    written as (
        select cluster_id, coalesce(topic, topic_id) as topic, partition,
               sum(records_count)::bigint as records_written, sum(batch_bytes)::bigint as bytes_written
        from kafka_produce_batches group by all),
    fetched as (
        select cluster_id, coalesce(topic, topic_id) as topic, partition,
               sum(records_count)::bigint as records_read
        from kafka_fetch_partitions where {_BY_CLIENTS} group by all),
    ends as (
        select nullif(cluster, '') as cluster_id, topic, partition, log_end, incarnation
        from ({ends_of_bins(_STEPS)})),
    starts as (
        select cluster_id, topic, partition, incarnation, max(log_start_offset) as log_start from kafka_log_ends
        group by all),
    names as (
        select cluster_id, topic, partition from described
        union select cluster_id, topic, partition from written
        union select cluster_id, topic, partition from fetched)
    select n.cluster_id, n.topic, n.partition, d.leader_id, d.leader_epoch, d.replicas::varchar as replicas,
           d.isr::varchar as isr, d.least_isr, d.leader_epochs, w.records_written, w.bytes_written, f.records_read,
           case when coalesce(e.incarnation >= gone_life, true) then s.log_start end as log_start,
           case when coalesce(e.incarnation >= gone_life, true) then e.log_end end as log_end,
           case when not coalesce(e.incarnation >= gone_life, gone_life is null) and not coalesce(d.there, false)
               then make_timestamp_ns(gone_ns)::timestamptz_ns end as ts_deleted
    from names n
    left join gone g on g.cluster_id is not distinct from n.cluster_id and g.topic = n.topic
    left join ends e on e.cluster_id is not distinct from n.cluster_id and e.topic = n.topic
        and e.partition = n.partition
    left join starts s on s.cluster_id is not distinct from n.cluster_id and s.topic = n.topic
        and s.partition = n.partition and s.incarnation = e.incarnation
    left join described d on d.cluster_id is not distinct from n.cluster_id and d.topic = n.topic
        and d.partition = n.partition
    left join written w on w.cluster_id is not distinct from n.cluster_id and w.topic = n.topic
        and w.partition = n.partition
    left join fetched f on f.cluster_id is not distinct from n.cluster_id and f.topic = n.topic
        and f.partition = n.partition
    where n.partition is not null and n.topic is not null"""

# Partitions that a broker was told to lead, at any time. cluster: a condition.
LED_BY = """
    select cluster_id, coalesce(topic, topic_id) as topic, partition, max_by(leader_epoch, ts) as leader_epoch,
           max_by(isr::varchar, ts) as isr, min(ts) as ts_first, max(ts) as ts_last
    from kafka_partitions where leader_id = {node} and {cluster} group by all"""

# Every broker that was told of, under the name and port that clients got.
BROKERS = """
    with told as (
        select cluster_id, node_id, max_by(host, ts) as host, max_by(port, ts) as port, max_by(rack, ts) as rack,
               bool_or(is_controller) as was_controller, bool_or(is_fenced) as was_fenced,
               count(distinct (host, port)) as endpoints, min(ts) as ts_first, max(ts) as ts_last
        from kafka_brokers where node_id is not null group by all),
    led as (
        select cluster_id, leader_id as node_id, count(distinct (coalesce(topic, topic_id), partition)) as led
        from kafka_partitions where leader_id >= 0 group by all)
    select t.*, l.led from told t
    left join led l on l.cluster_id is not distinct from t.cluster_id and l.node_id = t.node_id"""

# What the answers about a partition say that the ones before did not.
LEADER_CHANGES = """
    with told as (
        select ts, exchange_id, cluster_id, coalesce(topic, topic_id) as topic, partition, leader_id, leader_epoch,
               isr::varchar as isr,
               lag(leader_id) over part as leader_before, lag(isr::varchar) over part as isr_before,
               lag(leader_epoch) over part as epoch_before
        from kafka_partitions where partition is not null and leader_id is not null
        window part as (partition by cluster_id, coalesce(topic, topic_id), partition order by ts, leader_epoch))
    select * from told
    where coalesce(leader_epoch, 0) >= coalesce(epoch_before, 0)
      and (coalesce(leader_before <> leader_id, false) or coalesce(isr_before <> isr, false))"""

# No error is no result to read.
ADMIN_CHANGES = "select * replace (nullif(error_name, 'NONE') as error_name) from kafka_admin_changes"

# What client libraries say of themselves, and what they ask for.
CLIENTS = f"""
    with named as (
        select flow_id, max(software_name) as software_name, max(software_version) as software_version
        from (select flow_id, software_name, software_version from kafka_api_versions union all
              select flow_id, driver, driver_version from mongo_commands union all
              select flow_id, null, version from mqtt_connections)
        group by flow_id)
    select e.client_id, e.client_address, e.protocol, max(n.software_name) as software_name,
           max(n.software_version) as software_version, count(distinct e.flow_id) as connections,
           count(*) as exchanges, count(*) filter (e.status = 'error') as errors,
           count(*) filter ({IS_UNANSWERED}) as unanswered,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms,
           min(e.ts) as ts_first, max(e.ts) as ts_last, {OWNERS} as client_owner
    from exchanges e left join named n using (flow_id) group by all"""

API_VERSIONS = """
    select operation, version, count(*) as exchanges, count(distinct (client_address, client_id)) as clients,
           count(*) filter (status = 'error') as errors
    from exchanges where protocol = 'kafka' group by operation, version"""

_RATES = """
    select epoch_ns(ts) // {width} * {width} / 1e6 as t, coalesce(topic, topic_id, '(no topic)') as topic,
           sum({count})::bigint as records, sum({bytes})::bigint as bytes
    from {table} where {where} group by all order by all"""

_SIDES = {
    "written": ("kafka_produce_batches", "records_count", "batch_bytes", "true"),
    "read": ("kafka_fetch_partitions", "records_count", "records_bytes", _BY_CLIENTS),
    "replicated": ("kafka_fetch_partitions", "records_count", "records_bytes", "replica_id >= 0"),
}


def partitions_of(cluster_id: str | None, topic: str) -> str:
    """A SELECT with one row for each partition of the topic."""
    cluster = "cluster_id is null" if cluster_id is None else f"cluster_id = {literal(cluster_id)}"
    return f"select * from ({PARTITIONS_OF_TOPICS}) where {cluster} and topic = {literal(topic)}"


def data_rates(source: Source, side: str, width_ns: int, topic: str | None = None) -> list[dict[str, Any]]:
    """t, topic, records, bytes by bin. side: written, read (by clients) or replicated (by brokers)."""
    table, count, size, where = _SIDES[side]
    if topic is not None:
        where = f"{where} and coalesce(topic, topic_id) = {literal(topic)}"
    query = _RATES.format(width=int(width_ns), table=table, count=count, bytes=size, where=where)
    return rows(source, query)
