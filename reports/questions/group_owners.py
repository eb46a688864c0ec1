"""Which consumer a partition of a group belongs to, and how a group stands. In: nothing. Out: SELECTs.

A member's newest assignment counts, in classic groups only that of the group's newest generation, until the member
leaves; of two members the one that was told later. `{until}` is a SQL boolean over `at_ns`, as in the views.
"""

from __future__ import annotations

from analyser.context.kafka_lag import lag_query

OWNER_TABLES = ("kafka_assignments", "kafka_group_events")

_TOLD = """
    select coalesce(cluster_id, '') as cluster, coalesce(group_id, '') as group_id, member_id,
           coalesce(topic, topic_id, '') as topic, partition, generation, source, epoch_ns(ts) as at_ns
    from kafka_assignments where member_id is not null"""
_EVENTS = """
    select *, coalesce(cluster_id, '') as cluster, epoch_ns(coalesce(ts_response, ts)) as at_ns
    from kafka_group_events where coalesce(member_id, '') <> '' and event <> 'describe'"""

_LEAVES = "(error_code = 0 and (event = 'leave' or (event like '%heartbeat' and generation < 0)))"

# What each member has: cluster, group_id, member_id, topic, partition, at_ns
_HELD = f"""
    with told as (select * from ({_TOLD}) where {{until}}),
    newest as (
        select cluster, group_id, arg_max(generation, at_ns) as newest from told where source like 'sync%'
        group by all),
    gone as (
        select cluster, group_id, member_id, max(at_ns) as gone_ns from ({_EVENTS})
        where {{until}} and {_LEAVES}
        group by all),
    current as (
        select * from told qualify at_ns = max(at_ns) over (partition by cluster, group_id, member_id))
    select cluster, group_id, member_id, topic, partition, at_ns, source
    from current left join newest using (cluster, group_id) left join gone using (cluster, group_id, member_id)
    where partition is not null and coalesce(gone_ns < at_ns, true)
        and (source not like 'sync%' or generation >= newest)"""
# cluster, group_id, topic, partition, consumer_id
OWNERS = f"""
    select cluster, group_id, topic, partition, arg_max(member_id, at_ns) as consumer_id from ({_HELD}) group by all"""
# cluster, group_id, member_id, assigned, assignment: partitions of a share group belong to several members at once.
PARTS = f"""
    select cluster, group_id, member_id, sum(n)::bigint as assigned,
           string_agg(topic || '(' || parts || ')', ', ' order by topic) as assignment
    from (
        select cluster, group_id, member_id, topic, count(*) as n,
               string_agg(partition::varchar, ',' order by partition) as parts
        from (select distinct cluster, group_id, member_id, topic, partition from ({_HELD})
              where partition is not null
              qualify source like 'share%' or member_id = arg_max(member_id, at_ns)
                  over (partition by cluster, group_id, topic, partition))
        group by all)
    group by all"""

# What members said of themselves last: cluster, group_id, member_id -> name and address.
_NAMES = f"""
    select cluster, coalesce(group_id, '') as group_id, member_id, arg_max(client_id, at_ns) as consumer_client_id,
           arg_max(client_address, at_ns) as consumer_host, arg_max(group_instance_id, at_ns) as consumer_instance_id,
           coalesce(arg_max({_LEAVES}, at_ns), false) as has_left
    from ({_EVENTS}) where {{until}} group by all"""

# How each partition of each group stands: committed or assigned, with its consumer and its last committer.
PARTITIONS_OF_GROUPS = f"""
    with owners as ({OWNERS}), names as ({_NAMES}),
    stands as ({lag_query(commits="{until}", ends="{until}", assigned="from owners")}),
    known as (
        select stands.*, coalesce(owners.consumer_id, case when not coalesce(has_left, false) then owner_member_id end)
                   as consumer_id
        from stands left join owners on coalesce(cluster_id, '') = owners.cluster
            and coalesce(stands.group_id, '') = owners.group_id and coalesce(stands.topic, '') = owners.topic
            and stands.partition = owners.partition
        left join names on coalesce(cluster_id, '') = names.cluster
            and coalesce(stands.group_id, '') = names.group_id and owner_member_id = names.member_id)
    select known.*, consumer_host, consumer_client_id, consumer_instance_id,
           make_timestamp_ns(sent_ns)::timestamptz_ns as ts_commit,
           make_timestamp_ns(end_ns)::timestamptz_ns as ts_log_end,
           case when bool_or(sent_ns is not null and consumer_id is distinct from known.member_id)
                     over (partition by cluster_id, known.group_id) and sent_ns is not null
                then concat(coalesce(client_id, '?'), '@', coalesce(client_address, '?')) end as last_committer
    from known left join names on coalesce(cluster_id, '') = names.cluster
        and coalesce(known.group_id, '') = names.group_id and consumer_id = names.member_id"""
