"""Who owned a partition, when: intervals per (cluster, group, topic, partition), as SQL.

In: views `in_kafka_assignments`, `in_kafka_group_events`, `in_kafka_offset_commits` (`enrich.py` makes them of the
tables of these names) and the table `context_gaps`. Out: the text of a SELECT with the columns `cluster, group_id,
topic, partition, member_id, began, ended` (Unix ns; ended is null while the interval is open).

- Classic groups: a SyncGroup answer begins intervals (the leader's request carries the plan of the whole group, an
  answer one member's part). They end when another generation is heard of first, in whatever request the broker took:
  where the capture lacks a rebalance, an accepted commit is the first that tells of it.
- A group whose generations begin again at a lower number was deleted, or was empty and expired: it is another group of
  the same name, and its generations end none of the old one's.
- KIP-848: an answer with an assignment is that member's whole assignment, so it ends the member's intervals before it
  and begins new ones. So does leaving, but not for a while (epoch -2): the broker keeps a static member's partitions.
- Describe answers begin intervals that end at the group's next generation, at the next describe answer, or when the
  same member's assignment changes.
- What a KIP-848 member owns is known as long as its heartbeats are all there. It is in doubt from the last heartbeat
  before bytes of its client are missing (which shows up to one request late) or before it is told that it is no member
  any more (25, 110), and once the group is heard of in an epoch that the member never reaches: the partition may have
  been taken away unseen.
- Members of shard groups have partitions together, those of streams groups have tasks: their assignments own nothing
  here.

A partition that a member must give up (cooperative rebalancing, KIP-848) has no owner until another member gets it,
so commits while it is being revoked are nobody's fault.
"""

from __future__ import annotations

OWNERSHIP_SQL = """
WITH known AS (
    SELECT coalesce(cluster_id, '') AS cluster, group_id, coalesce(topic, topic_id) AS topic, partition, member_id,
           generation, source, exchange_id, epoch_ns(ts) AS at_ns
    FROM in_kafka_assignments WHERE group_id IS NOT NULL AND member_id IS NOT NULL
        AND source IN ('sync_leader', 'sync_answer', 'consumer_heartbeat', 'describe')
),
events AS (
    SELECT coalesce(cluster_id, '') AS cluster, group_id, member_id, client_address AS address, generation, event,
           exchange_id,
           epoch_ns(coalesce(ts_response, ts)) AS at_ns
    FROM in_kafka_group_events WHERE group_id IS NOT NULL AND error_code = 0
),
turning AS (
    SELECT DISTINCT cluster, group_id, generation, at_ns FROM (
        SELECT cluster, group_id, generation, at_ns FROM known WHERE source IN ('sync_leader', 'sync_answer')
        UNION ALL
        SELECT cluster, group_id, generation, at_ns FROM events WHERE event = 'join')
    WHERE generation >= 0
),
restarts AS (
    SELECT cluster, group_id, at_ns AS life FROM (
        SELECT *, lag(generation) OVER (PARTITION BY cluster, group_id ORDER BY at_ns, generation) AS before
        FROM turning)
    WHERE generation < before
),
begins AS (
    SELECT turning.cluster, turning.group_id, coalesce(life, 0) AS life, generation, min(at_ns) AS began
    FROM turning ASOF LEFT JOIN restarts
        ON turning.cluster = restarts.cluster AND turning.group_id = restarts.group_id AND at_ns >= life
    GROUP BY ALL
),
heard AS (
    SELECT told.cluster, told.group_id, coalesce(life, 0) AS life, generation, min(at_ns) AS began FROM (
        SELECT cluster, group_id, generation, began AS at_ns FROM begins
        UNION ALL
        SELECT cluster, group_id, generation, at_ns FROM events WHERE event IN ('sync', 'heartbeat')
        UNION ALL
        SELECT coalesce(cluster_id, ''), group_id, generation, epoch_ns(ts) FROM in_kafka_offset_commits
        WHERE error_code = 0 AND group_id IS NOT NULL AND member_id <> '') AS told
    ASOF LEFT JOIN restarts
        ON told.cluster = restarts.cluster AND told.group_id = restarts.group_id AND at_ns >= life
    WHERE generation >= 0 GROUP BY ALL
),
generations AS (
    SELECT *, lead(began) OVER (PARTITION BY cluster, group_id ORDER BY began, generation) AS ended FROM heard
),
beats AS (
    SELECT cluster, group_id, member_id, address, generation, at_ns,
           lag(at_ns, 1, at_ns) OVER (PARTITION BY cluster, group_id, member_id ORDER BY at_ns) AS before_ns
    FROM events WHERE event = 'consumer_heartbeat' AND member_id IS NOT NULL
),
doubts AS (
    SELECT DISTINCT beats.cluster, beats.group_id, beats.member_id, beats.before_ns AS at_ns
    FROM (SELECT members.*, gaps.at_ns
          FROM (SELECT DISTINCT cluster, group_id, member_id, address FROM beats) AS members
          JOIN context_gaps AS gaps ON members.address = gaps.address) AS lost
    ASOF JOIN beats ON lost.cluster = beats.cluster AND lost.group_id = beats.group_id
        AND lost.member_id = beats.member_id AND lost.at_ns >= beats.at_ns
    UNION
    SELECT DISTINCT beats.cluster, beats.group_id, beats.member_id, beats.at_ns
    FROM (SELECT coalesce(cluster_id, '') AS cluster, group_id, member_id, epoch_ns(coalesce(ts_response, ts)) AS at_ns
          FROM in_kafka_group_events WHERE event = 'consumer_heartbeat' AND error_code IN (25, 110)) AS told
    ASOF JOIN beats ON told.cluster = beats.cluster AND told.group_id = beats.group_id
        AND told.member_id = beats.member_id AND told.at_ns >= beats.at_ns
    UNION
    SELECT cluster, group_id, member_id, heard.began
    FROM (SELECT cluster, group_id, member_id, max(generation) AS newest FROM beats GROUP BY ALL) AS members
    JOIN heard USING (cluster, group_id) WHERE heard.generation > newest
),
doubted AS (
    SELECT told.exchange_id, told.member_id, min(doubts.at_ns) AS doubt_ns
    FROM (SELECT DISTINCT cluster, group_id, member_id, exchange_id, at_ns FROM known
          WHERE source IN ('consumer_heartbeat', 'describe')) AS told
    ASOF JOIN doubts ON told.cluster = doubts.cluster AND told.group_id = doubts.group_id
        AND told.member_id = doubts.member_id AND told.at_ns <= doubts.at_ns
    GROUP BY ALL
),
changes AS (
    SELECT cluster, group_id, member_id, exchange_id, min(at_ns) AS at_ns FROM known
    WHERE source = 'consumer_heartbeat' GROUP BY ALL
    UNION ALL
    SELECT cluster, group_id, member_id, exchange_id, at_ns FROM events
    WHERE member_id IS NOT NULL AND (event = 'leave' OR (event = 'consumer_heartbeat' AND generation = -1))
),
turns AS (
    SELECT *, lead(at_ns) OVER (PARTITION BY cluster, group_id, member_id ORDER BY at_ns, exchange_id) AS ended
    FROM changes
),
looks AS (
    SELECT *, lead(at_ns) OVER (PARTITION BY cluster, group_id ORDER BY at_ns, exchange_id) AS ended
    FROM (SELECT DISTINCT cluster, group_id, exchange_id, at_ns FROM known WHERE source = 'describe')
)
SELECT known.cluster, known.group_id, known.topic, known.partition, known.member_id, known.at_ns AS began,
       CASE source
           WHEN 'consumer_heartbeat' THEN least(turns.ended, doubt_ns)
           WHEN 'describe' THEN least(
               looks.ended,
               doubt_ns,
               (SELECT min(began) FROM begins g
                WHERE g.cluster = known.cluster AND g.group_id = known.group_id AND g.began > known.at_ns),
               (SELECT min(c.at_ns) FROM changes c WHERE c.cluster = known.cluster AND c.group_id = known.group_id
                AND c.member_id = known.member_id AND c.at_ns > known.at_ns))
           ELSE generations.ended
       END AS ended
FROM (SELECT known.*, coalesce(life, 0) AS life FROM known ASOF LEFT JOIN restarts
          ON known.cluster = restarts.cluster AND known.group_id = restarts.group_id AND at_ns >= life) AS known
LEFT JOIN doubted USING (exchange_id, member_id)
LEFT JOIN generations USING (cluster, group_id, life, generation)
LEFT JOIN turns USING (cluster, group_id, member_id, exchange_id)
LEFT JOIN looks USING (cluster, group_id, exchange_id)
WHERE known.partition IS NOT NULL AND known.topic IS NOT NULL
"""
