"""What hours tell in few rows of the context of commits and fetches elsewhere in months; see `kafka_context.py`.

In: the tables of a change. Out: SUMMARIES, and views of what they hold as the context reads it.
"""

from __future__ import annotations

from collections.abc import Collection

import duckdb

from wirewitness.analyser.archive.aggregate.derived import Hour, among, hour_of
from wirewitness.analyser.archive.aggregate.hour_summaries import HourSummary
from wirewitness.analyser.archive.aggregate.lags import ENDS_OF_HOURS, TOPICS_OF_HOURS
from wirewitness.analyser.engine.facts.gaps import is_lost

COMMITS, FETCHES = "kafka_offset_commits", "kafka_fetch_partitions"
_HOUR = hour_of("ts")
_AT = "coalesce(ts_response, ts)"
_MEMBER = "cluster_id, group_id, member_id"
_BEAT = "event = 'consumer_heartbeat' AND coalesce(error_code = 0, false) AND member_id IS NOT NULL"
_STEP = f"coalesce(error_code = 0, false) AND (event = 'leave' OR ({_BEAT} AND generation < 0))"

ASSIGNMENTS = HourSummary(
    "context_assignments_of_hours",
    ("kafka_assignments",),
    f"""
    SELECT {_HOUR} AS hour, ts, exchange_id, cluster_id, group_id, generation, member_id, topic, topic_id, partition,
           source
    FROM kafka_assignments""",
)
# Of heartbeats those count that tell of a generation or a client first, and the last two before lost bytes: those of
# the hour for bytes that are lost later. Answers that come in another hour stay.
EVENTS = HourSummary(
    "context_events_of_hours",
    ("kafka_group_events", "expert_infos"),
    f"""
    WITH events AS (
        SELECT *, {_HOUR} AS hour, {_AT} AS answered, {hour_of(_AT)} <> {_HOUR} AS late FROM kafka_group_events
        WHERE group_id IS NOT NULL AND event <> 'describe'),
    gaps AS (SELECT DISTINCT ts AS gap FROM expert_infos WHERE {is_lost("expert_infos")}),
    beats AS (
        SELECT *, lead(answered, 2) OVER own AS next_but_one FROM events WHERE {_BEAT} AND NOT ({_STEP})
        WINDOW own AS (PARTITION BY hour, {_MEMBER}, late ORDER BY answered))
    SELECT hour, min(answered) AS ts, NULL::TIMESTAMPTZ_NS AS ts_response, NULL AS exchange_id, cluster_id, group_id,
           event, member_id, client_id, client_address, generation, CASE WHEN error_code = 0 THEN 0 END AS error_code
    FROM events WHERE NOT ({_BEAT}) AND NOT ({_STEP})
    GROUP BY ALL
    UNION ALL
    SELECT hour, ts, ts_response, exchange_id, cluster_id, group_id, event, member_id, client_id, client_address,
           generation, error_code
    FROM events WHERE {_STEP}
    UNION ALL
    SELECT hour, ts, ts_response, NULL, cluster_id, group_id, event, member_id, client_id, client_address, generation,
           error_code
    FROM beats ASOF LEFT JOIN gaps ON coalesce(next_but_one, answered) > gap
    QUALIFY late OR next_but_one IS NULL OR gap >= answered OR row_number() OVER (
        PARTITION BY hour, {_MEMBER}, client_id, client_address, generation ORDER BY answered) = 1""",
)
COMMITS_OF_HOURS = HourSummary(
    "context_commits_of_hours",
    (COMMITS,),
    f"""
    SELECT {_HOUR} AS hour, min(ts) AS ts, cluster_id, group_id, member_id, client_id, client_address, generation,
           CASE WHEN error_code = 0 THEN 0 END AS error_code
    FROM {COMMITS} WHERE group_id IS NOT NULL GROUP BY ALL""",
)
FETCHERS = HourSummary(
    "context_fetchers_of_hours",
    (FETCHES,),
    f"""
    SELECT DISTINCT {_HOUR} AS hour, coalesce(cluster_id, '') AS cluster, coalesce(client_address, '') AS address,
           coalesce(client_id, '') AS client_id
    FROM {FETCHES}""",
)
LOST = HourSummary(
    "context_lost_of_hours",
    ("expert_infos",),
    f"""
    SELECT DISTINCT {_HOUR} AS hour, ts, "group", code, flow_id FROM expert_infos WHERE {is_lost("expert_infos")}""",
)
SUMMARIES = (ASSIGNMENTS, EVENTS, COMMITS_OF_HOURS, FETCHERS, LOST, ENDS_OF_HOURS, TOPICS_OF_HOURS)
TABLES = tuple(dict.fromkeys(table for summary in SUMMARIES for table in summary.tables))

# The last steps of hours as rows of `kafka_log_ends`.
LAST_STEPS = f"""
    SELECT hour, make_timestamp_ns(at_ns)::TIMESTAMPTZ_NS AS ts, nullif(cluster, '') AS cluster_id,
           nullif(topic, '') AS topic, partition, incarnation, log_end AS log_end_offset
    FROM {ENDS_OF_HOURS.name}"""


def knowledge(
    con: duckdb.DuckDBPyConnection, prefix: str = "", *, whole: str | None = None, without: Collection[Hour] = ()
) -> None:
    """Views of what the summaries hold, as the context reads it. whole: commits that stand for those of some hours."""
    for name, summary in (
        ("kafka_assignments", ASSIGNMENTS),
        ("kafka_group_events", EVENTS),
        ("expert_infos", LOST),
        ("kafka_topics", TOPICS_OF_HOURS),
    ):
        con.execute(f"CREATE TEMP VIEW {prefix}{name} AS SELECT * EXCLUDE hour FROM {summary.name}")
    commits = f"SELECT * EXCLUDE hour FROM {COMMITS_OF_HOURS.name} WHERE NOT {among('hour', without)}"
    both = commits if whole is None else f"FROM ({whole}) UNION ALL BY NAME {commits}"
    con.execute(f"CREATE TEMP VIEW {prefix}{COMMITS} AS {both}")
