"""Views of Kafka groups: partitions, states, members, rebalances, share offsets. See `kafka_view`."""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.lag import LAG_TABLES, lag_query
from wirewitness.reports.base.questions.columns import PAGE, TEXT, Column
from wirewitness.reports.base.questions.workloads import OWNER, OWNERS
from wirewitness.reports.protocols.kafka.questions.group_history import (
    CHANGES,
    REBALANCES,
    START_UP,
    STATE_TABLES,
    STATES,
)
from wirewitness.reports.protocols.kafka.questions.group_owners import OWNER_TABLES, PARTS
from wirewitness.reports.protocols.kafka.questions.group_partitions import PARTITION_TABLES, PARTITIONS_OF_GROUPS
from wirewitness.reports.protocols.kafka.questions.group_restart import RESTART, RESTART_TABLES
from wirewitness.reports.protocols.kafka.questions.groups import MEMBERS
from wirewitness.reports.protocols.kafka.questions.view import CLIENT, OVER_TIME, PART, TIME, TOPIC_COLUMN, KafkaView

# Members of groups at a time, with what each was given. In: nothing. Out: a SELECT for `kafka_views.py`.
#
# What members said and committed is from `groups.py`, how a membership ended from the table kafka_members. What a
# member has comes from its assignment; a Connect worker's connectors and tasks, and the tasks of a streams group,
# from what these are told in their own words. A member that has gone has nothing.

MEMBER_TABLES = ("kafka_offset_commits", "kafka_group_events", *OWNER_TABLES)

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
           case when gone or ts_ended is null then ended else 'active' end as ended,
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


# Where the partitions of share groups start, as kafka-share-groups --describe says. In: nothing. Out: a SELECT.
#
# Brokers keep it for themselves (WriteShareGroupState); clients are told by DescribeShareGroupOffsets alone. The
# newest answer counts, whoever got it, until the offsets are deleted. `{until}` is a SQL boolean over `at_ns`.

SHARE_TABLES = ("kafka_share_offsets",)

_TOLD = """
    select *, coalesce(cluster_id, '') as cluster, coalesce(topic, topic_id) as of_topic,
           epoch_ns(coalesce(ts_response, ts)) as at_ns
    from kafka_share_offsets where error_code = 0"""
# Writes of the state tell no lag: one that was told before counts while the partition starts where it did then.
SHARE_STARTS = f"""
    with told as (select * from ({_TOLD}) where {{until}}),
    gone as (
        select cluster, group_id, of_topic, max(at_ns) as gone_ns from told
        where api = 'DeleteShareGroupOffsets' group by all),
    stands as (
        select any_value(cluster_id) as cluster_id, group_id, of_topic as topic, partition,
               arg_max(leader_epoch, at_ns) as leader_epoch, arg_max_null(start_offset, at_ns) as start_offset,
               arg_max(struct_pack(lag, at_ns, start_offset), at_ns) filter (lag >= 0) as behind,
               arg_max(api, at_ns) as told_by, make_timestamp_ns(max(at_ns))::timestamptz_ns as ts_told
        from told left join gone using (cluster, group_id, of_topic)
        where partition is not null and coalesce(at_ns > gone_ns, true)
        group by cluster, group_id, of_topic, partition)
    select * exclude (behind, told_by, ts_told),
           case when behind.start_offset = start_offset then behind.lag end as lag,
           case when behind.start_offset = start_offset then make_timestamp_ns(behind.at_ns)::timestamptz_ns end
               as ts_lag,
           told_by, ts_told
    from stands where start_offset >= 0"""


_OFFSETS = (
    Column("committed_offset", "Committed", "offset", heading="CURRENT-OFFSET"),
    Column("log_end_offset", "Log end", "offset", heading="LOG-END-OFFSET"),
    Column("lag", "Lag", "offset"),
)
_COMMITTER = (Column("client_id", "Committed by"), Column("client_address", "Address"))
_GROUP = ("group {}", ("group_id",))
_GROUP_COLUMN = Column("group_id", "Group")
_STATE = (
    Column("state", "State"),
    Column("type", "Type"),
    Column("protocol_type", "Protocol"),
    Column("assignor", "Assignor"),
    Column("generation", "Generation", "plain", 90, "GEN"),
    Column("members", "Members", "offset"),
)
_COMMITS = (
    Column("accepted", "Commits", "count"),
    Column("refused", "Refused", "count"),
    Column("committers", "Committers", "count", heading="BY"),
)

_STORED = f"""
    select cluster_id, group_id, topic, partition, committed_offset, log_end_offset, lag, client_id, client_address,
           member_id, generation, owner_member_id, accepted, refused, committers, ts_commit, ts_log_end, consumer_id,
           consumer_host, consumer_client_id, consumer_instance_id, committed_by, log_end_age_ms, time_lag_ms,
           owners, log_start_offset, removed_offsets, note
    from ({PARTITIONS_OF_GROUPS})"""
_LAG = f"""
    select make_timestamp_ns(bin)::timestamptz_ns as ts, cluster_id, group_id, topic, partition, committed_offset,
           log_end_offset, lag, client_id, client_address, member_id, generation, accepted, refused, committers,
           lowest_offset, highest_offset, make_timestamp_ns(end_ns)::timestamptz_ns as ts_log_end
    from ({lag_query("{width}", until="{until}", commits="(taken or refused)")})"""

GROUPS = {
    "": KafkaView(
        PARTITION_TABLES, _STORED, "cluster_id, group_id, topic, partition",
        (
            Column("group_id", "Group", only=TEXT, spare=6), TOPIC_COLUMN, PART._replace(heading="PARTITION"),
            *_OFFSETS, Column("consumer_id", "Consumer-id", "known", only=TEXT),
            Column("consumer_host", "Host", "known", only=TEXT, spare=-2),
            Column("consumer_client_id", "Client-id", "known", only=TEXT, spare=-1),
            *(column._replace(spare=place) for column, place in zip(_COMMITS, (4, 5, 1), strict=True)),
            Column("time_lag_ms", "Time-lag", "span", only=TEXT, spare=2),
            Column("log_end_age_ms", "Log-end-age", "span", only=TEXT, spare=3),
            Column("committed_by", "Committed-by", only=TEXT), Column("note", "Note"),
            Column("time_lag_ms", "Time lag", "span", only=PAGE),
            Column("log_end_age_ms", "Log end's age", "span", only=PAGE),
            *(column._replace(only=PAGE) for column in _COMMITTER), Column("owner", "Owner then", only=PAGE),
            Column("generation", "Generation", "plain", 90, only=PAGE),
        ),
        _GROUP,
    ),
    "state": KafkaView(
        STATE_TABLES, STATES, "cluster_id, group_id",
        (
            _GROUP_COLUMN, *_STATE, Column("leader_id", "Leader", only=PAGE), Column("coordinator", "Coordinator"),
            Column("ts_since", "Since", "time", only=PAGE),
        ),
    ),
    "changes": KafkaView(
        STATE_TABLES, CHANGES, "cluster_id, group_id, ts",
        (
            *TIME, Column("lasted_ms", "Lasted ms", "ms", only=TEXT), Column("lasted_ms", "Lasted", "span", only=PAGE),
            *_STATE, Column("leader_id", "Leader"),
        ),
        _GROUP,
    ),
    "members": KafkaView(
        MEMBER_TABLES, MEMBERS_AT, "cluster_id, group_id, ts_ended is not null, ts_first, member_id",
        (
            Column("member_id", "Member", "text", "large", "MEMBER ID"), *CLIENT, OWNER,
            Column("group_instance_id", "Static id", heading="STATIC NAME"),
            Column("first_generation", "First generation", "plain", heading="FIRST GEN", spare=2),
            Column("last_generation", "Last generation", "plain", heading="LAST GEN", spare=1),
            Column("committed_partitions", "Partitions committed", "count", heading="COMMITS"),
            Column("foreign", "For others", "count", only=PAGE), Column("ended", "Ended"),
            Column("topics", "Topics"), Column("assigned", "Partitions", "count", heading="HAS"),
            Column("assignment", "Assignment"),
        ),
        _GROUP,
    ),
    "rebalances": KafkaView(
        ("kafka_rebalances",), REBALANCES, "cluster_id, group_id, ts, generation",
        (
            *TIME, Column("generations", "Generation", heading="GENERATION"),
            Column("members", "Members", spare=2),
            Column("set_off_by", "Set off by"), Column("waited_for_whom", "Waited for"),
            Column("waited_ms", "Waited ms", "ms"), Column("partitions_moved", "Moved", "count"),
            Column("duration_ms", "Took ms", "ms", spare=1),
            Column("longest_pause_ms", "Longest pause ms", "ms", heading="PAUSE MS"),
        ),
        _GROUP,
    ),
    "start-up": KafkaView(
        ("exchanges", "flows", "kafka_group_events", "kafka_offset_commits", "kafka_share_acknowledges"), START_UP,
        "cluster_id, group_id, ts, client_id, client_address",
        (
            *TIME, *CLIENT, Column("member_ids", "Member ids", "count"),
            Column("way", "Way (ms)"), Column("stopped_after", "Stopped after"), Column("failing", "Failing"),
            Column("errors", "Errors", "count"),
        ),
        _GROUP,
    ),
    "share-offsets": KafkaView(
        SHARE_TABLES, SHARE_STARTS, "cluster_id, group_id, topic, partition",
        (
            TOPIC_COLUMN, PART._replace(heading="PARTITION"), Column("leader_epoch", "Leader-epoch", "plain"),
            Column("start_offset", "Start-offset", "offset"), Column("lag", "Lag", "offset"),
            Column("told_by", "Reported by"), Column("ts_told", "Reported", "time"),
        ),
        _GROUP,
    ),
    "restart": KafkaView(
        RESTART_TABLES, RESTART, "cluster_id, group_id, topic, partition, reset",
        (
            TOPIC_COLUMN, PART._replace(heading="PARTITION"),
            Column("consumer_client_id", "Consumer", "known", heading="CLIENT-ID"),
            Column("consumer_host", "Host", "known", spare=2),
            Column("starts_by", "Starts by", heading="STARTS-BY"), Column("reset", "Reset"),
            Column("start_offset", "Start-offset", "offset", heading="STARTS-AT"),
            Column("read_offset", "Read to", "offset", heading="READ-TO"),
            Column("again_offsets", "Again", "offset"), Column("again_bytes", "Bytes", "bytes", spare=1),
            Column("skipped_offsets", "Skipped", "offset"),
            Column("again_first_key", "First key", only=TEXT), Column("again_last_key", "Last key", only=TEXT),
        ),
        _GROUP,
    ),
    OVER_TIME: KafkaView(
        LAG_TABLES, _LAG, "cluster_id, group_id, topic, partition, ts",
        (*TIME, *_OFFSETS, *_COMMITS, *_COMMITTER), ("group {}, {}-{}", ("group_id", "topic", "partition")),
    ),
}  # fmt: skip

# What stands over partitions of groups, by the name of the value, as kafka-consumer-groups has it.
PARTITION_HEADINGS = {column.name: column.capitals for column in GROUPS[""].shown}
