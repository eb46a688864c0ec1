"""SQL of what commits and fetches are told by: clients, lost bytes, owners, lives of topics.

In: nothing. Out: SELECTs and names of views; `enrich.py` makes tables and views of them. `in_<table>` is the view of a
table before that stage, `some_<table>` has those of its rows that are looked at.
"""

from __future__ import annotations

from wirewitness.analyser.engine.facts.gaps import losses
from wirewitness.analyser.kafka.facts.clients import clients_of_one_group
from wirewitness.analyser.kafka.facts.log_ends import LIVES

COMMITS, FETCHES = "kafka_offset_commits", "kafka_fetch_partitions"

READS = (
    "gaps",
    "kafka_ownership",
    "kafka_clients",
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

MAKE_CLIENTS = f"CREATE TEMP TABLE context_clients AS {clients_of_one_group('in_kafka_clients')}"


def owned_sql(ownership: str) -> str:
    """Who had a partition that has one owner at a time, until it may have been another; ended is null while open.

    gone: since then the member is none any more, null where it stayed or that is not known.
    """
    return f"""
        SELECT coalesce(cluster_id, '') AS cluster, group_id, topic, partition, member_id, epoch_ns(ts) AS began,
               epoch_ns(least(ts_unsure, ts_end)) AS ended,
               CASE WHEN ended_by IN ('left', 'removed', 'fenced') THEN epoch_ns(ts_end) END AS gone
        FROM {ownership} WHERE NOT shared"""


# What is told once for all partitions, as temporary tables.
ONCE = {
    "context_lives": LIVES.replace("kafka_topics", "in_kafka_topics"),
    "context_gaps": losses("in_gaps"),
    "context_owned": owned_sql("in_kafka_ownership"),
}
_CLIENTS = """
    LEFT JOIN context_clients AS clients
        ON clients.cluster = coalesce(fetches.cluster_id, '') AND clients.address = coalesce(fetches.client_address, '')
        AND clients.client_id = coalesce(fetches.client_id, '')"""
# Fetches with the group of their client; reads `context_clients`.
FETCHES_SQL = f"SELECT fetches.* REPLACE (clients.group_id AS group_id) FROM in_{FETCHES} AS fetches {_CLIENTS}"
# The groups alone, in any order.
GROUPS = f"SELECT fetches.row, clients.group_id FROM context_fetches AS fetches {_CLIENTS}"
