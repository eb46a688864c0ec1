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

from wirewitness.analyser.engine.facts.stage import COMMITTED, NOTHING, Held
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.commit_neighbours import (
    ANSWERED_NS,
    CONSUMERS,
    GROUP,
    IS_COMMIT,
    OWN_CLIENT,
    neighbours,
)
from wirewitness.analyser.kafka.facts.log_ends import DELETED_TOPICS, LIVES, MADE, with_life
from wirewitness.analyser.tables.queries import keep, name_list
from wirewitness.analyser.tables.tables import TABLES

_PLACE_IN_STREAM = "coalesce(try_cast(regexp_extract(exchange_id, '[0-9]+$') AS BIGINT), 0)"
# As `broker_order` of analyser/kafka/rules/commits.py: after the answer the request, its packet, its place in the
# stream, which is the tail of the id. What is left equal is one request that names a partition twice.
_ORDER_AT_ONE_TIME = f"""
    epoch_ns(ts), coalesce(request_packet, 0), {_PLACE_IN_STREAM}, coalesce(exchange_id, ''), committed_offset"""
# For ORDER BY over kafka_offset_commits.
BROKER_ORDER = f"{ANSWERED_NS}, {_ORDER_AT_ONE_TIME}"

COMMITS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts, {ANSWERED_NS} AS at_ns,
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
    SELECT coalesce(cluster_id, '') AS cluster, resource_name AS group_id, {ANSWERED_NS} AS at_ns
    FROM kafka_admin_changes WHERE operation = 'DeleteGroups' AND {MADE}"""
# The topic and the partitions that the text of an OffsetDelete's row names.
DELETED_TOPIC = "regexp_extract(change, '^delete offsets of (.*) [0-9,]*$', 1)"
DELETED_PARTITIONS = "string_split(regexp_extract(change, ' ([0-9,]*)$', 1), ',')"
DELETED_OFFSETS = f"""
    SELECT cluster, group_id, topic, try_cast(number AS BIGINT) AS partition, at_ns
    FROM (SELECT coalesce(cluster_id, '') AS cluster, resource_name AS group_id, {DELETED_TOPIC} AS topic,
                 unnest({DELETED_PARTITIONS}) AS number, {ANSWERED_NS} AS at_ns
          FROM kafka_admin_changes WHERE operation = 'OffsetDelete' AND {MADE})"""

# What these read, beside kafka_admin_changes.
STORED_TABLES = ("kafka_offset_commits", "kafka_offset_fetches")

# Accepted commits and what OffsetFetch told.
_TOLD = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, {ANSWERED_NS} AS at_ns,
           epoch_ns(ts) AS sent_ns, ts_response IS NOT NULL AS answered, exchange_id,
           CASE WHEN committed_offset < 0 THEN 'below 0' WHEN api = 'TxnOffsetCommit' THEN 'transaction' ELSE 'commit'
           END AS kind, committed_offset, request_packet, member_id, client_id, client_address, generation,
           owner_member_id, ownership_confidence, log_end_offset, client_gap_ts, flow_id, file, true AS stable
    FROM kafka_offset_commits WHERE error_code = 0 AND committed_offset IS NOT NULL
    UNION ALL BY NAME
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, epoch_ns(ts_response) AS at_ns,
           epoch_ns(ts) AS sent_ns, exchange_id, 'OffsetFetch' AS kind, committed_offset, request_packet,
           coalesce(require_stable, false) AS stable
    FROM kafka_offset_fetches WHERE error_code = 0 AND committed_offset IS NOT NULL AND ts_response IS NOT NULL"""
_GONE = f"""
    SELECT places.*, at_ns, 'OffsetDelete' AS kind FROM ({DELETED_OFFSETS}) AS gone JOIN places
        USING (cluster, group_id, topic, partition)
    UNION ALL
    SELECT places.*, at_ns, 'DeleteGroups' FROM ({DELETED_GROUPS}) AS gone JOIN places USING (cluster, group_id)
    UNION ALL
    SELECT places.*, at_ns, 'DeleteTopics' FROM ({DELETED_TOPICS}) AS gone JOIN places USING (cluster, topic)"""
_ALL = f"""
    WITH lives AS ({LIVES}),
    told AS ({with_life(f"FROM ({_TOLD}) WHERE partition IS NOT NULL AND at_ns IS NOT NULL", "lives")}),
    places AS (SELECT DISTINCT {GROUP} FROM told),
    gone AS ({with_life(f"SELECT *, NULL::VARCHAR AS topic_id FROM ({_GONE})", "lives")})
    SELECT row_number() OVER () AS row, * FROM (
        SELECT * EXCLUDE topic_id FROM told
        UNION ALL BY NAME SELECT * EXCLUDE topic_id, at_ns AS sent_ns FROM gone)"""
# The broker may have taken two commits of different connections that were open at one time in any order.
_RACING = """
    flow IS DISTINCT FROM flow_1 AND (NOT (answered AND answered_1) OR (sent_ns_1 < at_ns AND sent_ns < at_ns_1))"""


def _steps(told: str) -> str:
    """A SELECT of `row` and what the order of the broker tells of it, of rows that change anything. told: of _ALL.

    Windows are slow over wide rows and texts: what they need is put into numbers first. `kind` decides between those
    of one time. A committer is a member, without one a client.
    """
    own = "PARTITION BY part ORDER BY place"
    return f"""
    WITH parts AS (SELECT *, row_number() OVER () AS part FROM (SELECT DISTINCT {GROUP} FROM {told})),
    committers AS (
        SELECT *, row_number() OVER () AS committer FROM (
            SELECT DISTINCT coalesce(nullif(member_id, ''), concat(client_address, chr(10), client_id, chr(10))) AS name
            FROM {told})),
    every AS (
        SELECT row, at_ns, sent_ns, kind, committed_offset, incarnation, answered, stable, part, committer,
               hash(flow_id) AS flow,
               row_number() OVER (PARTITION BY part ORDER BY at_ns, kind = 'OffsetFetch', sent_ns,
                   coalesce(request_packet, 0), {_PLACE_IN_STREAM}, exchange_id, committed_offset) AS place
        FROM {told} JOIN parts USING ({GROUP}) JOIN committers
            ON name = coalesce(nullif(member_id, ''), concat(client_address, chr(10), client_id, chr(10)))),
    -- An OffsetFetch counts behind what it can know of.
    known AS (
        SELECT *, CASE WHEN kind IN ('commit', 'transaction', 'OffsetFetch') AND committed_offset >= 0
                       THEN committed_offset END AS stored FROM (
            SELECT *, max(at_ns) FILTER (kind <> 'OffsetFetch') OVER before AS last_ns,
                   last_value(CASE WHEN kind <> 'OffsetFetch' THEN kind END IGNORE NULLS) OVER before AS last_kind
            FROM every WINDOW before AS ({own} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        WHERE kind <> 'OffsetFetch'
            OR sent_ns > coalesce(last_ns, {-(2**63 - 1)}) AND (stable OR last_kind IS DISTINCT FROM 'transaction')),
    steps AS (
        SELECT *, lag(stored) OVER own AS stored_before, lag(incarnation) OVER own AS incarnation_before,
               count(*) FILTER (stored IS NULL) OVER own AS deletions
        FROM known WINDOW own AS ({own})),
    changes AS (
        SELECT * FROM (SELECT *, CASE WHEN incarnation = incarnation_before THEN stored_before END AS before FROM steps)
        WHERE CASE kind WHEN 'OffsetFetch' THEN stored IS DISTINCT FROM before
                        WHEN 'commit' THEN true WHEN 'transaction' THEN true WHEN 'below 0' THEN true
                        ELSE stored_before IS NOT NULL END),
    -- Beside each commit the one before it, of anybody (_1) and of its committer.
    commits AS (
        SELECT *, CASE WHEN incarnation IS DISTINCT FROM incarnation_1 OR stored >= stored_1 THEN 0
                       WHEN {_RACING} THEN NULL ELSE stored_1 - stored END AS below_commit FROM (
            SELECT row, part, place, committer, stored, incarnation, sent_ns, at_ns, flow, answered,
                   lag(stored) OVER own AS stored_1, lag(incarnation) OVER own AS incarnation_1,
                   lag(flow) OVER own AS flow_1, lag(answered) OVER own AS answered_1,
                   lag(sent_ns) OVER own AS sent_ns_1, lag(at_ns) OVER own AS at_ns_1
            FROM changes WHERE {IS_COMMIT} WINDOW own AS ({own}))),
    beside AS (
        SELECT row, below_commit, sent_ns_1,
               greatest(below_commit, lag(below_commit) OVER own, lead(below_commit) OVER own) > 0 AS near_step_back,
               lag(stored) OVER one AS own_before, row_number() OVER one AS own_number,
               count(*) OVER (PARTITION BY part, committer) AS own_commits
        FROM commits WINDOW own AS ({own}), one AS (PARTITION BY part, committer ORDER BY place))
    SELECT changes.row, stored, row_number() OVER own AS step,
           CASE WHEN stored IS NULL OR kind = 'OffsetFetch' THEN NULL
                ELSE coalesce(greatest(before::HUGEINT - stored, 0), 0)::BIGINT END AS step_back,
           CASE WHEN stored IS NULL OR kind = 'OffsetFetch' THEN NULL
                ELSE (max(stored) OVER (PARTITION BY part, incarnation, deletions ORDER BY place
                                        ROWS UNBOUNDED PRECEDING)::HUGEINT - stored)::BIGINT END AS below_highest,
           below_commit, CASE WHEN below_commit > 0 THEN sent_ns_1 END AS since_ns, near_step_back, own_before,
           own_number, own_commits, part, committer
    FROM changes LEFT JOIN beside USING (row) WINDOW own AS ({own})"""


def _committed(told: str, steps: str) -> str:
    """A SELECT of all columns but those of few commits, with `row` and `since_ns`."""
    return f"""
    WITH readers AS (
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
               {OWN_CLIENT}, max(fetch_offset) AS furthest_fetch {CONSUMERS} AND fetch_offset >= 0
        GROUP BY ALL)
    SELECT row, make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(sent_ns)::TIMESTAMPTZ_NS AS ts_sent,
           nullif(told.cluster, '') AS cluster_id, nullif(group_id, '') AS group_id, nullif(told.topic, '') AS topic,
           told.partition, incarnation, step, kind, stored AS committed_offset,
           CASE WHEN kind = 'below 0' THEN committed_offset END AS offset_below_0, step_back, below_highest,
           below_commit, near_step_back,
           own_number, own_commits, own_before, since_ns, part, committer, furthest_fetch,
           CASE WHEN {IS_COMMIT} THEN readers.topic IS NOT NULL END AS fetches_seen,
           member_id, client_id, client_address, generation, owner_member_id, ownership_confidence, log_end_offset,
           client_gap_ts, exchange_id, flow_id, file, request_packet
    FROM {told} AS told JOIN {steps} USING (row)
        LEFT JOIN readers ON told.cluster = readers.cluster AND told.topic = readers.topic
            AND told.partition = readers.partition AND coalesce(told.client_address, '') = readers.address
            AND coalesce(told.client_id, '') = readers.client"""


def add_committed(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view of `kafka_committed`, which is empty before. Call it once."""
    if views(con) >= {*COMMITTED.reads} and any(has_rows(con, table) for table in STORED_TABLES):
        told = keep(con, "kafka_committed_told", _ALL)
        steps = keep(con, "kafka_committed_steps", _steps(told))
        kept = keep(con, "kafka_committed", _committed(told, steps))
        con.execute(f"DROP TABLE {told}; DROP TABLE {steps}")
        few = keep(con, "kafka_committed_few", neighbours(kept))
        names = name_list(TABLES["kafka_committed"].column_names())
        con.execute("DROP VIEW IF EXISTS kafka_committed")
        con.execute(f"CREATE TEMP VIEW kafka_committed AS SELECT {names} FROM {kept} LEFT JOIN {few} USING (row)")
    return NOTHING
