"""Batches that stand twice in the log: sent again under a new epoch although the first attempt was stored.

In: a view of kafka_produce_batches. Out: SQL that makes a row of each such batch.

Within one epoch a broker knows a batch by its sequence (KIP-98). A producer that gives a batch up bumps its epoch
(KIP-360), begins its sequences anew and sends what it holds again: the broker cannot know it then. The same batch has
the same time of its first record, size and number of records. Its first attempt was stored when it was answered so, or
with 7 or 20 (the leader has it, replicas do not), or, without an answer, when the offsets around it leave room for it.
Batches of transactions are left out: their transaction was aborted before.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.log_ends import LONGEST_LOG

_KEY = """
    coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
    coalesce(client_address, '') AS address, coalesce(client_id, '') AS client, producer_id"""
_SAME = """
    {0}.cluster = {1}.cluster AND {0}.topic = {1}.topic AND {0}.partition = {1}.partition"""

REPEATED_PRODUCERS = """
    SELECT coalesce(cluster_id, '') AS cluster, producer_id
    FROM kafka_produce_batches WHERE producer_id >= 0 AND NOT transactional
    GROUP BY ALL HAVING min(producer_epoch) <> max(producer_epoch)"""
REPEATED_STEPS = {
    "repeated_producers": REPEATED_PRODUCERS,
    "repeated_base": f"""
        SELECT * FROM (
            SELECT {_KEY}, producer_epoch, base_sequence, base_timestamp, records_count, batch_bytes, error_code,
                   epoch_ns(ts) AS at_ns, base_offset, last_offset, exchange_id, flow_id, file, request_packet
            FROM kafka_produce_batches WHERE NOT transactional AND EXISTS (FROM repeated_producers))
        SEMI JOIN repeated_producers USING (cluster, producer_id)""",
    "repeated_pairs": f"""
        SELECT first.*, again.producer_epoch AS again_epoch, again.at_ns AS again_ns,
               again.base_offset AS again_offset, again.exchange_id AS again_exchange_id, again.file AS again_file,
               again.request_packet AS again_packet
        FROM repeated_base AS first JOIN repeated_base AS again
            ON {_SAME.format("first", "again")} AND first.producer_id = again.producer_id
            AND first.base_timestamp = again.base_timestamp AND first.records_count = again.records_count
            AND first.batch_bytes = again.batch_bytes
        WHERE first.producer_epoch < again.producer_epoch AND first.at_ns < again.at_ns AND again.error_code = 0
              AND coalesce(first.error_code, 0) IN (0, 7, 20)
        QUALIFY row_number() OVER (
            PARTITION BY first.cluster, first.exchange_id, first.topic, first.partition, first.base_sequence
            ORDER BY again.at_ns) = 1""",
    "repeated_offsets": f"""
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
               epoch_ns(ts) AS at_ns, min(base_offset) AS base_offset, max(last_offset) AS last_offset
        FROM kafka_produce_batches
        WHERE error_code = 0 AND base_offset >= 0 AND greatest(base_offset, last_offset) <= {LONGEST_LOG}
              AND EXISTS (FROM repeated_pairs)
              AND (coalesce(topic, topic_id, ''), partition) IN (SELECT (topic, partition) FROM repeated_pairs)
        GROUP BY ALL""",
}

REPEATED_ROWS = f"""
    SELECT pairs.exchange_id, make_timestamp_ns(pairs.at_ns)::TIMESTAMPTZ_NS AS ts,
           nullif(pairs.cluster, '') AS cluster_id, nullif(pairs.client, '') AS client_id,
           nullif(pairs.address, '') AS client_address, nullif(pairs.topic, '') AS topic, pairs.partition,
           pairs.records_count, pairs.producer_id, pairs.producer_epoch, pairs.base_sequence, pairs.error_code,
           CASE WHEN pairs.base_offset >= 0 THEN pairs.base_offset
                WHEN pairs.error_code IS NULL THEN before.last_offset + 1 END AS base_offset,
           pairs.again_exchange_id, make_timestamp_ns(pairs.again_ns)::TIMESTAMPTZ_NS AS ts_again, pairs.again_epoch,
           pairs.again_offset, pairs.flow_id, pairs.file, pairs.request_packet, pairs.again_file, pairs.again_packet
    FROM repeated_pairs AS pairs
    ASOF LEFT JOIN repeated_offsets AS before ON {_SAME.format("pairs", "before")} AND pairs.at_ns > before.at_ns
    ASOF LEFT JOIN repeated_offsets AS behind ON {_SAME.format("pairs", "behind")} AND pairs.at_ns < behind.at_ns
    WHERE pairs.error_code IS NOT NULL
          OR behind.base_offset - before.last_offset - 1 >= pairs.records_count"""
