"""The changes of stored offsets in the order of the broker, as numbers: what each did to what stood before.

In: the table of all that tells of stored offsets (`committed.py`). Out: SELECTs. Windows are slow over wide rows and
texts, so that a group's partition (`part`), a committer and a client of a log (`reader`) become numbers first. Rows are
sorted once; what stands beside a row in that order is told by `OVER ()`, which takes rows as they come.
"""

from __future__ import annotations

GROUP = "cluster, group_id, topic, partition"
ANSWERED_NS = "epoch_ns(coalesce(ts_response, ts))"
OWN_CLIENT = "coalesce(client_address, '') AS address, coalesce(client_id, '') AS client"
CONSUMERS = "FROM kafka_fetch_partitions WHERE coalesce(replica_id, -1) < 0"
IS_COMMIT = "kind IN ('commit', 'transaction')"
PLACE_IN_STREAM = "coalesce(try_cast(regexp_extract(exchange_id, '[0-9]+$') AS BIGINT), 0)"
# A client of a log.
CLIENT = "cluster, topic, partition, address, client"
# The broker may have taken two commits of different connections that were open at one time in any order.
_RACING = """
    flow IS DISTINCT FROM flow_1 AND (NOT (answered AND answered_1) OR (sent_ns_1 < at_ns AND sent_ns < at_ns_1))"""


def writers(told: str) -> str:
    """A SELECT of who wrote to which part, each once, with numbers. A committer is a member, without one a client.

    furthest_fetch: the highest offset that the client asked for; null where none of its fetches are there.
    """
    return f"""
    WITH readers AS (
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition, {OWN_CLIENT},
               max(fetch_offset) AS furthest_fetch
        {CONSUMERS} AND fetch_offset >= 0 GROUP BY ALL),
    writers AS (SELECT DISTINCT {GROUP}, coalesce(member_id, '') AS member, {OWN_CLIENT} FROM {told})
    SELECT writers.*, furthest_fetch, dense_rank() OVER (ORDER BY {GROUP}) AS part,
           dense_rank() OVER (ORDER BY CASE WHEN member = '' THEN concat(address, chr(10), client, chr(10))
                                            ELSE member END) AS committer,
           dense_rank() OVER (ORDER BY {CLIENT}) AS reader,
           dense_rank() OVER (ORDER BY cluster, topic, partition) AS log
    FROM writers LEFT JOIN readers USING ({CLIENT})"""


def steps(told: str, written: str) -> str:
    """A SELECT of the changes: `row` of what told of it, and what the order of the broker tells. written: `writers`.

    `kind` decides between those of one time.
    """
    return f"""
    WITH every AS (
        SELECT told.rowid AS row, at_ns, sent_ns, kind, committed_offset, incarnation, answered, stable,
               hash(flow_id) AS flow, part, committer, reader, furthest_fetch
        FROM {told} AS told JOIN {written} AS writers
            ON told.cluster = writers.cluster AND told.group_id = writers.group_id AND told.topic = writers.topic
            AND told.partition = writers.partition AND coalesce(member_id, '') = member
            AND coalesce(client_address, '') = address AND coalesce(client_id, '') = client
        ORDER BY part, at_ns, kind = 'OffsetFetch', sent_ns, coalesce(request_packet, 0), {PLACE_IN_STREAM},
                 exchange_id, committed_offset),
    -- An OffsetFetch counts behind what it can know of.
    known AS (
        SELECT * EXCLUDE (committed_offset, last_part, last_ns, last_kind),
               CASE WHEN kind IN ('commit', 'transaction', 'OffsetFetch') AND committed_offset >= 0
                    THEN committed_offset END AS stored
        FROM (SELECT *, last_value(CASE WHEN kind <> 'OffsetFetch' THEN part END IGNORE NULLS) OVER before AS last_part,
                     last_value(CASE WHEN kind <> 'OffsetFetch' THEN at_ns END IGNORE NULLS) OVER before AS last_ns,
                     last_value(CASE WHEN kind <> 'OffsetFetch' THEN kind END IGNORE NULLS) OVER before AS last_kind
              FROM every WINDOW before AS (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
        WHERE kind <> 'OffsetFetch'
            OR CASE WHEN last_part = part THEN sent_ns > last_ns AND (stable OR last_kind <> 'transaction')
                    ELSE sent_ns IS NOT NULL END),
    stood AS (
        SELECT *, CASE WHEN lag(part) OVER () = part THEN lag(stored) OVER () END AS stored_before,
               CASE WHEN lag(part) OVER () = part AND lag(incarnation) OVER () = incarnation
                    THEN lag(stored) OVER () END AS before,
               count(*) FILTER (stored IS NULL) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS deletions
        FROM known),
    numbered AS (
        SELECT *, row_number() OVER () AS place, lag(part) OVER () IS DISTINCT FROM part AS is_first FROM stood
        WHERE CASE kind WHEN 'OffsetFetch' THEN stored IS DISTINCT FROM before
                        WHEN 'commit' THEN true WHEN 'transaction' THEN true WHEN 'below 0' THEN true
                        ELSE stored_before IS NOT NULL END),
    changes AS MATERIALIZED (
        SELECT row, at_ns, sent_ns, kind, incarnation, answered, flow, part, committer, reader, furthest_fetch, stored,
               before, deletions, 1 + place - last_value(CASE WHEN is_first THEN place END IGNORE NULLS)
                   OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS step
        FROM numbered),
    -- Beside each commit the one before it, of anybody (_1) and of its committer.
    commits AS (
        SELECT *, CASE WHEN part_1 IS DISTINCT FROM part OR incarnation IS DISTINCT FROM incarnation_1
                            OR stored >= stored_1 THEN 0
                       WHEN {_RACING} THEN NULL ELSE stored_1 - stored END AS below_commit
        FROM (SELECT *, lag(part) OVER () AS part_1, lag(stored) OVER () AS stored_1,
                     lag(incarnation) OVER () AS incarnation_1, lag(flow) OVER () AS flow_1,
                     lag(answered) OVER () AS answered_1, lag(sent_ns) OVER () AS sent_ns_1,
                     lag(at_ns) OVER () AS at_ns_1
              FROM changes WHERE {IS_COMMIT})),
    beside AS (
        SELECT *, greatest(below_commit, CASE WHEN part_1 = part THEN lag(below_commit) OVER () END,
                           CASE WHEN lead(part) OVER () = part THEN lead(below_commit) OVER () END) > 0
                       AS near_step_back
        FROM commits),
    every_change AS (
        SELECT row, part, committer, reader, kind, incarnation, deletions, step, before, stored, furthest_fetch,
               below_commit, CASE WHEN below_commit > 0 THEN sent_ns_1 END AS since_ns, near_step_back,
               lag(stored) OVER one AS own_before, row_number() OVER one AS own_number,
               count(*) OVER (PARTITION BY part, committer) AS own_commits
        FROM beside WINDOW one AS (PARTITION BY part, committer ORDER BY step)
        UNION ALL BY NAME
        SELECT row, part, committer, reader, kind, incarnation, deletions, step, before, stored
        FROM changes WHERE NOT {IS_COMMIT})
    SELECT row, part, committer, reader, step, stored, furthest_fetch, since_ns,
           CASE WHEN stored IS NULL OR kind = 'OffsetFetch' THEN NULL
                ELSE coalesce(greatest(before::HUGEINT - stored, 0), 0)::BIGINT END AS step_back,
           CASE WHEN stored IS NULL OR kind = 'OffsetFetch' THEN NULL
                ELSE (max(stored) OVER (PARTITION BY part, incarnation, deletions ORDER BY step
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)::HUGEINT - stored)::BIGINT
           END AS below_highest,
           below_commit, near_step_back, own_before, own_number, own_commits
    FROM every_change"""
