"""SQL that tells of each commit who owned its partition, how far the log went, and where its client lost bytes.

In: nothing. Out: steps for `steps.py`, and the query over them; `enrich.py` runs them. `in_<table>` is the view of a
table before that stage.
"""

from __future__ import annotations

from analyser.context.log_ends import END_TABLES, KEPT_BEFORE, LOG_ENDS, SECOND, TOPIC_LIVES, with_life
from analyser.context.losses import is_lost
from analyser.context.ownership import OWNERSHIP_SQL

# A member that fetched a partition this long before a commit counts as reading it then: an idle Fetch waits at the
# broker for half a second (fetch.max.wait.ms), and processing takes its time. The committer itself counts as reading if
# it fetches this long after the commit, too: the capture may lack what it did before.
FETCHED_LATELY_NS = 5_000_000_000

COMMITS, FETCHES = "kafka_offset_commits", "kafka_fetch_partitions"

READS = (
    "flows",
    "expert_infos",
    "kafka_assignments",
    "kafka_group_events",
    "kafka_offset_commits",
    *END_TABLES,
)

# Of these views the steps read rows of the partitions alone that are looked at.
OF_PARTITIONS = {
    "context_base": "context_commits",
    f"some_{FETCHES}": f"in_{FETCHES}",
    "some_kafka_produce_batches": "in_kafka_produce_batches",
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


def _of(table: str) -> str:
    """The view that the steps read."""
    return f"some_{table}" if f"some_{table}" in OF_PARTITIONS else f"in_{table}"


_KEYS_SQL = with_life(
    """
    SELECT base.row, part, log, cluster, parts.topic, base.topic_id, epoch_ns(ts) AS at_ns,
           nullif(member_id, '') AS member_id, client_address AS address
    FROM context_base AS base JOIN context_parts AS parts
        ON coalesce(base.cluster_id, '') = parts.cluster AND coalesce(base.group_id, '') = parts.group_id
        AND coalesce(base.topic, base.topic_id, '') = parts.topic AND base.partition = parts.partition""",
    "context_lives",
)

# Every step makes one temporary table; `in_<table>` is the view of a table before this stage, `some_<table>` has those
# of its rows that are looked at. Keys become numbers (`part` for a partition of a group, `log` for a partition) and
# rows are joined by number, so that what must be sorted is narrow: whole rows through five joins would not fit into a
# small memory limit.
ONCE = {
    "context_lives": f"""
        WITH kafka_partitions AS (FROM in_kafka_partitions),
        kafka_admin_changes AS (FROM in_kafka_admin_changes) {TOPIC_LIVES}""",
    "context_gaps": GAPS_SQL,
    "context_owned": OWNERSHIP_SQL,
}
STEPS = {
    "context_parts": """
        SELECT row_number() OVER () AS part, dense_rank() OVER (ORDER BY cluster, topic, partition) AS log, *
        FROM (SELECT DISTINCT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
                     coalesce(topic, topic_id, '') AS topic, partition FROM context_base)""",
    "context_keys": f"SELECT row, part, log, life, at_ns, member_id, address FROM ({_KEYS_SQL})",
    "context_ownership": f"""
        SELECT part, began, min(member_id) AS member_id, arg_min(coalesce(ended, {2**63 - 1}), member_id) AS ended
        FROM context_owned JOIN context_parts USING (cluster, group_id, topic, partition) GROUP BY part, began""",
    "context_owners": """
        SELECT keys.row, owners.member_id
        FROM context_keys AS keys ASOF JOIN context_ownership AS owners
            ON keys.part = owners.part AND keys.at_ns >= owners.began
        WHERE keys.at_ns < owners.ended""",
    # Only for commits whose owner no assignment tells: consumers that are one member of the group, and what they fetch.
    # The committer's own fetches decide, so nothing is concluded where some of them may be missing.
    "context_unowned": """
        SELECT keys.row, keys.part, keys.at_ns, keys.member_id
        FROM context_keys AS keys ANTI JOIN context_owners AS owners ON keys.row = owners.row""",
    "context_fetchers": """
        SELECT DISTINCT part, clients.member_id, epoch_ns(ts) AS at_ns
        FROM some_kafka_fetch_partitions AS fetches
        JOIN context_clients AS clients
            ON coalesce(fetches.cluster_id, '') = clients.cluster AND clients.member_id IS NOT NULL
            AND coalesce(fetches.client_address, '') = clients.address
            AND coalesce(fetches.client_id, '') = clients.client_id
        JOIN (FROM context_parts SEMI JOIN context_unowned USING (part)) AS parts
            ON clients.cluster = parts.cluster AND clients.group_id = parts.group_id
            AND coalesce(fetches.topic, fetches.topic_id, '') = parts.topic AND fetches.partition = parts.partition
        WHERE coalesce(replica_id, -1) < 0""",
    "context_client_gaps": """
        SELECT keys.row, gaps.ts
        FROM (SELECT row, at_ns, address FROM context_keys WHERE EXISTS (FROM context_gaps)) AS keys
        ASOF JOIN context_gaps AS gaps ON keys.address = gaps.address AND keys.at_ns >= gaps.at_ns""",
    "context_others": f"""
        SELECT keys.row, keys.part, keys.at_ns, keys.member_id, others.member_id AS other_id
        FROM context_unowned AS keys
        ASOF JOIN (SELECT part, at_ns, min(member_id) AS member_id FROM context_fetchers GROUP BY ALL) AS others
            ON keys.part = others.part AND keys.at_ns >= others.at_ns
        LEFT JOIN context_client_gaps AS gaps ON keys.row = gaps.row
        WHERE others.at_ns >= keys.at_ns - {FETCHED_LATELY_NS}
            AND coalesce(epoch_ns(gaps.ts) < keys.at_ns - {FETCHED_LATELY_NS}, true)""",
    "context_own_before": """
        SELECT keys.*, own.at_ns AS before_ns
        FROM context_others AS keys
        ASOF LEFT JOIN context_fetchers AS own
            ON keys.part = own.part AND keys.member_id = own.member_id AND keys.at_ns >= own.at_ns""",
    "context_readers": f"""
        SELECT keys.row, CASE WHEN before_ns >= keys.at_ns - {FETCHED_LATELY_NS}
                                OR next.at_ns <= keys.at_ns + {FETCHED_LATELY_NS} THEN keys.member_id
                              ELSE other_id END AS member_id
        FROM context_own_before AS keys
        ASOF LEFT JOIN context_fetchers AS next
            ON keys.part = next.part AND keys.member_id = next.member_id AND keys.at_ns < next.at_ns""",
    # An answer that repeats an end of its second changes nothing.
    "context_told_ends": f"""
        WITH {", ".join(f"{table} AS (FROM {_of(table)})" for table in END_TABLES)}
        SELECT log, life, {SECOND} AS second, log_end, min(at_ns) AS at_ns
        FROM ({with_life(LOG_ENDS, "context_lives")})
            JOIN (SELECT DISTINCT log, cluster, topic, partition FROM context_parts) USING (cluster, topic, partition)
        GROUP BY ALL""",
    "context_kept_ends": f"""
        SELECT log, life, second, max(highest) OVER (PARTITION BY log, life {KEPT_BEFORE}) AS kept
        FROM (SELECT log, life, second, max(log_end) AS highest FROM context_told_ends GROUP BY ALL)""",
    "context_known_ends": """
        SELECT log, life, at_ns,
               greatest(kept, max(log_end) OVER (PARTITION BY log, life, second ORDER BY at_ns)) AS log_end
        FROM context_told_ends JOIN context_kept_ends USING (log, life, second)""",
    "context_log_ends": """
        SELECT keys.row, ends.log_end
        FROM context_keys AS keys ASOF JOIN context_known_ends AS ends
            ON keys.log = ends.log AND keys.life = ends.life AND keys.at_ns >= ends.at_ns""",
}
# What rows of `context_base` get, those that may get anything.
ADDED = """
    SELECT keys.row, coalesce(owners.member_id, readers.member_id) AS owner_member_id,
           CASE WHEN owners.row IS NOT NULL THEN 'high' WHEN readers.row IS NOT NULL THEN 'low' END
               AS ownership_confidence,
           ends.log_end AS log_end_offset,
           gaps.ts::TIMESTAMPTZ_NS AS client_gap_ts
    FROM context_keys AS keys
    LEFT JOIN context_owners AS owners ON keys.row = owners.row
    LEFT JOIN context_readers AS readers ON keys.row = readers.row
    LEFT JOIN context_log_ends AS ends ON keys.row = ends.row
    LEFT JOIN context_client_gaps AS gaps ON keys.row = gaps.row"""
CONTEXT = ("owner_member_id", "ownership_confidence", "log_end_offset", "client_gap_ts")
# Planning takes longer than running on a small capture: without assignments nobody owns anything.
NO_OWNERS = """
    SELECT cluster_id AS cluster, group_id, topic, partition, member_id, 0::BIGINT AS began, 0::BIGINT AS ended
    FROM in_kafka_assignments LIMIT 0"""
MAKE_CLIENTS = f"CREATE TEMP TABLE context_clients AS {CLIENTS_SQL}"
_CLIENTS = """
    LEFT JOIN context_clients AS clients
        ON clients.cluster = coalesce(fetches.cluster_id, '') AND clients.address = coalesce(fetches.client_address, '')
        AND clients.client_id = coalesce(fetches.client_id, '')"""
# Fetches with the group of their client; reads `context_clients` (CLIENTS_SQL).
FETCHES_SQL = f"SELECT fetches.* REPLACE (clients.group_id AS group_id) FROM in_{FETCHES} AS fetches {_CLIENTS}"
GROUPS = f"""
    SELECT clients.group_id FROM (FROM context_fetches WHERE {{some}}) AS fetches {_CLIENTS} ORDER BY fetches.row"""
