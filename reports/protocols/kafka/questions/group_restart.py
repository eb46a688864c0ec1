"""What consumers of a group would read again, or never, if they were killed and started now.

In: nothing. Out: a SELECT. A consumer that starts goes on at the stored offset, whatever it has read. Without a stored
offset, or where the log begins behind it by now, its auto.offset.reset decides: such a partition has a row for each of
its values. As in the views, `{until}` is a SQL boolean over `at_ns`, and `{now_ns}` the time at which ages are told.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.committed import COMMITS, READS
from wirewitness.reports.protocols.kafka.questions.group_partitions import PARTITION_TABLES, PARTITIONS_OF_GROUPS

RESTART_TABLES = (*PARTITION_TABLES, "kafka_records")

_PLACE = "cluster, group_id, topic, partition"
_READ = """
    select coalesce(cluster_id, '') as cluster, group_id, coalesce(topic, topic_id, '') as topic, partition,
           epoch_ns(coalesce(ts_response, ts)) as at_ns, next_offset
    from kafka_fetch_partitions where error_code = 0 and coalesce(replica_id, -1) < 0"""
_LOG_STARTS = """
    select coalesce(cluster_id, '') as cluster, coalesce(topic, '') as topic, partition, epoch_ns(ts) as at_ns,
           log_start_offset
    from kafka_log_ends where log_start_offset is not null"""
# Offsets of markers of transactions are no records, and those of removed ones are not there.
_RECORDS = """
    select coalesce(cluster_id, '') as cluster, coalesce(topic, topic_id, '') as topic, partition, "offset",
           any_value(coalesce(key_bytes, 0) + coalesce(value_bytes, 0)) as bytes, any_value(key) as key
    from (select *, epoch_ns(coalesce(ts_response, ts)) as at_ns from kafka_records)
    where "offset" is not null and control is null and {until} group by all"""

# Whom `--restart` names.
OF_MEMBER = "{} in (consumer_id, consumer_client_id, consumer_instance_id)"

# Where nothing is stored it is known that nothing is only if an offset was stored, or an answer said that none is.
_STEPS = {
    "stands": f"""
        select *, coalesce(cluster_id, '') as cluster, coalesce(topic, '') as of_topic
        from ({PARTITIONS_OF_GROUPS}) where group_id is not null""",
    "told": f"""
        select {_PLACE} from ({COMMITS}) where accepted and {{until}}
        union select {_PLACE} from ({READS}) where {{until}}""",
    "read": f"""
        select {_PLACE}, max(next_offset) as read_to from ({_READ})
        where group_id is not null and next_offset is not null and {{until}} group by all""",
    "starts": f"""
        select cluster, topic, partition, arg_max(log_start_offset, at_ns) as log_start
        from ({_LOG_STARTS}) where {{until}} group by all""",
    "known": """
        select stands.* exclude (of_topic), stands.of_topic, log_start,
               case when log_end_offset < read_to then null else read_to end as read_to,
               case when committed_offset < log_start then 'before the log start'
                    when committed_offset is not null then 'stored'
                    when told.partition is not null then 'nothing stored' else 'not known' end as starts_by
        from stands
        left join told on stands.cluster = told.cluster and stands.group_id = told.group_id
            and of_topic = told.topic and stands.partition = told.partition
        left join read on stands.cluster = read.cluster and stands.group_id = read.group_id
            and of_topic = read.topic and stands.partition = read.partition
        left join starts on stands.cluster = starts.cluster and of_topic = starts.topic
            and stands.partition = starts.partition""",
    "outcomes": """
        select *, unnest(case when starts_by in ('stored', 'not known') then ['any']
                              else ['earliest', 'latest', 'none'] end) as reset from known""",
    "starting": """
        select *, case when starts_by = 'stored' then committed_offset
                       when reset = 'earliest' then log_start
                       when reset = 'latest' then log_end_offset end as start_offset from outcomes""",
    "numbered": """
        select *, row_number() over () as row, read_to - start_offset as ahead,
               case when ahead is not null then greatest(ahead, 0) end as again_offsets,
               case when ahead is not null then greatest(-ahead, 0) end as skipped_offsets from starting""",
    "records": _RECORDS,
    "counted": """
        select row, count(*) filter (records."offset" < read_to) as again,
               count(*) filter (records."offset" >= read_to) as skipped,
               sum(bytes) filter (records."offset" < read_to)::bigint as again_bytes,
               arg_min(key, records."offset") filter (records."offset" < read_to) as first_key,
               arg_max(key, records."offset") filter (records."offset" < read_to) as last_key
        from numbered join records on numbered.cluster = records.cluster and of_topic = records.topic
            and numbered.partition = records.partition
            and records."offset" >= least(start_offset, read_to) and records."offset" < greatest(start_offset, read_to)
        group by row""",
}

# A row for each partition, and where its reset decides for each value of that. again_*: what was read already and comes
# again; skipped_*: what was not read and will not be. *_records, again_bytes and keys are of records in the capture.
RESTART = f"""
    with {", ".join(f"{name} as ({query})" for name, query in _STEPS.items())}
    select cluster_id, group_id, topic, partition, consumer_id, consumer_client_id, consumer_host,
           consumer_instance_id, committed_offset, committed_by, log_start as log_start_offset, log_end_offset,
           read_to as read_offset, starts_by, reset, start_offset, again_offsets,
           case when again_offsets = 0 then 0 else again end as again_records,
           case when again_offsets = 0 then 0 else again_bytes end as again_bytes,
           first_key as again_first_key, last_key as again_last_key, skipped_offsets,
           case when skipped_offsets = 0 then 0 else skipped end as skipped_records
    from numbered left join counted using (row)"""
