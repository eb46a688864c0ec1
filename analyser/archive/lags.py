"""The table `kafka_lag_minutes`: how far each group was behind on each partition, minute by minute, and who committed.

In: a change whose commits have their context. Out: the table's parts of the hours that came out otherwise. A minute has
a row where the group committed or the log's end was seen, so a group that stopped committing shows as growing lag.
"""

from __future__ import annotations

from analyser.archive.change import Change
from analyser.archive.derived import change_connection, replace_changed_hours, view_of

TABLE = "kafka_lag_minutes"
MINUTE_NS = 60_000_000_000
# Of two commits at the same time the one that the broker answered last stands.
_ANSWERED = "epoch_ns(coalesce(ts_response, ts))"
_READS = ("kafka_offset_commits", "kafka_fetch_partitions", "kafka_list_offsets")


def _minute(time: str) -> str:
    return f"({time} - {time} % {MINUTE_NS})"


# As in `analyser/context/enrich.py`: a log end counts from the answer that told it, an unknown cluster is its own.
_STEPS = {
    "lag_commits": f"""
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
               coalesce(topic, topic_id, '') AS topic, partition, {_ANSWERED} AS at_ns,
               {_minute(_ANSWERED)} AS minute, error_code = 0 AS accepted, exchange_id, committed_offset,
               response_packet, member_id, client_id, client_address, generation
        FROM kafka_offset_commits WHERE error_code IS NOT NULL AND partition IS NOT NULL""",
    "lag_ends": f"""
        SELECT cluster, topic, partition, {_minute("at_ns")} AS minute, max(at_ns) AS at_ns,
               arg_max(log_end, at_ns) AS log_end
        FROM (SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
                     {_ANSWERED} AS at_ns, max(high_watermark) AS log_end
              FROM kafka_fetch_partitions WHERE high_watermark >= 0 GROUP BY ALL
              UNION ALL
              SELECT coalesce(cluster_id, ''), coalesce(topic, ''), partition, epoch_ns(ts), max("offset")
              FROM kafka_list_offsets WHERE "timestamp" = -1 AND "offset" >= 0 GROUP BY ALL)
        GROUP BY ALL""",
    "lag_last": """
        SELECT cluster, group_id, topic, partition, minute, max(at_ns) AS at_ns,
               unnest(arg_max(struct_pack(committed_offset, member_id, client_id, client_address, generation),
                      struct_pack(at_ns, response_packet, exchange_id)))
        FROM lag_commits WHERE accepted GROUP BY cluster, group_id, topic, partition, minute""",
    "lag_counts": """
        SELECT cluster, group_id, topic, partition, minute, count(*) FILTER (accepted) AS commits,
               count(*) FILTER (NOT accepted) AS rejected, count(DISTINCT struct_pack(client_address, client_id, member_id)) FILTER (accepted) AS committers,
               min(committed_offset) FILTER (accepted) AS lowest_offset,
               max(committed_offset) FILTER (accepted) AS highest_offset
        FROM lag_commits GROUP BY ALL""",
    "lag_minutes": """
        SELECT cluster, group_id, topic, partition, minute FROM lag_counts
        UNION
        SELECT groups.cluster, groups.group_id, groups.topic, groups.partition, ends.minute
        FROM (SELECT cluster, group_id, topic, partition, min(minute) AS first FROM lag_last GROUP BY ALL) AS groups
        JOIN lag_ends AS ends ON groups.cluster = ends.cluster AND groups.topic = ends.topic
            AND groups.partition = ends.partition AND ends.minute >= groups.first""",
}
_ROWS = """
    SELECT make_timestamp_ns(minutes.minute)::TIMESTAMPTZ_NS AS ts, nullif(minutes.cluster, '') AS cluster_id,
           nullif(minutes.group_id, '') AS group_id, nullif(minutes.topic, '') AS topic, minutes.partition,
           last.committed_offset, make_timestamp_ns(last.at_ns)::TIMESTAMPTZ_NS AS ts_commit,
           ends.log_end AS log_end_offset, greatest(ends.log_end - last.committed_offset, 0) AS lag,
           last.member_id, last.client_id, last.client_address, last.generation,
           coalesce(counts.commits, 0) AS commits, coalesce(counts.rejected, 0) AS rejected,
           coalesce(counts.committers, 0) AS committers, counts.lowest_offset, counts.highest_offset
    FROM lag_minutes AS minutes
    ASOF JOIN lag_last AS last
        ON minutes.cluster = last.cluster AND minutes.group_id = last.group_id AND minutes.topic = last.topic
        AND minutes.partition = last.partition AND minutes.minute >= last.minute
    ASOF LEFT JOIN lag_ends AS ends
        ON minutes.cluster = ends.cluster AND minutes.topic = ends.topic AND minutes.partition = ends.partition
        AND minutes.minute >= ends.minute
    LEFT JOIN lag_counts AS counts
        ON minutes.cluster = counts.cluster AND minutes.group_id = counts.group_id AND minutes.topic = counts.topic
        AND minutes.partition = counts.partition AND minutes.minute = counts.minute"""


def run_lags(change: Change) -> set[int | None]:
    """Make the table anew from all commits and log ends; the hours that were written."""
    if not change.parts("kafka_offset_commits") and not change.parts(TABLE):
        return set()
    with change_connection(change) as con:
        for table in _READS:
            view_of(con, change, table)
        for name, query in _STEPS.items():
            con.execute(f"CREATE TEMP TABLE {name} AS {query}")
        return replace_changed_hours(con, change, TABLE, _ROWS)
