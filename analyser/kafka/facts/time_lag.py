"""How far behind a consumer group is in time. In: `lag_ends` of `lag.py`. Out: SQL.

A group is as late as the time since the log end passed its stored offset: the record at that offset, which it is to
read next, was in the log from then on. The log end passed it with the first step behind which no later one is as low.

It is not known where all answers tell a higher end, since the log end had passed the offset before the first of them.
Between two answers nobody knows when it passed; the later one counts, so the time is the least that it can be.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.log_ends import PARTITION


def rises(ends: str, log: str) -> str:
    """A SELECT of the times from which on a log end was never lower than `least`.

    `first_end`: the end of the first step of all, where that is the one. ends: rows of LOG_STEPS. log: columns of its
    key.
    """
    return f"""
        SELECT {log}, least, min(at_ns) AS passed_ns, min(first_end) AS first_end
        FROM (SELECT {log}, at_ns, min(log_end) OVER (PARTITION BY {log} ORDER BY at_ns DESC) AS least,
                     CASE WHEN row_number() OVER (PARTITION BY {log} ORDER BY at_ns) = 1 THEN log_end END AS first_end
              FROM {ends})
        GROUP BY {log}, least"""


_NEWEST = f"""
    (FROM lag_ends SEMI JOIN (SELECT {PARTITION}, max(incarnation) AS incarnation FROM lag_ends GROUP BY ALL)
         USING ({PARTITION}, incarnation))"""

# Behind the steps of `lag_steps`: `row` and `passed_ns` of those `stands` that have a lag. `stands`: rows of LAG_ROWS,
# with the number of their `row`, and with `cluster` and `of_topic` for null as well.
PASSED_STEPS = {
    "lag_rises": rises(_NEWEST, PARTITION),
    "lag_passed": """
        SELECT row, passed_ns
        FROM stands ASOF JOIN lag_rises AS rises
            ON stands.cluster = rises.cluster AND of_topic = rises.topic AND stands.partition = rises.partition
            AND committed_offset < rises.least
        WHERE lag > 0 AND end_ns IS NOT NULL AND coalesce(first_end <= committed_offset, true)""",
}
