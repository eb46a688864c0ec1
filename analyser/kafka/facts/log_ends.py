"""Where a partition's log ends, as answers tell it. In: nothing. Out: SQL over the Kafka tables, the only place that
says what a log end is.

LOG_ENDS and TOPIC_LIVES are SELECTs without placeholders: `wirewitness query CAPTURE "FROM (...)"` runs them as they
are.

- Log end: the greatest end that answers told in the ten seconds up to the newest of them (seconds of the clock, so that
  every view cuts alike). An end is the high watermark of a Fetch, the latest offset of a ListOffsets that reads
  uncommitted records from the leader, and the offset behind a batch whose Produce waited for all replicas in sync
  (acks -1: with less, the high watermark may still be behind). It counts from its answer on.
  A transaction ends with a marker that takes an offset in each of its partitions (KIP-98): behind its last batch there
  lie the markers of all transactions whose end was asked for since that batch was stored. What is told so is the least
  that can be: a marker is in the log behind what was stored when its end was asked for. EndTxn, and WriteTxnMarkers
  between brokers, are one end. A transaction over a full hour is left out, so that hours of datasets stay apart.
  Answers of different connections pass each other and a follower that consumers read from is a moment behind, so a
  lower end means nothing at first. After an unclean election, or under a name that was deleted and made anew, it stays
  lower, and counts once nobody told the higher one for ten seconds.
- Life of a topic: what bears a name until it is deleted, or Metadata tells another topic id for it. A new life begins
  without a log end and without stored offsets, since brokers delete those with the topic.

An unknown cluster is a cluster of its own (''), never a wildcard, and so is an unknown topic.
"""

from __future__ import annotations

PARTITION = "cluster, topic, partition"

_HOUR_NS = 3_600_000_000_000
# No log is longer, and no batch (its count is an int32): sums are numbers whatever a damaged answer tells.
LONGEST_LOG = 1 << 62
# Of kafka_produce_batches: a batch that was stored.
STORED = f"""
    error_code = 0 AND base_offset BETWEEN 0 AND {LONGEST_LOG} AND records_count BETWEEN 1 AND {(1 << 31) - 1}"""
# The first end that was asked for after a batch is that of its transaction. KIP-890: markers have the next epoch.
_TRANSACTION_ENDS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, producer_id, unnest(CASE event WHEN 'end_txn' THEN [producer_epoch]
               ELSE [producer_epoch, producer_epoch - 1] END) AS producer_epoch, ts, epoch_ns(ts) AS asked_ns,
           epoch_ns(coalesce(ts_response, ts)) AS at_ns, epoch_ns(ts) // {_HOUR_NS} AS hour
    FROM kafka_transactions WHERE event IN ('end_txn', 'write_txn_markers') AND error_code = 0"""
_WRITTEN = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, topic_id, partition,
           producer_id, producer_epoch, epoch_ns(ts) AS sent_ns, epoch_ns(coalesce(ts_response, ts)) AS stored_ns,
           base_offset + records_count AS log_end, epoch_ns(ts) // {_HOUR_NS} AS hour
    FROM kafka_produce_batches WHERE transactional AND {STORED}"""
MARKERS = f"""
    SELECT cluster, topic, topic_id, partition, ts, at_ns,
           log_end + count(*) OVER (PARTITION BY cluster, topic, partition, hour ORDER BY asked_ns
                                    RANGE BETWEEN greatest(asked_ns - stored_ns, 0) PRECEDING AND CURRENT ROW)
    FROM (SELECT written.cluster, written.topic, any_value(written.topic_id) AS topic_id, written.partition, ends.hour,
                 ends.ts, ends.at_ns, ends.asked_ns, max(written.log_end) AS log_end,
                 max(written.stored_ns) AS stored_ns
          FROM ({_WRITTEN}) AS written ASOF JOIN ({_TRANSACTION_ENDS}) AS ends
              ON written.cluster = ends.cluster AND written.producer_id = ends.producer_id
              AND written.producer_epoch = ends.producer_epoch AND written.hour = ends.hour
              AND written.sent_ns < ends.asked_ns
          GROUP BY written.cluster, written.topic, written.partition, written.producer_id, ends.hour, ends.ts,
                   ends.at_ns, ends.asked_ns)"""

LOG_ENDS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, topic_id, partition, ts,
           epoch_ns(coalesce(ts_response, ts)) AS at_ns, high_watermark AS log_end
    FROM kafka_fetch_partitions WHERE high_watermark >= 0
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, ''), NULL, partition, ts,
           epoch_ns(coalesce(ts_response, ts)), "offset"
    FROM kafka_list_offsets
    WHERE "timestamp" = -1 AND "offset" >= 0 AND coalesce(isolation_level, 0) = 0 AND coalesce(replica_id, -1) = -1
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), topic_id, partition, ts,
           epoch_ns(coalesce(ts_response, ts)), base_offset + records_count
    FROM kafka_produce_batches WHERE acks = -1 AND {STORED}
    UNION ALL
    FROM ({MARKERS})"""

# Of kafka_admin_changes: a change that was made.
MADE = "error_code = 0 AND NOT coalesce(validate_only, false) AND resource_name IS NOT NULL"
# Successful DeleteTopics, as of their answers.
DELETED_TOPICS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, resource_name AS topic, epoch_ns(coalesce(ts_response, ts)) AS at_ns
    FROM kafka_admin_changes WHERE operation = 'DeleteTopics' AND {MADE}"""

# The lives of topics that had more than one; `began` and `ended` are Unix ns. An id that is first told after a deletion
# bears the name since then; until one is told, `topic_id` is null.
TOPIC_LIVES = f"""
    SELECT cluster, topic, topic_id, CASE WHEN number = 1 AND NOT anew THEN 0 ELSE began END AS began,
           coalesce(next, {2**63 - 1}) AS ended
    FROM (SELECT *, row_number() OVER own AS number, lead(began) OVER own AS next,
                 count(*) OVER (PARTITION BY cluster, topic) AS lives
          FROM (SELECT cluster, topic, topic_id, topic_id IS NULL OR coalesce(lag(topic_id IS NULL) OVER told, false)
                           AS anew,
                       CASE WHEN topic_id IS NOT NULL AND lag(topic_id IS NULL) OVER told
                            THEN lag(began) OVER told ELSE began END AS began
                FROM (SELECT coalesce(cluster_id, '') AS cluster, topic, topic_id, min(epoch_ns(ts)) AS began
                      FROM kafka_partitions WHERE topic IS NOT NULL AND topic_id IS NOT NULL GROUP BY ALL
                      UNION SELECT cluster, topic, NULL, at_ns FROM ({DELETED_TOPICS}))
                WINDOW told AS (PARTITION BY cluster, topic ORDER BY began, topic_id)
                QUALIFY topic_id IS NOT NULL OR coalesce(lead(topic_id IS NULL) OVER told, true))
          WINDOW own AS (PARTITION BY cluster, topic ORDER BY began, topic_id))
    WHERE lives > 1 OR anew"""
# What LOG_ENDS and TOPIC_LIVES read.
END_TABLES = (
    "kafka_fetch_partitions", "kafka_list_offsets", "kafka_produce_batches", "kafka_transactions", "kafka_partitions",
    "kafka_admin_changes",
)  # fmt: skip

SECOND_NS = 1_000_000_000
# For so many seconds an end counts that later answers do not reach: its own second and those before it.
KEPT_S = 10
SECOND = f"at_ns // {SECOND_NS}"
# A window over seconds: those before one of them whose ends still count in it.
KEPT_BEFORE = f"ORDER BY second RANGE BETWEEN {KEPT_S - 1} PRECEDING AND 1 PRECEDING"
# The same and the second itself, over rows that are the newest of their second.
_KEPT = f"ORDER BY at_ns RANGE BETWEEN (at_ns % {SECOND_NS} + {(KEPT_S - 1) * SECOND_NS}) PRECEDING AND CURRENT ROW"


def with_life(told: str, lives: str) -> str:
    """A SELECT of the rows of `told` (cluster, topic, topic_id, at_ns) with the `life` of their topic: its begin.

    told: a SELECT. lives: the name of TOPIC_LIVES. A topic that had one life only is in its life 0. An id that no
    Metadata had told by then says nothing: how things stood at a time must not depend on what was told later.
    """
    topic = "told.cluster = {0}.cluster AND told.topic = {0}.topic"
    return f"""
        SELECT told.*, coalesce(of_id.began, of_time.began, 0) AS life FROM ({told}) AS told
        LEFT JOIN {lives} AS of_id ON {topic.format("of_id")} AND told.topic_id = of_id.topic_id
            AND told.at_ns >= of_id.began
        LEFT JOIN {lives} AS of_time ON {topic.format("of_time")}
            AND told.at_ns >= of_time.began AND told.at_ns < of_time.ended"""


def ends_of_bins(ends: str) -> str:
    """A SELECT of the log end at the end of each bin, of its life, and the time of the newest answer (`end_ns`).

    ends: the name of rows of LOG_ENDS with `life`, the begin of their `bin`, and `here`: false for rows that say how
    things stood before. Of the many rows only the highest end of each second goes through the window. An answer about
    a life that had ended by then is an old one.
    """
    return f"""
        SELECT {PARTITION}, bin, bool_or(here) AS here,
               unnest(arg_max(struct_pack(log_end := kept, end_ns := at_ns, life), row(life, at_ns)))
        FROM (SELECT *, max(log_end) OVER (PARTITION BY {PARTITION}, life {_KEPT}) AS kept
              FROM (SELECT {PARTITION}, life, bin, {SECOND} AS second, max(at_ns) AS at_ns, max(log_end) AS log_end,
                           bool_or(here) AS here
                    FROM {ends} GROUP BY {PARTITION}, life, bin, {SECOND}
                    QUALIFY life >= max(life) OVER (PARTITION BY {PARTITION} ORDER BY max(at_ns))))
        GROUP BY {PARTITION}, bin"""


def log_end_query(begin: str = "0", told: str = "true") -> str:
    """A SELECT of PARTITION, bin, log_end, end_ns, life. begin: of the bin of `at_ns`; told: which rows of LOG_ENDS."""
    lives = with_life(f"FROM ({LOG_ENDS}) WHERE {told}", "lag_lives")
    steps = {"lag_lives": TOPIC_LIVES, "lag_ends": f"SELECT *, {begin} AS bin, true AS here FROM ({lives})"}
    named = ", ".join(f"{name} AS ({query})" for name, query in steps.items())
    return f"with {named} {ends_of_bins('lag_ends')}"
