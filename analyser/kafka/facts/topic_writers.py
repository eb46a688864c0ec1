"""What clients write to each topic: `kafka_topic_writers`, where their keys lie: `kafka_key_places`, and whether they
move: `kafka_moved_keys`.

In: a connection with a view of kafka_produce_batches, `cluster_id` and `topic` filled in. Out: the views of the tables.
The only place that says it.

- Batches that were refused do not count. Keys and kinds of values are those of first records, and of batches in which
  these are known: compressed ones tell nothing. Codecs are those of all batches.
- A key lies where most of those who write it at the same time put it; of as many the one who began first counts. A
  client whose own keys move (partitions were added, no key decides) is not compared.

Memory is DuckDB's limit, and it may spill: a row for each key, client and partition.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, TOPIC_WRITERS, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.kafka.facts.moved_keys import moved_rows, moved_steps

# A client keeps this share of its keys in one partition each, or none are looked at.
KEPT = 0.95
_ROW = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic,
           coalesce(client_address, '') AS address, coalesce(client_id, '') AS client, partition, epoch_ns(ts) AS at_ns,
           records_count, batch_bytes, first_value_kind AS kind, first_key_bytes >= 0 AS keyed, first_key_crc AS key,
           codec,
           CASE WHEN records_count > 1 AND base_timestamp > 0 THEN max_timestamp - base_timestamp END AS fill_ms,
           struct_pack(exchange_id, file, request_packet) AS place
    FROM kafka_produce_batches WHERE coalesce(error_code, 0) = 0"""
_WHO = "cluster, topic, address, client"
_IS_KEYED = "EXISTS (FROM kafka_produce_batches WHERE first_key_bytes > 0)"

_WRITER_STEPS = {
    # A turn is at the first batch that differs from the one before.
    "written_turns": f"""
        SELECT *, kind <> lag(kind) OVER steps AS kind_turned, keyed <> lag(keyed) OVER steps AS key_turned,
               row_number() OVER steps AS number
        FROM ({_ROW}) WHERE kind IS NOT NULL WINDOW steps AS (PARTITION BY {_WHO} ORDER BY at_ns, place)""",
    "written_kinds": f"""
        SELECT {_WHO}, count(*) AS known, arg_min(kind, number) AS first_kind, arg_max(kind, number) AS last_kind,
               count(*) FILTER (kind_turned) AS kind_turns,
               min(struct_pack(number, at_ns, place)) FILTER (kind_turned) AS kind_turn,
               arg_min(keyed, number) AS first_keyed, arg_max(keyed, number) AS last_keyed,
               count(*) FILTER (key_turned) AS key_turns,
               min(struct_pack(number, at_ns, place)) FILTER (key_turned) AS key_turn
        FROM written_turns GROUP BY ALL""",
    "written_codecs": f"""
        SELECT {_WHO}, arg_min(codec, number) AS first_codec, arg_max(codec, number) AS last_codec,
               max(turns) AS codec_turns, count(*) FILTER (turns > 0) AS codec_after,
               min(struct_pack(number, at_ns, place)) FILTER (turns > 0) AS codec_turn,
               sum(batch_bytes) FILTER (turns = 0) / nullif(sum(records_count) FILTER (turns = 0), 0) AS bytes_before,
               sum(batch_bytes) FILTER (turns > 0) / nullif(sum(records_count) FILTER (turns > 0), 0) AS bytes_after,
               median(records_count) FILTER (turns = 0) AS records_before,
               median(records_count) FILTER (turns > 0) AS records_after
        FROM (SELECT *, count(*) FILTER (turned) OVER steps AS turns, row_number() OVER steps AS number
              FROM (SELECT *, codec <> lag(codec) OVER steps AS turned FROM ({_ROW}) WHERE codec IS NOT NULL
                    WINDOW steps AS (PARTITION BY {_WHO} ORDER BY at_ns, place))
              WINDOW steps AS (PARTITION BY {_WHO} ORDER BY at_ns, place ROWS UNBOUNDED PRECEDING))
        GROUP BY ALL""",
}
_WRITERS = f"""
    SELECT first.exchange_id AS exchange_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, nullif(cluster, '') AS cluster_id,
           nullif(client, '') AS client_id, nullif(address, '') AS client_address, nullif(topic, '') AS topic,
           batches AS batches_count, records AS records_count, bytes AS batch_bytes, fill_ms, pace_ms,
           coalesce(known, 0) AS known_count, first_kind, last_kind, coalesce(kind_turns, 0) AS kind_turns,
           make_timestamp_ns(kind_turn.at_ns)::TIMESTAMPTZ_NS AS ts_kind_turned,
           known - kind_turn.number + 1 AS kind_after, kind_turn.place.exchange_id AS kind_turned_exchange_id,
           first_keyed, last_keyed, coalesce(key_turns, 0) AS key_turns,
           make_timestamp_ns(key_turn.at_ns)::TIMESTAMPTZ_NS AS ts_key_turned,
           known - key_turn.number + 1 AS key_after, key_turn.place.exchange_id AS key_turned_exchange_id,
           first_codec, last_codec, coalesce(codec_turns, 0) AS codec_turns,
           make_timestamp_ns(codec_turn.at_ns)::TIMESTAMPTZ_NS AS ts_codec_turned,
           nullif(codec_after, 0) AS codec_after, codec_turn.place.exchange_id AS codec_turned_exchange_id,
           round(bytes_before)::BIGINT AS record_bytes_before, round(bytes_after)::BIGINT AS record_bytes_after,
           round(records_before)::BIGINT AS batch_records_before, round(records_after)::BIGINT AS batch_records_after,
           last.exchange_id AS last_exchange_id, first.file AS file, first.request_packet AS request_packet
    FROM (SELECT {_WHO}, count(*) AS batches, sum(records_count)::BIGINT AS records,
                 round(median(batch_bytes))::BIGINT AS bytes, median(fill_ms)::DOUBLE AS fill_ms,
                 median(gap_ns) / 1e6 AS pace_ms,
                 min(at_ns) AS first_ns, max(at_ns) AS last_ns, arg_min(place, (at_ns, place)) AS first,
                 arg_max(place, (at_ns, place)) AS last
          FROM (SELECT *, at_ns - lag(at_ns) OVER (PARTITION BY {_WHO}, partition ORDER BY at_ns) AS gap_ns
                FROM ({_ROW}))
          GROUP BY ALL) AS writers
    LEFT JOIN written_kinds USING ({_WHO}) LEFT JOIN written_codecs USING ({_WHO})"""

_PLACE_STEPS = {
    "placed_keys": f"""
        SELECT *, count(*) OVER own AS places
        FROM (SELECT {_WHO}, key, partition, min(at_ns) AS first_ns, max(at_ns) AS last_ns,
                     arg_min(place, (at_ns, place)) AS place
              FROM ({_ROW}) WHERE key IS NOT NULL GROUP BY ALL)
        WINDOW own AS (PARTITION BY {_WHO}, key)""",
    "placed_writers": f"""
        SELECT {_WHO}, min(first_ns) AS began_ns, max(last_ns) AS ended_ns
        FROM placed_keys GROUP BY ALL
        HAVING count(*) FILTER (places = 1) >= {KEPT} * count(DISTINCT key) AND count(DISTINCT partition) > 1""",
    "placed_shared": f"""
        SELECT placed_keys.*, began_ns, ended_ns,
               max(began_ns) OVER shared AS latest_ns, min(ended_ns) OVER shared AS earliest_ns,
               count(*) OVER shared AS writers
        FROM placed_keys JOIN placed_writers USING ({_WHO}) WHERE places = 1
        WINDOW shared AS (PARTITION BY cluster, topic, key)""",
    "placed_usual": """
        SELECT cluster, topic, key, arg_min(partition, (-votes, first_one)) AS usual
        FROM (SELECT cluster, topic, key, partition, count(*) AS votes, min((began_ns, address, client)) AS first_one
              FROM placed_shared WHERE writers > 1 AND latest_ns < earliest_ns GROUP BY ALL)
        GROUP BY ALL""",
}
_PLACES = f"""
    SELECT place.exchange_id AS exchange_id, make_timestamp_ns(first_ns)::TIMESTAMPTZ_NS AS ts,
           make_timestamp_ns(last_ns)::TIMESTAMPTZ_NS AS ts_last, nullif(cluster, '') AS cluster_id,
           nullif(client, '') AS client_id, nullif(address, '') AS client_address, nullif(topic, '') AS topic,
           keys AS keys_count, apart AS apart_count, writers AS writers_count, partitions AS partitions_count,
           place.file AS file, place.request_packet AS request_packet
    FROM (SELECT {_WHO}, count(*) AS keys, count(*) FILTER (partition <> usual) AS apart, max(writers) AS writers,
                 count(DISTINCT partition) AS partitions, max(last_ns) AS last_ns,
                 min(first_ns) FILTER (partition <> usual) AS apart_ns, min(first_ns) AS shared_ns,
                 coalesce(apart_ns, shared_ns) AS first_ns,
                 coalesce(arg_min(place, (first_ns, place)) FILTER (partition <> usual),
                          arg_min(place, (first_ns, place))) AS place
          FROM placed_shared JOIN placed_usual USING (cluster, topic, key) GROUP BY ALL)"""


def add_topic_writers(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; the table that they are made of may be missing. Call it once."""
    make_wanted_tables(
        con,
        {
            "kafka_topic_writers": Made("EXISTS (FROM kafka_produce_batches)", _WRITER_STEPS, _WRITERS),
            "kafka_key_places": Made(_IS_KEYED, _PLACE_STEPS, _PLACES),
            "kafka_moved_keys": Made(_IS_KEYED, moved_steps(_ROW, _WHO), moved_rows(_WHO)),
        },
        TOPIC_WRITERS.reads,
    )
    return NOTHING
