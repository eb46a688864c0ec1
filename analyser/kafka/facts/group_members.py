"""Who was a member of which group, from when to when, and how it ended: the steps of `kafka_members`, as SQL.

In: views `kafka_group_events`, `kafka_offset_commits`, `kafka_assignments`, `flows`, `gaps`. Out: SELECTs by
the name of the temporary table that each makes, in their order. Times are Unix ns; an unknown cluster is one of its own
('').

- A membership is a member id; a KIP-848 member that left or was fenced, and comes back under its id, has another one.
  A static member that left for a while (epoch -2) has not ended: it is replaced when its instance id comes back, under
  whatever member id, and has left when what it had is given to another.
- `gm_seen`: which member was heard of in which generation (or epoch) first, by a request that the broker accepted or
  by the leader's plan. A group whose generations begin again at a lower number is another group (`life`).
- A member that is absent from the next generation of a classic group had left, or was removed: nobody stays without
  joining. In a KIP-848 group the epoch rises without it for other reasons too, so it counts as removed when what it
  had is given to another, or when the epoch rises although nobody joined or left.
- Silence between two requests of a member counts only where no bytes of its address are missing.
"""

from __future__ import annotations

from wirewitness.analyser.engine.facts.gaps import losses
from wirewitness.analyser.kafka.facts.generations import turns
from wirewitness.analyser.kafka.facts.group_requests import BEATS, EVENTS, KEY, SECOND_NS, heard_sql, time_sql

_NEVER = 2**63 - 1
# A member that was silent for less than this before the capture's end is still there, whatever its timeout.
LEAST_TIMEOUT_NS = 10 * SECOND_NS
_REBALANCE_IN_PROGRESS = 27
# A gap is told when the receiver has confirmed what lies behind it.
_TOLD_LATE_NS = 2 * SECOND_NS

_MOST_PARTITIONS = 500
# A member of KIP-848 that was silent for so many heartbeats is no more; 5 s are the broker's default interval.
_MISSED, _INTERVAL_MS = 3, 5000
MISSED_NS = f"{_MISSED} * coalesce(heartbeat_interval_ms, {_INTERVAL_MS}) * 1000000"

MEMBER = f"{KEY}, member_id, life"

# After these a member id of KIP-848 begins anew.
_REFUSED = "coalesce(error_code, 0) IN (25, 82, 110)"

_NAME = "coalesce(topic, topic_id) || '-' || partition"
_NAMES = f"coalesce(list(DISTINCT {_NAME} ORDER BY {_NAME}) FILTER ({_NAME} IS NOT NULL), [])[:{_MOST_PARTITIONS}]"

MEMBER_STEPS = {
    "gm_events": EVENTS,
    "gm_began": """
        SELECT coalesce(cluster_id, '') AS cluster, group_id, incarnation, generation, epoch_ns(ts) AS began_ns,
               join_seen AS joined
        FROM kafka_generations""",
    "gm_owned": """
        SELECT coalesce(cluster_id, '') AS cluster, group_id, topic, topic_id, partition, member_id, generation, shared,
               source, ended_by, epoch_ns(ts) AS at_ns, epoch_ns(ts_end) AS ended_ns
        FROM kafka_ownership""",
    # Only a member of KIP-848 keeps its id: what comes behind a turn, and is refused as well, belongs to the membership
    # before.
    "gm_lives": f"""
        SELECT *, 0::BIGINT AS life FROM gm_events WHERE member_id <> '' AND NOT {BEATS}
        UNION ALL
        SELECT * EXCLUDE (turn), max(CASE WHEN NOT leaves AND coalesce(error_code, 0) = 0 THEN turn ELSE 0 END) OVER (
                   PARTITION BY {KEY}, member_id ORDER BY at_ns, exchange_id ROWS UNBOUNDED PRECEDING) AS life
        FROM (SELECT *, count(*) FILTER (leaves OR away OR {_REFUSED}) OVER (
                  PARTITION BY {KEY}, member_id ORDER BY at_ns, exchange_id
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS turn
              FROM gm_events WHERE member_id <> '' AND {BEATS})""",
    # Signs of life, one row for each second: commits are many.
    "gm_signs": f"""
        SELECT {MEMBER}, min(at_ns) AS at_ns, max(done_ns) AS done_ns, max(at_ns) AS last_ns
        FROM (
            SELECT {MEMBER}, at_ns, done_ns FROM gm_lives
            WHERE NOT leaves
            UNION ALL
            SELECT commits.cluster, commits.group_id, commits.member_id, coalesce(lives.life, 0), commits.at_ns,
                   commits.done_ns
            FROM (SELECT coalesce(cluster_id, '') AS cluster, group_id, member_id, min(epoch_ns(ts)) AS at_ns,
                         max(coalesce(epoch_ns(ts_response), epoch_ns(ts))) AS done_ns
                  FROM kafka_offset_commits
                  WHERE group_id IS NOT NULL AND member_id <> '' AND ts IS NOT NULL
                  GROUP BY 1, 2, 3, epoch_ns(ts) // {SECOND_NS}) AS commits
            ASOF LEFT JOIN gm_lives AS lives
                ON commits.cluster = lives.cluster AND commits.group_id = lives.group_id
                AND commits.member_id = lives.member_id AND commits.at_ns >= lives.at_ns)
        GROUP BY {MEMBER}, at_ns // {SECOND_NS}""",
    # Heard of in a generation first. joined: its own JoinGroup was answered with it, or its first heartbeat was.
    "gm_seen": f"""
        SELECT heard.*, coalesce(incarnation, 0) AS begun
        FROM (SELECT {MEMBER}, generation, min(heard_ns) AS first_ns, bool_or(joins) AS joined,
                     max(at_ns) FILTER (joins) AS join_ns, min(done_ns) FILTER (joins) AS joined_ns
              FROM ({heard_sql("gm_lives", "gm_owned", "life")}) GROUP BY {MEMBER}, generation) AS heard
        ASOF LEFT JOIN (SELECT {KEY}, incarnation, min(began_ns) AS since_ns FROM gm_began GROUP BY ALL) AS lives
            ON heard.cluster = lives.cluster AND heard.group_id = lives.group_id AND first_ns >= lives.since_ns""",
    "gm_generations": f"""
        SELECT {KEY}, incarnation AS begun, generation, began_ns, joined, lead(began_ns) OVER own AS next_ns,
               lag(generation) OVER own AS before, lag(incarnation) OVER own AS begun_before,
               lag(began_ns) OVER own AS before_ns
        FROM gm_began WINDOW own AS (PARTITION BY {KEY} ORDER BY incarnation, generation)""",
    "gm_gaps": f"SELECT address, at_ns AS gap_ns FROM ({losses()})",
    "gm_members": f"""
        SELECT {MEMBER}, any_value(group_protocol) AS protocol, max(protocol_type) AS protocol_type,
               arg_max(instance_id, at_ns) AS instance_id,
               coalesce(arg_max(client_id, at_ns) FILTER (NOT leaves), max(client_id)) AS client_id,
               coalesce(arg_max(address, at_ns) FILTER (NOT leaves), max(address)) AS address,
               coalesce(arg_max(protocol_name, done_ns) FILTER (error_code = 0), max(protocol_name)) AS assignor,
               max(session_timeout_ms) AS session_timeout_ms, max(rebalance_timeout_ms) AS rebalance_timeout_ms,
               max(heartbeat_interval_ms) AS heartbeat_interval_ms,
               arg_max(topics, at_ns) AS topics, min(at_ns) AS begin_ns,
               min(done_ns) FILTER (event = 'join' AND error_code = 0) AS join_done_ns,
               min(at_ns) FILTER (rebalance_timeout_ms IS NOT NULL) AS full_ns,
               min(done_ns) FILTER (error_code = 0) AS first_done_ns,
               max(done_ns) FILTER (error_code = 0) AS last_done_ns,
               min(at_ns) FILTER (leaves AND coalesce(error_code, 0) = 0) AS left_ns,
               coalesce(bool_or(away AND error_code = 0), false) AS is_away,
               arg_min(reason, at_ns) FILTER (leaves AND coalesce(error_code, 0) = 0) AS left_reason,
               arg_min(client_id, at_ns) FILTER (leaves AND coalesce(error_code, 0) = 0) AS left_client_id,
               min(done_ns) FILTER (error_code IN (25, 110)) AS unknown_ns,
               min(done_ns) FILTER (error_code = 82) AS fenced_ns,
               arg_min(exchange_id, at_ns) AS first_exchange_id, arg_max(exchange_id, at_ns) AS last_exchange_id,
               coalesce(arg_max(flow_id, at_ns) FILTER (NOT leaves), max(flow_id)) AS flow_id
        FROM gm_lives GROUP BY {MEMBER}""",
    "gm_silences": f"""
        SELECT {MEMBER}, first_ns, last_ns, arg_max(since, silence) AS silent_ns, max(silence) AS silence
        FROM (
            SELECT {MEMBER}, at_ns, min(at_ns) OVER own AS first_ns, max(last_ns) OVER own AS last_ns,
                   max(done_ns) OVER before AS since, at_ns - max(done_ns) OVER before AS silence
            FROM gm_signs
            WINDOW own AS (PARTITION BY {MEMBER}),
                   before AS (PARTITION BY {MEMBER} ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        GROUP BY {MEMBER}, first_ns, last_ns""",
    # Silences that end at another server than they began at: the coordinator moved, and had to be found again.
    "gm_elsewhere": f"""
        WITH signs AS (
            SELECT {KEY}, member_id, at_ns, done_ns, flow_id FROM gm_lives WHERE NOT leaves
            UNION ALL
            SELECT coalesce(cluster_id, ''), group_id, member_id, epoch_ns(ts),
                   coalesce(epoch_ns(ts_response), epoch_ns(ts)), flow_id
            FROM kafka_offset_commits WHERE group_id IS NOT NULL AND member_id <> '' AND ts IS NOT NULL)
        SELECT {MEMBER}
        FROM (
            SELECT {MEMBER}, flow_id, ends
            FROM (SELECT {MEMBER}, silent_ns + silence AS at_ns, true AS ends FROM gm_silences)
            JOIN signs USING ({KEY}, member_id, at_ns)
            UNION ALL
            SELECT {MEMBER}, flow_id, false
            FROM (SELECT {MEMBER}, silent_ns AS done_ns FROM gm_silences WHERE silence IS NOT NULL)
            JOIN signs USING ({KEY}, member_id, done_ns))
        JOIN flows USING (flow_id)
        GROUP BY {MEMBER}
        HAVING count(DISTINCT ends) = 2 AND count(DISTINCT (server_address, server_port)) > 1""",
    # Who had a partition before, and who got it then.
    "gm_moves": f"""
        SELECT {KEY}, topic, partition, member_id, before_id, at_ns
        FROM (SELECT *, lag(member_id) OVER (PARTITION BY {KEY}, topic, partition ORDER BY at_ns) AS before_id
              FROM gm_owned WHERE NOT shared AND source NOT LIKE '%describe')
        WHERE before_id <> member_id""",
    # Its generations, and when the next one began without it.
    "gm_last": f"""
        SELECT {KEY}, member_id, life, min(generation) AS first_generation, max(generation) AS last_generation,
               nullif(arg_max(coalesce(next_ns, {_NEVER}), first_ns), {_NEVER}) AS next_ns
        FROM gm_seen JOIN gm_generations USING ({KEY}, begun, generation)
        GROUP BY ALL""",
    # When what it had was given to another.
    "gm_given": """
        SELECT members.cluster, members.group_id, members.member_id, members.life, min(moves.at_ns) AS given_ns
        FROM gm_silences AS members ASOF JOIN gm_moves AS moves
            ON members.cluster = moves.cluster AND members.group_id = moves.group_id
            AND members.member_id = moves.before_id AND members.last_ns < moves.at_ns
        GROUP BY ALL""",
    # What it had last, if it was not given nothing since; else what it committed.
    "gm_assigned": f"""
        SELECT {KEY}, member_id, to_json(arg_max(names, told))::VARCHAR AS partitions
        FROM (
            SELECT {KEY}, member_id, 1 AS told,
                   CASE WHEN coalesce(synced_ns > until_ns, until_ns IS NULL) THEN [] ELSE names END AS names
            FROM (
                SELECT {KEY}, member_id, any_value(until_ns) AS until_ns, {_NAMES} AS names
                FROM (SELECT {KEY}, member_id, coalesce(ended_ns, {_NEVER}) AS until_ns, NULL AS topic_id, partition,
                             CASE WHEN ended_by IS DISTINCT FROM 'revoked' THEN topic END AS topic
                      FROM gm_owned QUALIFY until_ns = max(until_ns) OVER (PARTITION BY {KEY}, member_id))
                GROUP BY {KEY}, member_id)
            FULL JOIN (SELECT {KEY}, member_id, max(done_ns) AS synced_ns FROM gm_events
                       WHERE event = 'sync' AND error_code = 0 AND coalesce(protocol_type, 'consumer') = 'consumer'
                       GROUP BY ALL) USING ({KEY}, member_id)
            UNION ALL
            SELECT coalesce(cluster_id, ''), group_id, member_id, 0,
                   {_NAMES}
            FROM kafka_offset_commits WHERE member_id <> '' AND coalesce(topic, topic_id) IS NOT NULL
            GROUP BY cluster_id, group_id, member_id)
        GROUP BY ALL""",
    # KIP-848: the epoch rose although nobody joined or left, while a member had been silent for some heartbeats.
    "gm_unasked": f"""
        FROM (FROM gm_generations WHERE NOT joined) ANTI JOIN (
            SELECT turns.cluster, turns.group_id, begun, generation
            FROM (FROM gm_members WHERE left_ns IS NOT NULL) AS others
            ASOF JOIN ({turns("gm_generations")}) AS turns
                ON others.cluster = turns.cluster AND others.group_id = turns.group_id
                AND others.left_ns <= turns.began_ns
            WHERE others.left_ns > turns.since_ns) USING ({KEY}, begun, generation)""",
    "gm_expired": f"""
        SELECT members.cluster, members.group_id, members.member_id, members.life, min(began_ns) AS expired_ns
        FROM (SELECT * FROM gm_members JOIN gm_silences USING ({MEMBER}) WHERE protocol <> 'classic') AS members
        ASOF JOIN gm_unasked AS generations
            ON members.cluster = generations.cluster AND members.group_id = generations.group_id
            AND members.last_ns + {MISSED_NS} <= generations.began_ns
        GROUP BY ALL""",
    # The first sign of a rebalance after a member's connection was closed.
    "gm_turned": f"""
        SELECT {", ".join(f"members.{name}" for name in MEMBER.split(", "))}, turns.at_ns AS turned_ns
        FROM (SELECT {MEMBER}, epoch_ns(ts_closed) AS closed_ns
              FROM gm_members JOIN (SELECT flow_id, closed_by, ts_closed FROM flows) USING (flow_id)
              WHERE protocol = 'classic' AND closed_by = 'client') AS members
        ASOF JOIN (SELECT DISTINCT {KEY}, at_ns FROM gm_events
                   WHERE event = 'join' OR error_code = {_REBALANCE_IN_PROGRESS}) AS turns
            ON members.cluster = turns.cluster AND members.group_id = turns.group_id
            AND members.closed_ns < turns.at_ns""",
    # Gone: the next generation, or another has what it had. Not known where bytes of its address are missing in
    # between, or any bytes at all while the end of its connection was not seen; but who leaves turns its group at once,
    # and so had not left where that was quiet for half a session timeout. A gap is told some time after it was.
    "gm_gone": f"""
        SELECT members.*, first_generation, last_generation, silences.last_ns, silent_ns, silence, closed_by, reset_by,
               ts_closed,
               coalesce(turned_ns >= epoch_ns(ts_closed) + session_timeout_ms * 500000, false) AS waited_out,
               CASE WHEN protocol = 'classic' THEN next_ns ELSE least(given_ns, expired_ns) END AS without_ns,
               CASE WHEN instance_id IS NOT NULL THEN lead(begin_ns) OVER own END AS successor_ns,
               CASE WHEN instance_id IS NOT NULL THEN lead(members.member_id) OVER own END AS successor_id,
               (SELECT max(epoch_ns(ts_last)) FROM flows) AS ends_ns
        FROM gm_members AS members
        LEFT JOIN gm_silences AS silences USING ({MEMBER})
        LEFT JOIN gm_last USING ({MEMBER})
        LEFT JOIN gm_given USING ({MEMBER})
        LEFT JOIN gm_expired USING ({MEMBER})
        LEFT JOIN gm_turned USING ({MEMBER})
        LEFT JOIN (SELECT flow_id, closed_by, reset_by, ts_closed FROM flows) USING (flow_id)
        WINDOW own AS (PARTITION BY {KEY}, instance_id ORDER BY begin_ns, members.member_id)""",
    "gm_ended": f"""
        SELECT *, CASE
                WHEN left_ns IS NOT NULL THEN 'left'
                WHEN fenced_ns IS NOT NULL THEN 'fenced'
                WHEN unknown_ns IS NOT NULL THEN 'removed'
                WHEN successor_ns IS NOT NULL THEN 'replaced'
                WHEN is_away AND gone_ns IS NOT NULL THEN 'left'
                WHEN last_ns > gone_ns THEN 'removed'
                WHEN gone_ns IS NOT NULL THEN 'expired'
                WHEN last_ns >= ends_ns - greatest({LEAST_TIMEOUT_NS}, coalesce(session_timeout_ms, 0) * 1000000)
                    THEN 'active' END AS ended
        FROM (
            SELECT gone.*, CASE
                    WHEN waited_out THEN without_ns
                    WHEN gaps.gap_ns >= last_ns - {SECOND_NS} THEN NULL
                    WHEN holes.gap_ns >= last_ns - {SECOND_NS} AND closed_by IS NULL THEN NULL
                    ELSE without_ns END AS gone_ns
            FROM gm_gone AS gone
            ASOF LEFT JOIN gm_gaps AS gaps
                ON gone.address = gaps.address AND without_ns + {_TOLD_LATE_NS} >= gaps.gap_ns
            ASOF LEFT JOIN (SELECT DISTINCT gap_ns FROM gm_gaps) AS holes
                ON without_ns + {_TOLD_LATE_NS} >= holes.gap_ns)""",
}


_JOINED_NS = "coalesce(join_done_ns, CASE WHEN full_ns = begin_ns THEN first_done_ns END)"
_ENDED_NS = """CASE ended WHEN 'left' THEN coalesce(left_ns, gone_ns) WHEN 'fenced' THEN fenced_ns
               WHEN 'removed' THEN least(unknown_ns, gone_ns)
               WHEN 'replaced' THEN successor_ns WHEN 'expired' THEN gone_ns END"""
# Silence is not known where bytes of the address are missing between its two ends, or its coordinator moved meanwhile.
MEMBER_ROWS = f"""
    SELECT nullif(cluster, '') AS cluster_id, group_id, member_id, instance_id AS group_instance_id, client_id,
           address AS client_address, protocol, protocol_type, assignor, topics, session_timeout_ms,
           rebalance_timeout_ms, first_generation, last_generation, partitions, {time_sql("begin_ns")} AS ts,
           {time_sql(_JOINED_NS)} AS ts_joined,
           {time_sql("coalesce(last_ns, begin_ns)")} AS ts_last,
           ended,
           {time_sql(_ENDED_NS)} AS ts_ended,
           CASE ended WHEN 'left' THEN left_reason END AS reason,
           CASE WHEN ended = 'left' AND left_client_id <> client_id THEN left_client_id END AS removed_by,
           successor_id AS replaced_by,
           CASE WHEN NOT missing THEN round(silence / 1e6, 3) END AS max_heartbeat_gap_ms,
           {time_sql("CASE WHEN NOT missing THEN silent_ns END")} AS ts_silent,
           CASE WHEN ended = 'expired' OR NOT missing THEN side END AS idle_side,
           closed_by, reset_by, ts_closed, first_exchange_id AS exchange_id, last_exchange_id, flow_id
    FROM (SELECT made.*, coalesce(gap_ns >= silent_ns, false)
                     OR ({MEMBER}) IN (FROM gm_elsewhere) AS missing
          FROM gm_ended AS made ASOF LEFT JOIN gm_gaps AS gaps
              ON made.address = gaps.address AND silent_ns + silence + {_TOLD_LATE_NS} >= gap_ns) AS made
    LEFT JOIN gm_assigned USING ({KEY}, member_id)
    LEFT JOIN gm_sides USING ({MEMBER})"""
