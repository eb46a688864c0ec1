"""Values that come back: `kafka_value_rounds`, who writes again what it has just read, from which topic to which.

In: a connection with views of kafka_produce_batches and kafka_fetch_partitions, `cluster_id` and `topic` filled in.
Out: the view of the table. The only place that says it.

- A value is what the first record of a batch says: its key and value (`content_crc`). A copy is a batch with it.
- A copy was caused by the one before when its writer's address got that one in a response to Fetch after it was sent,
  and sent its own after that.
- A value goes round when each of the topics in which it is gets copies that were caused so: LEAST_ROUNDS of them, and
  SHARE of its copies there. A value that is copied from one topic to the next and written anew at the first one has
  none there, so it goes nowhere round, however often it comes.

Memory is DuckDB's limit, and it may spill: rows of values that come often, and of who also reads.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, ROUNDS, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables

LEAST_ROUNDS = 20
SHARE = 0.8
_PLACE = "coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition"
_WRITTEN = "content_crc IS NOT NULL AND error_code = 0 AND base_offset >= 0"
_READ = "records_count > 0 AND next_offset IS NOT NULL AND ts_response IS NOT NULL AND coalesce(replica_id, -1) < 0"
_OFTEN = f"""
    SELECT content_crc FROM kafka_produce_batches
    WHERE {_WRITTEN} AND client_address IN (SELECT client_address FROM kafka_fetch_partitions WHERE {_READ})
    GROUP BY content_crc HAVING count(*) > {LEAST_ROUNDS}"""

_STEPS = {
    "round_copies": f"""
        SELECT *, lag(struct_pack(cluster, topic, partition, base_offset, at_ns)) OVER (
                   PARTITION BY content_crc ORDER BY at_ns, exchange_id) AS prior
        FROM (SELECT {_PLACE}, content_crc, base_offset, coalesce(client_address, '') AS address,
                     coalesce(client_id, '') AS client, epoch_ns(ts) AS at_ns, records_count, exchange_id, file,
                     request_packet
              FROM kafka_produce_batches WHERE {_WRITTEN} AND content_crc IN ({_OFTEN}))""",
    "round_reads": f"""
        SELECT {_PLACE}, coalesce(client_address, '') AS address, next_offset, min(epoch_ns(ts_response)) AS read_ns,
               any_value(records_count) AS records
        FROM kafka_fetch_partitions
        WHERE {_READ} AND coalesce(client_address, '') IN (SELECT address FROM round_copies) GROUP BY ALL""",
    # The first response that goes beyond the copy before has it.
    "round_caused": """
        SELECT copies.*, coalesce(reads.read_ns BETWEEN prior.at_ns AND copies.at_ns, false) AS caused,
               (copies.at_ns - reads.read_ns) / 1e6 AS handled_ms, (reads.read_ns - prior.at_ns) / 1e6 AS way_ms
        FROM round_copies AS copies ASOF LEFT JOIN round_reads AS reads
            ON prior.cluster = reads.cluster AND prior.topic = reads.topic AND prior.partition = reads.partition
            AND copies.address = reads.address AND prior.base_offset < reads.next_offset""",
    "round_values": f"""
        SELECT content_crc
        FROM (SELECT content_crc, count(*) AS copies, count(*) FILTER (caused) AS caused
              FROM round_caused GROUP BY content_crc, cluster, topic)
        GROUP BY content_crc HAVING min(caused) >= {LEAST_ROUNDS} AND min(caused / copies) >= {SHARE}""",
    "round_others": """
        SELECT reads.address, sum(records)::BIGINT AS records
        FROM round_reads AS reads ANTI JOIN (
            SELECT DISTINCT address, prior.cluster AS cluster, prior.topic AS topic FROM round_caused
            WHERE caused AND content_crc IN (FROM round_values)) AS rings
            ON reads.address = rings.address AND reads.cluster = rings.cluster AND reads.topic = rings.topic
        GROUP BY reads.address""",
    "round_sources": """
        SELECT address, cluster AS from_cluster, topic AS from_topic, sum(records)::BIGINT AS records
        FROM round_reads GROUP BY ALL""",
}
_ROWS = """
    SELECT first.exchange_id AS exchange_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, nullif(cluster, '') AS cluster_id,
           nullif(client, '') AS client_id, nullif(address, '') AS client_address, nullif(topic, '') AS topic,
           nullif(from_cluster, '') AS from_cluster_id, nullif(from_topic, '') AS from_topic, values_count,
           copies_count, rounds_most, records_count, coalesce(others.records, 0) AS other_records_read,
           coalesce(sources.records, 0) AS from_records_read, handled_ms, way_ms, first.file AS file,
           first.request_packet AS request_packet
    FROM (
        SELECT cluster, topic, address, client, prior.cluster AS from_cluster, prior.topic AS from_topic,
               min(at_ns) AS first_ns, max(at_ns) AS last_ns, count(DISTINCT content_crc) AS values_count,
               count(*) AS copies_count, max(rounds) AS rounds_most, sum(records_count)::BIGINT AS records_count,
               median(handled_ms) AS handled_ms, median(way_ms) AS way_ms,
               arg_min(struct_pack(exchange_id, file, request_packet), (at_ns, exchange_id)) AS first
        FROM (SELECT *, count(*) OVER (PARTITION BY content_crc, cluster, topic, address, client) AS rounds
              FROM round_caused WHERE caused AND content_crc IN (FROM round_values))
        GROUP BY ALL) AS made
    LEFT JOIN round_others AS others USING (address)
    LEFT JOIN round_sources AS sources USING (address, from_cluster, from_topic)"""


def add_rounds(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, {"kafka_value_rounds": Made(f"EXISTS ({_OFTEN})", _STEPS, _ROWS)}, ROUNDS.reads)
    return NOTHING
