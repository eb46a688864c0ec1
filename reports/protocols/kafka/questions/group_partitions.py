"""How each partition of each group stands: stored offset, log end and lag, its committer and its consumer.

In: nothing. Out: SELECTs over fact tables. What is stored is what the last row of `kafka_committed` says, where the log
ends the last of `kafka_log_ends`; whose it is, `group_owners.py`. As in the views, `{until}` is a SQL boolean over
`at_ns`, and `{now_ns}` the time at which ages are told.
"""

from __future__ import annotations

from collections.abc import Mapping

from wirewitness.analyser.kafka.facts.committed import COMMITS, LAST_READ, READS, STORED_TABLES
from wirewitness.analyser.kafka.facts.committed_steps import GROUP
from wirewitness.analyser.kafka.facts.lag import lag_behind
from wirewitness.analyser.kafka.facts.log_ends import LOG_STEPS, PARTITION, TOPICS_ANEW
from wirewitness.analyser.kafka.facts.time_lag import PASSED_STEPS
from wirewitness.reports.protocols.kafka.questions.group_owners import OWNER_STEPS, OWNER_TABLES

# What PARTITIONS_OF_GROUPS reads.
PARTITION_TABLES = (
    *STORED_TABLES, "kafka_committed", "kafka_log_ends", "kafka_topics", *OWNER_TABLES, "kafka_fetch_partitions",
    "captures",
)  # fmt: skip

# The last change of what is stored, and the last commit. Behind a deletion the last commit counts no more.
_CHANGED = """
    select cluster, group_id, topic, partition, step, stored, life,
           case when coalesce(own.step > gone_step, true) then own end as own, coalesce(step > gone_step, true) as holds
    from (
        select cluster, group_id, topic, partition, max(step) as step, arg_max_null(committed_offset, step) as stored,
               arg_max(incarnation, step) as life, max(step) filter (gone) as gone_step,
               arg_max(one, step) filter (not gone and kind <> 'OffsetFetch') as own
        from (select coalesce(cluster_id, '') as cluster, coalesce(group_id, '') as group_id,
                     coalesce(topic, '') as topic, partition, step, committed_offset, incarnation, kind,
                     kind in ('OffsetDelete', 'DeleteGroups', 'DeleteTopics') as gone, epoch_ns(ts) as at_ns,
                     struct_pack(step, committed_offset, log_end_offset, member_id, client_id, client_address,
                                 generation, owner_member_id, sent_ns := epoch_ns(ts_sent)) as one
              from kafka_committed) where {until} group by all)"""
# What is stored counts in the incarnation of its topic alone, and so does a log end. What was stored before the time
# range began is what an OffsetFetch told in it.
_HELD = f"""
    select {GROUP}, consumer_id, owners, reader_client_id, reader_host, vacant, coalesce(accepted, 0) as accepted,
           coalesce(refused, 0) as refused, coalesce(committers, 0) as committers, ends.incarnation as end_life,
           case when coalesce(life >= gone_life, true) and holds then life end as life,
           case when coalesce(life >= gone_life, true) then own end as own,
           case when step is null then case when coalesce(read_ns > gone_ns, true) then told end
                when coalesce(life >= gone_life, true) then stored end as stored,
           coalesce(own.step = step or own.committed_offset = stored, false) as by_own,
           case when coalesce(ends.incarnation >= gone_life, true) then ends end as ends
    from consumers full join commits using ({GROUP}) full join reads using ({GROUP})
    left join changed using ({GROUP}) left join log_ends using ({PARTITION}) left join anew using (cluster, topic)"""
_STANDS = f"""
    select *, {lag_behind("log_end_offset", "log_start_offset")} as lag, row_number() over () as row
    from (
        select cluster, group_id as in_group, topic as of_topic, partition, nullif(cluster, '') as cluster_id,
               nullif(group_id, '') as group_id, nullif(topic, '') as topic, consumer_id, owners, reader_client_id,
               reader_host, vacant, accepted, refused, committers,
               case when coalesce(life >= end_life, true) then stored end as committed_offset,
               case when end_life is null then own.log_end_offset
                    when coalesce(life <= end_life, true) then ends.log_end end as log_end_offset,
               case when coalesce(life <= end_life, true) then ends.log_start end as log_start_offset,
               case when coalesce(life <= end_life, true) then ends.end_ns end as end_ns,
               last.member_id, last.client_id, last.client_address, last.generation, last.owner_member_id, last.sent_ns
        from (select *, case when by_own then own end as last from held))"""

# Records before the log start are gone.
_REMOVED = """case when committed_offset < log_start_offset
                   then try_cast(log_start_offset::hugeint - committed_offset as bigint) end"""
_NOTE = """nullif(concat_ws(', ',
               case when vacant then 'no owner' when owners > 1 then owners || ' members' end,
               case when sent_ns is null and committed_offset is null and not coalesce(vacant, false)
                    then 'no commit seen' end,
               case when removed_offsets > 0 then removed_offsets || ' offsets removed by retention' end), '')"""
_STEPS = {
    **OWNER_STEPS,
    "commits": f"""
        select {GROUP}, count(*) filter (accepted) as accepted, count(*) filter (refused) as refused,
               count(distinct struct_pack(client_address, client_id, member_id)) filter (accepted) as committers
        from ({COMMITS}) where {{until}} group by all""",
    "reads": f"""
        select {GROUP}, told.committed_offset as told, told.at_ns as read_ns
        from (select {GROUP}, {LAST_READ} as told from ({READS}) where {{until}} group by all)
        where told.committed_offset >= 0""",
    "changed": _CHANGED,
    "log_ends": f"""
        select {PARTITION}, arg_max(struct_pack(log_end, log_start, end_ns := last_ns, incarnation), at_ns) as ends
        from ({LOG_STEPS}) where {{until}} group by all""",
    "anew": f"""
        select cluster, topic, max(incarnation) as gone_life, max(at_ns) as gone_ns
        from ({TOPICS_ANEW}) where {{until}} group by all""",
    "held": _HELD,
    "stands": _STANDS,
    # Of logs that nobody lags behind no step is looked at.
    "lag_ends": f"""
        select ends.* from ({LOG_STEPS}) as ends
        semi join (select cluster, of_topic as topic, partition from stands where lag > 0) using ({PARTITION})
        where {{until}}""",
    **PASSED_STEPS,
    "aged": """
        select stands.*, greatest({now_ns} - end_ns, 0) / 1e6 as log_end_age_ms,
               case when lag = 0 then 0.0 when passed_ns is not null then greatest({now_ns} - passed_ns, 0) / 1e6 end
                   as time_lag_ms
        from stands left join lag_passed using (row)""",
}
# The consumer of each: an owner that was told before is none any more where it has gone.
_WITH_CONSUMERS = {
    "known": f"""
        select aged.* replace (coalesce(consumer_id, case
                   when not coalesce(vacant, false) and not coalesce(has_left, false) then owner_member_id end)
                   as consumer_id), {_REMOVED} as removed_offsets
        from aged left join names on aged.cluster = names.cluster and in_group = names.group_id
            and owner_member_id = names.member_id""",
}


def _with(steps: Mapping[str, str]) -> str:
    return "with " + ", ".join(f"{name} as ({query})" for name, query in steps.items())


# How each partition of each group stands: committed, assigned or read, with its last committer. log_end_age_ms: since
# the log end was told. time_lag_ms: see analyser/kafka/facts/time_lag.py. Half of PARTITIONS_OF_GROUPS to plan.
STANDS_OF_GROUPS = f"{_with(_STEPS)} select * from aged"

# The same, with its consumer. owners: members that have it, null where no assignment tells. removed_offsets: from the
# committed offset to the log start; lag counts from there.
PARTITIONS_OF_GROUPS = f"""
    {_with({**_STEPS, **_WITH_CONSUMERS})}
    select known.* exclude (cluster, in_group, of_topic, row, reader_client_id, reader_host, vacant), {_NOTE} as note,
           coalesce(consumer_host, reader_host) as consumer_host,
           coalesce(consumer_client_id, reader_client_id) as consumer_client_id, consumer_instance_id,
           make_timestamp_ns(sent_ns)::timestamptz_ns as ts_commit,
           make_timestamp_ns(end_ns)::timestamptz_ns as ts_log_end,
           case when bool_or(sent_ns is not null and consumer_id is distinct from known.member_id)
                     over (partition by cluster_id, known.group_id) and sent_ns is not null
                then concat(coalesce(client_id, '?'), '@', coalesce(client_address, '?')) end as committed_by
    from known left join names on known.cluster = names.cluster and in_group = names.group_id
        and consumer_id = names.member_id"""


def at_time(query: str, now_ns: int | None) -> str:
    """The query with ages as of `now_ns`, or of the end of the capture where that is earlier or no time is given."""
    end = "(select max(epoch_ns(ts_last)) from captures)"
    return query.replace("{now_ns}", end if now_ns is None else f"least({int(now_ns)}, {end})")
