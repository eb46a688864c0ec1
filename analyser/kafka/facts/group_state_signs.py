"""What the capture tells of the state of groups, sign by sign. In: nothing. Out: SELECTs for `group_states.py`.

A sign has the time at which something happened in the broker (order_ns) and what it says: a member asks to join, is
answered, has its part, beats, is told to join again, is there, left, is gone; a member of KIP-848 gives up partitions;
somebody commits without a member; the group is described or deleted.
"""

from __future__ import annotations

from wirewitness.analyser.engine.facts.gaps import losses
from wirewitness.analyser.kafka.facts.group_requests import KEY, SECOND_NS

# A member of unknown session timeout that was silent for so long may be gone: the least timeout that clients use.
_SURE_NS = 10 * SECOND_NS
# Partitions given up are given again once that is known and who is to have them asks: some heartbeats of 5 s.
GIVEN_NS = 15 * SECOND_NS
_HEARTBEATS = "('heartbeat', 'consumer_heartbeat', 'share_heartbeat', 'streams_heartbeat')"
# Streams groups whose topics are missing or wrong (StreamsGroupHeartbeatResponse.Status).
_NOT_READY = """coalesce(list_has_any(
    try_cast(json_extract(protocol_metadata, '$.status[*][0]') as integer[]), [1, 2, 3]), false)"""

EVENTS = f"""
    select coalesce(cluster_id, '') as cluster, group_id, member_id, event, protocol_type, protocol_name, generation,
           case when event like '%\\_heartbeat' escape '\\' then replace(event, '_heartbeat', '')
                when event = 'describe' then group_protocol else 'classic' end as protocol, leader_id, members,
           state as told, error_code,
           case when event = 'streams_heartbeat' then {_NOT_READY} end as not_ready,
           epoch_ns(ts) as asked_ns, epoch_ns(ts_response) as done_ns,
           bool_or(ts_response is not null) over (partition by cluster_id, group_id) as heard
    from kafka_group_events where group_id is not null and ts is not null"""

# From when to when each member was there: left, gone in another way, or silent for so long that it is not known.
MEMBERS = f"""
    select members.*, leaving.done_ns as gone_done_ns,
           coalesce(case members.protocol when 'classic' then first.asked_ns else first.done_ns end, begin_ns)
               as from_ns,
           first.asked_ns is not null as counted, least(ended_ns, expired_ns) as until_ns,
           ended = 'left' and group_instance_id is null as left_group,
           case when ended is null and least(ended_ns, expired_ns) is null and not waits
                then last_ns + {_SURE_NS} end as unsure_ns
    from (
        select coalesce(kafka_members.cluster_id, '') as cluster, kafka_members.group_id, kafka_members.member_id,
               group_instance_id, protocol, ended, epoch_ns(ts) as begin_ns, epoch_ns(ts_last) as last_ns,
               epoch_ns(ts_ended) as ended_ns,
               coalesce(waits_ns >= epoch_ns(ts_last), false) as waits,
               case when protocol <> 'classic' then null
                    when max_heartbeat_gap_ms > session_timeout_ms
                        then epoch_ns(ts_silent) + session_timeout_ms * 1000000
                    when ended is null and coalesce(gap_ns < epoch_ns(ts_last) - {SECOND_NS}, true)
                        and not waits
                        then epoch_ns(ts_last) + session_timeout_ms * 1000000 end as expired_ns
        from kafka_members left join (
            select nullif(cluster, '') as cluster_id, group_id, member_id, max(asked_ns) as waits_ns from gs_events
            where event = 'join' and done_ns is null and heard group by all) as waiting
            on kafka_members.cluster_id is not distinct from waiting.cluster_id
            and kafka_members.group_id = waiting.group_id and kafka_members.member_id = waiting.member_id
        left join (
            select address as client_address, max(at_ns) as gap_ns
            from ({losses()}) group by all) using (client_address)) as members
    asof left join (
        select cluster, group_id, member_id, asked_ns, done_ns from gs_events
        where coalesce(error_code, 0) = 0 and event not in ('describe', 'leave')) as first
        on members.cluster = first.cluster and members.group_id = first.group_id
        and members.member_id = first.member_id and members.begin_ns <= first.asked_ns
    left join (
        select cluster, group_id, member_id, asked_ns, max(done_ns) as done_ns from gs_events
        where generation = -1 and event like '%heartbeat' group by all) as leaving
        on members.cluster = leaving.cluster and members.group_id = leaving.group_id
        and members.member_id = leaving.member_id and members.ended_ns = leaving.asked_ns"""

# Partitions that nobody has: +1 when the last one gives one up, -1 when it is given again.
FREED = f"""
    with held as (
        select owned.cluster, owned.group_id, topic, partition, at_ns, least(ended_ns, until_ns) as end_ns
        from (select coalesce(cluster_id, '') as cluster, group_id, member_id, topic, partition,
                     epoch_ns(ts) as at_ns, epoch_ns(ts_end) as ended_ns
              from kafka_ownership where source = 'consumer_heartbeat') as owned
        asof left join (select {KEY}, member_id, until_ns from gs_members where until_ns is not null) as gone
            on owned.cluster = gone.cluster and owned.group_id = gone.group_id and owned.member_id = gone.member_id
            and at_ns < until_ns),
    changes as (
        select {KEY}, topic, partition, order_ns, sum(d) as d from (
            select {KEY}, topic, partition, at_ns as order_ns, 1 as d from held
            union all select {KEY}, topic, partition, end_ns, -1 from held where end_ns is not null)
        group by all having sum(d) <> 0),
    holders as (
        select *, sum(d) over (partition by {KEY}, topic, partition order by order_ns) as n from changes)
    select {KEY}, order_ns, (sum(case when n = 0 then 1 when n = d then -1 else 0 end)
               + count(*) filter (n = d and first))::bigint as freed
    from (select *, row_number() over (partition by {KEY}, topic, partition order by order_ns) = 1 as first
          from holders)
    group by all"""


# Signs at one time in the order in which one follows from the other; others come last.
_RANKS = {
    "seen": 0, "left": 1, "gone": 1, "unsure": 1, "freed": 1, "asks": 2, "alive": 3, "joined": 4, "synced": 5,
}  # fmt: skip
_LAST = 6


def _sign(name: str, where: str, *, source: str = "gs_events", order: str = "done_ns", **columns: str) -> str:
    """A SELECT of signs. order: when it happened in the broker; without that nobody knows of it."""
    shown = "".join(f", {value} as {column}" for column, value in columns.items())
    return f"""
        select {KEY}, '{name}' as sign, {_RANKS.get(name, _LAST)} as rank, {order} as order_ns{shown}
        from {source} where {order} is not null and ({where})"""


_DONE = "error_code = 0 and done_ns is not null"
_OF_MEMBER = {"member_id": "member_id", "protocol": "protocol"}
_OF_GENERATION = {**_OF_MEMBER, "generation": "generation"}
_KIND = {"kind": "protocol_type"}
SIGNS = " union all by name ".join(
    (
        _sign("asks", "event = 'join' and coalesce(error_code, 0) = 0 and heard", order="asked_ns", **_OF_MEMBER,
              **_KIND),
        _sign("joined", f"event = 'join' and {_DONE}", **_OF_GENERATION, **_KIND, members="members",
              assignor="protocol_name", leader="leader_id"),
        _sign("synced", f"event = 'sync' and {_DONE}", **_OF_GENERATION, **_KIND,
              assignor="case when protocol_name not like '%,%' then protocol_name end"),
        _sign("told", "event in ('heartbeat', 'sync') and error_code = 27", order="asked_ns", **_OF_GENERATION),
        _sign("beat", f"event in {_HEARTBEATS} and {_DONE} and generation >= 0", **_OF_GENERATION, **_KIND,
              order="case when event = 'heartbeat' then asked_ns else done_ns end",
              not_ready="not_ready", asked_ns="asked_ns",
              assignor="case when event = 'consumer_heartbeat' then protocol_name end"),
        _sign("described", f"event = 'describe' and {_DONE} and told is not null", **_KIND, protocol="protocol",
              told="told", assignor="protocol_name", members="members"),
        _sign("alive", "counted", source="gs_members", order="from_ns", **_OF_MEMBER, alive="1"),
        *(_sign(name, where, source="gs_members", order=when, **_OF_MEMBER, alive="-counted::integer",
                asked_ns="gone_done_ns")
          for name, where, when in (
              ("left", "left_group", "until_ns"), ("gone", "not coalesce(left_group, false)", "until_ns"),
              ("unsure", "true", "unsure_ns"))),
        _sign("freed", "freed <> 0", source="gs_freed", order="order_ns", freed="freed"),
        _sign("given", "freed > 0", source="gs_freed", order=f"order_ns + {GIVEN_NS}"),
        _sign("alone", "true", source="""(
            select coalesce(cluster_id, '') as cluster, group_id, epoch_ns(ts_response) as done_ns
            from kafka_offset_commits
            where api = 'OffsetCommit' and error_code = 0 and coalesce(member_id, '') = ''
                and coalesce(generation, -1) < 0 and group_id is not null)"""),
        _sign("seen", "true", source="""(
            select coalesce(cluster_id, '') as cluster, group_id, min(epoch_ns(coalesce(ts_response, ts))) as done_ns
            from kafka_offset_commits where group_id is not null group by all)"""),
        _sign("deleted", "true", source="""(
            select coalesce(cluster_id, '') as cluster, resource_name as group_id, epoch_ns(ts_response) as done_ns
            from kafka_admin_changes where operation = 'DeleteGroups' and error_code = 0)"""),
    )
)  # fmt: skip

# Partitions are told in the topics that members were given: whether all of them are in the capture.
COVERED = """
    select cluster, group_id, bool_and(coalesce(given >= partitions, false)) as covered
    from (select coalesce(cluster_id, '') as cluster, group_id, topic, count(distinct partition) as given
          from kafka_ownership where source = 'consumer_heartbeat' group by all)
    left join (select coalesce(cluster_id, '') as cluster, topic, max(partition) + 1 as partitions
               from kafka_partitions group by all) using (cluster, topic)
    group by all"""
