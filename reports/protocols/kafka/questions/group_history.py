"""How groups stand and came to be so: states, rebalances, and the way of each consumer to its first commit.

In: the tables. Out: SELECTs for `kafka_views.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

_PAUSE = '[{"member_id": "VARCHAR", "client_id": "VARCHAR", "pause_ms": "BIGINT"}]'
_WHO = "coalesce({0}_client_id || '@' || {0}_address, {0}_client_id, {0}_address, {0}_member_id)"

REBALANCES = f"""
    select cluster_id, group_id, ts, ts_joined, ts_end, protocol, assignor, generation_before, generation,
           coalesce(generation_before || ' > ' || generation, generation::varchar) as generations,
           trigger, trigger_member_id, trigger_client_id, trigger_address, trigger_reason,
           coalesce(trigger, 'not known') || coalesce(' ' || {_WHO.format("trigger")}, '') as set_off_by,
           members_before, members_after, coalesce(members_before || ' > ' || members_after, members_after::varchar)
               as members,
           wait_ms, waited_for, waited_member_id, waited_client_id, waited_address, waited_ms, ts_waited_last,
           waited_for || ' ' || {_WHO.format("waited")} as waited_for_whom,
           partitions_moved, moves, pauses,
           list_max(list_transform(from_json(pauses, '{_PAUSE}'), lambda one: one.pause_ms))::double
               as longest_pause_ms,
           (epoch_ns(ts_end) - epoch_ns(ts)) / 1e6 as duration_ms
    from kafka_rebalances"""

# The steps of a consumer in their usual order, by the requests that take each.
STEPS = {
    "api_versions_ms": ("ApiVersions",),
    "metadata_ms": ("Metadata",),
    "find_coordinator_ms": ("FindCoordinator",),
    "join_ms": ("JoinGroup",),
    "sync_ms": ("SyncGroup",),
    "heartbeat_ms": ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"),
    "offset_fetch_ms": ("OffsetFetch",),
    "list_offsets_ms": ("ListOffsets",),
    "fetch_ms": ("Fetch", "ShareFetch"),
    "commit_ms": ("OffsetCommit", "TxnOffsetCommit", "ShareAcknowledge"),
}
_MEMBERS_ONLY = ("JoinGroup", *STEPS["heartbeat_ms"])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_FIRSTS = ", ".join(
    f"min(epoch_ns(ts_response)) filter (operation in ({_listed(names)}) and fine) as {column[:-3]}_ns, "
    f"arg_min(operation, ts_response) filter (operation in ({_listed(names)}) and fine) as {column[:-3]}_by"
    for column, names in STEPS.items()
)
_TIMES = ", ".join(f"({column[:-3]}_ns - first_ns) / 1e6 as {column}" for column in STEPS)
_WAY = ", ".join(f"case when {c} is not null then {c[:-3]}_by || ' ' || round({c})::bigint end" for c in STEPS)
_DONE = ", ".join(f"case when {column} is not null then {column[:-3]}_by end" for column in STEPS)
_NAMES = _listed(name for names in STEPS.values() for name in names)
# A consumer is a client that joined a group or sent it heartbeats, or looked for a coordinator and got no further; one
# whose connections were open before is not starting. What a member stored through a producer's transaction, or
# acknowledged along with a fetch, names the member.
START_UP = f"""
    with requests as (
        select exchanges.*, coalesce(status = 'ok', false) as fine,
               min(epoch_ns(exchanges.ts)) over one as first_ns,
               bool_and(handshake_seen) over one as starts
        from exchanges left join flows using (flow_id)
        where exchanges.protocol = 'kafka'
        window one as (partition by exchanges.cluster_id, exchanges.client_address, client_id)),
    stored as (
        select cluster_id, group_id, member_id, min(epoch_ns(ts_response)) as stored_ns,
               arg_min(api, ts_response) as api
        from (select cluster_id, group_id, member_id, ts_response, api, error_code from kafka_offset_commits
              union all
              select cluster_id, group_id, member_id, ts_response, api, error_code from kafka_share_acknowledges)
        where error_code = 0 and member_id <> '' group by all),
    members as (
        select events.cluster_id, client_address, client_id, min(events.group_id) as group_id,
               count(distinct events.member_id) as member_ids, min(stored_ns) as stored_ns,
               arg_min(api, stored_ns) as api
        from kafka_group_events as events left join stored
            on events.cluster_id is not distinct from stored.cluster_id and events.group_id = stored.group_id
            and events.member_id = stored.member_id
        where event <> 'describe' and event <> 'leave' group by all),
    clients as (
        select cluster_id, client_address, client_id, first_ns, {_FIRSTS},
               arg_max(operation, ts) filter (is_step and not fine and coalesce(error_code, 0) <> 79) as failed,
               arg_max(coalesce(error_code || ' ' || error_name, status), ts)
                   filter (is_step and not fine and coalesce(error_code, 0) <> 79) as error,
               count(*) filter (is_step and status = 'error') as errors, bool_and(starts) as starts,
               bool_or(operation in ({_listed(_MEMBERS_ONLY)}))
                   or bool_or(operation = 'FindCoordinator') and not bool_or(
                       fine and operation not in ('ApiVersions', 'Metadata') and operation not like 'Sasl%') as consumes
        from (select *, operation in ({_NAMES}) as is_step from requests)
        group by cluster_id, client_address, client_id, first_ns),
    ways as (
        select clients.* replace (coalesce(commit_ns, stored_ns) as commit_ns, coalesce(commit_by, api) as commit_by),
               group_id, member_ids
        from clients left join members on clients.cluster_id is not distinct from members.cluster_id
            and clients.client_address is not distinct from members.client_address
            and clients.client_id is not distinct from members.client_id
        where consumes and coalesce(starts, false))
    select cluster_id, group_id, client_id, client_address, make_timestamp_ns(first_ns)::timestamptz_ns as ts,
           member_ids, {", ".join(STEPS)},
           array_to_string(list_filter([{_WAY}], lambda one: one is not null), ', ') as way,
           case when commit_ms is null
               then list_filter([{_DONE}], lambda one: one is not null)[-1] end as stopped_after,
           case when commit_ms is null then failed || ': ' || error end as failing, errors
    from (select *, {_TIMES} from ways)"""

# In which state groups were (`kafka_group_states`) and who coordinates them. At a time a state that ended later stands.
STATE_TABLES = ("kafka_group_states", "kafka_group_events", "kafka_brokers", "flows")

# Each state that a group was in.
CHANGES = """
    select cluster_id, group_id, ts, case when ended then ts_end end as ts_end,
           case when ended then (epoch_ns(ts_end) - epoch_ns(ts)) / 1e6 end as lasted_ms, state, type, protocol_type,
           assignor, generation, members, leader_id
    from (select *, at_ns is not null and {until} as ended
          from (select * exclude (at_ns), epoch_ns(ts_end) as at_ns
                from (select *, epoch_ns(ts) as at_ns from kafka_group_states) where {until}))"""

# The broker that answers a group's requests, else the one that FindCoordinator named.
_COORDINATORS = """
    select cluster, group_id, unnest(arg_max(struct_pack(host, port, node_id), row(seen, at_ns)))
    from (
        select coalesce(brokers.cluster_id, '') as cluster, group_id, host, port, node_id, false as seen,
               epoch_ns(ts) as at_ns
        from kafka_brokers as brokers where source = 'FindCoordinator' and group_id is not null and node_id >= 0
        union all
        select last.cluster, last.group_id, server_address, server_port, nodes.node_id, true, at_ns
        from (
            select coalesce(cluster_id, '') as cluster, group_id, arg_max(flow_id, ts_response) as flow_id,
                   epoch_ns(max(ts_response)) as at_ns
            from kafka_group_events where error_code = 0 and event <> 'describe' group by all) as last
        join flows using (flow_id)
        left join (
            select coalesce(cluster_id, '') as cluster, host, port, max(node_id) as node_id from kafka_brokers
            group by all) as nodes
            on last.cluster = nodes.cluster and server_address = nodes.host and server_port = nodes.port)
    where {until} group by cluster, group_id"""
# How each group stands.
STATES = f"""
    select cluster_id, group_id, state, type, protocol_type, assignor, generation, members, leader_id,
           host || ':' || port || coalesce(' (' || node_id || ')', '') as coordinator, node_id as coordinator_id,
           host as coordinator_host, port as coordinator_port, ts as ts_since
    from (select *, coalesce(cluster_id, '') as cluster from ({CHANGES}) where ts_end is null)
    left join ({_COORDINATORS}) using (cluster, group_id)"""
