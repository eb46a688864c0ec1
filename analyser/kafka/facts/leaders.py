"""Who led a partition when, in which epoch, and where its log was truncated: `kafka_leaders`, `kafka_truncations`.

In: a connection with views of the Kafka tables. Out: the views of both tables. The only place that says it.

- A term is the time of one leader epoch, from when an answer first reported it: Metadata and the like, or a Fetch or
  Produce whose broker does not lead any more and names who does (KIP-951). What a broker that lags reports of an older
  epoch changes nothing. Without epochs (Metadata before version 7) each other leader begins a term. A term ends when
  the next one is first reported. Terms belong to one incarnation of the topic.
- A leader that was not among the replicas in sync that were last reported before it, is one that was elected unclean,
  as far as the capture knows: replicas in sync change between two answers.
- A log is truncated at an offset when OffsetForLeaderEpoch (KIP-320) or the diverging epoch of a Fetch (KIP-595) tells
  a reader that the log of the epoch which it has read ends below its position, and it goes on there; or when a batch is
  stored at an offset below an end that was reported before it was sent. A batch that a producer sends again is answered
  with its first offset and says nothing, nor does a log that begins at 0, which may be another one.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import LEADERS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.kafka.facts.log_ends import LIVES, STORED, with_life

_PLACE = "cluster, topic, partition"
_LIFE = f"{_PLACE}, incarnation"
_NAMED = "coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, topic_id, partition"
_WHO = "coalesce(client_address, '') AS address, coalesce(client_id, '') AS client"
_ANSWERED = "epoch_ns(coalesce(ts_response, ts))"
# Readers that were told that their log and that of the broker diverge below where they are.
_DIVERGED = "FROM kafka_fetch_partitions WHERE diverging_end_offset >= 0 AND diverging_end_offset < fetch_offset"
# Logs may be shorter than they were only where a leader changed, or where a reader asked.
_CHANGED = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, partition FROM kafka_partitions
    WHERE partition IS NOT NULL AND leader_id IS NOT NULL
    GROUP BY ALL HAVING count(DISTINCT leader_id) > 1 OR count(DISTINCT leader_epoch) > 1"""


def _named_by(table: str, source: str) -> str:
    """Who leads, as responses say whose broker does not lead any more. That nobody does, it may only not know yet."""
    return f"""SELECT DISTINCT {_NAMED}, {_ANSWERED}, current_leader_id, current_leader_epoch, NULL::BIGINT[],
                   NULL::BIGINT[], '{source}', exchange_id, flow_id, file, response_packet
            FROM {table} WHERE current_leader_id >= 0 AND current_leader_epoch IS NOT NULL"""


_TERM_STEPS = {
    "lead_lives": LIVES,
    "lead_told": with_life(
        f"""SELECT {_NAMED}, epoch_ns(ts) AS at_ns, leader_id, nullif(leader_epoch, -1) AS epoch, replicas, isr, source,
                   exchange_id, flow_id, file, response_packet
            FROM kafka_partitions WHERE partition IS NOT NULL AND leader_id IS NOT NULL
            UNION ALL {_named_by("kafka_fetch_partitions", "Fetch")}
            UNION ALL {_named_by("kafka_produce_batches", "Produce")}""",
        "lead_lives",
    ),
    "lead_steps": f"""
        SELECT *, CASE WHEN epoch IS NULL THEN count(*) FILTER (moved) OVER (
                      PARTITION BY {_LIFE} ORDER BY at_ns, exchange_id ROWS UNBOUNDED PRECEDING) ELSE 0 END AS step
        FROM (SELECT *, leader_id IS DISTINCT FROM lag(leader_id) OVER (
                  PARTITION BY {_LIFE} ORDER BY at_ns, exchange_id) AS moved FROM lead_told)""",
    # Of one epoch with two leaders, which is damage, the first one.
    "lead_terms": f"""
        SELECT {_LIFE}, epoch, step, min(at_ns) AS at_ns, any_value(topic_id) AS topic_id,
               unnest(arg_min(struct_pack(leader_id, source, exchange_id, flow_id, file, response_packet), at_ns)),
               arg_max(replicas, at_ns) AS replicas, arg_max(isr, at_ns) AS isr
        FROM lead_steps GROUP BY {_LIFE}, epoch, step""",
    "lead_spans": f"""
        SELECT *, lead(at_ns) OVER terms AS until_ns,
               last_value(CASE WHEN len(isr) > 0 THEN isr END IGNORE NULLS) OVER (
                   terms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS isr_before
        FROM lead_terms
        WINDOW terms AS (PARTITION BY {_LIFE} ORDER BY coalesce(epoch, -1), step, at_ns)""",
}
_TERM_ROWS = """
    SELECT make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(until_ns)::TIMESTAMPTZ_NS AS ts_until,
           nullif(cluster, '') AS cluster_id, nullif(topic, '') AS topic, topic_id, partition, leader_id,
           epoch AS leader_epoch, replicas, isr, isr_before,
           CASE WHEN leader_id >= 0 AND isr_before IS NOT NULL THEN NOT list_contains(isr_before, leader_id)
               END AS unclean,
           source, exchange_id, flow_id, file, response_packet
    FROM lead_spans"""

_CUT_STEPS = {
    "cut_changed": f"""
        {_CHANGED} UNION
        SELECT coalesce(cluster_id, ''), coalesce(topic, ''), partition FROM kafka_leader_epochs UNION
        SELECT coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition FROM ({_DIVERGED})""",
    "cut_reads": f"""
        SELECT {_NAMED}, {_WHO}, epoch_ns(ts) AS at_ns, fetch_offset, greatest(fetch_offset, next_offset) AS position,
               error_code, {_ANSWERED} AS done_ns, high_watermark
        FROM kafka_fetch_partitions
        WHERE (coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition) IN (FROM cut_changed)""",
    "cut_asked": f"""
        SELECT {_NAMED.replace("topic_id, partition", "partition").replace("coalesce(topic, topic_id, '')", "topic")},
               {_WHO}, epoch_ns(ts) AS at_ns, requested_epoch, end_offset, exchange_id, flow_id, file, request_packet
        FROM kafka_leader_epochs WHERE error_code = 0 AND end_offset >= 0""",
    "cut_told": """
        SELECT asked.*, before.position AS end_before, NULL::VARCHAR AS topic_id
        FROM cut_asked AS asked
        ASOF JOIN (FROM cut_reads WHERE coalesce(error_code, 0) <> 1 AND position IS NOT NULL) AS before
            ON asked.cluster = before.cluster AND asked.topic = before.topic AND asked.partition = before.partition
            AND asked.address = before.address AND asked.client = before.client AND asked.at_ns > before.at_ns
        ASOF JOIN (FROM cut_reads WHERE fetch_offset IS NOT NULL) AS next
            ON asked.cluster = next.cluster AND asked.topic = next.topic AND asked.partition = next.partition
            AND asked.address = next.address AND asked.client = next.client AND asked.at_ns < next.at_ns
        WHERE before.position > asked.end_offset AND next.fetch_offset = asked.end_offset""",
    "cut_fetched": f"""
        SELECT asked.*
        FROM (SELECT {_NAMED}, {_WHO}, epoch_ns(ts) AS at_ns, diverging_end_offset AS end_offset,
                     fetch_offset AS end_before, exchange_id, flow_id, file, request_packet
              FROM ({_DIVERGED})) AS asked
        ASOF JOIN (FROM cut_reads WHERE fetch_offset IS NOT NULL) AS next
            ON asked.cluster = next.cluster AND asked.topic = next.topic AND asked.partition = next.partition
            AND asked.address = next.address AND asked.client = next.client AND asked.at_ns < next.at_ns
        WHERE next.fetch_offset = asked.end_offset""",
    "cut_lives": LIVES,
    "cut_sent": with_life(
        f"""SELECT {_NAMED}, {_WHO}, epoch_ns(ts) AS at_ns, {_ANSWERED} AS done_ns, base_offset, records_count,
                   exchange_id, flow_id, file, request_packet
            FROM kafka_produce_batches
            WHERE {STORED}
                AND (coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition) IN (FROM cut_changed)
            QUALIFY producer_id IS NULL OR producer_id < 0 OR row_number() OVER (
                PARTITION BY cluster_id, topic, topic_id, partition, producer_id, producer_epoch, base_sequence
                ORDER BY ts, exchange_id) = 1""",
        "cut_lives",
    ),
    "cut_ends": with_life(
        f"""SELECT {_NAMED}, {_ANSWERED} AS at_ns, base_offset + records_count AS log_end FROM kafka_produce_batches
            WHERE {STORED}
                AND (coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), partition) IN (FROM cut_changed)
            UNION ALL
            SELECT cluster, topic, topic_id, partition, done_ns, high_watermark FROM cut_reads
            WHERE high_watermark >= 0""",
        "cut_lives",
    ),
    "cut_highest": f"""
        SELECT {_LIFE}, at_ns, max(log_end) OVER (PARTITION BY {_LIFE} ORDER BY at_ns) AS log_end FROM cut_ends
        QUALIFY log_end > coalesce(max(log_end) OVER (
            PARTITION BY {_LIFE} ORDER BY at_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), -1)""",
    # Of the batches of one truncation the first one is lowest.
    "cut_stored": """
        SELECT sent.* EXCLUDE (incarnation, done_ns, records_count), highest.log_end AS end_before
        FROM cut_sent AS sent ASOF JOIN cut_highest AS highest
            ON sent.cluster = highest.cluster AND sent.topic = highest.topic AND sent.partition = highest.partition
            AND sent.incarnation = highest.incarnation AND sent.at_ns > highest.at_ns
        WHERE sent.base_offset BETWEEN 1 AND highest.log_end - 1
        QUALIFY row_number() OVER (PARTITION BY sent.cluster, sent.topic, sent.partition, highest.log_end
                                   ORDER BY sent.at_ns, exchange_id) = 1""",
    "cut_all": """
        SELECT cluster, topic, topic_id, partition, address, client, at_ns, end_offset AS truncated_at, end_before,
               requested_epoch, 'OffsetForLeaderEpoch' AS source, exchange_id, flow_id, file, request_packet
        FROM cut_told
        UNION ALL
        SELECT cluster, topic, topic_id, partition, address, client, at_ns, end_offset, end_before, NULL, 'Fetch',
               exchange_id, flow_id, file, request_packet
        FROM cut_fetched
        UNION ALL
        SELECT cluster, topic, topic_id, partition, address, client, at_ns, base_offset, end_before, NULL, 'Produce',
               exchange_id, flow_id, file, request_packet
        FROM cut_stored""",
    "cut_leaders": f"SELECT {_PLACE}, at_ns, epoch, leader_id, isr_before FROM lead_spans WHERE leader_id >= 0",
    # The term that began when the log was cut: the first above the epoch that was asked for, or that of the batch.
    "cut_terms": f"""
        SELECT cuts.exchange_id, cuts.topic, cuts.partition, terms.* EXCLUDE ({_PLACE})
        FROM cut_all AS cuts ASOF JOIN (FROM cut_leaders WHERE epoch IS NOT NULL) AS terms
            ON cuts.cluster = terms.cluster AND cuts.topic = terms.topic AND cuts.partition = terms.partition
            AND cuts.requested_epoch < terms.epoch
        UNION ALL
        SELECT cuts.exchange_id, cuts.topic, cuts.partition, terms.* EXCLUDE ({_PLACE})
        FROM (FROM cut_all WHERE requested_epoch IS NULL) AS cuts ASOF JOIN cut_leaders AS terms
            ON cuts.cluster = terms.cluster AND cuts.topic = terms.topic AND cuts.partition = terms.partition
            AND cuts.at_ns >= terms.at_ns""",
}
_CUT_ROWS = """
    SELECT make_timestamp_ns(cuts.at_ns)::TIMESTAMPTZ_NS AS ts, nullif(cuts.cluster, '') AS cluster_id,
           nullif(cuts.topic, '') AS topic, cuts.partition, cuts.truncated_at, cuts.end_before, cuts.source,
           terms.leader_id, terms.epoch AS leader_epoch, make_timestamp_ns(terms.at_ns)::TIMESTAMPTZ_NS AS ts_leader,
           terms.isr_before, NOT list_contains(terms.isr_before, terms.leader_id) AS unclean,
           nullif(cuts.client, '') AS client_id, nullif(cuts.address, '') AS client_address,
           cuts.exchange_id, cuts.flow_id, cuts.file, cuts.request_packet
    FROM cut_all AS cuts LEFT JOIN cut_terms AS terms USING (exchange_id, topic, partition)"""
_MADE = {
    "kafka_leaders": Made(
        " OR ".join(
            (
                "EXISTS (FROM kafka_partitions WHERE partition IS NOT NULL AND leader_id IS NOT NULL)",
                *(
                    f"EXISTS (FROM {table} WHERE current_leader_id >= 0 AND current_leader_epoch IS NOT NULL)"
                    for table in ("kafka_fetch_partitions", "kafka_produce_batches")
                ),
            )
        ),
        _TERM_STEPS,
        _TERM_ROWS,
    ),
    "kafka_truncations": Made(
        f"EXISTS (FROM kafka_leader_epochs) OR EXISTS ({_DIVERGED}) OR EXISTS ({_CHANGED})",
        {**_TERM_STEPS, **_CUT_STEPS},
        _CUT_ROWS,
    ),
}


def add_leaders(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; tables that they are made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, LEADERS.reads)
    return NOTHING
