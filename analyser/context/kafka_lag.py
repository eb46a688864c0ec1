"""Where a consumer group stands: its stored offsets, the ends of the log, and the lag between them. In: nothing.
Out: SQL over the Kafka tables, the only place that says what these words mean.

LOG_ENDS and COMMITS are SELECTs without placeholders: `wirewitness query CAPTURE "FROM (...)"` runs them as they are.

- Log end: the newest end that an answer told, the high watermark of a Fetch or the latest offset of a ListOffsets. It
  counts from its answer on; of two told at the same time the higher one counts.
- Stored offset: the one of the last accepted commit, in the order in which the broker took them. On one connection that
  is the order of the stream, between connections the time of the answer. A TxnOffsetCommit counts from its own answer,
  as if its transaction were committed.
- Lag: from the stored offset to the log end. 0 where the stored offset is ahead, since then the log end is an old one;
  null where one of both is not known.
An unknown cluster is a cluster of its own (''), never a wildcard, and so are an unknown group and topic.
"""

from __future__ import annotations

PARTITION = "cluster, topic, partition"
GROUP = "cluster, group_id, topic, partition"

LOG_ENDS = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition, ts,
           epoch_ns(coalesce(ts_response, ts)) AS at_ns, high_watermark AS log_end
    FROM kafka_fetch_partitions WHERE high_watermark >= 0
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, ''), partition, ts, epoch_ns(ts), "offset"
    FROM kafka_list_offsets WHERE "timestamp" = -1 AND "offset" >= 0"""
# Of rows of LOG_ENDS.
LAST_END = "arg_max(log_end, struct_pack(at_ns, log_end))"

_ANSWERED_NS = "epoch_ns(coalesce(ts_response, ts))"
# As `broker_order` of analyser/detectors/kafka/commits.py: after the answer the request, its packet, its place in the
# stream, which is the tail of the id. What is left equal is one request that names a partition twice.
_ORDER_AT_ONE_TIME = """
    epoch_ns(ts), coalesce(request_packet, 0), coalesce(try_cast(regexp_extract(exchange_id, '[0-9]+$') AS BIGINT), 0),
    coalesce(exchange_id, ''), committed_offset"""
# For ORDER BY over kafka_offset_commits.
BROKER_ORDER = f"{_ANSWERED_NS}, {_ORDER_AT_ONE_TIME}"

COMMITS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, partition, ts, {_ANSWERED_NS} AS at_ns,
           coalesce(error_code = 0 AND committed_offset >= 0, false) AS accepted,
           coalesce(error_code <> 0, false) AS refused, exchange_id, request_packet, committed_offset, log_end_offset,
           member_id, client_id, client_address, generation, owner_member_id
    FROM kafka_offset_commits"""
# Of accepted rows of COMMITS: the one whose offset is stored.
STORED = f"""
    arg_max(struct_pack(ts, at_ns, exchange_id, request_packet, committed_offset, log_end_offset, member_id, client_id,
                        client_address, generation, owner_member_id), row(at_ns, {_ORDER_AT_ONE_TIME}))"""

LAG = """
    CASE WHEN log_end_offset >= committed_offset THEN log_end_offset - committed_offset
         WHEN log_end_offset < committed_offset THEN 0 END"""

# Lag by bins of time, step by step. `lag_commits` are rows of COMMITS and `lag_ends` rows of LOG_ENDS, both with the
# begin of their `bin`, and `here`: false for rows of earlier times, which say how things stood but make no row.
LAG_STEPS = {
    "lag_counts": f"""
        SELECT {GROUP}, bin, bool_or(here) AS here, max(at_ns) FILTER (accepted) AS stored_ns,
               count(*) FILTER (accepted) AS accepted, count(*) FILTER (refused) AS refused,
               count(DISTINCT struct_pack(client_address, client_id, member_id)) FILTER (accepted) AS committers,
               min(committed_offset) FILTER (accepted) AS lowest_offset,
               max(committed_offset) FILTER (accepted) AS highest_offset
        FROM lag_commits GROUP BY ALL""",
    # Rows are compared in full only where the last answers came at one time: that costs much more than numbers.
    "lag_stored": f"""
        SELECT {GROUP}, bin, unnest({STORED})
        FROM lag_commits JOIN (SELECT {GROUP}, bin, stored_ns AS at_ns FROM lag_counts) USING ({GROUP}, bin, at_ns)
        WHERE accepted GROUP BY {GROUP}, bin""",
    "lag_log_ends": f"""
        SELECT {PARTITION}, bin, {LAST_END} AS log_end, bool_or(here) AS here FROM lag_ends GROUP BY ALL""",
    # A row where the group committed or the log's end was seen: a group that stopped committing shows as growing lag.
    "lag_bins": f"""
        SELECT {GROUP}, bin FROM lag_counts WHERE here
        UNION
        SELECT {GROUP}, ends.bin
        FROM (SELECT {GROUP}, min(bin) AS first FROM lag_stored GROUP BY ALL) AS groups
        JOIN lag_log_ends AS ends USING ({PARTITION}) WHERE ends.bin >= groups.first AND ends.here""",
}
# How things stand at the end of each bin: what LAG_STEPS come to.
LAG_ROWS = f"""
    SELECT *, {LAG} AS lag FROM (
        SELECT nullif(bins.cluster, '') AS cluster_id, nullif(bins.group_id, '') AS group_id,
               nullif(bins.topic, '') AS topic, bins.partition, bins.bin, stored.committed_offset,
               coalesce(ends.log_end, stored.log_end_offset) AS log_end_offset, stored.member_id, stored.client_id,
               stored.client_address, stored.generation, stored.owner_member_id,
               epoch_ns(stored.ts) AS sent_ns, stored.at_ns AS stored_ns,
               coalesce(counts.accepted, 0) AS accepted, coalesce(counts.refused, 0) AS refused,
               coalesce(counts.committers, 0) AS committers, counts.lowest_offset, counts.highest_offset
        FROM lag_bins AS bins
        ASOF LEFT JOIN lag_stored AS stored
            ON bins.cluster = stored.cluster AND bins.group_id = stored.group_id AND bins.topic = stored.topic
            AND bins.partition = stored.partition AND bins.bin >= stored.bin
        ASOF LEFT JOIN lag_log_ends AS ends
            ON bins.cluster = ends.cluster AND bins.topic = ends.topic AND bins.partition = ends.partition
            AND bins.bin >= ends.bin
        LEFT JOIN lag_counts AS counts
            ON bins.cluster = counts.cluster AND bins.group_id = counts.group_id AND bins.topic = counts.topic
            AND bins.partition = counts.partition AND bins.bin = counts.bin)"""


def lag_query(begin: str, *, commits: str = "true", ends: str = "true") -> str:
    """A SELECT of LAG_ROWS. begin: of the bin of `at_ns`, in SQL; commits, ends: conditions on COMMITS and LOG_ENDS."""
    steps = {
        "lag_commits": f"SELECT *, {begin} AS bin, true AS here FROM ({COMMITS}) WHERE {commits}",
        "lag_ends": f"SELECT *, {begin} AS bin, true AS here FROM ({LOG_ENDS}) WHERE {ends}",
        **LAG_STEPS,
    }
    named = ", ".join(f"{name} AS ({query})" for name, query in steps.items())
    return f"with {named} {LAG_ROWS}"
