"""Who reads records of aborted transactions: `kafka_aborted_reads`.

In: a connection with views of kafka_produce_batches, kafka_transaction_spans and kafka_fetch_partitions. Out: the view
of the table. The only place that says it.

- A batch is aborted when the transaction of its producer to which it belongs by time was.
- A consumer was given it when a response to its Fetch with isolation_level 0 goes from its offset or before to beyond
  it. Consumers that read committed records get the same bytes, with a list of what to drop.

Memory is DuckDB's limit, and it may spill: rows of aborted batches, and of fetches of their partitions.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import ABORTED_READS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables

_PLACE = "coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition"
_PART = "cluster, topic, partition"
_READ = "records_count > 0 AND next_offset > fetch_offset AND coalesce(replica_id, -1) < 0"
_IS_THERE = f"""
    EXISTS (FROM kafka_transaction_spans WHERE outcome = 'aborted' AND batches_count > 0)
    AND EXISTS (FROM kafka_fetch_partitions WHERE isolation_level = 0 AND {_READ})"""

_STEPS = {
    # A producer has one transaction at a time.
    # Records so far, by offset, so that two of these say how many lie between two offsets.
    "aborted_batches": f"""
        SELECT {_PART}, base_offset, transactional_id,
               sum(records) OVER (PARTITION BY {_PART} ORDER BY base_offset)::BIGINT AS so_far
        FROM (SELECT batches.cluster, topic, partition, base_offset, any_value(records_count) AS records,
                     any_value(transactional_id) AS transactional_id
              FROM (SELECT {_PLACE}, base_offset, records_count, producer_id, producer_epoch, ts
                    FROM kafka_produce_batches WHERE transactional AND error_code = 0 AND base_offset >= 0) AS batches
              ASOF JOIN (SELECT coalesce(cluster_id, '') AS cluster, producer_id, producer_epoch, transactional_id, ts,
                           coalesce(ts_ended, ts_last) AS ts_until
                    FROM kafka_transaction_spans WHERE outcome = 'aborted') AS spans
                  ON batches.cluster = spans.cluster AND batches.producer_id = spans.producer_id
                  AND batches.producer_epoch = spans.producer_epoch AND batches.ts >= spans.ts
              WHERE batches.ts <= ts_until
              GROUP BY ALL)""",
    "aborted_fetches": f"""
        SELECT {_PLACE}, coalesce(client_address, '') AS address, coalesce(client_id, '') AS client, group_id,
               isolation_level, fetch_offset, next_offset, records_count, epoch_ns(ts) AS at_ns,
               struct_pack(exchange_id, file, request_packet) AS place
        FROM kafka_fetch_partitions
        WHERE {_READ} AND (coalesce(cluster_id, ''), coalesce(topic, topic_id, '')) IN (
            SELECT (cluster, topic) FROM aborted_batches)""",
    "aborted_given": """
        SELECT fetches.*, coalesce(beyond.so_far, 0) - coalesce(before.so_far, 0) AS aborted, beyond.transactional_id
        FROM (FROM aborted_fetches WHERE isolation_level = 0) AS fetches
        ASOF LEFT JOIN aborted_batches AS beyond
            ON fetches.cluster = beyond.cluster AND fetches.topic = beyond.topic
            AND fetches.partition = beyond.partition AND fetches.next_offset > beyond.base_offset
        ASOF LEFT JOIN aborted_batches AS before
            ON fetches.cluster = before.cluster AND fetches.topic = before.topic
            AND fetches.partition = before.partition AND fetches.fetch_offset > before.base_offset""",
}
_ROWS = """
    SELECT first.exchange_id AS exchange_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, nullif(given.cluster, '') AS cluster_id,
           nullif(client, '') AS client_id, nullif(address, '') AS client_address, group_id,
           nullif(given.topic, '') AS topic, aborted AS aborted_count, records AS records_count,
           coalesce(others.readers, 0) AS committed_readers, transactional_id, last.exchange_id AS last_exchange_id,
           first.file AS file, first.request_packet AS request_packet
    FROM (SELECT cluster, topic, address, client, group_id, sum(aborted)::BIGINT AS aborted,
                 sum(records_count)::BIGINT AS records, min(at_ns) FILTER (aborted > 0) AS first_ns,
                 max(at_ns) FILTER (aborted > 0) AS last_ns,
                 arg_min(place, (at_ns, place)) FILTER (aborted > 0) AS first,
                 arg_max(place, (at_ns, place)) FILTER (aborted > 0) AS last,
                 min(transactional_id) FILTER (aborted > 0) AS transactional_id
          FROM aborted_given GROUP BY ALL HAVING sum(aborted) > 0) AS given
    LEFT JOIN (SELECT cluster, topic, count(DISTINCT (address, client)) AS readers FROM aborted_fetches
               WHERE isolation_level = 1 GROUP BY ALL) AS others USING (cluster, topic)"""


def add_aborted_reads(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, {"kafka_aborted_reads": Made(_IS_THERE, _STEPS, _ROWS)}, ABORTED_READS.reads)
    return NOTHING
