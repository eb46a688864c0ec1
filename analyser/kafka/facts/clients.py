"""As whom a client sent requests of a group: the rows of `kafka_clients`, as SQL.

In: the table `go_events` (`group_requests.py`), the view `kafka_offset_commits`. Out: a SELECT. Fetches name no group:
who reads for which group is told by this.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.group_requests import time_sql

CLIENT_ROWS = f"""
    SELECT nullif(cluster, '') AS cluster_id, address AS client_address, client_id, group_id,
           nullif(member_id, '') AS member_id, {time_sql("min(at_ns)")} AS ts, {time_sql("max(last_ns)")} AS ts_last
    FROM (
        SELECT cluster, address, client_id, group_id, member_id, at_ns, at_ns AS last_ns FROM go_events
        UNION ALL
        SELECT coalesce(cluster_id, ''), client_address, client_id, group_id, member_id, min(epoch_ns(ts)),
               max(epoch_ns(ts))
        FROM kafka_offset_commits WHERE group_id IS NOT NULL AND ts IS NOT NULL GROUP BY ALL)
    GROUP BY cluster, address, client_id, group_id, nullif(member_id, '')"""

# Who sent a row, without nulls.
SENDER = (
    "coalesce(cluster_id, '') AS cluster, coalesce(client_address, '') AS address, coalesce(client_id, '') AS client"
)


def clients_of_one_group(clients: str = "kafka_clients") -> str:
    """Clients that belong to one group only: cluster, address, client_id, group_id, member_id, without nulls.

    Their Fetch requests, which name no group, are this group's. Of several members it is not known which one reads.
    """
    return f"""
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(client_address, '') AS address,
               coalesce(client_id, '') AS client_id, min(group_id) AS group_id,
               CASE WHEN count(DISTINCT member_id) = 1 THEN min(member_id) END AS member_id
        FROM {clients} GROUP BY 1, 2, 3 HAVING count(DISTINCT group_id) = 1"""
