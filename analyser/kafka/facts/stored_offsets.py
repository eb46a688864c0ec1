"""What tells which offsets of a consumer group are stored, and what ends them. In: nothing. Out: SQL over Kafka tables.

COMMITS, READS and DELETED_* are SELECTs without placeholders: `wirewitness query CAPTURE "FROM (...)"` runs them as
they are. `at_ns` is the time of the answer, from which on a row counts. `lag.py` says what stands.
"""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.log_ends import MADE

GROUP = "cluster, group_id, topic, partition"

_ANSWERED_NS = "epoch_ns(coalesce(ts_response, ts))"
_PLACE_IN_STREAM = "coalesce(try_cast(regexp_extract(exchange_id, '[0-9]+$') AS BIGINT), 0)"
# As `broker_order` of analyser/kafka/rules/commits.py: after the answer the request, its packet, its place in the
# stream, which is the tail of the id. What is left equal is one request that names a partition twice.
_ORDER_AT_ONE_TIME = f"""
    epoch_ns(ts), coalesce(request_packet, 0), {_PLACE_IN_STREAM}, coalesce(exchange_id, ''), committed_offset"""
# For ORDER BY over kafka_offset_commits.
BROKER_ORDER = f"{_ANSWERED_NS}, {_ORDER_AT_ONE_TIME}"

COMMITS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts, {_ANSWERED_NS} AS at_ns,
           coalesce(error_code = 0 AND committed_offset >= 0, false) AS accepted,
           coalesce(error_code <> 0, false) AS refused, exchange_id, request_packet, committed_offset, log_end_offset,
           member_id, client_id, client_address, generation, owner_member_id,
           coalesce(api = 'TxnOffsetCommit', false) AS transactional
    FROM kafka_offset_commits"""
# Of accepted rows of COMMITS: the one whose offset is stored.
STORED = f"""
    arg_max(struct_pack(ts, at_ns, topic_id, exchange_id, request_packet, committed_offset, log_end_offset, member_id,
                        client_id, client_address, generation, owner_member_id, transactional),
            row(at_ns, {_ORDER_AT_ONE_TIME}))"""

# What OffsetFetch answered, -1 for no offset; whoever asked.
READS = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts, epoch_ns(ts_response) AS at_ns, exchange_id,
           request_packet, committed_offset, coalesce(require_stable, false) AS stable
    FROM kafka_offset_fetches WHERE error_code = 0 AND committed_offset IS NOT NULL AND ts_response IS NOT NULL"""
# Of rows of READS: the last one.
LAST_READ = f"""
    arg_max(struct_pack(ts, at_ns, topic_id, exchange_id, request_packet, committed_offset, stable),
            row(at_ns, {_ORDER_AT_ONE_TIME}))"""

DELETED_GROUPS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, resource_name AS group_id, {_ANSWERED_NS} AS at_ns
    FROM kafka_admin_changes WHERE operation = 'DeleteGroups' AND {MADE}"""
# The topic and the partitions that the text of an OffsetDelete's row names.
DELETED_TOPIC = "regexp_extract(change, '^delete offsets of (.*) [0-9,]*$', 1)"
DELETED_PARTITIONS = "string_split(regexp_extract(change, ' ([0-9,]*)$', 1), ',')"
DELETED_OFFSETS = f"""
    SELECT cluster, group_id, topic, try_cast(number AS BIGINT) AS partition, at_ns
    FROM (SELECT coalesce(cluster_id, '') AS cluster, resource_name AS group_id, {DELETED_TOPIC} AS topic,
                 unnest({DELETED_PARTITIONS}) AS number, {_ANSWERED_NS} AS at_ns
          FROM kafka_admin_changes WHERE operation = 'OffsetDelete' AND {MADE})"""

# What these read, beside kafka_admin_changes.
STORED_TABLES = ("kafka_offset_commits", "kafka_offset_fetches")
