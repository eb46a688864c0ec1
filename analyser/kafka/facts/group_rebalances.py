"""What made groups rebalance, whom they waited for and what moved: the steps of `kafka_rebalances`, as SQL.

In: the temporary tables of `group_members.py`. Out: SELECTs by the name of the temporary table that each makes, in
their order, and the rows. Times are Unix ns.

An episode is a generation of a classic group, or a new epoch of a KIP-848 group, that began in the capture. It begins
with what set it off and ends when the last of its members got its assignment.

What set it off: of what happened since the generation before, whatever came first, if it came before the first member
was told to join again (27); else a member that is absent from the new generation without having left: its session timed
out. Otherwise it is not known.

Whom a classic group waited for: a JoinGroup is answered once everybody has joined. If the answers follow the last
request at once, for the member that sent it, and how late that was after it had been told; if not, for a member that
never came: its session timeout, or the rebalance timeout. Where a member's silence set it off, everybody had waited for
the end of its session since its last request. The first members of an empty group wait for others by
setting of the broker (group.initial.rebalance.delay.ms), for nobody.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.generations import TOGETHER_NS, turns
from wirewitness.analyser.kafka.facts.group_members import MEMBER, MISSED_NS
from wirewitness.analyser.kafka.facts.group_requests import KEY, time_sql

# Answers that follow the last request by more than this did not wait for it.
_AT_ONCE_NS = 250_000_000
_MOST_MEMBERS = 200
# In all rebalances together: lists of more do not fit into the memory of a query.
_MOST_SHOWN = 50_000
_MOST_MOVES = 200
_EPISODE = f"{KEY}, begun, generation"
# A static member that starts again has another member id, and is still one.
_PEOPLE = "count(DISTINCT coalesce(instance_id, member_id))"
# What clients that were told to join again give as their reason (franz-go, sarama, the Java client).
_TOLD_TO = "^(rejoining from normal rebalance|group is (already )?rebalancing)"
# Reasons of the Java client and of franz-go.
_TOPICS = "^cached metadata has changed|topics have new partitions|is consuming have changed"


def _first(column: str) -> str:
    """SQL: its value of the first cause; of those at one time of one member, so that it is the same in every run."""
    return f"arg_min({column}, (at_ns, member_id, how))"


def _last(column: str) -> str:
    """SQL: its value of the last join; likewise."""
    return f"arg_max({column}, (join_ns, joins.member_id))"


def _after(column: str) -> str:
    """Milliseconds since the episode began."""
    return f"({column} - from_ns) // 1000000"


REBALANCE_STEPS = {
    "gr_episodes": f"""
        SELECT {_EPISODE}, before, began_ns, before_ns, next_ns, joined,
               coalesce(begun_before = begun, false) AS goes_on, row_number() OVER (ORDER BY {_EPISODE}) AS episode
        FROM gm_generations""",
    # Members of each generation; those of a KIP-848 group that were there at that time.
    "gr_present": f"""
        SELECT DISTINCT episode, {MEMBER} FROM gr_episodes JOIN gm_seen USING ({_EPISODE})
        JOIN gm_members USING ({MEMBER}) WHERE protocol = 'classic'
        UNION ALL
        SELECT episode, {MEMBER}
        FROM gr_episodes AS one JOIN gm_ended AS other USING ({KEY})
        WHERE protocol <> 'classic' AND first_done_ns <= began_ns
            AND CASE WHEN left_ns IS NOT NULL THEN left_ns > began_ns
                     WHEN gone_ns IS NOT NULL THEN coalesce(next_ns <= gone_ns, false)
                     ELSE coalesce(unknown_ns > began_ns AND began_ns < last_done_ns + {MISSED_NS}, true) END""",
    "gr_before": f"""
        SELECT one.episode, {MEMBER}
        FROM gr_episodes AS one JOIN gr_present AS other USING ({KEY})
        WHERE goes_on AND one.episode = other.episode + 1""",
    # Requests to join, when each was told to, and when each had its part.
    "gr_joins": f"""
        SELECT episode, {MEMBER}, max(at_ns) AS join_ns, min(done_ns) AS joined_ns, arg_max(topics, at_ns) AS topics,
               arg_max(protocol_name, at_ns) AS assignor, arg_max(reason, at_ns) AS reason,
               arg_max(leader_id, at_ns) AS leader_id, arg_max(exchange_id, at_ns) AS exchange_id
        FROM gr_episodes AS one JOIN gm_lives AS other USING ({KEY}, generation)
        WHERE event = 'join' AND error_code = 0 AND done_ns BETWEEN began_ns AND began_ns + {TOGETHER_NS}
            AND done_ns < coalesce(next_ns, done_ns + 1)
        GROUP BY ALL""",
    "gr_told": f"""
        SELECT episode, {", ".join(f"other.{name}" for name in MEMBER.split(", "))}, min(done_ns) AS told_ns
        FROM (
            SELECT {MEMBER}, done_ns FROM gm_lives WHERE answered AND error_code IN (22, 27)
            UNION ALL
            SELECT coalesce(cluster_id, ''), group_id, member_id, 0, epoch_ns(ts_response) FROM kafka_offset_commits
            WHERE error_code IN (22, 27) AND member_id <> '' AND ts_response IS NOT NULL) AS other
        ASOF JOIN ({turns("gr_episodes")}) AS one
            ON other.cluster = one.cluster AND other.group_id = one.group_id AND other.done_ns <= one.began_ns
        WHERE done_ns > since_ns
        GROUP BY ALL""",
    "gr_synced": f"""
        SELECT episode, {MEMBER}, min(done_ns) AS synced_ns
        FROM gr_episodes AS one JOIN gm_lives AS other USING ({KEY}, generation)
        WHERE event = 'sync' AND error_code = 0 AND done_ns >= began_ns AND done_ns < coalesce(next_ns, done_ns + 1)
        GROUP BY ALL
        UNION ALL
        SELECT episode, {MEMBER}, min(first_ns)
        FROM gr_episodes JOIN gm_seen USING ({_EPISODE}) JOIN gm_members USING ({MEMBER})
        WHERE protocol <> 'classic' GROUP BY ALL""",
    "gr_lost": f"""
        SELECT episode, {MEMBER}, last_ns, left_ns, gone_ns, ended, session_timeout_ms
        FROM (FROM gr_before ANTI JOIN gr_present USING (episode, {MEMBER})) JOIN gm_ended USING ({MEMBER})""",
    # What could have set it off: when, who, how. A member that joins again by itself had not been told to.
    "gr_causes": f"""
        SELECT episode, left_ns AS at_ns, member_id, 'left' AS how, left_reason AS reason
        FROM (FROM gm_ended WHERE left_ns IS NOT NULL) AS other
        ASOF JOIN ({turns("gr_episodes")}) AS one
            ON other.cluster = one.cluster AND other.group_id = one.group_id AND other.left_ns <= one.began_ns
        WHERE goes_on AND left_ns > since_ns
        UNION ALL
        SELECT episode, coalesce(join_ns, begin_ns), member_id, 'joined', reason
        FROM (FROM gr_present ANTI JOIN gr_before USING (episode, {MEMBER})) JOIN gm_members USING ({MEMBER})
        LEFT JOIN gr_joins USING (episode, {MEMBER}) JOIN gr_episodes USING (episode)
        WHERE begin_ns > coalesce(before_ns, 0) AND (protocol <> 'classic' OR join_ns IS NOT NULL)
        UNION ALL
        SELECT episode, join_ns, member_id,
               CASE WHEN topics <> topics_before THEN 'subscription changed'
                    WHEN member_id = leader_id THEN 'leader' ELSE 'member' END, reason
        FROM (SELECT *, lag(topics) OVER (PARTITION BY {MEMBER} ORDER BY episode) AS topics_before FROM gr_joins)
        JOIN gr_before USING (episode, {MEMBER}) LEFT JOIN gr_told USING (episode, {MEMBER})
        WHERE (told_ns IS NULL OR told_ns > join_ns) AND NOT regexp_matches(coalesce(reason, ''), '{_TOLD_TO}')""",
    "gr_cause": f"""
        SELECT episode, min(at_ns) AS at_ns, {_first("member_id")} AS member_id, {_first("how")} AS how,
               {_first("coalesce(reason, '')")} AS reason
        FROM gr_causes LEFT JOIN (SELECT episode, min(told_ns) AS told_ns FROM gr_told GROUP BY episode) USING (episode)
        WHERE at_ns <= coalesce(told_ns, at_ns) GROUP BY episode""",
    "gr_expired": """
        SELECT episode, arg_max(member_id, last_ns) AS member_id, max(last_ns) AS last_ns, count(*) AS members,
               arg_max(ended, last_ns) AS ended
        FROM gr_lost WHERE ended IN ('expired', 'removed') AND left_ns IS NULL GROUP BY episode""",
    "gr_waits": f"""
        SELECT episode, min(join_ns) AS first_join_ns, max(join_ns) AS last_join_ns, min(joins.joined_ns) AS joined_ns,
               {_last("joins.member_id")} AS last_id, {_last("told_ns")} AS told_ns,
               any_value(leader_id) AS leader_id, any_value(assignor) AS assignor,
               arg_min(exchange_id, (join_ns, joins.member_id)) AS exchange_id,
               {_last("exchange_id")} AS last_exchange_id
        FROM gr_joins AS joins LEFT JOIN gr_told USING (episode, {MEMBER}) GROUP BY episode""",
    "gr_moved": f"""
        SELECT episode, count(*) AS moved,
               to_json(list({{topic: topic, partition: partition, "from": before_id, "to": member_id}}
                            ORDER BY topic, partition, at_ns)[:{_MOST_MOVES}])::VARCHAR AS moves
        FROM gm_moves AS moves ASOF JOIN gr_episodes AS episodes
            ON moves.cluster = episodes.cluster AND moves.group_id = episodes.group_id AND moves.at_ns >= began_ns
        GROUP BY episode""",
    "gr_plans": """
        SELECT cluster, group_id, generation, bit_xor(hash(topic, partition)) AS partitions
        FROM (SELECT cluster, group_id, generation, topic, partition, bool_or(source = 'sync_leader') AS planned
              FROM gm_owned WHERE source LIKE 'sync%' GROUP BY ALL)
        GROUP BY ALL HAVING bool_or(planned)""",
    "gr_begin": f"""
        SELECT episodes.*, CASE
                   WHEN how IN ('leader', 'member') AND regexp_matches(reason, '{_TOPICS}') THEN 'topic changed'
                   WHEN how IN ('leader', 'member') AND assignor LIKE '%cooperative%'
                       AND regexp_matches(reason, '^$|revok') THEN 'partitions given up'
                   WHEN how IN ('leader', 'member') AND former.partitions <> current.partitions THEN 'topic changed'
                   WHEN how IS NOT NULL THEN how WHEN expired.member_id IS NOT NULL THEN 'expired' END AS how,
               coalesce(cause.member_id, expired.member_id) AS trigger_id, nullif(reason, '') AS reason,
               coalesce(cause.at_ns, least(told_ns, first_join_ns), began_ns) AS begin_ns
        FROM gr_episodes AS episodes LEFT JOIN gr_cause AS cause USING (episode)
        LEFT JOIN gr_expired AS expired USING (episode)
        LEFT JOIN (SELECT episode, first_join_ns, assignor FROM gr_waits) USING (episode)
        LEFT JOIN (SELECT episode, min(told_ns) AS told_ns FROM gr_told GROUP BY episode) USING (episode)
        LEFT JOIN gr_plans AS current ON episodes.cluster = current.cluster AND episodes.group_id = current.group_id
            AND episodes.generation = current.generation
        LEFT JOIN gr_plans AS former ON episodes.cluster = former.cluster AND episodes.group_id = former.group_id
            AND episodes.before = former.generation""",
    "gr_there": f"""
        SELECT episode, {MEMBER}, begun.begin_ns AS from_ns
        FROM gr_present JOIN (SELECT {MEMBER}, protocol, begin_ns FROM gm_members) AS own USING ({MEMBER})
        JOIN gr_begin AS begun USING (episode)
        WHERE protocol <> 'classic' OR own.begin_ns <= began_ns + {TOGETHER_NS}""",
    # Only of those that are shown all is put together: members in all rebalances may be the square of the members.
    "gr_shown": f"""
        FROM (SELECT episode, {MEMBER}, from_ns, join_ns
              FROM gr_there LEFT JOIN gr_joins USING (episode, {MEMBER})
              QUALIFY row_number() OVER (PARTITION BY episode ORDER BY join_ns, member_id) <= {_MOST_MEMBERS})
        ORDER BY episode, join_ns, member_id LIMIT {_MOST_SHOWN}""",
    "gr_members": f"""
        SELECT episode, max(synced_ns) AS ends_ns, {_PEOPLE} AS members, any_value(protocol) AS protocol,
               any_value(assignor) AS assignor
        FROM gr_there JOIN (SELECT {MEMBER}, instance_id, protocol, assignor FROM gm_members) USING ({MEMBER})
        LEFT JOIN gr_synced USING (episode, {MEMBER})
        GROUP BY episode""",
    "gr_pauses": f"""
        SELECT episode, to_json(list({{
                   member_id: member_id, client_id: client_id, address: address,
                   told_ms: {_after("told_ns")}, join_ms: {_after("join_ns")}, synced_ms: {_after("synced_ns")},
                   pause_ms: (synced_ns - join_ns) // 1000000}}
                   ORDER BY join_ns, member_id))::VARCHAR AS pauses
        FROM gr_shown JOIN (SELECT {MEMBER}, client_id, address FROM gm_members) USING ({MEMBER})
        LEFT JOIN gr_told USING (episode, {MEMBER}) LEFT JOIN gr_synced USING (episode, {MEMBER})
        GROUP BY episode""",
    # How long all waited for one alone: that never came, that came last, or whose silence had to become long enough.
    "gr_held": f"""
        SELECT episode, CASE wait WHEN 'late' THEN last_id ELSE expired_id END AS member_id,
               CASE wait WHEN 'absent' THEN joined_ns - last_join_ns WHEN 'late' THEN last_join_ns - but_one_ns
                         WHEN 'silent' THEN CASE protocol WHEN 'classic' THEN begin_ns ELSE began_ns END - last_ns END
                   AS held_ns,
               wait <> 'late' AS absent
        FROM (SELECT *, expired.member_id AS expired_id, CASE
                         WHEN protocol <> 'classic' THEN CASE WHEN how = 'expired' THEN 'silent' END
                         WHEN joined_ns - last_join_ns > {_AT_ONCE_NS} THEN 'absent'
                         WHEN how = 'expired' AND coalesce(last_join_ns - but_one_ns, 0) <= {_AT_ONCE_NS} THEN 'silent'
                         WHEN last_join_ns > but_one_ns THEN 'late' END AS wait
              FROM gr_begin JOIN gr_members USING (episode) LEFT JOIN gr_expired AS expired USING (episode)
              LEFT JOIN gr_waits USING (episode)
              LEFT JOIN (SELECT episode, max(join_ns, 2)[2] AS but_one_ns FROM gr_joins GROUP BY episode)
                  USING (episode)
              WHERE episode IN (SELECT episode FROM gr_before))
        WHERE wait IS NOT NULL""",
}


def _who(name: str, columns: str) -> str:
    """A join with who a member is: of its newest membership."""
    return f"""
    LEFT JOIN (SELECT {KEY}, member_id AS {name}_id, {columns} FROM gm_ended
               QUALIFY row_number() OVER (PARTITION BY {KEY}, member_id ORDER BY begin_ns DESC) = 1) AS {name}
        USING ({KEY}, {name}_id)"""


REBALANCE_ROWS = f"""
    SELECT nullif(cluster, '') AS cluster_id, group_id, {time_sql("begin_ns")} AS ts,
           {time_sql("joined_ns")} AS ts_joined,
           {time_sql("greatest(ends_ns, began_ns)")} AS ts_end, protocol, assignor,
           CASE WHEN goes_on THEN before END AS generation_before, generation,
           how AS trigger, trigger_id AS trigger_member_id, trigger_client_id, trigger_address,
           reason AS trigger_reason,
           CASE WHEN goes_on THEN (SELECT {_PEOPLE} FROM gr_before AS b JOIN gm_members USING ({MEMBER})
                                   WHERE b.episode = made.episode) END AS members_before,
           members AS members_after, leader_id,
           round((joined_ns - first_join_ns) / 1e6, 3) AS wait_ms,
           CASE WHEN waited_id IS NULL THEN NULL WHEN absent THEN 'absent member' ELSE 'late member' END AS waited_for,
           waited_id AS waited_member_id, waited_client_id, waited_address,
           CASE WHEN waited_id IS NOT NULL THEN round(held_ns / 1e6, 3) END AS waited_ms,
           {time_sql("CASE WHEN absent AND waited_id IS NOT NULL THEN waited_last_ns END")} AS ts_waited_last,
           coalesce(moved, 0) AS partitions_moved, moves, pauses, exchange_id, last_exchange_id
    FROM (
        SELECT *, held.member_id AS waited_id
        FROM gr_begin JOIN gr_members USING (episode) LEFT JOIN gr_pauses USING (episode)
        LEFT JOIN gr_waits USING (episode) LEFT JOIN gr_held AS held USING (episode)
        LEFT JOIN gr_moved USING (episode)
        WHERE joined OR (protocol <> 'classic' AND before IS NOT NULL)) AS made
    {_who("trigger", "client_id AS trigger_client_id, address AS trigger_address")}
    {_who("waited", "client_id AS waited_client_id, address AS waited_address, last_ns AS waited_last_ns")}"""
