"""What stands out in Kafka's groups: partitions, readers, members, what they commit and ask for.

In: nothing. Out: POPULATIONS, over Kafka's finished tables.
"""

from __future__ import annotations

from wirewitness.analyser.engine.outliers.populations import CLIENT, Measure, Population, evidence, quarters, same
from wirewitness.analyser.kafka.facts.lag import lag_behind

_PARTITION = "cluster_id, topic, partition"
_GROUP_PARTITION = "cluster_id, group_id, topic, partition"


# Of a partition whose group has lag there and members: since when its offset stays while the log goes on. Lag is as
# `lag.py` has it, of what the end of the capture has: to make kafka_lag takes half as long as all findings.
_COMMITS = "kafka_offset_commits where error_code = 0 and committed_offset >= 0"
_PARTITIONS = f"""
    with stored as (
        select {_GROUP_PARTITION}, arg_max(committed_offset, coalesce(ts_response, ts)) as committed_offset,
               max(committed_offset) - min(committed_offset) as done,
               greatest((max(epoch_ns(ts)) - min(epoch_ns(ts))) / 1e6 / greatest(count(*) - 1, 1), 1) as pace_ms,
               {evidence()}
        from {_COMMITS} group by {_GROUP_PARTITION}),
    ends as (select {_PARTITION}, arg_max(log_end_offset, ts) as log_end, max(epoch_ns(coalesce(ts_last, ts))) as moved
             from kafka_log_ends group by {_PARTITION})
    select group_id || ' ' || topic as likes, coalesce(cluster_id, '') as cluster, *,
           case when behind > 5.0 * done / samples and group_id in (
               select group_id from kafka_members where ended is distinct from 'left'
               ) then (moved - last_ns) / 1e6 end as still_ms
    from (select stored.*, moved, {lag_behind("log_end")} as behind
          from stored left join ends on {same("stored", "ends", _PARTITION)})"""
_LAG_GROWS = f"""
    select group_id || ' ' || topic as likes, * from (
        {quarters(lag_behind("log_end_offset"), _GROUP_PARTITION, _COMMITS, 8)})"""

# Written partitions of topics of which consumers, or one group, read others.
_UNREAD = f"""
    with read as (
        select {_PARTITION}, null as group_id, sum(coalesce(records_count, 0)) as given from kafka_fetch_partitions
        where coalesce(replica_id, -1) < 0 group by {_PARTITION}
        union all
        select {_PARTITION}, group_id, sum(records_count) from kafka_fetch_ranges
        where group_id is not null group by {_PARTITION}, group_id),
    siblings as (select cluster_id, topic, group_id, sum(given) as given from read
                 group by cluster_id, topic, group_id having sum(given) > 0)
    select coalesce(written.topic, '') as likes, written.*, siblings.group_id, siblings.given as given, 0 as none,
           coalesce('group ' || siblings.group_id || ' does not fetch', 'nobody fetches') as unread
    from (select {_PARTITION}, sum(records_count) as written, {evidence()} from kafka_produce_batches
          where error_code = 0 group by {_PARTITION}) as written
    join siblings on {same("written", "siblings", "cluster_id, topic")}
    where not exists (from read where {same("read", "written", _PARTITION)}
                      and {same("read", "siblings", "group_id")})"""

_READERS = f"""
    select coalesce(topic, '') as likes, {CLIENT}, topic, partition, max(times) as again,
           arg_max(first_offset, times) as at_offset, sum(given)::bigint as given, 1 as once, 0 as none,
           nullif(sum(skipped), 0) as skipped,
           sum(samples)::bigint as samples, greatest(max(next_offset)::hugeint - min(first_offset), 1) as progress,
           min(first_ns) as first_ns, max(last_ns) as last_ns, arg_max(ids, times) as ids
    from (select {CLIENT}, group_id, topic, partition, first_offset, count(*) as times, sum(records_count) as given,
                 max(next_offset) as next_offset, sum(records_skipped) as skipped, {evidence()}
          from kafka_fetch_ranges where first_offset is not null and records_count > 0
          group by {CLIENT}, group_id, topic, partition, first_offset)
    group by {CLIENT}, group_id, topic, partition"""
# What a whole group was given, against how far it came: a group that begins anew at each rebalance reads again.
_GROUP_READS = f"""
    select group_id as likes, group_id, topic, sum(given)::bigint as given, sum(progress) as progress, 0 as none,
           nullif(sum(greatest(progress - covered, 0)), 0) as unread,
           sum(samples)::bigint as samples, min(first_ns) as first_ns, max(last_ns) as last_ns,
           arg_max(ids, given) as ids
    from (select group_id, topic, partition, sum(records_count) as given,
                 sum(next_offset::hugeint - first_offset) as covered,
                 greatest(max(next_offset)::hugeint - min(first_offset), 1) as progress, {evidence()}
          from kafka_fetch_ranges where group_id is not null and first_offset is not null
          group by group_id, topic, partition)
    group by group_id, topic"""

# Requests that prepare work, beside those that carry records.
_PREPARE = (
    "('Metadata', 'ListOffsets', 'OffsetFetch', 'FindCoordinator', 'JoinGroup', 'SyncGroup', 'ApiVersions', "
    "'InitProducerId', 'OffsetForLeaderEpoch', 'DescribeConfigs', 'CreateTopics', 'SaslHandshake')"
)
_REQUESTS = f"""
    select operation as likes, {CLIENT}, operation, prepares, 0.3 * carried as allowed, carried, data.* exclude
           ({CLIENT}, operation, prepares, carried)
    from (select {CLIENT}, operation, count(*) as prepares, {evidence()},
                 sum(count(*) filter (operation in ('Fetch', 'Produce', 'ShareFetch'))) over (partition by {CLIENT})
                     as carried
          from exchanges where protocol = 'kafka' and operation is not null
          group by {CLIENT}, operation) as data
    where operation in {_PREPARE} and carried > 0"""

_JOINS = f"""
    select group_id as likes, group_id, {CLIENT}, count(distinct exchange_id) as joins,
           count(distinct generation) as generations, {evidence()}
    from kafka_group_events where event = 'join' and error_code = 0 group by group_id, {CLIENT}"""
_GENERATIONS = f"""
    select coalesce(cluster_id, '') as likes, group_id, count(distinct generation) as generations, {evidence()}
    from kafka_group_events where event = 'join' and error_code = 0 group by coalesce(cluster_id, ''), group_id"""
_INSTANCES = """
    select group_id as likes, group_id, group_instance_id, count(distinct row(client_id, client_address)) as clients,
           1 as one, string_agg(distinct client_id || ' at ' || client_address, ', '
                                order by client_id || ' at ' || client_address) as names,
           count(*) as samples, min(epoch_ns(ts)) as first_ns, max(epoch_ns(ts_last)) as last_ns,
           list_distinct([arg_min(exchange_id, ts), arg_max(last_exchange_id, ts_last)]) as ids
    from kafka_members where group_instance_id is not null group by group_id, group_instance_id"""
# Commits of an offset that the client had committed there before, and of one below what stood.
_COMMITTING = f"""
    select group_id as likes, group_id, {CLIENT}, sum(samples - offsets) as again, sum(offsets) as moved,
           sum(samples)::bigint as samples, min(first_ns) as first_ns, max(last_ns) as last_ns,
           arg_max(ids, samples) as ids
    from (select group_id, {CLIENT}, topic, partition, count(distinct committed_offset) as offsets, {evidence()}
          from {_COMMITS} group by group_id, {CLIENT}, topic, partition)
    group by group_id, {CLIENT}"""
_IN_TURN = f"""
    select group_id || ' ' || topic as likes, group_id, topic, partition, 0 as none,
           count(*) filter (near_other and kind = 'commit') as turns,
           string_agg(distinct client_id || ' at ' || client_address, ', '
                      order by client_id || ' at ' || client_address) as names, {evidence()}
    from kafka_committed where exchange_id is not null group by group_id, topic, partition"""
_BACK = f"""
    select group_id as likes, group_id, {CLIENT}, count(*) as back, 0 as none, any_value(topic) as topic, {evidence()}
    from kafka_committed where step_back > 0 group by group_id, {CLIENT}"""
_GROUP_IDS = f"""
    select 'kafka' as likes, {CLIENT}, count(distinct group_id) as groups,
           count(distinct group_instance_id) as instances, {evidence()}
    from kafka_group_events where event not in ('describe') group by {CLIENT}"""

# Members with records of partitions for which nobody stored an offset, in groups that read for longer than the usual
# auto.commit.interval.ms (5 s) twice.
_UNCOMMITTED = f"""
    select group_id as likes, group_id, {CLIENT}, sum(records_count)::bigint as given, 0 as none, {evidence()}
    from kafka_fetch_ranges as reads
    where group_id is not null and member_id is not null and not exists (
        from kafka_offset_commits as stored
        where stored.group_id = reads.group_id and stored.partition = reads.partition
              and (stored.topic = reads.topic or stored.topic_id = reads.topic_id))
      and not exists (from kafka_members as members where members.group_id = reads.group_id and protocol = 'share')
    group by group_id, {CLIENT} having max(epoch_ns(ts_last)) - min(epoch_ns(ts)) > 10e9"""

_MEMBERS = f"""
    select coalesce(cluster_id, '') as likes, group_id, {CLIENT}, max(max_heartbeat_gap_ms) as silent_ms,
           count(*) as samples, min(epoch_ns(coalesce(ts_silent, ts))) as first_ns, max(epoch_ns(ts_last)) as last_ns,
           [arg_max(last_exchange_id, max_heartbeat_gap_ms)] as ids, 0 as none,
           nullif(count(*) filter (ended in ('expired', 'removed', 'fenced')), 0) as lost, min(ended) filter (
               ended in ('expired', 'removed', 'fenced')) as ended
    from kafka_members where max_heartbeat_gap_ms is not null group by coalesce(cluster_id, ''), group_id, {CLIENT}"""

# The longest time without a fetch of a client whose heartbeats went on.
_BEATS = "('Heartbeat', 'ConsumerGroupHeartbeat')"
_POLLS = f"""
    with fetches as (
        select {CLIENT}, exchange_id, ts, lag(ts_response) over own as before,
               (epoch_ns(ts) - epoch_ns(lag(ts_response) over own)) / 1e6 as gap_ms
        from exchanges where operation = 'Fetch' and client_id is not null
        window own as (partition by {CLIENT} order by ts)),
    longest as (
        select {CLIENT}, max(gap_ms) as longest_ms, quantile_cont(gap_ms, 0.95) as gap_ms,
               arg_max(before, gap_ms) as before, arg_max(ts, gap_ms) as after, count(*) as samples,
               arg_max(exchange_id, gap_ms) as next_fetch
        from fetches group by {CLIENT} having count(*) >= 20 and max(gap_ms) > 3000)
    select 'kafka' as likes, {CLIENT}, longest_ms, greatest(gap_ms, 1) as gap_ms, any_value(samples) as samples,
           count(*) as beats, epoch_ns(before) as first_ns, epoch_ns(after) as last_ns, [any_value(next_fetch)] as ids
    from longest join exchanges as beats using ({CLIENT})
    where beats.operation in {_BEATS} and beats.ts > before and beats.ts < after
    group by {CLIENT}, longest_ms, gap_ms, before, after having count(*) >= 3"""

POPULATIONS = (
    Population(
        "kafka", "kafka_offset_commits", ("group_id", "topic", "partition"), _PARTITIONS,
        (
            Measure("lag", "behind", "stalled",
                    "lag of group {group_id} on {where} at the end: {value}", unit="records", floor=10,
                    two=5),
            Measure("lag", "behind", "stalled", "lag of group {group_id} on {where} at the end: {value}",
                    unit="records", floor=100, ratio=10, samples=3, likes="cluster", weight=0.8),
            Measure("records committed", "done", "stalled",
                    "group {group_id} came {value} further on {where}", unit="records",
                    low=True, floor=10, two=5),
            Measure("offset stays", "still_ms", "stalled",
                    "group {group_id} committed nothing more of {where} for {value}, "
                    "while the log went on by {behind} records; before, it did every {usual}", usual="pace_ms",
                    unit="ms", ratio=5, floor=3_000, samples=3, weight=1.2),
        ),
    ),
    Population(
        "kafka", "kafka_offset_commits", ("group_id", "topic", "partition"), _LAG_GROWS,
        (Measure("lag only grows", "ended", "stalled",
                 "lag of group {group_id} on {where} only grows: {usual} in the first "
                 "quarter of the time, {value} in the last", usual="began", unit="records", ratio=3, floor=20,
                 weight=1.3),),
        asks="count(*) >= 8",
    ),
    Population(
        "kafka", "kafka_produce_batches", ("group_id", "topic", "partition"), _UNREAD,
        (Measure("read by nobody", "written", "stalled",
                 "{value} written to {where} and {unread} it; {given} of its topic's "
                 "other partitions were read", usual="none", unit="records", floor=4, samples=3, weight=1.3),),
    ),
    Population(
        "kafka", "kafka_fetch_ranges", ("client_id", "client_address", "topic", "partition"), _READERS,
        (
            Measure("same records fetched again", "again", "repeated",
                    "{who} was given the records at offset {at_offset} of "
                    "{where} {value} times", usual="once", floor=3, ratio=4, weight=1.5),
            Measure("records passed over", "skipped", "stalled", "{who} passed over {value} of {where}", usual="none",
                    unit="records", floor=4),
            Measure("records per progress", "given", "repeated",
                    "{who} was given {value} of {where} and came {usual} further",
                    usual="progress", unit="records", ratio=2, floor=20, weight=1.2),
        ),
    ),
    Population(
        "kafka", "kafka_fetch_ranges", ("group_id", "topic"), _GROUP_READS,
        (
            Measure("records read again", "given", "repeated",
                    "group {group_id} was given {value} of {topic} and came {usual} "
                    "further", usual="progress", unit="records", ratio=2, floor=20),
            Measure("records left out", "unread", "stalled",
                    "no fetch of group {group_id} is seen of {value} of {topic} between "
                    "those that it fetched", usual="none", unit="records", floor=20),
        ),
    ),
    Population(
        "kafka", "exchanges", ("client_id", "client_address", "operation"), _REQUESTS,
        (Measure("requests", "prepares", "repeated",
                 "{who} sent {value} {operation}, beside {carried} requests with records",
                 usual="allowed", ratio=1, floor=20, samples=20),),
        asks=f"count(*) filter (operation in {_PREPARE}) > 20",
    ),
    Population(
        "kafka", "kafka_group_events", ("group_id", "client_id", "client_address"), _JOINS,
        (Measure("joins", "joins", "repeated", "{who} joined group {group_id} {value} times, in {usual} generations",
                 usual="generations", ratio=3, floor=7),),
        asks="count(*) filter (event = 'join') > 7",
    ),
    Population(
        "kafka", "kafka_group_events", ("client_id", "client_address"), _GROUP_IDS,
        (
            Measure("groups", "groups", "repeated", "{who} used {value} group ids", floor=2, two=2),
            Measure("group.instance.ids", "instances", "repeated",
                    "{who} used {value} group.instance.ids", floor=1.5, two=2),
        ),
        asks="count(distinct group_id) > 2 or count(distinct group_instance_id) > 1",
    ),
    Population(
        "kafka", "kafka_group_events", ("group_id",), _GENERATIONS,
        (Measure("generations", "generations", "repeated",
                 "group {group_id} had {value} generations", floor=4, two=1),),
        asks="count(distinct generation) > 4",
    ),
    Population(
        "kafka", "kafka_members", ("group_id", "group_instance_id"), _INSTANCES,
        (Measure("one group.instance.id", "clients", "concurrent",
                 "group.instance.id {group_instance_id} of group {group_id} was "
                 "used by {value} clients: {names}", usual="one", ratio=1),),
        asks="count(group_instance_id) > 1",
    ),
    Population(
        "kafka", "kafka_offset_commits", ("group_id", "client_id", "client_address"), _COMMITTING,
        (Measure("commits of the same offset", "again", "repeated",
                 "{who} committed for group {group_id} what it had committed "
                 "before {value} times, something new {usual} times", usual="moved", ratio=4, floor=30),),
        asks="count(*) > 30",
    ),
    Population(
        "kafka", "kafka_committed", ("group_id", "topic", "partition"), _IN_TURN,
        (Measure("committed in turn", "turns", "concurrent",
                 "offsets of group {group_id} on {where} were committed by others in "
                 "turn, {value} times: {names}", usual="none", floor=9, weight=1.2),),
        asks="count(*) filter (near_other) > 9",
    ),
    Population(
        "kafka", "kafka_committed", ("group_id", "client_id", "client_address"), _BACK,
        (Measure("committed offset goes back", "back", "went back",
                 "{who} committed {value} times below what stood for group "
                 "{group_id}, such as on {topic}", usual="none", weight=1.2),),
        asks="bool_or(step_back > 0)",
    ),
    Population(
        "kafka", "kafka_fetch_ranges", ("group_id", "client_id", "client_address"), _UNCOMMITTED,
        (Measure("never commits", "given", "stalled",
                 "{who} was given {value} as a member of group {group_id}, and nobody "
                 "commits these partitions", usual="none", unit="records", floor=50, weight=1.2),),
        asks="sum(greatest(records_count, 0)) > 50",
    ),
    Population(
        "kafka", "kafka_members", ("group_id", "client_id", "client_address"), _MEMBERS,
        (
            Measure("silence of a member", "silent_ms", "stalled",
                    "{who} sent nothing as a member of group {group_id} for "
                    "{value}", unit="ms", floor=3_000, two=1),
            Measure("membership lost", "lost", "stalled",
                    "{who} lost its membership of group {group_id} ({ended}) {value} times",
                    usual="none", weight=1.2),
        ),
        asks="max(max_heartbeat_gap_ms) > 3000 or bool_or(ended in ('expired', 'removed', 'fenced'))",
    ),
    Population(
        "kafka", "exchanges", ("client_id", "client_address"), _POLLS,
        (Measure("no fetch", "longest_ms", "stalled",
                 "{who} fetched nothing for {value} while {beats} heartbeats went on; its "
                 "gaps are {usual} at most, but for one in twenty", usual="gap_ms", unit="ms", ratio=10, floor=2_000,
                 weight=1.3),),
        asks=f"count(*) filter (operation = 'Fetch') >= 20 and count(*) filter (operation in {_BEATS}) > 2",
    ),
)  # fmt: skip
