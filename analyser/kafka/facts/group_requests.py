"""Requests of groups with clean names: what every fact about groups reads, as SQL.

In: views `kafka_group_events`, `kafka_assignments`, `kafka_offset_commits`. Out: SELECTs. Times are Unix ns; an unknown
cluster is one of its own ('').
"""

from __future__ import annotations

SECOND_NS = 1_000_000_000
KEY = "cluster, group_id"

# Heartbeats of members that have epochs (KIP-848, KIP-932, KIP-1071).
BEATS = "event IN ('consumer_heartbeat', 'share_heartbeat', 'streams_heartbeat')"
_PROTOCOL = f"CASE WHEN {BEATS} THEN replace(event, '_heartbeat', '') ELSE 'classic' END"
_LEAVES = f"event = 'leave' OR (generation = -1 AND {BEATS})"
# A static member that leaves for a while, whose partitions the broker keeps for it (KIP-848).
_AWAY = f"coalesce(generation = -2 AND {BEATS}, false)"

# What members asked: at_ns of the request, done_ns of the response, of the request where there is none.
EVENTS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, group_id, member_id, nullif(group_instance_id, '') AS instance_id,
           client_id, client_address AS address, event, generation, protocol_type, protocol_name, leader_id,
           session_timeout_ms, rebalance_timeout_ms, heartbeat_interval_ms, topics, reason,
           {_PROTOCOL} AS group_protocol, error_code, exchange_id, flow_id,
           epoch_ns(ts) AS at_ns, coalesce(epoch_ns(ts_response), epoch_ns(ts)) AS done_ns,
           ts_response IS NOT NULL AS answered, ({_LEAVES}) AS leaves, {_AWAY} AS away
    FROM kafka_group_events WHERE event <> 'describe' AND group_id IS NOT NULL AND ts IS NOT NULL"""

# What members were given, by responses; a row without a partition where it was nothing.
GIVEN = """
    SELECT coalesce(cluster_id, '') AS cluster, group_id, member_id, coalesce(topic, topic_id) AS topic, topic_id,
           partition, generation, source, exchange_id, epoch_ns(ts) AS at_ns
    FROM kafka_assignments
    WHERE group_id IS NOT NULL AND member_id <> '' AND ts IS NOT NULL"""


def heard_sql(events: str, given: str, life: str = "0::BIGINT") -> str:
    """Which member was heard of in which generation (or epoch): one row for each time.

    The broker took the request, or told the plan. heard_ns: of the request where that names the generation. joins: the
    member joined; turns: rows of which the order tells that a group began again. events, given: tables of EVENTS and
    GIVEN. life: which membership of its id.
    """
    return f"""
        SELECT {KEY}, member_id, {life} AS life, generation, at_ns, done_ns,
               CASE WHEN event IN ('heartbeat', 'sync') THEN at_ns ELSE done_ns END AS heard_ns, leader_id,
               event = 'join' OR (group_protocol <> 'classic' AND rebalance_timeout_ms IS NOT NULL) AS joins,
               event = 'sync' OR joins AS turns, group_protocol,
               CASE WHEN event IN ('join', 'consumer_heartbeat') THEN protocol_name END AS assignor
        FROM {events} WHERE error_code = 0 AND generation >= 0 AND NOT leaves AND member_id <> ''
        UNION ALL
        SELECT coalesce(cluster_id, ''), group_id, member_id, 0, generation, min(epoch_ns(ts)), min(epoch_ns(ts)),
               min(epoch_ns(ts)), NULL, false, false, NULL, NULL
        FROM kafka_offset_commits
        WHERE error_code = 0 AND generation >= 0 AND member_id <> '' AND group_id IS NOT NULL AND ts IS NOT NULL
        GROUP BY 1, 2, 3, 5, epoch_ns(ts) // {SECOND_NS}
        UNION ALL
        SELECT DISTINCT {KEY}, member_id, 0, generation, at_ns, at_ns, at_ns, NULL, false, true, 'classic', NULL
        FROM {given} WHERE source IN ('sync_leader', 'sync_answer') AND generation >= 0"""


def time_sql(column: str) -> str:
    """The time of Unix ns."""
    return f"make_timestamp_ns({column})::TIMESTAMPTZ_NS"
