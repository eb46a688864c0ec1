"""Which consumer a partition of a group belongs to, and how a group stands. In: nothing. Out: SELECTs.

Whose a partition is at a time is what `kafka_ownership` says. A partition whose owner's time is over is nobody's where
the plan of the group's generation is known, or where only the member went. Whose assignments are not in the capture has
what it reads; of two such members the one that asked later. As in the views, `{until}` is a SQL boolean over `at_ns`,
and `{now_ns}` the time at which ages are told.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.lag import LAG_ROWS, LAG_TABLES, lag_steps
from wirewitness.analyser.kafka.facts.time_lag import PASSED_STEPS

OWNER_TABLES = ("kafka_ownership", "kafka_generations", "kafka_members", "kafka_clients")
# What PARTITIONS_OF_GROUPS reads.
PARTITION_TABLES = (*LAG_TABLES, *OWNER_TABLES, "kafka_fetch_partitions", "captures")

# What was owned until then: at_ns is when it ended, null while it had not.
_OWNED = """
    select * exclude (at_ns, ended_ns), case when ended then ended_ns end as ended_ns
    from (select *, at_ns is not null and {until} as ended
          from (select * exclude (at_ns), at_ns as began_ns, ended_ns as at_ns
                from (select coalesce(cluster_id, '') as cluster, group_id, member_id, topic, partition, generation,
                             shared, source, epoch_ns(ts) as at_ns, epoch_ns(ts_end) as ended_ns
                      from kafka_ownership) where {until}))"""
# cluster, group_id, topic, partition -> consumer_id, of several members (share groups) null; owners: how many they are.
OWNERS = f"""
    select cluster, group_id, topic, partition, count(distinct member_id) as owners,
           case when count(distinct member_id) = 1 then min(member_id) end as consumer_id
    from ({_OWNED}) where ended_ns is null group by all"""
# cluster, group_id, member_id, assigned, assignment: partitions of a share group belong to several members at once.
PARTS = f"""
    select cluster, group_id, member_id, sum(n)::bigint as assigned,
           string_agg(topic || '(' || parts || ')', ', ' order by topic) as assignment
    from (
        select cluster, group_id, member_id, topic, count(*) as n,
               string_agg(partition::varchar, ',' order by partition) as parts
        from (select distinct cluster, group_id, member_id, topic, partition from ({_OWNED}) where ended_ns is null)
        group by all)
    group by all"""
# Partitions that nobody has since their last owner: its generation still stands, or the whole plan of a later one is
# known.
_VACANT = f"""
    select distinct owned.cluster, owned.group_id, topic, partition
    from ({_OWNED}) as owned
    left join (
        select coalesce(cluster_id, '') as cluster, group_id, arg_max(generation, at_ns) as stands
        from (select *, epoch_ns(ts) as at_ns from kafka_generations) where {{until}} group by all) as newest
        using (cluster, group_id)
    left join (select distinct cluster, group_id, generation as stands, true as planned from ({_OWNED})
               where source = 'sync_leader') as planned using (cluster, group_id, stands)
    where source not like 'sync%' or generation = stands or coalesce(planned, false)"""

# Records before the log start are gone.
_REMOVED = """case when committed_offset < log_start_offset
                   then try_cast(log_start_offset::hugeint - committed_offset as bigint) end"""
_NOTE = """nullif(concat_ws(', ',
               case when vacant then 'no owner' when owners > 1 then owners || ' members' end,
               case when sent_ns is null and committed_offset is null and not coalesce(vacant, false)
                    then 'no commit seen' end,
               case when removed_offsets > 0 then removed_offsets || ' offsets removed by retention' end), '')"""

# What members said of themselves last: cluster, group_id, member_id -> name and address, and whether it has gone.
_NAMES = """
    select cluster, group_id, member_id, arg_max(client_id, at_ns) as consumer_client_id,
           arg_max(client_address, at_ns) as consumer_host, arg_max(group_instance_id, at_ns) as consumer_instance_id,
           coalesce(arg_max(ended_ns is not null, at_ns), false) as has_left
    from (select * exclude (at_ns), began_ns as at_ns,
                 case when at_ns is not null and {until} then at_ns end as ended_ns
          from (select * exclude (at_ns), at_ns as began_ns, epoch_ns(ts_ended) as at_ns
                from (select *, coalesce(cluster_id, '') as cluster, epoch_ns(ts) as at_ns from kafka_members)
                where {until}))
    group by all"""

# Clients of which no member's assignment was told. Which of several members of one client reads is not known.
_UNASSIGNED = f"""
    select clients.cluster, clients.group_id, client_id, client_address,
           case when count(*) filter (not gone) = 1 then max(member_id) filter (not gone) end as reader_id,
           bool_and(gone) as reader_left
    from (
        select clients.*, coalesce(has_left, false) as gone
        from (select *, coalesce(cluster_id, '') as cluster, epoch_ns(ts) as at_ns from kafka_clients
              where member_id is not null) as clients
        left join names using (cluster, group_id, member_id) where {{until}}) as clients
    left join (select distinct cluster, group_id, member_id, true as told from ({_OWNED})) as given
        using (cluster, group_id, member_id)
    group by all having not coalesce(bool_or(told), false)"""
_READ = """
    select coalesce(cluster_id, '') as cluster, group_id, coalesce(topic, topic_id, '') as topic, partition, client_id,
           client_address, epoch_ns(ts) as at_ns
    from kafka_fetch_partitions
    where group_id is not null and partition is not null and coalesce(replica_id, -1) < 0"""
# cluster, group_id, topic, partition -> the client that read it last.
_READERS = f"""
    select read.cluster, read.group_id, topic, partition, unnest(arg_max(struct_pack(
               reader_id, reader_left, reader_client_id := read.client_id, reader_host := read.client_address), at_ns))
    from ({_READ}) as read join ({_UNASSIGNED}) as clients
        on read.cluster = clients.cluster and read.group_id = clients.group_id
        and read.client_id is not distinct from clients.client_id
        and read.client_address is not distinct from clients.client_address
    where {{until}} group by read.cluster, read.group_id, topic, partition"""
# Who has a partition: a member that was given it, else the client that reads it. Where the reader left nobody has it,
# whatever was told before.
_CONSUMERS = """
    select cluster, group_id, topic, partition, consumer_id, owners, null as reader_client_id, null as reader_host,
           false as vacant
    from owners
    union all
    select cluster, group_id, topic, partition, case when not reader_left then reader_id end, null,
           case when not reader_left then reader_client_id end, case when not reader_left then reader_host end,
           reader_left
    from readers anti join owners using (cluster, group_id, topic, partition)
    union all
    select cluster, group_id, topic, partition, null, 0, null, null, true
    from vacant anti join owners using (cluster, group_id, topic, partition)
        anti join readers using (cluster, group_id, topic, partition)"""
_STEPS = {
    "owners": OWNERS,
    "names": _NAMES,
    "readers": _READERS,
    "vacant": _VACANT,
    "consumers": _CONSUMERS,
    **lag_steps(until="{until}", assigned="from consumers"),
    "stands": f"""
        select *, coalesce(cluster_id, '') as cluster, coalesce(group_id, '') as in_group,
               coalesce(topic, '') as of_topic, row_number() over () as row
        from ({LAG_ROWS})""",
    **PASSED_STEPS,
    "known": f"""
        select stands.*, passed_ns, reader_client_id, reader_host, vacant, owners,
               {_REMOVED} as removed_offsets, coalesce(consumers.consumer_id, case
                   when not coalesce(vacant, false) and not coalesce(has_left, false) then owner_member_id end)
                   as consumer_id
        from stands
        left join consumers on stands.cluster = consumers.cluster and in_group = consumers.group_id
            and of_topic = consumers.topic and stands.partition = consumers.partition
        left join names on stands.cluster = names.cluster and in_group = names.group_id
            and owner_member_id = names.member_id
        left join lag_passed using (row)""",
}

# How each partition of each group stands: committed, assigned or read, with its consumer and its last committer.
# owners: members that have it, null where no assignment tells. removed_offsets: from the committed offset to the
# log start; lag counts from there. log_end_age_ms: since the log end was told. time_lag_ms: see
# analyser/kafka/facts/time_lag.py.
PARTITIONS_OF_GROUPS = f"""
    with {", ".join(f"{name} as ({query})" for name, query in _STEPS.items())}
    select known.* exclude (cluster, in_group, of_topic, row, passed_ns, reader_client_id, reader_host, vacant),
           {_NOTE} as note,
           coalesce(consumer_host, reader_host) as consumer_host,
           coalesce(consumer_client_id, reader_client_id) as consumer_client_id, consumer_instance_id,
           make_timestamp_ns(sent_ns)::timestamptz_ns as ts_commit,
           make_timestamp_ns(end_ns)::timestamptz_ns as ts_log_end,
           greatest({{now_ns}} - end_ns, 0) / 1e6 as log_end_age_ms,
           case when lag = 0 then 0.0 when passed_ns is not null then greatest({{now_ns}} - passed_ns, 0) / 1e6 end
               as time_lag_ms,
           case when bool_or(sent_ns is not null and consumer_id is distinct from known.member_id)
                     over (partition by cluster_id, known.group_id) and sent_ns is not null
                then concat(coalesce(client_id, '?'), '@', coalesce(client_address, '?')) end as committed_by
    from known left join names on known.cluster = names.cluster and in_group = names.group_id
        and consumer_id = names.member_id"""


def at_time(query: str, now_ns: int | None) -> str:
    """The query with ages as of `now_ns`, or of the end of the capture where that is earlier or no time is given."""
    end = "(select max(epoch_ns(ts_last)) from captures)"
    return query.replace("{now_ns}", end if now_ns is None else f"least({int(now_ns)}, {end})")
