"""Members that stood still while they lived: `kafka_member_pauses`, with records in hand that nobody handled.

In: a connection with views of kafka_offset_commits, kafka_group_events and kafka_fetch_partitions, `cluster_id` and
`topic` filled in. Out: the view of the table. The only place that says it.

A pause lies between two commits of one member in one generation: STEPS times its usual gap, and OTHERS times the second
longest one. It counts from the first response on that gave records beyond what was committed, so that a quiet topic, a
transaction that stays open and a slow link are none; its heartbeats went on, BEATS of them, so that neither a frozen
process nor a frozen coordinator is one.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import NOTHING, PAUSES, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.kafka.facts.lag import lag_behind

STEPS = 5
OTHERS = 2
BEATS = 3
# Gaps that say what is usual.
_LEAST = 5
_MEMBER = "cluster, group_id, member_id, generation"
_PLACE = "coalesce(cluster_id, '') AS cluster, coalesce(topic, '') AS topic, partition"
_COMMITS = "kafka_offset_commits WHERE member_id <> '' AND generation >= 0 AND committed_offset >= 0"
_BEATS = "event IN ('heartbeat', 'consumer_heartbeat') AND error_code = 0"

_STEPS = {
    "pause_gaps": f"""
        SELECT *, at_ns - before_ns AS gap_ns
        FROM (SELECT coalesce(cluster_id, '') AS cluster, group_id, member_id, generation, epoch_ns(ts) AS at_ns,
                     lag(epoch_ns(ts)) OVER own AS before_ns, exchange_id, lag(exchange_id) OVER own AS before_id
              FROM {_COMMITS}
              WINDOW own AS (PARTITION BY coalesce(cluster_id, ''), group_id, member_id, generation
                             ORDER BY ts, exchange_id))
        WHERE exchange_id <> before_id""",
    "pause_long": f"""
        SELECT gaps.*, usual_ns
        FROM pause_gaps AS gaps JOIN (
            SELECT {_MEMBER}, median(gap_ns) AS usual_ns, max(gap_ns, 2) AS longest FROM pause_gaps
            GROUP BY ALL HAVING count(*) > {_LEAST}) AS members USING ({_MEMBER})
        WHERE gap_ns >= {STEPS} * usual_ns AND gap_ns = longest[1] AND gap_ns >= {OTHERS} * longest[2]""",
    # What the member had committed before, and what the next commits have.
    "pause_places": """
        SELECT long.before_id, cluster, coalesce(commits.topic, '') AS topic, commits.partition,
               any_value(commits.client_id) AS client_id, any_value(commits.client_address) AS client_address,
               arg_max(committed_offset, commits.ts) FILTER (epoch_ns(commits.ts) <= before_ns) AS committed_offset,
               max(committed_offset) FILTER (commits.exchange_id = long.exchange_id) AS next_committed,
               arg_min(log_end_offset, commits.ts) FILTER (epoch_ns(commits.ts) >= at_ns) AS log_end_offset,
               arg_max(struct_pack(file, request_packet), commits.ts) FILTER (epoch_ns(commits.ts) <= before_ns)
                   AS place
        FROM pause_long AS long JOIN kafka_offset_commits AS commits
            ON long.cluster = coalesce(commits.cluster_id, '') AND long.group_id = commits.group_id
            AND long.member_id = commits.member_id AND long.generation = commits.generation
        GROUP BY ALL""",
    "pause_given": f"""
        SELECT before_id, places.cluster, places.topic, places.partition,
               min(epoch_ns(given.ts_response)) AS given_ns,
               arg_min(given.next_offset, given.ts_response) AS given_offset
        FROM pause_places AS places JOIN pause_long AS long USING (before_id)
        JOIN (SELECT {_PLACE}, client_id, client_address, ts_response, next_offset FROM kafka_fetch_partitions
              WHERE records_count > 0 AND next_offset IS NOT NULL
                AND client_address IN (SELECT client_address FROM pause_places)) AS given
            ON places.cluster = given.cluster AND places.topic = given.topic AND places.partition = given.partition
            AND places.client_address = given.client_address
            AND places.client_id IS NOT DISTINCT FROM given.client_id
        WHERE given.next_offset > places.committed_offset AND epoch_ns(given.ts_response) < at_ns
        GROUP BY ALL""",
    "pause_held": f"""
        SELECT long.*, since_ns, in_hand
        FROM pause_long AS long
        JOIN (SELECT before_id, greatest(min(given_ns), min(before_ns)) AS since_ns,
                     sum(given_offset - committed_offset)::BIGINT AS in_hand
              FROM pause_given JOIN pause_places USING (before_id, cluster, topic, partition)
              JOIN pause_long USING (before_id) GROUP BY before_id) AS held USING (before_id)
        WHERE at_ns - since_ns >= {STEPS} * usual_ns""",
    "pause_waits": f"""
        SELECT held.*, beats
        FROM pause_held AS held
        JOIN (SELECT before_id, count(*) AS beats
              FROM pause_held AS held JOIN kafka_group_events AS events
                  ON held.group_id = events.group_id AND held.member_id = events.member_id
              WHERE {_BEATS} AND epoch_ns(ts) > since_ns AND epoch_ns(ts) < at_ns GROUP BY before_id) AS alive
            USING (before_id)
        WHERE beats >= {BEATS}""",
}
_ROWS = f"""
    SELECT waits.before_id AS exchange_id, waits.exchange_id AS next_exchange_id,
           make_timestamp_ns(since_ns)::TIMESTAMPTZ_NS AS ts, make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts_last,
           nullif(waits.cluster, '') AS cluster_id, group_id, member_id, generation,
           any_value(client_id) AS client_id, any_value(client_address) AS client_address,
           usual_ns / 1e6 AS usual_gap_ms, any_value(beats) AS heartbeats, any_value(in_hand) AS records_in_hand,
           sum({lag_behind("log_end_offset")})::BIGINT AS records_behind,
           CASE WHEN count(*) FILTER (moved) = 1 THEN any_value(topic) FILTER (moved) END AS topic,
           CASE WHEN count(*) FILTER (moved) = 1 THEN any_value(partition) FILTER (moved) END AS partition,
           CASE WHEN count(*) FILTER (moved) = 1 THEN any_value(places.committed_offset) FILTER (moved) END
               AS committed_offset,
           count(*) AS partitions, any_value(place.file) AS file, any_value(place.request_packet) AS request_packet
    FROM pause_waits AS waits
    JOIN (SELECT *, coalesce(next_committed > committed_offset, false) AS moved FROM pause_places) AS places
        USING (before_id)
    WHERE places.committed_offset IS NOT NULL
    GROUP BY ALL"""
_MADE = {
    "kafka_member_pauses": Made(
        f"EXISTS (FROM {_COMMITS}) AND EXISTS (FROM kafka_group_events WHERE {_BEATS})", _STEPS, _ROWS
    )
}


def add_pauses(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, PAUSES.reads)
    return NOTHING
