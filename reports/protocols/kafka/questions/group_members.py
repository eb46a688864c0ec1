"""Members of groups at a time, with what each was given. In: nothing. Out: a SELECT for `kafka_views.py`.

What members said and committed is from `groups.py`, how a membership ended from the table kafka_members. What a member
has comes from its assignment; a Connect worker's connectors and tasks, and the tasks of a streams group, from what
these are told in their own words. A member that has gone has nothing.
"""

from __future__ import annotations

from wirewitness.reports.base.questions.workloads import OWNERS
from wirewitness.reports.protocols.kafka.questions.group_owners import OWNER_TABLES, PARTS
from wirewitness.reports.protocols.kafka.questions.groups import MEMBERS

MEMBER_TABLES = ("kafka_offset_commits", "kafka_group_events", "kafka_members", *OWNER_TABLES)

# What Connect workers and streams instances were given last, as "connector-task" and "task".
_TASKS = """
    select cluster, group_id, member_id, len(tasks) as tasks_count, array_to_string(tasks, ', ') as tasks
    from (
        select cluster, group_id, member_id, case when event = 'sync'
                then flatten(list_transform(json_keys(given), lambda name: list_transform(
                    from_json(json_extract(given, '$."' || name || '"'), '["VARCHAR"]'),
                    lambda task: case task when 'connector' then name else name || '-' || task end)))
                else from_json(json_extract(given, '$.active'), '["VARCHAR"]') end as tasks
        from (
            select coalesce(cluster_id, '') as cluster, group_id, member_id, event, epoch_ns(ts_response) as at_ns,
                   json_extract(protocol_metadata, case event when 'sync' then '$.assigned' else '$.given' end) as given
            from kafka_group_events
            where error_code = 0 and protocol_metadata is not null and ts_response is not null
                and event in ('sync', 'streams_heartbeat'))
        where given is not null and json_type(given) = 'OBJECT' and {until}
        qualify at_ns = max(at_ns) over (partition by cluster, group_id, member_id))"""

# What each said last that it wants to read; a member that goes unsubscribes first.
_TOPICS = """
    select coalesce(cluster_id, '') as cluster, group_id, member_id,
           replace(arg_max(topics, at_ns), ',', ', ') as topics
    from (select *, epoch_ns(ts) as at_ns from kafka_group_events
          where topics is not null and member_id <> '' and coalesce(generation, 0) >= 0)
    where {until} group by all"""
# A membership that ended later than the time asked for has not ended.
_ENDED = """
    select coalesce(cluster_id, '') as cluster, group_id, member_id, protocol as type, assignor, ts_joined,
           case when gone or ts_ended is null then ended else 'there' end as ended,
           case when gone then ts_ended end as ts_ended, case when gone then reason end as reason
    from (select *, coalesce(at_ns is not null and {until}, false) as gone from (
              select *, epoch_ns(ts_ended) as at_ns from kafka_members))
    qualify row_number() over (partition by cluster_id, group_id, member_id order by ts desc) = 1"""

# Who a member was until then.
_OWNED = f"""
    select coalesce(cluster_id, '') as cluster, group_id, member_id, {OWNERS} as client_owner
    from (select *, epoch_ns(ts) as at_ns from kafka_group_events) where {{until}} group by all"""

MEMBERS_AT = f"""
    select cluster_id, group_id, member_id, group_instance_id, client_id, client_address, client_owner, type,
           first_generation, last_generation, topics,
           case when ts_ended is null then coalesce(assigned, tasks_count) end as assigned,
           case when ts_ended is null then coalesce(assignment, tasks) end as assignment, committed_partitions,
           make_timestamp_ns(first_ns)::timestamptz_ns as ts_first,
           make_timestamp_ns(last_ns)::timestamptz_ns as ts_last, ts_joined, ended, ts_ended, reason
    from (select *, coalesce(cluster_id, '') as cluster from ({MEMBERS}))
    left join ({_ENDED}) using (cluster, group_id, member_id)
    left join ({_TOPICS}) using (cluster, group_id, member_id)
    left join ({PARTS}) using (cluster, group_id, member_id)
    left join ({_TASKS}) using (cluster, group_id, member_id)
    left join ({_OWNED}) using (cluster, group_id, member_id)"""
