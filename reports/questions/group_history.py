"""How groups came to be as they are: rebalances, and the way of each consumer to its first commit.

In: the tables. Out: SELECTs for `kafka_views.py`.
"""

from __future__ import annotations

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

# The steps of a consumer in their usual order; a group of KIP-848 has heartbeats instead of JoinGroup and SyncGroup.
STEPS = {
    "ApiVersions": "api_versions_ms",
    "Metadata": "metadata_ms",
    "FindCoordinator": "find_coordinator_ms",
    "JoinGroup": "join_ms",
    "SyncGroup": "sync_ms",
    "ConsumerGroupHeartbeat": "heartbeat_ms",
    "OffsetFetch": "offset_fetch_ms",
    "ListOffsets": "list_offsets_ms",
    "Fetch": "fetch_ms",
    "OffsetCommit": "commit_ms",
}
_TIMES = ", ".join(
    f"(min(epoch_ns(ts_response)) filter (operation = '{step}' and fine) - first_ns) / 1e6 as {column}"
    for step, column in STEPS.items()
)
_WAY = ", ".join(
    f"case when {column} is not null then '{step} ' || round({column})::bigint end" for step, column in STEPS.items()
)
_NAMES = ", ".join(f"'{step}'" for step in STEPS)
# A consumer is a client that asked for a coordinator or joined; one whose connections were open before is not starting.
START_UP = f"""
    with requests as (
        select exchanges.* replace (replace(operation, 'Txn', '') as operation), coalesce(status = 'ok', false) as fine,
               min(epoch_ns(exchanges.ts)) over one as first_ns,
               bool_and(handshake_seen) over one as starts
        from exchanges left join flows using (flow_id)
        where exchanges.protocol = 'kafka' and operation in ('TxnOffsetCommit', {_NAMES})
        window one as (partition by exchanges.cluster_id, exchanges.client_address, client_id)),
    members as (
        select cluster_id, client_address, client_id, min(group_id) as group_id, count(distinct member_id) as member_ids
        from kafka_group_events where event <> 'describe' and event <> 'leave' group by all),
    clients as (
        select cluster_id, client_address, client_id, first_ns, {_TIMES},
               arg_max(operation, ts) filter (not fine and coalesce(error_code, 0) <> 79) as failed,
               arg_max(coalesce(error_code || ' ' || error_name, status), ts)
                   filter (not fine and coalesce(error_code, 0) <> 79) as error,
               count(*) filter (status = 'error') as errors, bool_and(starts) as starts,
               bool_or(operation in ('FindCoordinator', 'JoinGroup', 'ConsumerGroupHeartbeat')) as consumes
        from requests group by cluster_id, client_address, client_id, first_ns)
    select clients.cluster_id, members.group_id, clients.client_id, clients.client_address,
           make_timestamp_ns(first_ns)::timestamptz_ns as ts, member_ids, {", ".join(STEPS.values())},
           array_to_string(list_filter([{_WAY}], lambda one: one is not null), ', ') as way,
           case when commit_ms is not null then null
                else (list_filter([{", ".join(f"case when {c} is not null then '{s}' end" for s, c in STEPS.items())}],
                      lambda one: one is not null))[-1] end as stopped_after,
           case when commit_ms is null then failed || ': ' || error end as failing,
           errors
    from clients left join members on clients.cluster_id is not distinct from members.cluster_id
        and clients.client_address is not distinct from members.client_address
        and clients.client_id is not distinct from members.client_id
    where consumes and coalesce(starts, false)"""
