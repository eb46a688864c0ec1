"""Last stable offsets that stand below the high watermark, and the transaction that holds each of them.

In: views of kafka_fetch_partitions and kafka_produce_batches, tables of `transaction_spans`. Out: SQL that makes a row
of each offset that stood for a second or more.

The last stable offset is the first offset of the earliest open transaction (KIP-98), so that transaction is the one
whose batch begins there. Consumers that read committed records get nothing behind it.
"""

from __future__ import annotations

STANDS_NS = 1_000_000_000
MOST_READERS = 20

STABLE_STEPS = {
    "stable_seen": """
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
               last_stable_offset, high_watermark, epoch_ns(coalesce(ts_response, ts)) AS at_ns, isolation_level,
               client_id, client_address, group_id, exchange_id, flow_id, file, request_packet
        FROM kafka_fetch_partitions
        WHERE last_stable_offset >= 0 AND last_stable_offset < high_watermark AND error_code = 0
              AND coalesce(replica_id, -1) < 0""",
    "stable_stands": f"""
        SELECT cluster, topic, partition, last_stable_offset, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
               max(high_watermark) AS high_watermark, count(*) AS fetches,
               arg_min(struct_pack(exchange_id, flow_id, file, request_packet), (at_ns, exchange_id)) AS first,
               arg_max(exchange_id, (at_ns, exchange_id)) AS last_exchange_id
        FROM stable_seen GROUP BY ALL HAVING max(at_ns) - min(at_ns) >= {STANDS_NS}""",
    "stable_readers": f"""
        SELECT cluster, topic, partition, last_stable_offset, count(*) AS readers_count,
               list_slice(list_sort(list_distinct(flatten(list(groups)))), 1, {MOST_READERS}) AS groups,
               list_slice(list_sort(list(reader)), 1, {MOST_READERS}) AS readers
        FROM (SELECT cluster, topic, partition, last_stable_offset,
                     coalesce(client_id, '?') || ' at ' || coalesce(client_address, '?') AS reader,
                     list(DISTINCT group_id) FILTER (group_id IS NOT NULL) AS groups
              FROM stable_seen SEMI JOIN stable_stands USING (cluster, topic, partition, last_stable_offset)
              WHERE isolation_level = 1 GROUP BY ALL)
        GROUP BY ALL""",
    "stable_moved": """
        SELECT cluster, topic, partition, last_stable_offset, min(at_ns) AS at_ns
        FROM (SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
                     last_stable_offset, epoch_ns(coalesce(ts_response, ts)) AS at_ns
              FROM kafka_fetch_partitions
              WHERE last_stable_offset >= 0 AND error_code = 0 AND coalesce(replica_id, -1) < 0)
        SEMI JOIN stable_stands USING (cluster, topic, partition)
        GROUP BY ALL""",
    "stable_batches": """
        SELECT stands.cluster, stands.topic, stands.partition, stands.last_stable_offset,
               arg_max(struct_pack(producer_id, producer_epoch, written_ns, client_id, client_address), written_ns)
                   AS batch
        FROM stable_stands AS stands
        JOIN (SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
                     base_offset, producer_id, producer_epoch, epoch_ns(ts) AS written_ns, client_id, client_address
              FROM kafka_produce_batches WHERE transactional AND error_code = 0 AND base_offset >= 0) AS batches
            ON stands.cluster = batches.cluster AND stands.topic = batches.topic
            AND stands.partition = batches.partition AND stands.last_stable_offset = batches.base_offset
        WHERE batches.written_ns <= stands.last_ns
        GROUP BY ALL""",
}

STABLE_ROWS = """
    SELECT stands.first.exchange_id AS exchange_id, make_timestamp_ns(stands.first_ns)::TIMESTAMPTZ_NS AS ts,
           nullif(stands.cluster, '') AS cluster_id, nullif(stands.topic, '') AS topic, stands.partition,
           stands.last_stable_offset, stands.high_watermark,
           make_timestamp_ns(stands.last_ns)::TIMESTAMPTZ_NS AS ts_last,
           make_timestamp_ns(moved.at_ns)::TIMESTAMPTZ_NS AS ts_moved, stands.last_exchange_id,
           stands.fetches AS fetches_count,
           nullif(array_to_string(readers.groups, ','), '') AS groups,
           nullif(array_to_string(readers.readers, ', '), '') AS readers,
           coalesce(readers.readers_count, 0) AS readers_count, batches.batch.producer_id AS producer_id,
           batches.batch.producer_epoch AS producer_epoch, names.transactional_id,
           batches.batch.client_id AS client_id, batches.batch.client_address AS client_address,
           make_timestamp_ns(batches.batch.written_ns)::TIMESTAMPTZ_NS AS ts_written,
           stands.first.flow_id AS flow_id, stands.first.file AS file, stands.first.request_packet AS request_packet,
           clusters.observed_until
    FROM stable_stands AS stands
    LEFT JOIN stable_readers AS readers
        USING (cluster, topic, partition, last_stable_offset)
    LEFT JOIN stable_batches AS batches
        USING (cluster, topic, partition, last_stable_offset)
    LEFT JOIN span_names AS names
        ON stands.cluster = names.cluster AND batches.batch.producer_id = names.producer_id
    LEFT JOIN span_clusters AS clusters ON stands.cluster = clusters.cluster
    ASOF LEFT JOIN stable_moved AS moved
        ON stands.cluster = moved.cluster AND stands.topic = moved.topic AND stands.partition = moved.partition
        AND stands.last_stable_offset < moved.last_stable_offset"""
