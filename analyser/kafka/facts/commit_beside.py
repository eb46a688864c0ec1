"""Commits beside the log's end, beside offsets below 0, and beside those of other committers.

In: the views of `committed_views.py`. Out: whether there are any (ASKED), and a SELECT of `row` and columns for each.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.committed_steps import IS_COMMIT
from wirewitness.analyser.kafka.facts.committed_views import BASE, CHANGES, LOGS, WRITERS

# Which kinds of commits there are: below the one before, above the log's end, below 0, of several committers.
ASKED = f"""
    SELECT coalesce(bool_or(below_commit > 0), false), coalesce(bool_or(committed_offset > log_end_offset), false),
           coalesce(bool_or(kind = 'below 0'), false),
           EXISTS (SELECT part FROM {WRITERS} GROUP BY part HAVING min(committer) < max(committer))
    FROM {CHANGES}"""

# Times may be a second wrong from connection to connection (a request log's, cut to seconds).
BEYOND = f"""
    WITH beyond AS (
        SELECT row, log, at_ns FROM {BASE} JOIN {LOGS} USING (cluster, topic, partition)
        WHERE committed_offset > log_end_offset),
    ends AS (
        SELECT log, at_ns, min(log_end) AS low, max(log_end) AS high FROM (
            SELECT logs.log, epoch_ns(ts) AS at_ns, high_watermark AS log_end
            FROM kafka_fetch_partitions AS fetches JOIN {LOGS} AS logs
                ON coalesce(fetches.cluster_id, '') = logs.cluster
                AND coalesce(fetches.topic, fetches.topic_id, '') = logs.topic AND fetches.partition = logs.partition
            WHERE high_watermark >= 0) SEMI JOIN beyond USING (log)
        GROUP BY ALL),
    next AS (
        SELECT beyond.row, beyond.log, beyond.at_ns + 1000000000 AS until_ns, ends.at_ns, ends.low
        FROM beyond ASOF JOIN ends ON beyond.log = ends.log AND beyond.at_ns <= ends.at_ns)
    SELECT next.row, CASE WHEN later.at_ns >= next.at_ns THEN greatest(next.low, later.high) ELSE next.low END
                         AS next_log_end
    FROM next ASOF LEFT JOIN ends AS later ON next.log = later.log AND next.until_ns >= later.at_ns"""

NEAR_BELOW_0 = f"""
    SELECT row, near_below_0 FROM (
        SELECT row, kind = 'below 0' OR coalesce(lag(kind) OVER own = 'below 0', false)
                    OR coalesce(lead(kind) OVER own = 'below 0', false) AS near_below_0
        FROM {CHANGES} SEMI JOIN (SELECT part FROM {CHANGES} WHERE kind = 'below 0') USING (part)
        WHERE {IS_COMMIT} OR kind = 'below 0' WINDOW own AS (PARTITION BY part ORDER BY step))
    WHERE near_below_0"""

# A client without member id that commits once resets an offset by hand.
TURNS = f"""
    WITH regular AS (
        SELECT row, part, committer, step, generation, sent_ns FROM {BASE}
        WHERE own_commits > 1 OR coalesce(is_member, false)),
    shared AS (
        FROM regular SEMI JOIN (
            SELECT part FROM regular GROUP BY part HAVING min(committer) < max(committer)) USING (part)),
    turns AS (
        SELECT row, part, near OR coalesce(lead(near) OVER own, false) AS near_other, own_generation_before, own_gap
        FROM (SELECT row, part, step, coalesce(committer <> lag(committer) OVER own, false) AS near,
                     lag(generation) OVER one AS own_generation_before,
                     sent_ns::DOUBLE - lag(sent_ns) OVER one AS own_gap
              FROM shared WINDOW own AS (PARTITION BY part ORDER BY step),
                  one AS (PARTITION BY part, committer ORDER BY step))
        WINDOW own AS (PARTITION BY part ORDER BY step)),
    gaps AS (SELECT part, median(own_gap) / 1000000 AS usual_gap_ms FROM turns GROUP BY part)
    SELECT row, near_other, own_generation_before, usual_gap_ms FROM turns JOIN gaps USING (part) WHERE near_other"""
