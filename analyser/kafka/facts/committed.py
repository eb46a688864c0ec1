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
from wirewitness.analyser.kafka.facts.commit_neighbours import neighbours
from wirewitness.analyser.kafka.facts.committed_steps import ANSWERED_NS, GROUP, PLACE_IN_STREAM
from wirewitness.analyser.kafka.facts.committed_steps import steps as make_steps
from wirewitness.analyser.kafka.facts.committed_steps import writers as make_writers
from wirewitness.analyser.kafka.facts.log_ends import DELETED_TOPICS, LIVES, MADE, with_life
from wirewitness.analyser.tables.queries import keep, keep_more, quoted
from wirewitness.analyser.tables.tables import TABLES

# As `broker_order` of analyser/kafka/rules/commits.py: after the answer the request, its packet, its place in the
# stream, which is the tail of the id. What is left equal is one request that names a partition twice.
_ORDER_AT_ONE_TIME = f"""
    epoch_ns(ts), coalesce(request_packet, 0), {PLACE_IN_STREAM}, coalesce(exchange_id, ''), committed_offset"""
# For ORDER BY over kafka_offset_commits.
BROKER_ORDER = f"{ANSWERED_NS}, {_ORDER_AT_ONE_TIME}"

COMMITS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts, {ANSWERED_NS} AS at_ns,
           coalesce(error_code = 0 AND committed_offset >= 0, false) AS accepted,
           coalesce(error_code = 0 AND committed_offset IS NOT NULL, false) AS taken,
           coalesce(error_code <> 0, false) AS refused, exchange_id, request_packet, committed_offset, log_end_offset,
           member_id, client_id, client_address, generation, owner_member_id,
           coalesce(api = 'TxnOffsetCommit', false) AS transactional
    FROM kafka_offset_commits"""
# Of taken rows of COMMITS: the last one, whose offset is stored. Of an offset below 0 that is none.
STORED = f"""
    arg_max(struct_pack(ts, at_ns, topic_id, exchange_id, request_packet, log_end_offset, member_id, client_id,
                        client_address, generation, owner_member_id, transactional,
                        committed_offset := CASE WHEN accepted THEN committed_offset END),
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
    FROM (
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
               coalesce(topic, topic_id, '') AS topic, topic_id, partition, {ANSWERED_NS} AS at_ns,
               epoch_ns(ts) AS sent_ns, ts_response IS NOT NULL AS answered, exchange_id,
               CASE WHEN committed_offset < 0 THEN 'below 0' WHEN api = 'TxnOffsetCommit' THEN 'transaction'
                    ELSE 'commit' END AS kind,
               committed_offset, request_packet, member_id, client_id, client_address, generation, owner_member_id,
               ownership_confidence, log_end_offset, client_gap_ts, flow_id, file, true AS stable
        FROM kafka_offset_commits WHERE error_code = 0 AND committed_offset IS NOT NULL
        UNION ALL BY NAME
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
               coalesce(topic, topic_id, '') AS topic, topic_id, partition, epoch_ns(ts_response) AS at_ns,
               epoch_ns(ts) AS sent_ns, exchange_id, 'OffsetFetch' AS kind, committed_offset, request_packet,
               coalesce(require_stable, false) AS stable
        FROM kafka_offset_fetches WHERE error_code = 0 AND committed_offset IS NOT NULL AND ts_response IS NOT NULL)
    WHERE partition IS NOT NULL AND at_ns IS NOT NULL"""


def _gone(told: str) -> str:
    """A SELECT of the deletions of what stands in a table of rows of _TOLD."""
    return f"""
    WITH places AS (SELECT DISTINCT {GROUP} FROM {told})
    SELECT places.*, at_ns, 'OffsetDelete' AS kind FROM ({DELETED_OFFSETS}) AS gone JOIN places
        USING (cluster, group_id, topic, partition)
    UNION ALL
    SELECT places.*, at_ns, 'DeleteGroups' FROM ({DELETED_GROUPS}) AS gone JOIN places USING (cluster, group_id)
    UNION ALL
    SELECT places.*, at_ns, 'DeleteTopics' FROM ({DELETED_TOPICS}) AS gone JOIN places USING (cluster, topic)"""


def _keep_told(con: duckdb.DuckDBPyConnection) -> str:
    """A new table of all that tells of stored offsets, in any order. These rows are wide, and stand nowhere else."""

    def in_lives(told: str) -> str:
        if has_rows(con, "kafka_topics"):
            told = with_life(told, f"({LIVES})")
            return f"SELECT * EXCLUDE (topic_id) FROM ({told})"
        return f"SELECT * EXCLUDE (topic_id), 1::BIGINT AS incarnation FROM ({told})"

    table = keep(con, "kafka_committed_told", in_lives(_TOLD))
    if has_rows(con, "kafka_admin_changes") or has_rows(con, "kafka_topics"):
        gone = in_lives(f"SELECT *, at_ns AS sent_ns, NULL::VARCHAR AS topic_id FROM ({_gone(table)})")
        keep_more(con, table, f"BY NAME {gone}")
    return table


_NAMED = {
    "ts": "make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS",
    "ts_sent": "make_timestamp_ns(sent_ns)::TIMESTAMPTZ_NS",
    "cluster_id": "nullif(cluster, '')",
    "group_id": "nullif(group_id, '')",
    "topic": "nullif(topic, '')",
    "committed_offset": "stored",
    "offset_below_0": "CASE WHEN kind = 'below 0' THEN committed_offset END",
    "fetches_seen": "CASE WHEN own_number IS NOT NULL THEN furthest_fetch IS NOT NULL END",
}


def add_committed(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view of `kafka_committed`, which is empty before. Call it once."""
    if views(con) >= {*COMMITTED.reads} and any(has_rows(con, table) for table in STORED_TABLES):
        told = _keep_told(con)
        writers = keep(con, "kafka_committed_writers", make_writers(told))
        steps = keep(con, "kafka_committed_steps", make_steps(told, writers))
        few = neighbours(con, told, steps, writers)
        con.execute(f"DROP TABLE {writers}")
        columns = ", ".join(
            f"{_NAMED[name]} AS {name}" if name in _NAMED else quoted(name)
            for name in TABLES["kafka_committed"].column_names()
        )
        con.execute("DROP VIEW IF EXISTS kafka_committed")
        con.execute(f"""
            CREATE TEMP VIEW kafka_committed AS
            SELECT {columns} FROM {told} AS told JOIN {steps} AS steps ON told.rowid = steps.row
                LEFT JOIN {few} AS few USING (row)""")
    return NOTHING
