"""Where clients of groups began to read a partition, as SQL. In: fetches with their group. Out: RUNS, the steps.

Each step makes one temporary table of its name; the last one, `reading_begun`, has a row for each run of reading.

A reader is a client (address and client id) in one partition of its group. Its run of reading ends where it goes on
with another connection, another topic id, or an offset that its last answer did not lead to. Behind an answer that is
missing only a lower offset is a new run. Times are Unix ns. An unknown cluster is a cluster of its own (''), never a
wildcard.
"""

from __future__ import annotations

PART = "cluster, group_id, topic, partition"
KEYS = """
    coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id, coalesce(topic, topic_id, '') AS topic,
    partition"""
CLIENT = "coalesce(client_address, '') AS address, coalesce(client_id, '') AS client_id"
OF_GROUPS = "group_id IS NOT NULL AND coalesce(replica_id, -1) < 0"

# Keys become numbers (`part` for a partition of a group, `member` for a client in a group, `host` for its address,
# `reader` for a client in a partition of its group): what is sorted is narrow.
RUNS = {
    "reading_readers": f"""
        SELECT row_number() OVER () AS reader, dense_rank() OVER (ORDER BY {PART}) AS part,
               dense_rank() OVER (ORDER BY cluster, group_id, address, client_id) AS member,
               dense_rank() OVER (ORDER BY address) AS host, *
        FROM (SELECT DISTINCT {KEYS}, {CLIENT} FROM read_kafka_fetch_partitions WHERE {OF_GROUPS})""",
    "reading_parts": f"SELECT DISTINCT part, {PART} FROM reading_readers",
    # position: where the answer leaves the reader; null where it is missing, or none of its batches is known whole.
    "reading_fetches": f"""
        SELECT reader, part, at_ns, flow, id, error_code, fetch_offset, log_start_offset, high_watermark, records_count,
               CASE WHEN next_offset IS NOT NULL THEN greatest(next_offset, coalesce(fetch_offset, 0))
                    WHEN done_ns IS NOT NULL AND coalesce(records_bytes, 0) = 0 THEN fetch_offset END AS position
        FROM (SELECT {KEYS}, {CLIENT}, epoch_ns(ts) AS at_ns, epoch_ns(ts_response) AS done_ns, hash(flow_id) AS flow,
                     hash(topic_id) AS id, coalesce(error_code, 0) AS error_code, fetch_offset, next_offset,
                     log_start_offset, high_watermark, records_bytes, records_count
              FROM read_kafka_fetch_partitions WHERE {OF_GROUPS})
        JOIN reading_readers USING ({PART}, address, client_id)""",
    "reading_marked": """
        SELECT *, lag(at_ns) OVER own AS before_ns, lag(position) OVER own AS position_before,
               lag(fetch_offset) OVER own AS fetched_before, lag(flow) OVER own AS flow_before,
               lag(id) OVER own AS id_before,
               max(position) OVER (PARTITION BY part ORDER BY at_ns, reader
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS group_position
        FROM reading_fetches WHERE error_code = 0
        WINDOW own AS (PARTITION BY reader ORDER BY at_ns, fetch_offset)""",
    "reading_numbered": """
        SELECT *, sum(begins::INT) OVER (PARTITION BY reader ORDER BY at_ns, fetch_offset) AS run
        FROM (SELECT *, before_ns IS NULL OR flow <> flow_before OR coalesce(id <> id_before, false)
                     OR coalesce(fetch_offset <> position_before, false)
                     OR (position_before IS NULL AND coalesce(fetch_offset < fetched_before, false)) AS begins
              FROM reading_marked)""",
    "reading_begun": """
        SELECT row_number() OVER () AS row, *
        FROM (SELECT reader, any_value(part) AS part, min(at_ns) AS at_ns, max(at_ns) AS last_ns,
                     max(position) AS next_offset, count(*) AS fetches, sum(records_count)::BIGINT AS records,
                     max(high_watermark) AS log_end_offset,
                     unnest(first(struct_pack(first_offset := fetch_offset, log_start_offset, before_ns,
                                              position_before, fetched_before, group_position,
                                              other_flow := flow <> flow_before, other_id := id <> id_before)
                                  ORDER BY at_ns, fetch_offset))
              FROM reading_numbered GROUP BY reader, run)""",
}
