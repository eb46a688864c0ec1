"""Which offsets of a consumer group were stored, and what ended them: `kafka_committed`, and SQL over Kafka tables.

In: a connection with views of the Kafka tables. Out: the view of that table. `at_ns` is the time of the answer, from
which on a row counts. `lag.py` says what stands.

- Order: that in which the broker took the commits. On one connection that is the order of the stream, between
  connections the time of the answer (BROKER_ORDER).
- A commit counts where it was accepted with an offset that is not below 0. One of a transaction counts from its own
  answer, as if its transaction were committed.
- Nothing is stored behind an answered OffsetDelete, DeleteGroups or DeleteTopics of a partition that anything was
  stored for, behind a commit of an offset below 0, and in another incarnation of the topic.
- An OffsetFetch that was sent after all these, and tells something else than what was stored last, tells of a commit
  that the capture lacks. Behind a commit of a transaction it counts where it waits for that (require_stable).
- An offset went back where a commit stores a lower one than stands just before it: `step_back` says by how many
  records. `below_highest` says how many it is below the highest that was stored since the last deletion: after one
  step back, ordinary progress stays below the highest for a while, and that is no other step back.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.chunk_files import show_made
from wirewitness.analyser.engine.facts.stage import COMMITTED, NOTHING, Held
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.log_ends import DELETED_TOPICS, LIVES, MADE, with_life

GROUP = "cluster, group_id, topic, partition"

_ANSWERED_NS = "epoch_ns(coalesce(ts_response, ts))"
_PLACE_IN_STREAM = "coalesce(try_cast(regexp_extract(exchange_id, '[0-9]+$') AS BIGINT), 0)"
# As `broker_order` of analyser/kafka/rules/commits.py: after the answer the request, its packet, its place in the
# stream, which is the tail of the id. What is left equal is one request that names a partition twice.
_ORDER_AT_ONE_TIME = f"""
    epoch_ns(ts), coalesce(request_packet, 0), {_PLACE_IN_STREAM}, coalesce(exchange_id, ''), committed_offset"""
# For ORDER BY over kafka_offset_commits.
BROKER_ORDER = f"{_ANSWERED_NS}, {_ORDER_AT_ONE_TIME}"

COMMITS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts, {_ANSWERED_NS} AS at_ns,
           coalesce(error_code = 0 AND committed_offset >= 0, false) AS accepted,
           coalesce(error_code <> 0, false) AS refused, exchange_id, request_packet, committed_offset, log_end_offset,
           member_id, client_id, client_address, generation, owner_member_id,
           coalesce(api = 'TxnOffsetCommit', false) AS transactional
    FROM kafka_offset_commits"""
# Of accepted rows of COMMITS: the one whose offset is stored.
STORED = f"""
    arg_max(struct_pack(ts, at_ns, topic_id, exchange_id, request_packet, committed_offset, log_end_offset, member_id,
                        client_id, client_address, generation, owner_member_id, transactional),
            row(at_ns, {_ORDER_AT_ONE_TIME}))"""

# What OffsetFetch answered, -1 for no offset; whoever asked.
READS = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts, epoch_ns(ts_response) AS at_ns, exchange_id,
           request_packet, committed_offset, coalesce(require_stable, false) AS stable
    FROM kafka_offset_fetches WHERE error_code = 0 AND committed_offset IS NOT NULL AND ts_response IS NOT NULL"""
# Of rows of READS: the last one.
LAST_READ = f"""
    arg_max(struct_pack(ts, at_ns, topic_id, exchange_id, request_packet, committed_offset, stable),
            row(at_ns, {_ORDER_AT_ONE_TIME}))"""

DELETED_GROUPS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, resource_name AS group_id, {_ANSWERED_NS} AS at_ns
    FROM kafka_admin_changes WHERE operation = 'DeleteGroups' AND {MADE}"""
# The topic and the partitions that the text of an OffsetDelete's row names.
DELETED_TOPIC = "regexp_extract(change, '^delete offsets of (.*) [0-9,]*$', 1)"
DELETED_PARTITIONS = "string_split(regexp_extract(change, ' ([0-9,]*)$', 1), ',')"
DELETED_OFFSETS = f"""
    SELECT cluster, group_id, topic, try_cast(number AS BIGINT) AS partition, at_ns
    FROM (SELECT coalesce(cluster_id, '') AS cluster, resource_name AS group_id, {DELETED_TOPIC} AS topic,
                 unnest({DELETED_PARTITIONS}) AS number, {_ANSWERED_NS} AS at_ns
          FROM kafka_admin_changes WHERE operation = 'OffsetDelete' AND {MADE})"""

# What these read, beside kafka_admin_changes.
STORED_TABLES = ("kafka_offset_commits", "kafka_offset_fetches")

# Accepted commits and what OffsetFetch told, in the order of the broker; `kind` decides between them at one time.
_TOLD = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, {_ANSWERED_NS} AS at_ns,
           epoch_ns(ts) AS sent_ns, coalesce(request_packet, 0) AS packet, {_PLACE_IN_STREAM} AS place, exchange_id,
           CASE WHEN committed_offset < 0 THEN 'below 0' WHEN api = 'TxnOffsetCommit' THEN 'transaction' ELSE 'commit'
           END AS kind, committed_offset, request_packet, member_id, client_id, client_address, generation,
           owner_member_id, true AS stable
    FROM kafka_offset_commits WHERE error_code = 0 AND committed_offset IS NOT NULL
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(group_id, ''), coalesce(topic, topic_id, ''), topic_id, partition,
           epoch_ns(ts_response), epoch_ns(ts), coalesce(request_packet, 0), {_PLACE_IN_STREAM}, exchange_id,
           'OffsetFetch', committed_offset, request_packet, NULL, NULL, NULL, NULL, NULL,
           coalesce(require_stable, false)
    FROM kafka_offset_fetches WHERE error_code = 0 AND committed_offset IS NOT NULL AND ts_response IS NOT NULL"""
_GONE = f"""
    SELECT places.*, at_ns, 'OffsetDelete' AS kind FROM ({DELETED_OFFSETS}) AS gone JOIN places
        USING (cluster, group_id, topic, partition)
    UNION ALL
    SELECT places.*, at_ns, 'DeleteGroups' FROM ({DELETED_GROUPS}) AS gone JOIN places USING (cluster, group_id)
    UNION ALL
    SELECT places.*, at_ns, 'DeleteTopics' FROM ({DELETED_TOPICS}) AS gone JOIN places USING (cluster, topic)"""
_OWN = "PARTITION BY cluster, group_id, topic, partition"
_ORDER = "ORDER BY at_ns, kind = 'OffsetFetch', sent_ns, packet, place, exchange_id, committed_offset"
_COMMITTED = f"""
    WITH lives AS ({LIVES}),
    told AS ({with_life(f"FROM ({_TOLD}) WHERE partition IS NOT NULL AND at_ns IS NOT NULL", "lives")}),
    places AS (SELECT DISTINCT cluster, group_id, topic, partition FROM told),
    gone AS ({with_life(f"SELECT *, NULL::VARCHAR AS topic_id FROM ({_GONE})", "lives")}),
    every AS (
        FROM told UNION ALL BY NAME SELECT * EXCLUDE topic_id, at_ns AS sent_ns, 0 AS packet, 0 AS place FROM gone),
    -- An OffsetFetch counts behind what it can know of.
    known AS (
        SELECT *, CASE WHEN kind IN ('commit', 'transaction', 'OffsetFetch') AND committed_offset >= 0
                       THEN committed_offset END AS stored FROM (
            SELECT *, max(at_ns) FILTER (kind <> 'OffsetFetch') OVER before AS last_ns,
                   arg_max(kind, at_ns) FILTER (kind <> 'OffsetFetch') OVER before AS last_kind
            FROM every WINDOW before AS ({_OWN} {_ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        WHERE kind <> 'OffsetFetch'
            OR sent_ns > coalesce(last_ns, {-(2**63 - 1)}) AND (stable OR last_kind IS DISTINCT FROM 'transaction')),
    steps AS (
        SELECT *, lag(stored) OVER own AS stored_before, lag(incarnation) OVER own AS incarnation_before,
               count(*) FILTER (stored IS NULL) OVER own AS deletions
        FROM known WINDOW own AS ({_OWN} {_ORDER})),
    changes AS (
        SELECT * FROM (SELECT *, CASE WHEN incarnation = incarnation_before THEN stored_before END AS before FROM steps)
        WHERE CASE kind WHEN 'OffsetFetch' THEN stored IS DISTINCT FROM before
                        WHEN 'commit' THEN true WHEN 'transaction' THEN true WHEN 'below 0' THEN true
                        ELSE stored_before IS NOT NULL END)
    SELECT make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, nullif(cluster, '') AS cluster_id,
           nullif(group_id, '') AS group_id, nullif(topic, '') AS topic, partition, incarnation,
           row_number() OVER ({_OWN} {_ORDER}) AS step, kind, stored AS committed_offset,
           CASE WHEN stored IS NULL OR kind = 'OffsetFetch' THEN NULL
                ELSE coalesce(greatest(before::HUGEINT - stored, 0), 0)::BIGINT END AS step_back,
           CASE WHEN stored IS NULL OR kind = 'OffsetFetch' THEN NULL
                ELSE (max(stored) OVER ({_OWN}, incarnation, deletions {_ORDER} ROWS UNBOUNDED PRECEDING)::HUGEINT
                      - stored)::BIGINT END AS below_highest,
           member_id, client_id, client_address, generation, owner_member_id, exchange_id, request_packet
    FROM changes"""


def add_committed(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view of `kafka_committed`, which is empty before. Call it once."""
    if views(con) >= {*COMMITTED.reads} and any(has_rows(con, table) for table in STORED_TABLES):
        show_made(con, "kafka_committed", _COMMITTED)
    return NOTHING
