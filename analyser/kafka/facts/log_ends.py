"""Where a partition's log ends and begins, as answers tell it: `kafka_log_ends`, and the only place that says what
these words mean. Beside it `kafka_topics`, the incarnations of topics.

In: a connection with views of the Kafka tables. Out: the views of both tables.

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
- Log start: the greatest one that answers told so far: of Fetch, of a ListOffsets that asked for the earliest offset,
  and of DeleteRecords what it deleted up to (KIP-107). It never goes back.
- Incarnation of a topic: what bears a name until it is deleted, or Metadata tells another topic id for it (KIP-516).
  A new one begins without a log and without stored offsets, since brokers delete those with the topic.

A table has steps: a row holds until the next one of its partition. An unknown cluster is a cluster of its own (''),
never a wildcard, and so is an unknown topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, taken
from wirewitness.analyser.engine.facts.chunk_files import given_or_shown, show_made
from wirewitness.analyser.engine.facts.columns import (
    UNKNOWN,
    Booleans,
    columns_of,
    integers,
    named_texts,
    number_column,
    text_column,
    time_column,
)
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.engine.facts.row_groups import changes, highest_so_far
from wirewitness.analyser.engine.facts.shards import shards_of
from wirewitness.analyser.engine.facts.stage import LOG_ENDS, NOTHING, TOPICS, Held
from wirewitness.analyser.engine.facts.stage import PARTITION as OF_PARTITION
from wirewitness.analyser.engine.facts.topics import has_rows, views

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
               AS log_end
    FROM (SELECT written.cluster, written.topic, any_value(written.topic_id) AS topic_id, written.partition, ends.hour,
                 ends.ts, ends.at_ns, ends.asked_ns, max(written.log_end) AS log_end,
                 max(written.stored_ns) AS stored_ns
          FROM ({_WRITTEN}) AS written ASOF JOIN ({_TRANSACTION_ENDS}) AS ends
              ON written.cluster = ends.cluster AND written.producer_id = ends.producer_id
              AND written.producer_epoch = ends.producer_epoch AND written.hour = ends.hour
              AND written.sent_ns < ends.asked_ns
          GROUP BY written.cluster, written.topic, written.partition, written.producer_id, ends.hour, ends.ts,
                   ends.at_ns, ends.asked_ns)"""

# Of kafka_admin_changes: a change that was made.
MADE = "error_code = 0 AND NOT coalesce(validate_only, false) AND resource_name IS NOT NULL"
# A DeleteRecords row names `partition<offset` for each cut, -1 for the log's end.
CUTS = """
    SELECT *, try_cast(split_part(cut, '<', 1) AS BIGINT) AS partition,
           try_cast(split_part(cut, '<', 2) AS BIGINT) AS cut_at
    FROM (SELECT *, unnest(string_split(substr(change, 16), ',')) AS cut FROM kafka_admin_changes
          WHERE resource_type = 'topic' AND starts_with(change, 'delete records '))"""

# What answers tell of logs. Each row tells an end, a start, or both.
_ANSWERS = f"""
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic, topic_id, partition,
           epoch_ns(coalesce(ts_response, ts)) AS at_ns,
           CASE WHEN high_watermark >= 0 THEN high_watermark END AS log_end,
           CASE WHEN log_start_offset >= 0 THEN log_start_offset END AS log_start, 'Fetch' AS source
    FROM kafka_fetch_partitions WHERE high_watermark >= 0 OR log_start_offset >= 0
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, ''), NULL, partition, epoch_ns(coalesce(ts_response, ts)),
           CASE WHEN "timestamp" = -1 THEN "offset" END, CASE WHEN "timestamp" = -2 THEN "offset" END, 'ListOffsets'
    FROM kafka_list_offsets
    WHERE "offset" >= 0 AND ("timestamp" = -2 OR "timestamp" = -1 AND coalesce(isolation_level, 0) = 0
                             AND coalesce(replica_id, -1) = -1)
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(topic, topic_id, ''), topic_id, partition,
           epoch_ns(coalesce(ts_response, ts)), base_offset + records_count, NULL, 'Produce'
    FROM kafka_produce_batches WHERE acks = -1 AND {STORED}
    UNION ALL
    SELECT coalesce(cluster_id, ''), coalesce(resource_name, ''), NULL, partition,
           epoch_ns(coalesce(ts_response, ts)), NULL, cut_at, 'DeleteRecords'
    FROM ({CUTS}) WHERE {MADE} AND cut_at >= 0"""
_MARKERS_TOLD = f"SELECT * EXCLUDE (ts), NULL AS log_start, 'transaction marker' AS source FROM ({MARKERS})"

# A row of `kafka_topics` for each id that Metadata told, and each deletion; `began` and `ended` are Unix ns. An id that
# is first told after a deletion bears the name since then; until one is told, `topic_id` is null.
_TOPICS = f"""
    SELECT make_timestamp_ns(told_ns)::TIMESTAMPTZ_NS AS ts, nullif(cluster, '') AS cluster_id, topic, incarnation,
           topic_id, named_by,
           CASE WHEN incarnation > 1 OR anew THEN make_timestamp_ns(began)::TIMESTAMPTZ_NS END AS ts_from,
           make_timestamp_ns(next)::TIMESTAMPTZ_NS AS ts_until,
           CASE WHEN anew THEN 'DeleteTopics' WHEN incarnation > 1 THEN named_by END AS started_by
    FROM (SELECT *, row_number() OVER own + first_value(anew) OVER own::BIGINT AS incarnation,
                 lead(began) OVER own AS next
          FROM (SELECT cluster, topic, topic_id, told_ns, named_by,
                       topic_id IS NULL OR coalesce(lag(topic_id IS NULL) OVER told, false) AS anew,
                       CASE WHEN topic_id IS NOT NULL AND lag(topic_id IS NULL) OVER told
                            THEN lag(told_ns) OVER told ELSE told_ns END AS began
                FROM (SELECT coalesce(cluster_id, '') AS cluster, topic, topic_id, min(epoch_ns(ts)) AS told_ns,
                             arg_min(source, (ts, exchange_id)) AS named_by
                      FROM kafka_partitions WHERE topic IS NOT NULL AND topic_id IS NOT NULL GROUP BY ALL
                      UNION
                      SELECT coalesce(cluster_id, ''), resource_name, NULL, epoch_ns(coalesce(ts_response, ts)), NULL
                      FROM kafka_admin_changes WHERE operation = 'DeleteTopics' AND {MADE})
                WINDOW told AS (PARTITION BY cluster, topic ORDER BY told_ns, topic_id)
                QUALIFY topic_id IS NOT NULL OR coalesce(lead(topic_id IS NULL) OVER told, true))
          WINDOW own AS (PARTITION BY cluster, topic ORDER BY began, topic_id))"""
# Of kafka_topics: the incarnations of topics that had more than one, or may have.
LIVES = f"""
    SELECT coalesce(cluster_id, '') AS cluster, topic, topic_id, incarnation,
           coalesce(epoch_ns(ts_from), {-(2**63 - 1)}) AS began, coalesce(epoch_ns(ts_until), {2**63 - 1}) AS ended
    FROM kafka_topics WHERE ts_from IS NOT NULL OR ts_until IS NOT NULL"""


def with_life(told: str, lives: str) -> str:
    """A SELECT of the rows of `told` (cluster, topic, topic_id, at_ns) with the `incarnation` of their topic.

    told: a SELECT. lives: the name of LIVES. A topic that had one only is in its first. An id that no Metadata had told
    by then says nothing: how things stood at a time must not depend on what was told later.
    """
    topic = "told.cluster = {0}.cluster AND told.topic = {0}.topic"
    return f"""
        SELECT told.*, coalesce(of_id.incarnation, of_time.incarnation, 1) AS incarnation FROM ({told}) AS told
        LEFT JOIN {lives} AS of_id ON {topic.format("of_id")} AND told.topic_id = of_id.topic_id
            AND told.at_ns >= of_id.began
        LEFT JOIN {lives} AS of_time ON {topic.format("of_time")}
            AND told.at_ns >= of_time.began AND told.at_ns < of_time.ended"""


# Of kafka_topics: names that begin anew, with the incarnation that has the name since then; and those by a deletion.
TOPICS_ANEW = """
    SELECT coalesce(cluster_id, '') AS cluster, topic, incarnation, epoch_ns(ts_from) AS at_ns
    FROM kafka_topics WHERE ts_from IS NOT NULL"""
DELETED_TOPICS = f"{TOPICS_ANEW} AND started_by = 'DeleteTopics'"
# Of kafka_log_ends: the steps of log ends.
LOG_STEPS = """
    SELECT coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition, incarnation,
           epoch_ns(ts) AS at_ns, coalesce(epoch_ns(ts_last), epoch_ns(ts)) AS last_ns, log_end_offset AS log_end,
           log_start_offset AS log_start
    FROM kafka_log_ends WHERE log_end_offset IS NOT NULL"""


def ends_of_bins(ends: str) -> str:
    """A SELECT of log end and start at the end of each bin, of their incarnation, and of the newest answer (`end_ns`).

    ends: the name of rows of LOG_STEPS with the begin of their `bin`, and `here`: false for rows that say how things
    stood before.
    """
    return f"""
        SELECT {PARTITION}, bin, bool_or(here) AS here,
               unnest(arg_max(struct_pack(log_end, log_start, end_ns := last_ns, incarnation), at_ns))
        FROM {ends} GROUP BY {PARTITION}, bin"""


SECOND_NS, MINUTE_NS = 1_000_000_000, 60_000_000_000
# For so many seconds an end counts that later answers do not reach: its own second and those before it.
KEPT_S = 10
_SOURCES = ("Fetch", "ListOffsets", "Produce", "transaction marker", "DeleteRecords")


class Steps(NamedTuple):
    """How logs went on, by log and time; UNKNOWN for what nobody told. place: of the answer among those given.

    last_ns: of the last answer about an end before the next step.
    """

    place: Integers
    log_end: Integers
    log_start: Integers
    last_ns: Integers


def log_steps(logs: Integers, at_ns: Integers, ends: Integers, starts: Integers) -> Steps:
    """The answers from which on a log ends or begins elsewhere, and the first ones of each minute.

    logs: their numbers, small and dense. at_ns: when an answer told it, Unix ns.
    """
    order = np.lexsort((at_ns, logs))
    logs, at_ns, ends = logs[order], at_ns[order], ends[order]
    first = changes(logs)
    end, start = _ends_known(logs, at_ns, ends, first), highest_so_far(starts[order], first)
    # Of answers of one time the last one has what all of them told.
    places = np.flatnonzero(np.append((first | changes(at_ns))[1:], True))
    same = [changes(values[places]) for values in (logs, end, start, at_ns // MINUTE_NS)]
    steps = np.flatnonzero(np.logical_or.reduce(same))
    begins = np.append(0, places[:-1] + 1)[steps] if len(places) else places
    told_ns = np.where(ends == UNKNOWN, UNKNOWN, at_ns)
    last_ns = np.maximum.reduceat(told_ns, begins) if len(begins) else begins
    found = places[steps]
    return Steps(order[found], end[found], start[found], last_ns)


def _ends_known(logs: Integers, at_ns: Integers, ends: Integers, first: Booleans) -> Integers:
    """The log end that was known when each answer came. Rows in the order of logs and times."""
    told = np.flatnonzero(ends != UNKNOWN)
    of_log, seconds, values = logs[told], at_ns[told] // SECOND_NS, ends[told]
    begins = changes(of_log) | changes(seconds)
    starts = np.flatnonzero(begins)
    highest = highest_so_far(values, begins)
    counts = np.diff(np.append(starts, len(told)))
    kept = _kept_before(of_log[starts], seconds[starts], highest[starts + counts - 1])
    known = np.maximum(highest, np.repeat(kept, counts))
    # Between answers about the end the one before holds, within a log.
    last = np.full(len(logs), NOWHERE)
    last[told] = np.arange(len(told))
    last = np.maximum.accumulate(last)
    found: Integers = taken(known, last, UNKNOWN)
    return np.where(taken(of_log, last, NOWHERE) == logs, found, UNKNOWN)


def _kept_before(logs: Integers, seconds: Integers, highest: Integers) -> Integers:
    """The highest end of the seconds before each that still counts in it; UNKNOWN without one.

    They are seconds in which something was told, in the order of logs and seconds, so that few rows lie between.
    """
    kept = np.full(len(logs), UNKNOWN)
    for back in range(1, min(KEPT_S, len(logs))):
        counts = (logs[back:] == logs[:-back]) & (seconds[back:] - seconds[:-back] < KEPT_S)
        np.maximum(kept[back:], np.where(counts, highest[:-back], UNKNOWN), out=kept[back:])
    return kept


# Arrays for so many answers take some 150 MiB.
STEP_ROWS = 1 << 20
_MANY = ("kafka_fetch_partitions", "kafka_produce_batches")
_KEY = ("cluster", "topic", "partition")


def add_topics(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view of `kafka_topics`, which is empty before. Call it once."""
    if views(con) >= {*TOPICS.reads} and any(has_rows(con, table) for table in TOPICS.reads):
        show_made(con, "kafka_topics", _TOPICS)
    return NOTHING


def add_log_ends(con: duckdb.DuckDBPyConnection, held: Held = NOTHING) -> Held:
    """Make the view of `kafka_log_ends`, which is empty before. Call it once.

    held: where it has the table, its rows are given back, and the view is left to the caller.
    """
    if not views(con) >= {*LOG_ENDS.reads}:
        return NOTHING
    return given_or_shown(con, "kafka_log_ends", _pieces(con), held)


def _pieces(con: duckdb.DuckDBPyConnection) -> Iterator[pa.Table]:
    rows = sum(con.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in _MANY)
    shards = shards_of(rows, STEP_ROWS, None)
    con.execute(f"CREATE TEMP TABLE ends_lives AS {LIVES}")
    # Planning takes longer than running on a small capture.
    told = f"{_ANSWERS} UNION ALL {_MARKERS_TOLD}" if has_rows(con, "kafka_transactions") else _ANSWERS
    answers = f"SELECT *, 1::BIGINT AS incarnation FROM ({told})"
    if has_rows(con, "ends_lives"):
        answers = with_life(f"FROM ({told})", "ends_lives")
    for shard in range(shards):
        some = ", ".join(f"{table} AS (FROM ends_{table})" for table in _MANY) if shards > 1 else ""
        for table in _MANY if some else ():
            where = f"({OF_PARTITION} >> 32) % {shards} = {shard}"
            con.execute(f"CREATE OR REPLACE TEMP VIEW ends_{table} AS FROM {table} WHERE {where}")
        query = f"""
            SELECT cluster, topic, partition, incarnation, at_ns, log_end, log_start, source FROM ({answers})
            WHERE partition IS NOT NULL AND at_ns IS NOT NULL"""
        found = columns_of(con, f"WITH {some} {query}" if some else query)
        if len(found["at_ns"]):
            yield _rows(found)
    con.execute("DROP TABLE ends_lives")


def _rows(told: Mapping[str, pa.Array]) -> pa.Table:
    """Rows of the table, of the answers about some partitions."""
    partition, at_ns = Key(told, _KEY), integers(told["at_ns"])
    # A late answer about an incarnation that has ended says nothing of what bears the name now.
    incarnation = integers(told["incarnation"])
    order = np.lexsort((-incarnation, at_ns, partition.numbers))
    current = highest_so_far(incarnation[order], changes(partition.numbers[order])) == incarnation[order]
    places = np.sort(order[current])
    log = Key({name: pc.take(told[name], pa.array(places)) for name in (*_KEY, "incarnation")}, (*_KEY, "incarnation"))
    steps = log_steps(log.numbers, *(integers(told[name])[places] for name in ("at_ns", "log_end", "log_start")))
    found = places[steps.place]

    return pa.table(
        {
            "ts": time_column(at_ns[found]),
            "cluster_id": named_texts(text_column(told["cluster"], found)),
            "topic": named_texts(text_column(told["topic"], found)),
            "partition": pc.take(told["partition"], pa.array(found)),
            "incarnation": pc.take(told["incarnation"], pa.array(found)),
            "log_end_offset": number_column(steps.log_end),
            "log_start_offset": number_column(steps.log_start),
            "ts_last": time_column(steps.last_ns),
            "source": text_column(told["source"], found),
        }
    )
