"""Commits that had failed before, accepted over newer ones.

In: the views of `committed_views.py`, Kafka's commits. Out: SELECTs of `row` and columns of `kafka_committed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import duckdb

from wirewitness.analyser.engine.facts.topics import has_rows
from wirewitness.analyser.kafka.facts.commit_reading import Reading, made
from wirewitness.analyser.kafka.facts.committed_steps import ANSWERED_NS, CLIENT, OWN_CLIENT
from wirewitness.analyser.kafka.facts.committed_views import BASE, BEFORE, READERS

SOON_S = 5
_FAILED, _RESTORED, _TURNED = "committed_failed", "committed_restored", "committed_turned_highest"
# One whose answer the capture lost may have been accepted.
_FAILED_SQL = f"""
    SELECT failed.*, reader FROM (
        SELECT coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
               coalesce(topic, topic_id, '') AS topic, partition, {OWN_CLIENT}, committed_offset,
               {ANSWERED_NS} AS at_ns, epoch_ns(ts) AS sent_ns, exchange_id, request_packet, error_code
        FROM kafka_offset_commits WHERE committed_offset >= 0 AND coalesce(error_code <> 0, client_gap_ts IS NULL))
        AS failed JOIN {READERS} USING ({CLIENT})"""
# The same offset of the same client failed just before it was accepted, and a higher one stood.
_RESTORED_SQL = f"""
    WITH again AS (
        SELECT * FROM (
            SELECT *, lag(row IS NULL) OVER same AS is_again, lag(sent_ns) OVER same AS failed_ns,
                   lag(error_code) OVER same AS failed_error_code, lag(exchange_id) OVER same AS failed_exchange_id,
                   lag(request_packet) OVER same AS failed_request_packet
            FROM (FROM {_FAILED} UNION ALL BY NAME
                  SELECT row, part, reader, group_id, committed_offset, at_ns, sent_ns, request_packet
                  FROM {BASE} SEMI JOIN {_FAILED} USING (reader, group_id, committed_offset))
            WINDOW same AS (PARTITION BY reader, group_id, committed_offset
                            ORDER BY at_ns, sent_ns, request_packet))
        WHERE row IS NOT NULL AND is_again),
    heights AS (
        SELECT row, part, step, sent_ns, committed_offset,
               max(committed_offset) OVER (PARTITION BY part ORDER BY step {BEFORE}) AS highest
        FROM {BASE} SEMI JOIN again USING (part)),
    peaks AS (
        SELECT row, highest, committed_offset,
               last_value(CASE WHEN committed_offset >= coalesce(highest, 0) THEN sent_ns END IGNORE NULLS)
                   OVER before AS highest_ns,
               last_value(CASE WHEN committed_offset >= coalesce(highest, 0) THEN row END IGNORE NULLS)
                   OVER before AS highest_row
        FROM heights WINDOW before AS (PARTITION BY part ORDER BY step {BEFORE}))
    SELECT again.*, highest_ns, highest_row
    FROM again JOIN (FROM peaks WHERE highest > committed_offset) AS peaks USING (row)"""
_FAILURES = f"""
    SELECT row, make_timestamp_ns(failed_ns)::TIMESTAMPTZ_NS AS ts_failed, failed_error_code, failed_exchange_id,
           failed_request_packet, own_highest_soon
    FROM {_RESTORED} JOIN (
        SELECT row, max(committed_offset) OVER (
            PARTITION BY part, reader
            ORDER BY at_ns RANGE BETWEEN CURRENT ROW AND {SOON_S * 10**9} FOLLOWING) AS own_highest_soon
        FROM {BASE} SEMI JOIN {_RESTORED} USING (part, reader)) USING (row)"""


def restored(con: duckdb.DuckDBPyConnection, stack: ExitStack, reading: Reading) -> Iterator[str]:
    """SELECTs; none where no commit failed. stack: drops what they read."""
    made(con, stack, _FAILED, _FAILED_SQL)
    if not has_rows(con, _FAILED) or not has_rows(con, made(con, stack, _RESTORED, _RESTORED_SQL)):
        return
    asks = f"SELECT row, reader, highest_ns AS since_ns, sent_ns AS at_ns, committed_offset AS stored FROM {_RESTORED}"
    yield _FAILURES
    yield f"SELECT highest_row AS row, true AS sent_again_over FROM {_RESTORED}"
    yield f"SELECT row, true AS read_since_highest FROM {reading.turned(_TURNED, asks)}"
