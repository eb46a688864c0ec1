"""Where the partitions of share groups start, as kafka-share-groups --describe says. In: nothing. Out: a SELECT.

Brokers keep it for themselves (WriteShareGroupState); clients are told by DescribeShareGroupOffsets alone. The newest
answer counts, whoever got it, until the offsets are deleted. `{until}` is a SQL boolean over `at_ns`.
"""

from __future__ import annotations

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
