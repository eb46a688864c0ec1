"""When generations of groups began and ended, and when a group began anew: the steps of `kafka_generations`, as SQL.

In: the tables `go_events` and `go_given` (`group_requests.py`). Out: SELECTs by the name of the temporary table that
each makes, in their order, and the rows. Times are Unix ns.

- A generation has begun when it, or a later one, is heard of first, in whatever request the broker took: where the
  capture lacks a rebalance, an accepted commit is the first that tells of it. It ends when the next one has begun.
- A group whose generations begin again at a lower number was deleted, or was empty and expired: it is another group of
  the same name, another incarnation. A lower number that follows at once is an answer that was late, unless a member
  that nobody had heard of joins a classic group with it.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.group_requests import KEY, SECOND_NS, heard_sql, time_sql

# Answers of one rebalance come together; a member that asks again later is told the same generation.
TOGETHER_NS = 2 * SECOND_NS


def turns(generations: str) -> str:
    """SQL: the generations of a table with the time since the one before, `since_ns`, in which each thing happened
    that may have set it off. No two of a group lie over each other, since they begin in their order."""
    return f"SELECT *, coalesce(before_ns, 0) AS since_ns FROM {generations} WHERE began_ns > coalesce(before_ns, 0)"


GENERATION_STEPS = {
    "go_told": heard_sql("go_events", "go_given"),
    "go_incarnations": f"""
        SELECT {KEY}, at_ns AS since_ns, row_number() OVER (PARTITION BY {KEY} ORDER BY at_ns) AS incarnation
        FROM (
            SELECT *, lag(generation) OVER own AS before, lag(at_ns) OVER own AS before_ns,
                   row_number() OVER (PARTITION BY {KEY}, member_id ORDER BY at_ns) = 1 AS is_new
            FROM (SELECT {KEY}, member_id, generation, heard_ns AS at_ns, group_protocol FROM go_told WHERE turns)
            WINDOW own AS (PARTITION BY {KEY} ORDER BY at_ns, generation))
        WHERE generation < before
            AND (at_ns >= before_ns + {TOGETHER_NS} OR (is_new AND group_protocol = 'classic'))""",
    "go_generations": f"""
        SELECT *, lead(began_ns) OVER own AS ended_ns
        FROM (
            SELECT * REPLACE (min(began_ns) OVER (
                       PARTITION BY {KEY} ORDER BY incarnation, generation
                       ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS began_ns)
            FROM (
                SELECT told.cluster, told.group_id, coalesce(incarnation, 0) AS incarnation, generation,
                       min(heard_ns) AS began_ns, bool_or(joins) AS joined, max(group_protocol) AS protocol,
                       arg_max(leader_id, (heard_ns, leader_id)) AS leader_id,
                       arg_max(assignor, (heard_ns, assignor)) AS assignor, count(DISTINCT member_id) AS members
                FROM go_told AS told ASOF LEFT JOIN go_incarnations AS lives
                    ON told.cluster = lives.cluster AND told.group_id = lives.group_id AND heard_ns >= since_ns
                GROUP BY 1, 2, 3, 4))
        WINDOW own AS (PARTITION BY {KEY} ORDER BY incarnation, generation)""",
}

GENERATION_ROWS = f"""
    SELECT nullif(cluster, '') AS cluster_id, group_id, incarnation, generation, {time_sql("began_ns")} AS ts,
           {time_sql("ended_ns")} AS ts_end, protocol, joined AS join_seen, leader_id, assignor, members
    FROM go_generations"""
