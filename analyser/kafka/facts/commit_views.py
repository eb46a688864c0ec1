"""SQL of what commits and fetches are told by: clients, lost bytes, owners, lives of topics.

In: nothing. Out: SELECTs and names of views; `enrich.py` makes tables and views of them. `in_<table>` is the view of a
table before that stage, `some_<table>` has those of its rows that are looked at.
"""

from __future__ import annotations

from wirewitness.analyser.engine.facts.gaps import is_lost
from wirewitness.analyser.kafka.facts.log_ends import LIVES
from wirewitness.analyser.kafka.facts.ownership import OWNERSHIP_SQL

COMMITS, FETCHES = "kafka_offset_commits", "kafka_fetch_partitions"

READS = (
    "flows",
    "expert_infos",
    "kafka_assignments",
    "kafka_group_events",
    "kafka_offset_commits",
    "kafka_fetch_partitions",
    "kafka_log_ends",
    "kafka_topics",
)

# Of these views rows of the partitions alone are read that are looked at.
OF_PARTITIONS = {
    "context_base": "context_commits",
    f"some_{FETCHES}": f"in_{FETCHES}",
    "some_kafka_log_ends": "(SELECT *, NULL AS topic_id FROM in_kafka_log_ends)",
}

# Where bytes of clients are missing.
GAPS_SQL = f"""
    SELECT DISTINCT flows.client_address AS address, epoch_ns(gaps.ts) AS at_ns, gaps.ts
    FROM in_expert_infos AS gaps JOIN in_flows AS flows USING (flow_id)
    WHERE {is_lost("gaps")}"""
# Clients that belong to one group only: their Fetch requests, which name no group, are this group's.
CLIENTS_SQL = """
    SELECT cluster, coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id,
           min(group_id) AS group_id, CASE WHEN count(DISTINCT member_id) = 1 THEN min(member_id) END AS member_id
    FROM (
        SELECT coalesce(cluster_id, '') AS cluster, client_address, client_id, group_id,
               nullif(member_id, '') AS member_id
        FROM context_base
        UNION ALL
        SELECT coalesce(cluster_id, ''), client_address, client_id, group_id, nullif(member_id, '')
        FROM in_kafka_group_events WHERE event <> 'describe')
    WHERE group_id IS NOT NULL
    GROUP BY 1, 2, 3 HAVING count(DISTINCT group_id) = 1"""
MAKE_CLIENTS = f"CREATE TEMP TABLE context_clients AS {CLIENTS_SQL}"

# What is told once for all partitions, as temporary tables.
ONCE = {
    "context_lives": LIVES.replace("kafka_topics", "in_kafka_topics"),
    "context_gaps": GAPS_SQL,
    "context_owned": OWNERSHIP_SQL,
}
# Planning takes longer than running on a small capture: without assignments nobody owns anything.
NO_OWNERS = """
    SELECT cluster_id AS cluster, group_id, topic, partition, member_id, 0::BIGINT AS began, 0::BIGINT AS ended
    FROM in_kafka_assignments LIMIT 0"""

_CLIENTS = """
    LEFT JOIN context_clients AS clients
        ON clients.cluster = coalesce(fetches.cluster_id, '') AND clients.address = coalesce(fetches.client_address, '')
        AND clients.client_id = coalesce(fetches.client_id, '')"""
# Fetches with the group of their client; reads `context_clients` (CLIENTS_SQL).
FETCHES_SQL = f"SELECT fetches.* REPLACE (clients.group_id AS group_id) FROM in_{FETCHES} AS fetches {_CLIENTS}"
# The groups alone, in any order.
GROUPS = f"SELECT fetches.row, clients.group_id FROM context_fetches AS fetches {_CLIENTS}"
