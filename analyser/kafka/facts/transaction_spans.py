"""Transactions put together from what producers and coordinators do, on whatever connection.

In: views of kafka_transactions and kafka_produce_batches. Out: SQL that makes a row of each transaction.

A transaction of one (producer id, epoch) goes from its first request that adds something (AddPartitionsToTxn,
AddOffsetsToTxn, TxnOffsetCommit, or, since KIP-890, a transactional batch) to the EndTxn behind it; several EndTxn in a
row are one that was sent again. An InitProducerId of the same transactional id aborts what is open (KIP-98), markers of
a coordinator end what they name. Requests of brokers for a client (AddPartitionsManager, KIP-890) name no client.
"""

from __future__ import annotations

MOST_PARTITIONS = 100
_WHO = "struct_pack(exchange_id, client_id, client_address, flow_id, file, request_packet)"

SPAN_STEPS = {
    "span_clusters": """
        SELECT cluster, max(ts) AS observed_until
        FROM (SELECT coalesce(cluster_id, '') AS cluster, ts FROM kafka_transactions
              UNION ALL SELECT coalesce(cluster_id, ''), ts FROM kafka_produce_batches
              UNION ALL SELECT coalesce(cluster_id, ''), coalesce(ts_response, ts) FROM kafka_fetch_partitions)
        GROUP BY cluster""",
    # The transactional id of a producer id: what any request or answer says of both.
    "span_names": """
        SELECT cluster, producer_id, min(transactional_id) AS transactional_id, max(timeout_ms) AS timeout_ms,
               min(at_ns) AS known_ns
        FROM (SELECT coalesce(cluster_id, '') AS cluster, transactional_id, epoch_ns(ts) AS at_ns,
                     unnest([producer_id, answered_producer_id]) AS producer_id, transaction_timeout_ms AS timeout_ms
              FROM kafka_transactions WHERE transactional_id IS NOT NULL
              UNION ALL
              SELECT coalesce(cluster_id, ''), transactional_id, epoch_ns(ts), producer_id, NULL
              FROM kafka_produce_batches WHERE transactional AND transactional_id IS NOT NULL)
        WHERE producer_id >= 0 GROUP BY cluster, producer_id HAVING count(DISTINCT transactional_id) = 1""",
    "span_ends": """
        SELECT coalesce(cluster_id, '') AS cluster, producer_id, producer_epoch, epoch_ns(ts) AS at_ns,
               epoch_ns(coalesce(ts_response, ts)) AS done_ns, committed, error_code, exchange_id, client_id,
               client_address, flow_id, file, request_packet
        FROM kafka_transactions WHERE event = 'end_txn' AND producer_id >= 0""",
    # Batches between two ends are one event; they come in masses.
    "span_written": f"""
        SELECT written.cluster, written.producer_id, written.producer_epoch, min(written.at_ns) AS at_ns,
               max(written.at_ns) AS last_ns, count(*) AS batches,
               coalesce(sum(records), 0)::BIGINT AS records,
               list_slice(list_sort(list(DISTINCT place)), 1, {MOST_PARTITIONS}) AS places,
               arg_min(who, (written.at_ns, who.exchange_id)) AS first
        FROM (SELECT coalesce(cluster_id, '') AS cluster, producer_id, producer_epoch, epoch_ns(ts) AS at_ns,
                     records_count AS records,
                     {_WHO} AS who,
                     coalesce(topic, topic_id, '?') || '-' || partition AS place
              FROM kafka_produce_batches
              WHERE transactional AND producer_id >= 0 AND coalesce(error_code, 0) = 0) AS written
        ASOF LEFT JOIN span_ends AS ends
            ON written.cluster = ends.cluster AND written.producer_id = ends.producer_id
            AND written.producer_epoch = ends.producer_epoch AND written.at_ns > ends.at_ns
        GROUP BY written.cluster, written.producer_id, written.producer_epoch, ends.at_ns""",
    "span_events": f"""
        SELECT cluster, producer_id, producer_epoch, at_ns, done_ns AS last_ns, true AS ends, committed, error_code,
               0 AS batches, 0 AS records, []::VARCHAR[] AS places, NULL AS group_id, true AS own,
               {_WHO} AS who, done_ns
        FROM span_ends
        UNION ALL BY NAME
        SELECT cluster, producer_id, producer_epoch, at_ns, last_ns, false AS ends, batches, records, places,
               true AS own, first AS who
        FROM span_written
        UNION ALL BY NAME
        SELECT coalesce(cluster_id, '') AS cluster, producer_id, producer_epoch, epoch_ns(ts) AS at_ns,
               epoch_ns(ts) AS last_ns, false AS ends, 0 AS batches, 0 AS records,
               CASE WHEN event = 'add_partitions_to_txn' AND partitions IS NOT NULL
                    THEN string_split(partitions, ',') ELSE [] END AS places,
               group_id, NOT starts_with(coalesce(client_id, ''), 'AddPartitionsManager') AS own,
               {_WHO} AS who
        FROM kafka_transactions
        WHERE event IN ('add_partitions_to_txn', 'add_offsets_to_txn', 'txn_offset_commit') AND producer_id >= 0
              AND coalesce(error_code, 0) = 0""",
    "span_numbered": """
        SELECT *, count(*) FILTER (after_end) OVER (
            PARTITION BY cluster, producer_id, producer_epoch ORDER BY at_ns, ends ROWS UNBOUNDED PRECEDING) AS number
        FROM (SELECT *, NOT ends AND coalesce(lag(ends) OVER (
                  PARTITION BY cluster, producer_id, producer_epoch ORDER BY at_ns, ends), false) AS after_end
              FROM span_events)""",
    "span_made": f"""
        SELECT cluster, producer_id, producer_epoch, number, min(at_ns) FILTER (NOT ends) AS begun_ns,
               max(last_ns) AS last_ns, sum(batches)::BIGINT AS batches, sum(records)::BIGINT AS records,
               list_slice(list_sort(list_distinct(flatten(list(places)))), 1, {MOST_PARTITIONS}) AS places,
               min(group_id) AS group_id, arg_min(who, (NOT own, at_ns)) AS first, min(at_ns) AS first_ns,
               count(*) FILTER (ends) AS end_attempts,
               arg_max(struct_pack(code := error_code), at_ns) FILTER (ends) AS end_error,
               arg_min(struct_pack(ended_ns := done_ns, committed, who), at_ns) FILTER (ends AND error_code = 0)
                   AS ended
        FROM span_numbered GROUP BY cluster, producer_id, producer_epoch, number
        HAVING count(*) FILTER (NOT ends) > 0""",
    # What ends a transaction from outside: a new start of the transactional id, markers.
    "span_outer_ends": f"""
        SELECT coalesce(cluster_id, '') AS cluster, transactional_id, NULL::BIGINT AS producer_id,
               epoch_ns(coalesce(ts_response, ts)) AS ended_ns, 'init_producer_id' AS ended_by, false AS committed,
               {_WHO} AS who
        FROM kafka_transactions
        WHERE event = 'init_producer_id' AND transactional_id IS NOT NULL AND error_code = 0
        UNION ALL
        SELECT coalesce(cluster_id, ''), NULL, producer_id, epoch_ns(coalesce(ts_response, ts)), event, committed,
               {_WHO}
        FROM kafka_transactions WHERE event = 'write_txn_markers' AND error_code = 0""",
    "span_with_ends": """
        SELECT made.*, names.transactional_id, names.timeout_ms, names.known_ns < made.begun_ns AS known,
               lead(made.begun_ns) OVER (PARTITION BY made.cluster, made.producer_id ORDER BY made.begun_ns) AS next_ns,
               struct_pack(ended_ns := inits.ended_ns, ended_by := inits.ended_by, committed := inits.committed,
                           who := inits.who) AS init,
               struct_pack(ended_ns := marks.ended_ns, ended_by := marks.ended_by, committed := marks.committed,
                           who := marks.who) AS mark
        FROM span_made AS made
        LEFT JOIN span_names AS names ON made.cluster = names.cluster AND made.producer_id = names.producer_id
        ASOF LEFT JOIN (FROM span_outer_ends WHERE transactional_id IS NOT NULL) AS inits
            ON made.cluster = inits.cluster AND names.transactional_id = inits.transactional_id
            AND made.begun_ns < inits.ended_ns
        ASOF LEFT JOIN (FROM span_outer_ends WHERE producer_id IS NOT NULL) AS marks
            ON made.cluster = marks.cluster AND made.producer_id = marks.producer_id
            AND made.begun_ns < marks.ended_ns""",
    # The earliest of what ended it; a marker or a start behind the next transaction belongs to that one.
    "span_outcomes": """
        SELECT *, CASE WHEN ended.ended_ns IS NOT NULL
                       THEN struct_pack(ended_ns := ended.ended_ns, ended_by := 'end_txn', committed := ended.committed,
                                        who := ended.who)
                       WHEN mark.ended_ns IS NOT NULL AND (next_ns IS NULL OR mark.ended_ns <= next_ns)
                            AND (init.ended_ns IS NULL OR mark.ended_ns <= init.ended_ns) THEN mark
                       WHEN init.ended_ns IS NOT NULL AND (next_ns IS NULL OR init.ended_ns <= next_ns) THEN init
                  END AS done
        FROM span_with_ends""",
}

SPAN_ROWS = """
    SELECT first.exchange_id AS exchange_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           nullif(cluster, '') AS cluster_id, transactional_id, producer_id, producer_epoch,
           first.client_id AS client_id, first.client_address AS client_address,
           CASE WHEN known THEN make_timestamp_ns(begun_ns)::TIMESTAMPTZ_NS END AS ts_started,
           make_timestamp_ns(greatest(last_ns, done.ended_ns))::TIMESTAMPTZ_NS AS ts_last,
           make_timestamp_ns(done.ended_ns)::TIMESTAMPTZ_NS AS ts_ended,
           CASE WHEN done.committed THEN 'committed' WHEN done.ended_ns IS NOT NULL THEN 'aborted'
                WHEN end_attempts > 0 OR next_ns IS NOT NULL THEN 'unknown' ELSE 'open' END AS outcome,
           done.ended_by AS ended_by, done.who.exchange_id AS ended_exchange_id,
           done.who.client_id AS ended_client_id, done.who.client_address AS ended_client_address,
           nullif(array_to_string(places, ','), '') AS partitions, len(places) AS partitions_count,
           batches AS batches_count, records AS records_count, group_id, timeout_ms AS transaction_timeout_ms,
           end_attempts, end_error.code AS end_error_code, first.flow_id AS flow_id, observed_until,
           first.file AS file, first.request_packet AS request_packet
    FROM span_outcomes LEFT JOIN span_clusters USING (cluster)"""
