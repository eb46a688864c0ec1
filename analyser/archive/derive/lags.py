"""The table `kafka_lag_minutes`: how far each group was behind on each partition, minute by minute, and who committed.

In: a change whose commits have their context. Out: the table's parts of the hours that came out otherwise. A minute has
a row where the group committed or the log's end was seen, so a group that stopped committing shows as growing lag.

What an hour needs of those before it are the last commits and log ends. They are kept for each hour, so that a run
reads the hours that changed and those behind the first change that matters to them.
"""

from __future__ import annotations

import duckdb

from analyser.archive.dataset.change import Change
from analyser.archive.derive.derived import (
    Hour,
    among,
    change_connection,
    hour_of,
    hour_of_ns,
    parts_by_hour,
    replace_changed_hours,
    together,
    view_of,
)
from analyser.archive.derive.hour_summaries import HourSummary, differing, summarise

TABLE = "kafka_lag_minutes"
MINUTE_NS = 60_000_000_000
# Of two commits at the same time the one that the broker answered last stands.
_ANSWERED = "epoch_ns(coalesce(ts_response, ts))"
_PARTITION = "cluster, topic, partition"
_GROUP = "cluster, group_id, topic, partition"


def _minute(time: str) -> str:
    return f"({time} - {time} % {MINUTE_NS})"


# As in `analyser/context/enrich.py`: a log end counts from the answer that told it, an unknown cluster is its own.
_COMMITS = f"""
    SELECT {hour_of("ts")} AS hour, coalesce(cluster_id, '') AS cluster, coalesce(group_id, '') AS group_id,
           coalesce(topic, topic_id, '') AS topic, partition, {_ANSWERED} AS at_ns,
           error_code = 0 AS accepted, exchange_id, committed_offset, response_packet, member_id, client_id,
           client_address, generation
    FROM kafka_offset_commits WHERE error_code IS NOT NULL AND partition IS NOT NULL"""
_ENDS = f"""
    SELECT {hour_of("ts")} AS hour, coalesce(cluster_id, '') AS cluster, coalesce(topic, topic_id, '') AS topic,
           partition, {_ANSWERED} AS at_ns, high_watermark AS log_end
    FROM kafka_fetch_partitions WHERE high_watermark >= 0
    UNION ALL
    SELECT {hour_of("ts")}, coalesce(cluster_id, ''), coalesce(topic, ''), partition, epoch_ns(ts), "offset"
    FROM kafka_list_offsets WHERE "timestamp" = -1 AND "offset" >= 0"""
_LAST_COMMIT = """
    max(at_ns) FILTER (accepted) AS at_ns,
    arg_max(struct_pack(committed_offset, member_id, client_id, client_address, generation),
            struct_pack(at_ns, response_packet, exchange_id)) FILTER (accepted) AS last"""
_LAST_END = "max(at_ns) AS at_ns, arg_max(log_end, struct_pack(at_ns, log_end)) AS log_end"

# `at_hour` is the hour of the answer; the rows lie in the hour of the request.
COMMITS_OF_HOURS = HourSummary(
    "lag_commits_of_hours",
    ("kafka_offset_commits",),
    f"SELECT hour, {hour_of_ns('at_ns')} AS at_hour, {_GROUP}, {_LAST_COMMIT} FROM ({_COMMITS}) GROUP BY ALL",
)
# Ends that were told more than an hour late stay as they are: the context, too, reads only neighbouring hours.
ENDS_OF_HOURS = HourSummary(
    "log_ends_of_hours",
    ("kafka_fetch_partitions", "kafka_list_offsets"),
    f"""
    SELECT * EXCLUDE late FROM (
        SELECT hour, at_hour, {_PARTITION}, CASE WHEN at_hour > hour + 1 THEN at_ns END AS late, {_LAST_END}
        FROM (SELECT *, {hour_of_ns("at_ns")} AS at_hour FROM ({_ENDS})) GROUP BY ALL)""",
)
_SUMMARIES = (COMMITS_OF_HOURS, ENDS_OF_HOURS)

# What minutes of the hours that are made need: their own rows, and the last ones of each hour before.
_STEPS = {
    "lag_counts": f"""
        SELECT {_GROUP}, {_minute("at_ns")} AS minute, count(*) FILTER (accepted) AS commits,
               count(*) FILTER (NOT accepted) AS rejected,
               count(DISTINCT struct_pack(client_address, client_id, member_id)) FILTER (accepted) AS committers,
               min(committed_offset) FILTER (accepted) AS lowest_offset,
               max(committed_offset) FILTER (accepted) AS highest_offset
        FROM ({_COMMITS}) WHERE {{made}} GROUP BY ALL""",
    "lag_last": f"""
        SELECT {_GROUP}, {_minute("at_ns")} AS minute, at_ns, unnest(last) FROM (
            SELECT {_GROUP}, {_LAST_COMMIT} FROM ({_COMMITS}) WHERE {{made}}
            GROUP BY {_GROUP}, {_minute("at_ns")}
            UNION ALL
            SELECT {_GROUP}, at_ns, last FROM {COMMITS_OF_HOURS.name} WHERE {{earlier}})
        WHERE at_ns IS NOT NULL""",
    "lag_ends": f"""
        SELECT {_PARTITION}, {_minute("at_ns")} AS minute, {_LAST_END}, bool_or(here) AS here FROM (
            SELECT {_PARTITION}, at_ns, log_end, true AS here FROM ({_ENDS}) WHERE {{made}}
            UNION ALL
            SELECT {_PARTITION}, at_ns, log_end, false FROM {ENDS_OF_HOURS.name} WHERE {{earlier}})
        GROUP BY ALL""",
    "lag_minutes": """
        SELECT cluster, group_id, topic, partition, minute FROM lag_counts
        UNION
        SELECT groups.cluster, groups.group_id, groups.topic, groups.partition, ends.minute
        FROM (SELECT cluster, group_id, topic, partition, min(minute) AS first FROM lag_last GROUP BY ALL) AS groups
        JOIN lag_ends AS ends ON groups.cluster = ends.cluster AND groups.topic = ends.topic
            AND groups.partition = ends.partition AND ends.minute >= groups.first AND ends.here""",
}
_ROWS = """
    SELECT make_timestamp_ns(minutes.minute)::TIMESTAMPTZ_NS AS ts, nullif(minutes.cluster, '') AS cluster_id,
           nullif(minutes.group_id, '') AS group_id, nullif(minutes.topic, '') AS topic, minutes.partition,
           last.committed_offset, make_timestamp_ns(last.at_ns)::TIMESTAMPTZ_NS AS ts_commit,
           ends.log_end AS log_end_offset, greatest(ends.log_end - last.committed_offset, 0) AS lag,
           last.member_id, last.client_id, last.client_address, last.generation,
           coalesce(counts.commits, 0) AS commits, coalesce(counts.rejected, 0) AS rejected,
           coalesce(counts.committers, 0) AS committers, counts.lowest_offset, counts.highest_offset
    FROM lag_minutes AS minutes
    ASOF JOIN lag_last AS last
        ON minutes.cluster = last.cluster AND minutes.group_id = last.group_id AND minutes.topic = last.topic
        AND minutes.partition = last.partition AND minutes.minute >= last.minute
    ASOF LEFT JOIN lag_ends AS ends
        ON minutes.cluster = ends.cluster AND minutes.topic = ends.topic AND minutes.partition = ends.partition
        AND minutes.minute >= ends.minute
    LEFT JOIN lag_counts AS counts
        ON minutes.cluster = counts.cluster AND minutes.group_id = counts.group_id AND minutes.topic = counts.topic
        AND minutes.partition = counts.partition AND minutes.minute = counts.minute"""


def run_lags(change: Change) -> set[Hour]:
    """Make the rows of all hours anew that can have changed; the hours that were written."""
    if not change.parts("kafka_offset_commits") and not change.parts(TABLE):
        return set()
    tables = tuple(table for summary in _SUMMARIES for table in summary.tables)
    written: set[Hour] = set()
    with change_connection(change) as con:
        anew = {summary: summarise(con, change, summary) for summary in _SUMMARIES}
        hours = _touched(con, change, anew)
        sources = parts_by_hour(change.parts(), tables)
        lie_in = _lie_in(con)
        needed = {hour: [part for one in lie_in.get(hour, ()) for part in sources[one]] for hour in hours}
        for made, several in together(needed):
            parts = dict.fromkeys(several)
            for table in tables:
                view_of(con, change, table, parts)
            for name, query in _STEPS.items():
                con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query.format_map(_conditions(made))}")
            written |= replace_changed_hours(con, change, TABLE, _ROWS, made)
    return written


def _touched(con: duckdb.DuckDBPyConnection, change: Change, anew: dict[HourSummary, set[Hour]]) -> set[Hour]:
    """Hours whose rows can have changed: those of answers of changed hours, and all behind another last row."""
    found: set[Hour] = set()
    for summary, hours in anew.items():
        both = f"(SELECT * FROM {summary.name} WHERE {among('hour', hours)} UNION ALL FROM {summary.before})"
        found |= {int(one) for (one,) in con.execute(f"SELECT DISTINCT at_hour FROM {both}").fetchall()}
    others = " UNION ALL ".join(f"SELECT at_hour FROM ({differing(*one)})" for one in anew.items())
    first = con.execute(f"SELECT min(at_hour) FROM ({others})").fetchall()[0][0]
    if first is not None:
        there = parts_by_hour(change.parts(TABLE), [TABLE]).keys()
        found |= {hour for hour in there | _lie_in(con).keys() if hour is not None and hour >= first}
    return found


def _lie_in(con: duckdb.DuckDBPyConnection) -> dict[Hour, set[Hour]]:
    """Hours of answers -> hours of the parts that hold them."""
    every = " UNION ".join(f"SELECT at_hour, hour FROM {summary.name}" for summary in _SUMMARIES)
    found: dict[Hour, set[Hour]] = {}
    for at_hour, hour in con.execute(every).fetchall():
        found.setdefault(int(at_hour), set()).add(None if hour is None else int(hour))
    return found


def _conditions(made: set[Hour]) -> dict[str, str]:
    last = max(hour for hour in made if hour is not None)
    return {
        "made": among(hour_of_ns("at_ns"), made),
        "earlier": f"at_hour < {last} AND NOT {among('at_hour', made)}",
    }
