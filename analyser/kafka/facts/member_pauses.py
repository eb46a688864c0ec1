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
    # Responses that gave more than all before: of these the first one beyond an offset is the first of all.
    "pause_furthest": f"""
        SELECT * FROM (
            SELECT {_PLACE}, coalesce(client_id, '') AS client, client_address, epoch_ns(ts_response) AS given_ns,
                   next_offset, max(next_offset) OVER (
                       PARTITION BY coalesce(cluster_id, ''), coalesce(topic, ''), partition, client_address,
                                    coalesce(client_id, '')
                       ORDER BY ts_response, next_offset
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM kafka_fetch_partitions
            WHERE records_count > 0 AND next_offset IS NOT NULL AND ts_response IS NOT NULL
                AND client_address IN (SELECT client_address FROM pause_places))
        WHERE before IS NULL OR next_offset > before""",
    "pause_given": """
        SELECT places.before_id, places.cluster, places.topic, places.partition, given_ns,
               next_offset AS given_offset
        FROM (SELECT places.*, coalesce(client_id, '') AS client, long.at_ns
              FROM pause_places AS places JOIN pause_long AS long USING (before_id)) AS places
        ASOF JOIN pause_furthest AS given
            ON places.cluster = given.cluster AND places.topic = given.topic AND places.partition = given.partition
            AND places.client_address = given.client_address AND places.client = given.client
            AND places.committed_offset < given.next_offset
        WHERE given_ns < at_ns""",
    "pause_held": f"""
        SELECT long.*, since_ns, in_hand
        FROM pause_long AS long
        JOIN (SELECT before_id, greatest(min(given_ns), min(before_ns)) AS since_ns,
                     sum(given_offset - committed_offset)::BIGINT AS in_hand
              FROM pause_given JOIN pause_places USING (before_id, cluster, topic, partition)
              JOIN pause_long USING (before_id) GROUP BY before_id) AS held USING (before_id)
        WHERE at_ns - since_ns >= {STEPS} * usual_ns""",
    "pause_beats": f"""
        SELECT group_id, member_id, epoch_ns(ts) AS at_ns,
               count(*) OVER (PARTITION BY group_id, member_id ORDER BY ts) AS so_far
        FROM kafka_group_events WHERE {_BEATS} AND ts IS NOT NULL""",
    "pause_waits": f"""
        SELECT held.*, ended.so_far - coalesce(begun.so_far, 0) AS beats
        FROM pause_held AS held
        ASOF JOIN pause_beats AS ended
            ON held.group_id = ended.group_id AND held.member_id = ended.member_id AND held.at_ns > ended.at_ns
        ASOF LEFT JOIN pause_beats AS begun
            ON held.group_id = begun.group_id AND held.member_id = begun.member_id AND held.since_ns >= begun.at_ns
        WHERE ended.so_far - coalesce(begun.so_far, 0) >= {BEATS}""",
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
        f"EXISTS (FROM {_COMMITS}) AND EXISTS (FROM kafka_group_events WHERE {_BEATS})",
        _STEPS,
        _ROWS,
        of="pause_long",
    )
}


def add_pauses(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the view; tables that it is made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, PAUSES.reads)
    return NOTHING
