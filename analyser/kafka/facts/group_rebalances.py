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
_NEVER = 2**63 - 1
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
    # Members of each generation of a classic group.
    "gr_present": f"""
        SELECT DISTINCT episode, {MEMBER} FROM gr_episodes JOIN gm_seen USING ({_EPISODE})
        JOIN gm_members USING ({MEMBER}) WHERE protocol = 'classic'""",
    "gr_times": f"""
        SELECT {KEY}, began_ns, min(episode) AS first_episode, max(episode) AS last_episode
        FROM gr_episodes GROUP BY {KEY}, began_ns""",
    # Those of a KIP-848 group are there from one to another: rebalances begin in their order. They may be the square of
    # the members, and are never listed all.
    "gr_spans": f"""
        SELECT row_number() OVER (ORDER BY member_id, life, {KEY}) AS span, *
        FROM (
            SELECT {", ".join(f"other.{name}" for name in MEMBER.split(", "))}, protocol, assignor,
                   coalesce(instance_id, member_id) AS person, starts.first_episode,
                   ends.last_episode - CASE WHEN by_next THEN 1 ELSE 0 END AS last_episode
            FROM (SELECT *, left_ns IS NULL AND gone_ns IS NOT NULL AS by_next, CASE
                             WHEN left_ns IS NOT NULL THEN left_ns WHEN gone_ns IS NOT NULL THEN gone_ns + 1
                             ELSE coalesce(least(unknown_ns, last_done_ns + {MISSED_NS}), {_NEVER}) END AS until_ns
                  FROM gm_ended WHERE protocol <> 'classic') AS other
            ASOF JOIN gr_times AS starts
                ON other.cluster = starts.cluster AND other.group_id = starts.group_id
                AND first_done_ns <= starts.began_ns
            ASOF JOIN gr_times AS ends
                ON other.cluster = ends.cluster AND other.group_id = ends.group_id AND until_ns > ends.began_ns)
        WHERE first_episode <= last_episode""",
    # How many of these there are in each rebalance: memberships, and people, who may have several at once.
    "gr_crowds": f"""
        SELECT episode, lag(people, 1, 0) OVER (ORDER BY episode) AS people_before, people, memberships
        FROM (
            SELECT episode, (sum(coalesce(more, 0)) OVER so_far)::BIGINT AS memberships,
                   (sum(coalesce(more_people, 0)) OVER so_far)::BIGINT AS people
            FROM gr_episodes LEFT JOIN (
                SELECT episode, sum(more) AS more, sum(more_people) AS more_people
                FROM (
                    SELECT unnest([first_episode, last_episode + 1]) AS episode, unnest([1, -1]) AS more,
                           0 AS more_people FROM gr_spans
                    UNION ALL
                    SELECT unnest([first_episode, last_episode + 1]), 0, unnest([1, -1])
                    FROM (
                        SELECT min(first_episode) AS first_episode, max(last_episode) AS last_episode
                        FROM (SELECT *, count(*) FILTER (first_episode > last_before) OVER person AS part
                              FROM (SELECT *, max(last_episode) OVER (
                                        PARTITION BY {KEY}, person ORDER BY first_episode, span
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_before FROM gr_spans)
                              WINDOW person AS (PARTITION BY {KEY}, person ORDER BY first_episode, span))
                        GROUP BY {KEY}, person, part))
                GROUP BY episode) USING (episode)
            WINDOW so_far AS (ORDER BY episode))
        WHERE EXISTS (FROM gr_spans)""",
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
        FROM (FROM gr_before ANTI JOIN gr_present USING (episode, {MEMBER})
              UNION ALL
              SELECT episode, {MEMBER} FROM gr_spans JOIN gr_episodes AS one USING ({KEY})
              WHERE goes_on AND one.episode = last_episode + 1) JOIN gm_ended USING ({MEMBER})""",
    # What could have set it off: when, who, how. A member that joins again by itself had not been told to.
    "gr_causes": f"""
        SELECT episode, left_ns AS at_ns, member_id, 'left' AS how, left_reason AS reason
        FROM (FROM gm_ended WHERE left_ns IS NOT NULL) AS other
        ASOF JOIN ({turns("gr_episodes")}) AS one
            ON other.cluster = one.cluster AND other.group_id = one.group_id AND other.left_ns <= one.began_ns
        WHERE goes_on AND left_ns > since_ns
        UNION ALL
        SELECT episode, coalesce(join_ns, begin_ns), member_id, 'joined', reason
        FROM (FROM gr_present ANTI JOIN gr_before USING (episode, {MEMBER})
              UNION ALL SELECT first_episode, {MEMBER} FROM gr_spans) JOIN gm_members USING ({MEMBER})
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
    # Only of those that are shown all is put together: of KIP-848 the first of the first rebalances, by their spans.
    "gr_listed": f"""
        SELECT episode, unnest(min(span, {_MOST_MEMBERS})) AS span
        FROM (SELECT span, unnest(range(first_episode, least(last_episode, last_listed) + 1)) AS episode
              FROM gr_spans CROSS JOIN (
                  SELECT max(episode) AS last_listed
                  FROM (SELECT episode, sum(least(memberships, {_MOST_MEMBERS})) OVER (
                            ORDER BY episode ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM gr_crowds)
                  WHERE coalesce(before, 0) < {_MOST_SHOWN})
              WHERE first_episode <= last_listed)
        GROUP BY episode""",
    "gr_there": f"""
        SELECT episode, {MEMBER}
        FROM gr_present JOIN (SELECT {MEMBER}, begin_ns AS own_ns FROM gm_members) AS own USING ({MEMBER})
        JOIN gr_episodes USING (episode)
        WHERE own_ns <= began_ns + {TOGETHER_NS}""",
    "gr_shown": f"""
        FROM (SELECT episode, {MEMBER}, join_ns
              FROM (FROM gr_there UNION ALL SELECT episode, {MEMBER} FROM gr_listed JOIN gr_spans USING (span))
              LEFT JOIN gr_joins USING (episode, {MEMBER})
              QUALIFY row_number() OVER (PARTITION BY episode ORDER BY join_ns, member_id) <= {_MOST_MEMBERS})
        ORDER BY episode, join_ns, member_id LIMIT {_MOST_SHOWN}""",
    "gr_members": f"""
        SELECT episode, max(ends_ns) AS ends_ns, sum(members)::BIGINT AS members, min(protocol) AS protocol,
               arg_min(assignor, protocol) AS assignor
        FROM (
            SELECT episode, max(synced_ns) AS ends_ns, {_PEOPLE} AS members, any_value(protocol) AS protocol,
                   any_value(assignor) AS assignor
            FROM gr_there JOIN (SELECT {MEMBER}, instance_id, protocol, assignor FROM gm_members) USING ({MEMBER})
            LEFT JOIN gr_synced USING (episode, {MEMBER})
            GROUP BY episode
            UNION ALL
            SELECT episode, ends_ns, people, latest.last_of.protocol,
                   CASE WHEN latest.last_named.last_episode >= episode THEN latest.last_named.assignor END
            FROM (SELECT episode, {KEY}, people FROM gr_crowds JOIN gr_episodes USING (episode) WHERE people > 0) AS own
            LEFT JOIN (SELECT episode, max(synced_ns) AS ends_ns FROM gr_synced JOIN gr_spans USING ({MEMBER})
                       WHERE episode BETWEEN first_episode AND last_episode GROUP BY episode) USING (episode)
            ASOF JOIN (
                SELECT {KEY}, first_episode,
                       max({{last_episode: last_episode, protocol: protocol}}) OVER so_far AS last_of,
                       max({{last_episode: last_episode, assignor: assignor}}) FILTER (assignor IS NOT NULL) OVER so_far
                           AS last_named
                FROM gr_spans WINDOW so_far AS (PARTITION BY {KEY} ORDER BY first_episode)) AS latest
                ON own.cluster = latest.cluster AND own.group_id = latest.group_id AND episode >= first_episode)
        GROUP BY episode""",
    # Who was there before, where the group is still the same.
    "gr_people_before": f"""
        SELECT episode, sum(people)::BIGINT AS people
        FROM (SELECT episode, {_PEOPLE} AS people FROM gr_before JOIN gm_members USING ({MEMBER}) GROUP BY episode
              UNION ALL
              SELECT episode, people_before FROM gr_crowds JOIN gr_episodes USING (episode)
              WHERE goes_on AND people_before > 0)
        GROUP BY episode""",
    "gr_pauses": f"""
        SELECT episode, to_json(list({{
                   member_id: member_id, client_id: client_id, address: address,
                   told_ms: {_after("told_ns")}, join_ms: {_after("join_ns")}, synced_ms: {_after("synced_ns")},
                   pause_ms: (synced_ns - join_ns) // 1000000}}
                   ORDER BY join_ns, member_id, life))::VARCHAR AS pauses
        FROM gr_shown JOIN (SELECT {MEMBER}, client_id, address FROM gm_members) USING ({MEMBER})
        JOIN (SELECT episode, begin_ns AS from_ns FROM gr_begin) USING (episode)
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
              WHERE episode IN (SELECT episode FROM gr_people_before))
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
           CASE WHEN goes_on THEN coalesce(people, 0) END AS members_before,
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
        LEFT JOIN gr_moved USING (episode) LEFT JOIN gr_people_before USING (episode)
        WHERE joined OR (protocol <> 'classic' AND before IS NOT NULL)) AS made
    {_who("trigger", "client_id AS trigger_client_id, address AS trigger_address")}
    {_who("waited", "client_id AS waited_client_id, address AS waited_address, last_ns AS waited_last_ns")}"""
