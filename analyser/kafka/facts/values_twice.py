"""Values that are in a topic twice: `kafka_values_twice`, written by one client two times, or by two clients.

In: a connection with views of kafka_produce_batches and kafka_fetch_partitions, `cluster_id` and `topic` filled in.
Out: the view of the table. The only place that says it.

- A value is what the first record of a batch says: its key and value (`content_crc`).
- A run again: a client wrote nearly all values of a topic (SHARE of its batches) twice, and the second time of the
  first one comes after the first time of the last one. A client that begins to count anew writes another number.
- Two copies: nearly all values of one client (SHARE of those with fewer) are written by the other one as well, once by
  each, and both had been written to a topic that both of their addresses read. Without such a source two writers may
  count alike.

Memory is DuckDB's limit, and it may spill: rows of values that are in a topic two to MOST times.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, VALUES_TWICE, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables

LEAST_VALUES = 20
SHARE = 0.8
RUN_SHARE = 0.95
MOST = 4
_PLACE = "coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic"
_WRITER = "coalesce(client_address, '') AS address, coalesce(client_id, '') AS client"
_WRITTEN = "content_crc IS NOT NULL AND error_code = 0 AND base_offset >= 0"
_READ = "records_count > 0 AND coalesce(replica_id, -1) < 0"
_OFTEN = f"""
    SELECT {_PLACE}, content_crc FROM kafka_produce_batches WHERE {_WRITTEN} GROUP BY ALL
    HAVING count(*) BETWEEN 2 AND {MOST}"""
_IS_THERE = f"""
    EXISTS (SELECT 1 FROM ({_OFTEN}) GROUP BY cluster, topic HAVING count(*) >= {LEAST_VALUES})"""

_STEPS = {
    "twice_written": f"""
        SELECT cluster, topic, address, client, count(*) AS batches
        FROM (SELECT {_PLACE}, {_WRITER} FROM kafka_produce_batches WHERE {_WRITTEN}) GROUP BY ALL""",
    # One row for each value and writer.
    "twice_values": f"""
        SELECT cluster, topic, content_crc, address, client, count(*) AS copies, min(at_ns) AS first_ns,
               max(at_ns) AS last_ns, sum(records)::BIGINT AS records,
               arg_min(place, at_ns) AS first, arg_max(place, at_ns) AS last
        FROM (SELECT {_PLACE}, {_WRITER}, content_crc, epoch_ns(ts) AS at_ns, records_count AS records,
                     struct_pack(exchange_id, file, request_packet) AS place
              FROM kafka_produce_batches WHERE {_WRITTEN}) AS written
        SEMI JOIN ({_OFTEN}) AS often USING (cluster, topic, content_crc)
        GROUP BY cluster, topic, content_crc, address, client""",
    "twice_runs": f"""
        SELECT cluster, topic, address, client, count(*) AS shared, any_value(batches) AS batches,
               sum(records)::BIGINT AS records, min(first_ns) AS first_ns, max(first_ns) AS until_ns,
               min(last_ns) AS again_ns, max(last_ns) AS last_ns, arg_min(first, first_ns) AS first,
               arg_min(last, last_ns) AS again
        FROM twice_values JOIN twice_written USING (cluster, topic, address, client)
        WHERE copies = 2 GROUP BY ALL
        HAVING count(*) >= {LEAST_VALUES} AND 2 * count(*) >= {RUN_SHARE} * any_value(batches)
            AND min(last_ns) > max(first_ns)""",
    "twice_both": """
        SELECT a.cluster, a.topic, a.address, a.client, b.address AS other_address, b.client AS other_client,
               a.content_crc, a.first_ns, b.first_ns AS other_ns, a.first, b.first AS other,
               a.records + b.records AS records
        FROM twice_values AS a JOIN twice_values AS b
            ON a.cluster = b.cluster AND a.topic = b.topic AND a.content_crc = b.content_crc
            AND (a.address, a.client) < (b.address, b.client)
        WHERE a.copies = 1 AND b.copies = 1""",
    "twice_reads": f"""
        SELECT DISTINCT {_PLACE}, coalesce(client_address, '') AS address FROM kafka_fetch_partitions
        WHERE {_READ} AND client_address IN (
            SELECT address FROM twice_both UNION ALL SELECT other_address FROM twice_both)""",
    # Where both had a value from: a topic that both read, and in which it was before.
    "twice_sources": f"""
        SELECT twice_both.*, source.topic AS from_topic
        FROM twice_both JOIN (
            SELECT {_PLACE}, content_crc, min(epoch_ns(ts)) AS at_ns FROM kafka_produce_batches
            WHERE {_WRITTEN} AND content_crc IN (SELECT content_crc FROM twice_both) GROUP BY ALL) AS source
            ON twice_both.cluster = source.cluster AND twice_both.content_crc = source.content_crc
            AND twice_both.topic <> source.topic AND source.at_ns < least(first_ns, other_ns)
        SEMI JOIN twice_reads AS one
            ON source.cluster = one.cluster AND source.topic = one.topic AND one.address = twice_both.address
        SEMI JOIN twice_reads AS two
            ON source.cluster = two.cluster AND source.topic = two.topic AND two.address = other_address""",
    "twice_pairs": f"""
        SELECT pairs.*, least(one.batches, two.batches) AS batches
        FROM (SELECT cluster, topic, from_topic, address, client, other_address, other_client, count(*) AS shared,
                     sum(records)::BIGINT AS records, min(first_ns) AS first_ns, max(first_ns) AS until_ns,
                     min(other_ns) AS again_ns, max(other_ns) AS last_ns, arg_min(first, first_ns) AS first,
                     arg_min(other, other_ns) AS again
              FROM twice_sources GROUP BY ALL) AS pairs
        JOIN twice_written AS one USING (cluster, topic, address, client)
        JOIN twice_written AS two ON pairs.cluster = two.cluster AND pairs.topic = two.topic
            AND pairs.other_address = two.address AND pairs.other_client = two.client
        WHERE shared >= {LEAST_VALUES} AND shared >= {SHARE} * least(one.batches, two.batches)""",
}
_ROWS = """
    SELECT first.exchange_id AS exchange_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(until_ns)::TIMESTAMPTZ_NS AS ts_until, make_timestamp_ns(again_ns)::TIMESTAMPTZ_NS
           AS ts_again, make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, nullif(cluster, '') AS cluster_id,
           nullif(client, '') AS client_id, nullif(address, '') AS client_address,
           nullif(other_client, '') AS again_client_id, nullif(other_address, '') AS again_client_address,
           nullif(topic, '') AS topic, nullif(from_topic, '') AS from_topic, shared AS values_count, batches AS
           batches_count, records AS records_count, again.exchange_id AS again_exchange_id, first.file AS file,
           first.request_packet AS request_packet
    FROM (FROM twice_pairs UNION ALL BY NAME
          SELECT *, client AS other_client, address AS other_address, NULL AS from_topic FROM twice_runs)"""


def add_values_twice(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, {"kafka_values_twice": Made(_IS_THERE, _STEPS, _ROWS)}, VALUES_TWICE.reads)
    return NOTHING
