"""The context columns of commits and fetches.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_offset_commits` and `kafka_fetch_partitions` replaced by ones whose context columns are filled in.

Everything is a join in DuckDB, as of the time of the row, so memory is DuckDB's limit and it may spill. Times are
compared as Unix ns. An unknown cluster is a cluster of its own (''), never a wildcard.
"""

from __future__ import annotations

import duckdb

from analyser.context.ownership import OWNERSHIP_SQL
from analyser.context.topics import views
from analyser.tables import TABLES

# A member that fetched a partition this long before a commit counts as reading it then: an idle Fetch waits at the
# broker for half a second (fetch.max.wait.ms), and processing takes its time.
FETCHED_LATELY_NS = 5_000_000_000

_READS = (
    "flows",
    "expert_infos",
    "kafka_assignments",
    "kafka_group_events",
    "kafka_list_offsets",
    "kafka_fetch_partitions",
    "kafka_offset_commits",
)
_SQL_TYPES = {
    "string": "VARCHAR",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "time": "TIMESTAMPTZ",
    "int64_list": "BIGINT[]",
}

# Every step makes one temporary table; `in_<table>` is the view of a table before this stage.
_STEPS = {
    "context_committed": """
        SELECT DISTINCT coalesce(cluster_id, '') AS cluster, group_id, coalesce(topic, topic_id) AS topic, partition
        FROM in_kafka_offset_commits""",
    # Clients that belong to one group only: their Fetch requests, which name no group, are this group's.
    "context_clients": """
        SELECT cluster, coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id,
               min(group_id) AS group_id, CASE WHEN count(DISTINCT member_id) = 1 THEN min(member_id) END AS member_id
        FROM (
            SELECT coalesce(cluster_id, '') AS cluster, client_address, client_id, group_id,
                   nullif(member_id, '') AS member_id
            FROM in_kafka_offset_commits
            UNION ALL
            SELECT coalesce(cluster_id, ''), client_address, client_id, group_id, nullif(member_id, '')
            FROM in_kafka_group_events WHERE event <> 'describe')
        WHERE group_id IS NOT NULL
        GROUP BY 1, 2, 3 HAVING count(DISTINCT group_id) = 1""",
    "context_owners": f"""
        SELECT cluster, group_id, topic, partition, began, min(member_id) AS member_id,
               arg_min(coalesce(ended, {2**63 - 1}), member_id) AS ended
        FROM ({OWNERSHIP_SQL}) GROUP BY ALL""",
    # What is read of partitions that somebody commits: log ends, and consumers that are one member of one group.
    "context_fetches": """
        SELECT cluster, topic, partition, epoch_ns(ts) AS asked, epoch_ns(coalesce(ts_response, ts)) AS answered,
               high_watermark, replica_id, coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id
        FROM (SELECT * REPLACE (coalesce(topic, topic_id) AS topic), coalesce(cluster_id, '') AS cluster
              FROM in_kafka_fetch_partitions)
        SEMI JOIN (SELECT DISTINCT cluster, topic, partition FROM context_committed)
            USING (cluster, topic, partition)""",
    "context_log_ends": """
        SELECT cluster, topic, partition, at_ns, max(log_end) AS log_end FROM (
            SELECT cluster, topic, partition, answered AS at_ns, high_watermark AS log_end
            FROM context_fetches WHERE high_watermark >= 0
            UNION ALL
            SELECT coalesce(cluster_id, ''), topic, partition, epoch_ns(ts), "offset"
            FROM in_kafka_list_offsets WHERE "timestamp" = -1 AND "offset" >= 0)
        GROUP BY ALL""",
    "context_fetchers": """
        SELECT DISTINCT cluster, group_id, topic, partition, member_id, asked AS at_ns
        FROM context_fetches JOIN context_clients USING (cluster, address, client_id)
        WHERE coalesce(replica_id, -1) < 0 AND member_id IS NOT NULL""",
    "context_gaps": """
        SELECT DISTINCT flows.client_address AS address, epoch_ns(gaps.ts) AS at_ns, gaps.ts
        FROM in_expert_infos AS gaps JOIN in_flows AS flows USING (flow_id)
        WHERE gaps."group" = 'tcp' AND gaps.code = 'gap' AND gaps.ts IS NOT NULL""",
}

_COMMITS = f"""
SELECT commits.* EXCLUDE (cluster_key, topic_key, at_ns) REPLACE (
    CASE
        WHEN commits.at_ns < owners.ended THEN owners.member_id
        WHEN own.at_ns >= commits.at_ns - {FETCHED_LATELY_NS} THEN commits.member_id
        WHEN fetchers.at_ns >= commits.at_ns - {FETCHED_LATELY_NS} THEN fetchers.member_id
    END AS owner_member_id,
    CASE
        WHEN commits.at_ns < owners.ended THEN 'high'
        WHEN greatest(own.at_ns, fetchers.at_ns) >= commits.at_ns - {FETCHED_LATELY_NS} THEN 'low'
    END AS ownership_confidence,
    log_ends.log_end AS log_end_offset,
    gaps.ts::TIMESTAMPTZ_NS AS client_gap_ts)
FROM (SELECT *, coalesce(cluster_id, '') AS cluster_key, coalesce(topic, topic_id) AS topic_key, epoch_ns(ts) AS at_ns
      FROM in_kafka_offset_commits) AS commits
ASOF LEFT JOIN context_owners AS owners
    ON commits.cluster_key = owners.cluster AND commits.group_id = owners.group_id
    AND commits.topic_key = owners.topic AND commits.partition = owners.partition AND commits.at_ns >= owners.began
ASOF LEFT JOIN context_fetchers AS own
    ON commits.cluster_key = own.cluster AND commits.group_id = own.group_id AND commits.topic_key = own.topic
    AND commits.partition = own.partition AND commits.member_id = own.member_id AND commits.at_ns >= own.at_ns
ASOF LEFT JOIN context_fetchers AS fetchers
    ON commits.cluster_key = fetchers.cluster AND commits.group_id = fetchers.group_id
    AND commits.topic_key = fetchers.topic AND commits.partition = fetchers.partition
    AND commits.at_ns >= fetchers.at_ns
ASOF LEFT JOIN context_log_ends AS log_ends
    ON commits.cluster_key = log_ends.cluster AND commits.topic_key = log_ends.topic
    AND commits.partition = log_ends.partition AND commits.at_ns >= log_ends.at_ns
ASOF LEFT JOIN context_gaps AS gaps ON commits.client_address = gaps.address AND commits.at_ns >= gaps.at_ns
"""

_FETCHES = """
SELECT fetches.* REPLACE (clients.group_id AS group_id)
FROM in_kafka_fetch_partitions AS fetches
LEFT JOIN context_clients AS clients
    ON clients.cluster = coalesce(fetches.cluster_id, '') AND clients.address = coalesce(fetches.client_address, '')
    AND clients.client_id = coalesce(fetches.client_id, '')
"""


def enrich(con: duckdb.DuckDBPyConnection) -> None:
    """Replace the views of commits and fetches by enriched ones; other tables may be missing. Call it once."""
    there = views(con)
    for table in _READS:
        _set_aside(con, table, table in there)
    for name, query in _STEPS.items():
        con.execute(f"CREATE TEMP TABLE {name} AS {query}")
    if "kafka_offset_commits" in there:
        con.execute(f"CREATE TEMP TABLE context_commits AS {_COMMITS}")
        con.execute("CREATE TEMP VIEW kafka_offset_commits AS FROM context_commits")
    if "kafka_fetch_partitions" in there:
        con.execute(f"CREATE TEMP VIEW kafka_fetch_partitions AS {_FETCHES}")
    for name in _STEPS:
        if name != "context_clients":
            con.execute(f"DROP TABLE {name}")


def _set_aside(con: duckdb.DuckDBPyConnection, table: str, there: bool) -> None:
    """Make `in_<table>`: the view itself under another name where it is replaced, an empty one where it is missing."""
    if there and table in ("kafka_offset_commits", "kafka_fetch_partitions"):
        con.execute(f"ALTER VIEW {table} RENAME TO in_{table}")
    elif there:
        con.execute(f"CREATE TEMP VIEW in_{table} AS FROM {table}")
    else:
        columns = ", ".join(f'NULL::{_SQL_TYPES[c.kind]} AS "{c.name}"' for c in TABLES[table].columns)
        con.execute(f"CREATE TEMP VIEW in_{table} AS SELECT {columns} LIMIT 0")
