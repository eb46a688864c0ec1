"""Which consumer a partition of a group belongs to. In: nothing. Out: SELECTs.

Whose a partition is at a time is what `kafka_ownership` says. A partition whose owner's time is over is nobody's where
the plan of the group's generation is known, or where only the member went. Whose assignments are not in the capture has
what it reads; of two such members the one that asked later. As in the views, `{until}` is a SQL boolean over `at_ns`.
"""

from __future__ import annotations

OWNER_TABLES = ("kafka_ownership", "kafka_generations", "kafka_members", "kafka_clients")

# What was owned until then: ended_ns is null of what had not ended.
_OWNED = """
    select * exclude (at_ns), case when {until} then at_ns end as ended_ns
    from (select * exclude (at_ns, ended_ns), ended_ns as at_ns
          from (select coalesce(cluster_id, '') as cluster, group_id, member_id, topic, partition, generation, source,
                       epoch_ns(ts) as at_ns, epoch_ns(ts_end) as ended_ns
                from kafka_ownership) where {until})"""
# cluster, group_id, topic, partition -> consumer_id, of several members (share groups) null; owners: how many they are.
_OWNERS = """
    select cluster, group_id, topic, partition, count(distinct member_id) as owners,
           case when count(distinct member_id) = 1 then min(member_id) end as consumer_id
    from owned where ended_ns is null group by all"""
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
_VACANT = """
    select distinct owned.cluster, owned.group_id, topic, partition
    from owned
    left join (
        select coalesce(cluster_id, '') as cluster, group_id, arg_max(generation, at_ns) as stands
        from (select cluster_id, group_id, generation, epoch_ns(ts) as at_ns from kafka_generations)
        where {until} group by all) as newest
        using (cluster, group_id)
    left join (select distinct cluster, group_id, generation as stands, true as planned from owned
               where source = 'sync_leader') as planned using (cluster, group_id, stands)
    where source not like 'sync%' or generation = stands or coalesce(planned, false)"""

# What members said of themselves last: cluster, group_id, member_id -> name and address, and whether it has gone.
_NAMES = """
    select cluster, group_id, member_id, arg_max(client_id, began_ns) as consumer_client_id,
           arg_max(client_address, began_ns) as consumer_host,
           arg_max(group_instance_id, began_ns) as consumer_instance_id,
           coalesce(arg_max(coalesce(at_ns is not null and {until}, false), began_ns), false) as has_left
    from (select * exclude (at_ns), at_ns as began_ns, epoch_ns(ts_ended) as at_ns
          from (select coalesce(cluster_id, '') as cluster, group_id, member_id, client_id, client_address,
                       group_instance_id, ts_ended, epoch_ns(ts) as at_ns from kafka_members)
          where {until})
    group by all"""

# Clients of which no member's assignment was told. Which of several members of one client reads is not known.
_UNASSIGNED = """
    select clients.cluster, clients.group_id, client_id, client_address,
           case when count(*) filter (not gone) = 1 then max(member_id) filter (not gone) end as reader_id,
           bool_and(gone) as reader_left
    from (
        select clients.*, coalesce(has_left, false) as gone
        from (select coalesce(cluster_id, '') as cluster, group_id, member_id, client_id, client_address,
                     epoch_ns(ts) as at_ns from kafka_clients where member_id is not null) as clients
        left join names using (cluster, group_id, member_id) where {until}) as clients
    left join (select distinct cluster, group_id, member_id, true as told from owned) as given
        using (cluster, group_id, member_id)
    group by all having not coalesce(bool_or(told), false)"""
_READ = """
    select cluster, group_id, topic, partition, client_id, client_address, max(at_ns) as at_ns
    from (select coalesce(cluster_id, '') as cluster, group_id, coalesce(topic, topic_id, '') as topic, partition,
                 client_id, client_address, epoch_ns(ts) as at_ns
          from kafka_fetch_partitions
          where group_id is not null and partition is not null and coalesce(replica_id, -1) < 0)
    where {until} group by all"""
# cluster, group_id, topic, partition -> the client that read it last.
_READERS = f"""
    select read.cluster, read.group_id, topic, partition, unnest(arg_max(struct_pack(
               reader_id, reader_left, reader_client_id := read.client_id, reader_host := read.client_address), at_ns))
    from ({_READ}) as read join ({_UNASSIGNED}) as clients
        on read.cluster = clients.cluster and read.group_id = clients.group_id
        and read.client_id is not distinct from clients.client_id
        and read.client_address is not distinct from clients.client_address
    group by read.cluster, read.group_id, topic, partition"""
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
# Step by step, for a WITH. `consumers`: who has each partition; `names`: who each member is, and whether it has gone.
OWNER_STEPS = {
    "owned": _OWNED,
    "owners": _OWNERS,
    "names": _NAMES,
    "readers": _READERS,
    "vacant": _VACANT,
    "consumers": _CONSUMERS,
}
