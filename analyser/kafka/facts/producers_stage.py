"""The context of Kafka's producers: their transactions, what brokers refused, last stable offsets that stand.

In: a connection with views of the Kafka tables, `cluster_id` and `topic` filled in. Out: the views
`kafka_transaction_spans`, `kafka_refused_batches`, `kafka_repeated_batches`, `kafka_record_times` and
`kafka_stable_offset_waits`. Each has few rows, or none, where nothing is wrong and nobody uses transactions. All of it
is SQL: memory is DuckDB's limit, and it may spill.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, PRODUCERS, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.kafka.facts.log_ends import LONGEST_LOG
from wirewitness.analyser.kafka.facts.transaction_spans import SPAN_ROWS, SPAN_STEPS

# Of which client and partition a batch is.
_CLIENT_KEY = """
    coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
    coalesce(client_address, '') AS address, coalesce(client_id, '') AS client"""


# What became of batches that a broker refused.
#
# In: views of kafka_produce_batches, kafka_partitions, kafka_brokers and flows. Out: SQL that makes a row of each
# refused batch: whether the same batch was accepted later, how long this client had no success, which replicas were
# missing.
#
# The same batch is sent again with the same producer id, epoch and sequence. Behind a new epoch (or without
# idempotence) its header is another one; then the time of its first record, its size and its number of records tell
# it. One that is too large is cut: its first part begins with the same record and has fewer.

# A client gives a batch up after delivery.timeout.ms, two minutes by default; answers come a little later.
SENT_AGAIN_NS = 150_000_000_000
# Metadata is asked for again within seconds after an error; what it says may come late.
TOLD_NS = 60_000_000_000
_TOO_LARGE = 10

_SAME_CLIENT = """
    refused.cluster = {0}.cluster AND refused.topic = {0}.topic AND refused.partition = {0}.partition
    AND refused.address = {0}.address AND refused.client = {0}.client"""

REFUSED_STEPS = {
    "refused_base": """
        SELECT row_number() OVER () AS row, * FROM kafka_produce_batches WHERE error_code <> 0""",
    "refused_keys": f"""
        SELECT row, error_code, {_CLIENT_KEY}, epoch_ns(ts) AS at_ns, producer_id, producer_epoch, base_sequence,
               records_count, batch_bytes, base_timestamp
        FROM refused_base""",
    "refused_accepted": f"""
        SELECT accepted.* FROM (
            SELECT {_CLIENT_KEY}, epoch_ns(ts) AS at_ns, producer_id, producer_epoch, base_sequence, records_count,
                   batch_bytes, base_timestamp
            FROM kafka_produce_batches WHERE error_code = 0 AND EXISTS (FROM refused_base)) AS accepted
        SEMI JOIN refused_keys AS refused ON {_SAME_CLIENT.format("accepted")}""",
    "refused_stored": f"""
        SELECT refused.row, min(accepted.at_ns) AS stored_ns
        FROM refused_keys AS refused JOIN refused_accepted AS accepted
            ON {_SAME_CLIENT.format("accepted")} AND refused.base_timestamp = accepted.base_timestamp
            AND (refused.records_count = accepted.records_count AND refused.batch_bytes = accepted.batch_bytes
                 OR refused.error_code = {_TOO_LARGE} AND refused.records_count > accepted.records_count)
        WHERE accepted.at_ns > refused.at_ns AND accepted.at_ns <= refused.at_ns + {SENT_AGAIN_NS}
              AND (refused.producer_id < 0 OR refused.producer_id <> accepted.producer_id
                   OR refused.producer_epoch <> accepted.producer_epoch
                   OR refused.base_sequence = accepted.base_sequence OR refused.error_code = {_TOO_LARGE})
        GROUP BY refused.row""",
    "refused_next": """
        SELECT refused.row, accepted.next_sequence
        FROM refused_keys AS refused
        ASOF JOIN (SELECT DISTINCT *, (base_sequence + records_count) % 2147483648 AS next_sequence
                   FROM refused_accepted WHERE producer_id >= 0 AND base_sequence >= 0) AS accepted
            ON refused.cluster = accepted.cluster AND refused.topic = accepted.topic
            AND refused.partition = accepted.partition AND refused.producer_id = accepted.producer_id
            AND refused.producer_epoch = accepted.producer_epoch AND refused.at_ns > accepted.at_ns""",
    "refused_logs": """
        SELECT cluster, topic, partition, min(at_ns) AS first_ns, max(at_ns) AS last_ns
        FROM refused_keys GROUP BY ALL""",
    # Of what answers said of the partition around that time, the one that misses most.
    "refused_told": f"""
        SELECT logs.cluster, logs.topic, logs.partition,
               arg_min(struct_pack(leader_id := told.leader_id, replicas := told.replicas, isr := told.isr),
                       (len(told.isr) - len(told.replicas), abs(told.at_ns - logs.first_ns))) AS told
        FROM refused_logs AS logs
        JOIN (SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
                     epoch_ns(ts) AS at_ns, leader_id, replicas, isr
              FROM kafka_partitions WHERE partition IS NOT NULL AND isr IS NOT NULL) AS told
            USING (cluster, topic, partition)
        WHERE told.at_ns BETWEEN logs.first_ns - {TOLD_NS} AND logs.last_ns + {TOLD_NS}
        GROUP BY logs.cluster, logs.topic, logs.partition""",
    "refused_brokers": """
        SELECT coalesce(cluster_id, '') AS cluster, node_id,
               node_id || ' ' || arg_max(host || ':' || port, ts) AS name
        FROM kafka_brokers WHERE node_id IS NOT NULL AND host IS NOT NULL AND port IS NOT NULL GROUP BY 1, 2""",
    "refused_missing": """
        SELECT missing.cluster, topic, partition,
               string_agg(coalesce(brokers.name, missing.node_id::VARCHAR), ', ' ORDER BY missing.node_id) AS missing
        FROM (SELECT cluster, topic, partition,
                     unnest(list_filter(told.replicas, lambda one: NOT list_contains(told.isr, one))) AS node_id
              FROM refused_told) AS missing
        LEFT JOIN refused_brokers AS brokers ON missing.cluster = brokers.cluster AND missing.node_id = brokers.node_id
        GROUP BY missing.cluster, topic, partition""",
}

REFUSED_ROWS = f"""
    SELECT base.* EXCLUDE (topic), coalesce(base.topic, base.topic_id) AS topic, flows.server_address,
           flows.server_port, make_timestamp_ns(stored.stored_ns)::TIMESTAMPTZ_NS AS ts_stored,
           make_timestamp_ns(before.at_ns)::TIMESTAMPTZ_NS AS ts_accepted_before,
           make_timestamp_ns(behind.at_ns)::TIMESTAMPTZ_NS AS ts_accepted_after,
           follows.next_sequence AS sequence_before, told.told.leader_id AS leader_id, told.told.replicas AS replicas,
           told.told.isr AS isr, missing.missing
    FROM refused_base AS base
    JOIN refused_keys AS refused ON base.row = refused.row
    LEFT JOIN flows ON base.flow_id = flows.flow_id
    LEFT JOIN refused_stored AS stored ON base.row = stored.row
    LEFT JOIN refused_next AS follows ON base.row = follows.row
    ASOF LEFT JOIN refused_accepted AS before ON {_SAME_CLIENT.format("before")} AND refused.at_ns > before.at_ns
    ASOF LEFT JOIN refused_accepted AS behind ON {_SAME_CLIENT.format("behind")} AND refused.at_ns < behind.at_ns
    LEFT JOIN refused_told AS told
        ON refused.cluster = told.cluster AND refused.topic = told.topic AND refused.partition = told.partition
    LEFT JOIN refused_missing AS missing
        ON refused.cluster = missing.cluster AND refused.topic = missing.topic
        AND refused.partition = missing.partition"""


# Last stable offsets that stand below the high watermark, and the transaction that holds each of them.
#
# In: views of kafka_fetch_partitions and kafka_produce_batches, tables of `transaction_spans`. Out: SQL that makes a
# row of each offset that stood for a second or more.
#
# The last stable offset is the first offset of the earliest open transaction (KIP-98), so that transaction is the one
# whose batch begins there. Consumers that read committed records get nothing behind it.

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


# Batches that stand twice in the log: sent again under a new epoch, or without a producer id, although the first
# attempt was stored.
#
# In: a view of kafka_produce_batches. Out: SQL that makes a row of each such batch.
#
# Within one epoch a broker knows a batch by its sequence (KIP-98). A producer that gives a batch up bumps its epoch
# (KIP-360), begins its sequences anew and sends what it holds again: the broker cannot know it then. The same batch
# has the same time of its first record, size and number of records. Without a producer id a client may put newer
# records behind those that it sends again: then the first record says the same, and there are more. Its first attempt
# was stored when it was answered so, or with 7 or 20 (the leader has it, replicas do not), or, without an answer, when
# the offsets around it leave room for it. Batches of transactions are left out: their transaction was aborted before.
#
# Without idempotence nothing tells a batch that is sent again from another one of the same millisecond and size but
# that the client had no answer to the first, or one that asks for a retry, and that some time lies between. Over a slow
# link an answer may come in time at the broker and too late for the client: then it had opened the connection on which
# it sends the same content again before that answer, and closed the first one soon behind it.

_SAME = """
    {0}.cluster = {1}.cluster AND {0}.topic = {1}.topic AND {0}.partition = {1}.partition"""

# No client sends a request again within that time on a connection where it waits for the answer.
_WAITS_NS = 1_000_000_000
# A batch is compared with so many of those behind it that may be the same: a client has few requests on their way.
_MOST_BEHIND = 20
# Of two batches without a producer id: the first had no answer yet, or one that asks to send it again.
_SENT_AGAIN = f"""
    first.address = again.address AND first.client = again.client AND first.acks <> 0
    AND (first.error_code IN (7, 20) AND first.done_ns < again.at_ns
         OR first.done_ns IS NULL AND first.error_code IS NULL AND first.flow_id <> again.flow_id
         OR coalesce(first.error_code, 0) = 0 AND coalesce(first.done_ns > again.at_ns, first.error_code IS NULL)
            AND again.at_ns - first.at_ns >= {_WAITS_NS}
         OR first.error_code = 0 AND first.content_crc = again.content_crc AND first.flow_id <> again.flow_id
            AND first.done_ns > again.opened_ns AND again.opened_ns > first.opened_ns
            AND first.closed_ns - first.done_ns < {_WAITS_NS} AND again.at_ns - first.at_ns >= {_WAITS_NS})"""

REPEATED_PRODUCERS = """
    SELECT coalesce(cluster_id, '') AS cluster, producer_id
    FROM kafka_produce_batches WHERE producer_id >= 0 AND NOT transactional
    GROUP BY ALL HAVING min(producer_epoch) <> max(producer_epoch)"""
REPEATED_UNSURE = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition, base_timestamp
    FROM kafka_produce_batches
    WHERE producer_id = -1 AND acks <> 0 AND base_timestamp > 0
          AND (ts_response IS NULL AND error_code IS NULL OR error_code IN (7, 20)
               OR epoch_ns(ts_response) - epoch_ns(ts) > {_WAITS_NS})
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition, base_timestamp
    FROM kafka_produce_batches AS batches JOIN (
        SELECT flow_id, epoch_ns(ts_closed) AS closed_ns FROM flows WHERE closed_by = 'client') USING (flow_id)
    WHERE producer_id = -1 AND acks <> 0 AND base_timestamp > 0 AND error_code = 0
          AND closed_ns - epoch_ns(batches.ts_response) BETWEEN 0 AND {_WAITS_NS}"""
REPEATED_STEPS = {
    "repeated_producers": REPEATED_PRODUCERS,
    "repeated_unsure": f"SELECT DISTINCT * FROM ({REPEATED_UNSURE})",
    "repeated_of": f"""
        SELECT {_CLIENT_KEY}, producer_id, producer_epoch, base_sequence, base_timestamp, records_count, batch_bytes,
               error_code, acks, epoch_ns(ts) AS at_ns, epoch_ns(ts_response) AS done_ns, base_offset, last_offset,
               exchange_id, flow_id, file, request_packet, content_crc, opened_ns, closed_ns
        FROM kafka_produce_batches LEFT JOIN (
            SELECT flow_id, CASE WHEN handshake_seen THEN epoch_ns(ts_first) END AS opened_ns,
                   CASE WHEN closed_by = 'client' THEN epoch_ns(ts_closed) END AS closed_ns
            FROM flows) USING (flow_id)
        WHERE NOT transactional AND (EXISTS (FROM repeated_producers) OR producer_id = -1)""",
    "repeated_base": """
        FROM repeated_of SEMI JOIN repeated_producers USING (cluster, producer_id)
        UNION ALL
        FROM (FROM repeated_of WHERE producer_id = -1)
        SEMI JOIN repeated_unsure USING (cluster, topic, partition, base_timestamp)""",
    # What batches that may be the same agree in: their size; what their first record says, where newer ones may stand
    # behind it.
    "repeated_says": """
        SELECT *, struct_pack(cluster, topic, partition, producer_id, base_timestamp, records_count, batch_bytes,
                              crc := NULL::BIGINT, who := CASE WHEN producer_id = -1 THEN (address, client) END) AS says
        FROM repeated_base WHERE records_count IS NOT NULL AND batch_bytes IS NOT NULL
        UNION ALL
        SELECT *, struct_pack(cluster, topic, partition, producer_id, base_timestamp, records_count := NULL::BIGINT,
                              batch_bytes := NULL::BIGINT, crc := content_crc, who := (address, client)) AS says
        FROM repeated_base WHERE producer_id = -1 AND content_crc IS NOT NULL""",
    "repeated_alike": """
        SELECT *, row_number() OVER (PARTITION BY alike ORDER BY at_ns) AS place
        FROM repeated_says JOIN (
            SELECT says, row_number() OVER () AS alike FROM repeated_says GROUP BY says HAVING count(*) > 1)
            USING (says)""",
    "repeated_pairs": f"""
        SELECT first.* EXCLUDE (ahead, says, alike, place, next_place), again.producer_epoch AS again_epoch,
               again.at_ns AS again_ns, again.base_offset AS again_offset, again.exchange_id AS again_exchange_id,
               again.file AS again_file, again.request_packet AS again_packet, again.flow_id AS again_flow_id
        FROM (SELECT *, place + ahead AS next_place
              FROM repeated_alike CROSS JOIN (SELECT unnest(range(1, {_MOST_BEHIND} + 1)) AS ahead)) AS first
        JOIN repeated_alike AS again ON first.alike = again.alike AND first.next_place = again.place
        WHERE first.at_ns < again.at_ns AND again.error_code = 0 AND coalesce(first.error_code, 0) IN (0, 7, 20)
              AND (first.producer_epoch < again.producer_epoch
                   OR first.producer_id = -1 AND (first.says.crc IS NULL OR first.records_count < again.records_count)
                      AND {_SENT_AGAIN})
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
           make_timestamp_ns(pairs.done_ns)::TIMESTAMPTZ_NS AS ts_response,
           CASE WHEN pairs.base_offset >= 0 THEN pairs.base_offset
                WHEN pairs.error_code IS NULL THEN before.last_offset + 1 END AS base_offset,
           pairs.again_exchange_id, make_timestamp_ns(pairs.again_ns)::TIMESTAMPTZ_NS AS ts_again, pairs.again_epoch,
           pairs.again_offset, pairs.again_flow_id, pairs.flow_id, pairs.file,
           pairs.request_packet, pairs.again_file, pairs.again_packet
    FROM repeated_pairs AS pairs
    ASOF LEFT JOIN repeated_offsets AS before ON {_SAME.format("pairs", "before")} AND pairs.at_ns > before.at_ns
    ASOF LEFT JOIN repeated_offsets AS behind ON {_SAME.format("pairs", "behind")} AND pairs.at_ns < behind.at_ns
    WHERE pairs.error_code IS NOT NULL
          OR behind.base_offset - before.last_offset - 1 >= pairs.records_count"""


# How far record times are off packet time, by writer of a topic.
#
# In: a view of kafka_produce_batches. Out: SQL that makes a row of each client and topic. Of a batch the time of its
# first record counts; it lies before the packet by what the producer gathers and waits, unless its clock is wrong.

# A batch waits for linger.ms, and in retries for delivery.timeout.ms, two minutes by default.
OFF_MS = 300_000
_LATER_MS = "(epoch_ns(ts) / 1e6 - base_timestamp)"
_TIMED = "base_timestamp >= 0 AND coalesce(error_code, 0) = 0 AND records_count > 0"
TIMES_ROWS = f"""
    SELECT first.exchange_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, nullif(cluster, '') AS cluster_id,
           nullif(client, '') AS client_id, nullif(address, '') AS client_address, nullif(topic, '') AS topic,
           batches_count, records_count, appended_count, first.base_timestamp AS first_timestamp, last_timestamp,
           later_ms, later_low_ms, later_high_ms, first.flow_id AS flow_id, first.file AS file,
           first.request_packet AS request_packet
    FROM (
        SELECT cluster, topic, address, client, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
               count(*) AS batches_count, sum(records_count)::BIGINT AS records_count,
               count(*) FILTER (log_append_timestamp >= 0) AS appended_count,
               arg_min(struct_pack(exchange_id, base_timestamp, flow_id, file, request_packet), (at_ns, exchange_id))
                   AS first,
               arg_max(base_timestamp, (at_ns, exchange_id)) AS last_timestamp,
               median(later_ms) AS later_ms, quantile_cont(later_ms, 0.05) AS later_low_ms,
               quantile_cont(later_ms, 0.95) AS later_high_ms
        FROM (SELECT {_CLIENT_KEY}, epoch_ns(ts) AS at_ns, records_count, log_append_timestamp, exchange_id,
                     base_timestamp, {_LATER_MS} AS later_ms, flow_id, file, request_packet
              FROM kafka_produce_batches WHERE {_TIMED})
        GROUP BY ALL)"""


_BATCHES, _FETCHED = "FROM kafka_produce_batches WHERE", "FROM kafka_fetch_partitions WHERE"

# An idempotent producer asks for its id and has no transactions.
_TRANSACTIONS = "EXISTS (FROM kafka_transactions WHERE event <> 'init_producer_id')"


_MADE = {
    "kafka_transaction_spans": Made(f"{_TRANSACTIONS} OR EXISTS ({_BATCHES} transactional)", SPAN_STEPS, SPAN_ROWS),
    "kafka_refused_batches": Made(f"EXISTS ({_BATCHES} error_code <> 0)", REFUSED_STEPS, REFUSED_ROWS),
    "kafka_repeated_batches": Made(
        f"EXISTS ({REPEATED_PRODUCERS}) OR EXISTS ({REPEATED_UNSURE})", REPEATED_STEPS, REPEATED_ROWS
    ),
    "kafka_record_times": Made(f"EXISTS ({_BATCHES} {_TIMED} AND abs({_LATER_MS}) > {OFF_MS})", {}, TIMES_ROWS),
    "kafka_stable_offset_waits": Made(
        f"EXISTS ({_FETCHED} last_stable_offset >= 0 AND last_stable_offset < high_watermark)",
        {**SPAN_STEPS, **STABLE_STEPS},
        STABLE_ROWS,
    ),
}


def add_producers(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; tables that they are made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, PRODUCERS.reads)
    return NOTHING
