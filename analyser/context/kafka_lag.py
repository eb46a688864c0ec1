"""Where a consumer group stands: its stored offsets and its lag behind the log ends (`log_ends.py`). In: nothing.
Out: SQL over the Kafka tables, the only place that says what these words mean.

COMMITS is a SELECT without placeholders: `wirewitness query CAPTURE "FROM (...)"` runs it as it is.

- Stored offset: the one of the last accepted commit, in the order in which the broker took them. On one connection that
  is the order of the stream, between connections the time of the answer. A TxnOffsetCommit counts from its own answer,
  as if its transaction were committed. It is gone when its topic begins another life.
- Lag: from the stored offset to the log end. 0 where the stored offset is ahead, since then the log end is an old one;
  null where one of both is not known.
An unknown cluster is a cluster of its own (''), never a wildcard, and so are an unknown group and topic.
"""

from __future__ import annotations

from analyser.context.log_ends import LOG_ENDS, PARTITION, TOPIC_LIVES, ends_of_bins, with_life

GROUP = "cluster, group_id, topic, partition"

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
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts, {_ANSWERED_NS} AS at_ns,
           coalesce(error_code = 0 AND committed_offset >= 0, false) AS accepted,
           coalesce(error_code <> 0, false) AS refused, exchange_id, request_packet, committed_offset, log_end_offset,
           member_id, client_id, client_address, generation, owner_member_id
    FROM kafka_offset_commits"""
# Of accepted rows of COMMITS: the one whose offset is stored.
STORED = f"""
    arg_max(struct_pack(ts, at_ns, topic_id, exchange_id, request_packet, committed_offset, log_end_offset, member_id,
                        client_id, client_address, generation, owner_member_id), row(at_ns, {_ORDER_AT_ONE_TIME}))"""

LAG = """
    CASE WHEN log_end_offset >= committed_offset THEN log_end_offset - committed_offset
         WHEN log_end_offset < committed_offset THEN 0 END"""

# Lag by bins of time, step by step. `lag_lives` are TOPIC_LIVES, `lag_commits` rows of COMMITS and `lag_ends` rows of
# LOG_ENDS with the `life` of their topic, both with the begin of their `bin`, and `here`: false for rows of earlier
# times, which say how things stood but make no row.
LAG_STEPS = {
    "lag_counts": f"""
        SELECT {GROUP}, bin, bool_or(here) AS here, max(at_ns) FILTER (accepted) AS stored_ns,
               count(*) FILTER (accepted) AS accepted, count(*) FILTER (refused) AS refused,
               count(DISTINCT struct_pack(client_address, client_id, member_id)) FILTER (accepted) AS committers,
               min(committed_offset) FILTER (accepted) AS lowest_offset,
               max(committed_offset) FILTER (accepted) AS highest_offset
        FROM lag_commits GROUP BY ALL""",
    # Rows are compared in full only where the last answers came at one time: that costs much more than numbers.
    "lag_stored": with_life(
        f"""
        SELECT {GROUP}, bin, unnest({STORED})
        FROM lag_commits JOIN (SELECT {GROUP}, bin, stored_ns AS at_ns FROM lag_counts) USING ({GROUP}, bin, at_ns)
        WHERE accepted GROUP BY {GROUP}, bin""",
        "lag_lives",
    ),
    "lag_log_ends": ends_of_bins("lag_ends"),
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
               nullif(bins.topic, '') AS topic, bins.partition, bins.bin,
               CASE WHEN coalesce(stored.life >= ends.life, true) THEN stored.committed_offset END AS committed_offset,
               CASE WHEN ends.life IS NULL THEN stored.log_end_offset
                    WHEN coalesce(stored.life <= ends.life, true) THEN ends.log_end END AS log_end_offset,
               CASE WHEN coalesce(stored.life <= ends.life, true) THEN ends.end_ns END AS end_ns,
               stored.member_id, stored.client_id, stored.client_address, stored.generation, stored.owner_member_id,
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


# So many bins of a partition are made at most where it was quiet.
MOST_CARRIED = 100_000
# Instead of `lag_bins`: all bins from a partition's first on until the last request of the capture, so that what stands
# is told while nobody commits or fetches.
_CARRIED = f"""
    {LAG_STEPS["lag_bins"]}
    UNION
    SELECT {GROUP}, unnest(range(first, last + {{width}}, {{width}}))
    FROM (SELECT {GROUP}, min(bin) AS first FROM lag_counts WHERE here GROUP BY ALL),
         (SELECT max(bin) AS last FROM (
             SELECT max(bin) AS bin FROM lag_counts UNION ALL SELECT max(bin) FROM lag_log_ends
             UNION ALL SELECT {{begin}} FROM (SELECT max(epoch_ns(ts)) AS at_ns FROM exchanges)))
    WHERE (last - first) // {{width}} < {MOST_CARRIED}"""


def lag_query(width: str = "", *, commits: str = "true", ends: str = "true", assigned: str = "") -> str:
    """A SELECT of LAG_ROWS: how things stand in the end, or at the end of bins of `width` ns (SQL; reads `exchanges`).

    commits, ends: conditions on COMMITS and LOG_ENDS. assigned: a SELECT of partitions (GROUP) that have a row even
    where nothing was committed.
    """
    begin = f"at_ns // {width} * {width}" if width else "0"
    told = with_life(f"FROM ({LOG_ENDS}) WHERE {ends}", "lag_lives")
    steps = {
        "lag_lives": TOPIC_LIVES,
        "lag_commits": f"SELECT *, {begin} AS bin, true AS here FROM ({COMMITS}) WHERE {commits}",
        "lag_ends": f"SELECT *, {begin} AS bin, true AS here FROM ({told})",
        **LAG_STEPS,
    }
    if assigned:
        given = f"SELECT {GROUP}, 0 AS bin, true AS here, false AS accepted, false AS refused FROM ({assigned})"
        steps["lag_commits"] += f" UNION ALL BY NAME {given}"
    if width:
        steps["lag_bins"] = _CARRIED.format(width=width, begin=begin)
    named = ", ".join(f"{name} AS ({query})" for name, query in steps.items())
    return f"with {named} {LAG_ROWS}"
