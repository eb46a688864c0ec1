"""How far behind a consumer group is in time. In: `lag_ends` of `lag.py`. Out: SQL.

A group is as late as the time since the log end passed its stored offset: the record at that offset, which it is to
read next, was in the log from then on. The log end stood there last in the second before which no later answer tells a
lower one; within that second, the first answer that tells a higher one counts. As everywhere, an end counts for
KEPT_S seconds, since answers of different connections pass each other.

It is not known where all answers tell a higher end, since the log end had passed the offset before the first of them.
Between two answers nobody knows when it passed; the later one counts, so the time is the least that it can be.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.log_ends import KEPT_S, PARTITION, SECOND

# From each second on the log end was never lower than `least`. `first_least`: the lowest that the first second told.
_RISES = f"""
    SELECT {PARTITION}, life, least, min(second) AS second, min(first_least) AS first_least
    FROM (SELECT *, min(kept) OVER (PARTITION BY {PARTITION} ORDER BY second DESC) AS least,
                 CASE WHEN row_number() OVER (PARTITION BY {PARTITION} ORDER BY second) = 1 THEN lowest END
                     AS first_least
          FROM (SELECT *, max(highest) OVER (PARTITION BY {PARTITION} ORDER BY second
                                             RANGE BETWEEN {KEPT_S - 1} PRECEDING AND CURRENT ROW) AS kept
                FROM (SELECT {PARTITION}, life, {SECOND} AS second, max(log_end) AS highest, min(log_end) AS lowest
                      FROM lag_ends GROUP BY {PARTITION}, life, {SECOND}
                      QUALIFY life = max(life) OVER (PARTITION BY {PARTITION}))))
    GROUP BY {PARTITION}, life, least"""

# Behind the steps of `lag_steps`: `row` and `passed_ns` of those `stands` that have a lag. `stands`: rows of LAG_ROWS,
# with the number of their `row`, and with `cluster` and `of_topic` for null as well.
PASSED_STEPS = {
    "lag_rises": _RISES,
    "lag_passing": """
        SELECT row, committed_offset, rises.* EXCLUDE (least, first_least)
        FROM stands ASOF JOIN lag_rises AS rises
            ON stands.cluster = rises.cluster AND of_topic = rises.topic AND stands.partition = rises.partition
            AND committed_offset < rises.least
        WHERE lag > 0 AND end_ns IS NOT NULL AND coalesce(first_least <= committed_offset, true)""",
    "lag_passed": f"""
        SELECT row, min(at_ns) AS passed_ns
        FROM (SELECT {PARTITION}, life, {SECOND} AS second, log_end, at_ns FROM lag_ends)
        JOIN lag_passing USING ({PARTITION}, life, second)
        WHERE log_end > committed_offset
        GROUP BY row""",
}
