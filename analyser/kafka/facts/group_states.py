"""In which state a group was, from when to when: what the broker would say of it. The rows of `kafka_group_states`.

In: a connection with views of group events, members, owners, commits, admin changes, partitions and gaps.
Out: the view.

A classic group is told by what its members ask and are answered: JoinGroup (PreparingRebalance) and its answer
(CompletingRebalance), SyncGroup (Stable), heartbeats (0: Stable, 27: PreparingRebalance), leaving, a session timeout.
It is Empty when all have gone whom the leader's JoinGroup named, or when a commit without a member was accepted. Groups
whose members have epochs (KIP-848, KIP-932, KIP-1071) are told by those of the members in the capture: one behind the
highest, or partitions given up and not given again: Reconciling; nobody asked since one left: Assigning. Such a group
is Empty when members that had all its partitions have gone. What no packet tells is null.

Sources: ClassicGroup, ConsumerGroup, ShareGroup and StreamsGroup of Kafka's group coordinator.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, STATES, Held
from wirewitness.analyser.engine.facts.steps import make_tables
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.group_requests import KEY, time_sql
from wirewitness.analyser.kafka.facts.group_state_signs import COVERED, EVENTS, FREED, GIVEN_NS, MEMBERS, SIGNS

# Signs at one time in the order in which one follows from the other.
_RANK = """case when sign = 'seen' then 0 when sign in ('left', 'gone', 'unsure', 'freed') then 1
                when sign = 'asks' then 2 when sign = 'alive' then 3 when sign = 'joined' then 4
                when sign = 'synced' then 5 else 6 end"""
_ORDER = f"partition by {KEY} order by order_ns, {_RANK}, member_id, sign"
_BEFORE = "rows between unbounded preceding and 1 preceding"
# Signs that say nothing of the state by themselves.
_QUIET = "('seen', 'alive', 'freed', 'given', 'unsure')"
# Whether all members are in the capture: the leader is told how many there are, partitions are had by one each.
_COMPLETE = "case when count is not null then there >= count when sign = 'beat' and covered then free = 0 end"
_ENDS = "('left', 'gone', 'unsure')"


def _last(value: str) -> str:
    """The last value that is known so far."""
    return f"last_value({value} ignore nulls) over so_far"


_STEPS = {
    "gs_events": EVENTS,
    "gs_members": MEMBERS,
    "gs_freed": FREED,
    "gs_covered": COVERED,
    "gs_signs": f"""
        select *, count(*) filter (sign in {_ENDS}) over (
            partition by {KEY}, member_id order by order_ns, {_RANK} {_BEFORE}) as stay
        from ({SIGNS})""",
    # A member moves to an epoch, and gives it back when it goes. Heartbeats that say the same as before are left out.
    "gs_moves": f"""
        select *, case when sign in {_ENDS} then before
                       when generation is distinct from before then generation end as moved
        from (
            select *, lag(asked_ns) over ({_ORDER}) as asked_before,
                   max(case when sign = 'left' then asked_ns end) over ({_ORDER} rows unbounded preceding)
                       as left_done_ns,
                   lag(sign) over ({_ORDER}) as sign_before, lag(not_ready) over ({_ORDER}) as ready_before,
                   last_value(generation ignore nulls) over (
                       partition by {KEY}, member_id, stay order by order_ns, {_RANK} {_BEFORE}) as before
            from gs_signs)
        where sign <> 'beat' or sign_before is distinct from 'beat' or generation is distinct from before
            or not_ready is distinct from ready_before or asked_before <= left_done_ns""",
    # era: since the group had no member.
    "gs_eras": f"""
        select *, count(*) filter (alive < 0 and there = 0) over (partition by {KEY} order by place {_BEFORE}) as era
        from (
            select *, sum(alive) over so_far as there, sum(freed) over so_far as free,
                   sum(case when protocol = 'consumer' then alive else 0 end) over so_far as consumers,
                   row_number() over ({_ORDER}) as place
            from gs_moves window so_far as ({_ORDER} rows unbounded preceding))""",
    "gs_epochs": f"""
        select *, {_last("case when sign in ('joined', 'synced', 'beat') then generation end")} as told_generation,
               {_last("case when sign = 'synced' then generation end")} as synced,
               {_last(f"case when sign not in {_QUIET} and sign <> 'beat' then sign end")} as strong,
               {_last(f"case when sign not in {_QUIET} then sign end")} as last_sign,
               {_last("told")} as told_state, {_last("protocol")} as last_protocol,
               {_last("kind")} as protocol_type, {_last("assignor")} as last_assignor, {_last("leader")} as last_leader,
               {_last("not_ready")} as unready,
               {_last(_COMPLETE)} as complete,
               max(moved) over era_so_far as newest,
               max(case when sign = 'left' then place end) over so_far as left_place,
               max(case when sign = 'beat' then asked_ns end) over so_far as beat_asked_ns,
               max(case when freed > 0 then order_ns end) over so_far as freed_ns,
               count(*) filter (sign = 'unsure') over era_so_far as unsure
        from gs_eras left join gs_covered using ({KEY})
        window so_far as (partition by {KEY} order by place rows unbounded preceding),
               era_so_far as (partition by {KEY}, era order by place rows unbounded preceding)""",
    "gs_reached": f"""
        select *, sum(case when moved is distinct from newest then 0 when alive < 0 then -1 else 1 end)
                   over (partition by {KEY}, era, newest order by place rows unbounded preceding) as reached,
               min(place) over (partition by {KEY}, era, newest) as raised_place
        from gs_epochs""",
    "gs_told": f"""
        select *, case when consumers > 0 then 'consumer' else last_protocol end as type, case
                when last_sign = 'deleted' then 'Dead' when last_sign = 'alone' then 'Empty'
                when there = 0 and last_sign = 'described' then told_state
                when there = 0 then case when complete and unsure = 0 and strong in ('left', 'gone') then 'Empty' end
                when consumers = 0 and last_protocol = 'classic' then case
                    when last_sign = 'described' then told_state
                    when last_sign in ('asks', 'told', 'left', 'gone') then 'PreparingRebalance'
                    when last_sign = 'synced' or synced = told_generation then 'Stable'
                    when strong = 'joined' then 'CompletingRebalance' when last_sign = 'beat' then 'Stable' end
                when last_protocol = 'share' then 'Stable'
                when newest is null then case when last_sign = 'described' then told_state end
                when last_protocol = 'streams' and unready then 'NotReady'
                when left_place > raised_place and coalesce(beat_asked_ns < left_done_ns, true) then 'Assigning'
                when left_place > raised_place or reached < there then 'Reconciling'
                when free > 0 and order_ns < freed_ns + {GIVEN_NS} then 'Reconciling'
                else 'Stable' end as state
        from gs_reached""",
    "gs_changes": f"""
        select * from (
            select {KEY}, order_ns, type, state, protocol_type, last_assignor as assignor,
                   case when there > 0 then coalesce(newest, told_generation) end as generation,
                   case when type = 'classic' and there > 0 then last_leader end as leader_id,
                   case when there > 0 or state is not null then there end as members
            from gs_told qualify row_number() over (partition by {KEY}, order_ns order by place desc) = 1)
        window own as (partition by {KEY} order by order_ns)
        qualify row_number() over own = 1 or row(type, state, generation, leader_id, members)
            is distinct from lag(row(type, state, generation, leader_id, members)) over own""",
}
_ROWS = f"""
    select nullif(cluster, '') as cluster_id, group_id, {time_sql("order_ns")} as ts,
           {time_sql("lead(order_ns) over own")} as ts_end, state, type, protocol_type, assignor, generation, members,
           leader_id
    from gs_changes window own as (partition by {KEY} order by order_ns)"""
_OF_GROUPS = ("kafka_group_events", "kafka_offset_commits", "kafka_admin_changes")


def add_states(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; nothing happens where nobody asks for groups. Call it once."""
    there = views(con)
    if there >= {*STATES.reads} and any(has_rows(con, table) for table in _OF_GROUPS):
        make_tables(con, _STEPS, {"kafka_group_states": _ROWS})
    return NOTHING
