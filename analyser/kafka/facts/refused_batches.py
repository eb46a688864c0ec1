"""What became of batches that a broker refused.

In: views of kafka_produce_batches, kafka_partitions, kafka_brokers and flows. Out: SQL that makes a row of each refused
batch: whether the same batch was accepted later, how long this client had no success, which replicas were missing.

The same batch is sent again with the same producer id, epoch and sequence. Behind a new epoch (or without idempotence)
its header is another one; then the time of its first record, its size and its number of records tell it. One that is
too large is cut: its first part begins with the same record and has fewer.
"""

from __future__ import annotations

# A client gives a batch up after delivery.timeout.ms, two minutes by default; answers come a little later.
SENT_AGAIN_NS = 150_000_000_000
# Metadata is asked for again within seconds after an error; what it says may come late.
TOLD_NS = 60_000_000_000
_TOO_LARGE = 10

_SAME_CLIENT = """
    refused.cluster = {0}.cluster AND refused.topic = {0}.topic AND refused.partition = {0}.partition
    AND refused.address = {0}.address AND refused.client = {0}.client"""
_KEY = """
    coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition,
    coalesce(client_address, '') AS address, coalesce(client_id, '') AS client"""

REFUSED_STEPS = {
    "refused_base": """
        SELECT row_number() OVER () AS row, * FROM kafka_produce_batches WHERE error_code <> 0""",
    "refused_keys": f"""
        SELECT row, error_code, {_KEY}, epoch_ns(ts) AS at_ns, producer_id, producer_epoch, base_sequence,
               records_count, batch_bytes, base_timestamp
        FROM refused_base""",
    "refused_accepted": f"""
        SELECT accepted.* FROM (
            SELECT {_KEY}, epoch_ns(ts) AS at_ns, producer_id, producer_epoch, base_sequence, records_count,
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
